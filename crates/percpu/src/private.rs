//! What [`counter_group!`](crate::counter_group) needs from its place of use. Not part of the API.

pub use pastey::paste;

pub use crate::builder::{Build, Parts};
use crate::error::BatchError;
use crate::slot::LINE_WORDS;
pub use crate::store::Store;

/// The sum of a field, by its kind.
#[expect(
    non_camel_case_types,
    reason = "named by the words of the macro's grammar"
)]
pub mod value {
    pub type plain = u64;
    pub type batched = i64;
}

/// What a field's method gives, by its kind.
#[expect(
    non_camel_case_types,
    reason = "named by the words of the macro's grammar"
)]
pub mod field {
    pub type plain<'a, const L: usize, const F: usize> = crate::CounterField<'a, L, F>;
    pub type batched<'a, const L: usize, const F: usize> = crate::BatchedField<'a, L, F>;
}

/// Line pairs that hold `words`: a power of two, so that a slot's address is a shift of its number.
pub const fn lines(words: usize) -> usize {
    words.div_ceil(LINE_WORDS).next_power_of_two()
}

impl<const L: usize, const F: usize> Store<L, F> {
    pub fn __clear(&mut self) {
        self.clear();
    }

    pub fn __batch(&self) -> u32 {
        self.batch_or_default()
    }

    /// # Errors
    /// As the group's `set_batch`.
    pub fn __try_set_batch(&self, batch: u32) -> Result<(), BatchError> {
        self.set_batch(BatchError::check(batch)?);
        Ok(())
    }

    pub fn __effective(&self) -> crate::Effective {
        self.effective()
    }

    pub fn __overflow_hits(&self) -> u64 {
        self.overflow_hits()
    }

    pub fn __bytes(&self) -> usize {
        self.bytes()
    }
}
