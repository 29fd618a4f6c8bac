//! How a counter is made when the defaults do not fit.

use std::marker::PhantomData;

use crate::backend::BackendKind;
use crate::error::BatchError;
use crate::store::Store;
use crate::table::Shape;

/// Chooses backend, slots and batch of a counter or group; made by its `builder()`.
///
/// ```
/// use cairn_percpu::{BackendKind, Counter};
///
/// let hits = Counter::builder()
///     .backend(BackendKind::Owned)
///     .slots(64)
///     .build();
/// hits.inc();
/// assert_eq!(hits.backend().kind(), BackendKind::Owned);
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct Builder<T> {
    shape: Shape,
    batch: Option<u32>,
    writers: u32,
    makes: PhantomData<fn() -> T>,
}

/// A type that [`Builder`] makes.
pub trait Build: Sized {
    #[doc(hidden)]
    fn from_parts(parts: Parts) -> Self;
}

/// What a builder hands over.
#[doc(hidden)]
#[derive(Debug)]
pub struct Parts {
    shape: Shape,
    batch: Option<u32>,
    writers: u32,
}

impl Parts {
    /// A store of these parts.
    #[doc(hidden)]
    pub fn store<const L: usize, const F: usize>(self, batched: u32) -> Store<L, F> {
        Store::with_shape(batched, self.shape, self.batch, self.writers)
    }
}

impl<T: Build> Builder<T> {
    pub(crate) fn new() -> Self {
        Self {
            shape: Shape::default(),
            batch: None,
            writers: 0,
            makes: PhantomData,
        }
    }

    /// For `counter_group!`.
    #[doc(hidden)]
    pub fn __new() -> Self {
        Self::new()
    }

    /// The backend, whatever `CAIRN_PERCPU` says. One that is not available falls back to owned slots, and
    /// `backend()` of the counter then says why.
    pub fn backend(mut self, kind: BackendKind) -> Self {
        self.shape.backend = Some(kind);
        self
    }

    /// At least this many slots: as many as threads add at a time, under the owned backend. Rounded up to a
    /// power of two there. The default is one for each possible CPU, and 16 or more for owned slots.
    pub fn slots(mut self, at_least: usize) -> Self {
        self.shape.at_least = Some(at_least);
        self
    }

    /// At most this many slots, to save memory. Threads or CPUs beyond them share overflow slots, which is
    /// right but slow.
    pub fn max_slots(mut self, at_most: usize) -> Self {
        self.shape.at_most = Some(at_most);
        self
    }

    /// The batch of a batched counter or of a group's batched fields; the default is the larger of 32 and
    /// twice the possible CPUs.
    ///
    /// # Errors
    /// A batch of 0, or one above [`MAX_BATCH`](crate::MAX_BATCH).
    pub fn batch(mut self, batch: u32) -> Result<Self, BatchError> {
        self.batch = Some(BatchError::check(batch)?);
        Ok(self)
    }

    /// How many threads can be inside an add at the same moment (a signal handler that adds counts as one).
    ///
    /// The bounds of a batched counter need it, and with owned slots it is known without being told. Where it
    /// is not, `read_bounds` and `compare` fall back to the exact sum.
    pub fn writers(mut self, at_most: u32) -> Self {
        self.writers = at_most;
        self
    }

    /// Makes the counter, its slots allocated.
    pub fn build(self) -> T {
        T::from_parts(self.into_parts())
    }

    fn into_parts(self) -> Parts {
        Parts {
            shape: self.shape,
            batch: self.batch,
            writers: self.writers,
        }
    }

    /// The bare slots, for a type that is made in another way.
    pub(crate) fn into_store<const L: usize, const F: usize>(self) -> Store<L, F> {
        self.into_parts().store(0)
    }
}
