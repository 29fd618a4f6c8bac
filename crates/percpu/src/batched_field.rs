//! One batched counter of a store: all of what [`Batched`](crate::Batched) does.

use std::cmp::Ordering as Order;
use std::sync::atomic::Ordering;

use crate::slot::{Slot, SlotLabel, SlotValue};
use crate::store::Store;
use crate::table::Table;

/// A batched counter of a [`counter_group!`](crate::counter_group); see [`Batched`](crate::Batched) for what
/// it promises.
#[derive(Debug, Clone, Copy)]
pub struct BatchedField<'a, const L: usize, const F: usize> {
    store: &'a Store<L, F>,
    /// The slot word of the total; the published part is in the next.
    word: usize,
    /// Which early word.
    field: usize,
    /// Which set of shared words.
    shared: usize,
}

impl<'a, const L: usize, const F: usize> BatchedField<'a, L, F> {
    /// The counter at `word`, the `field`th of its store and the `shared`th batched one.
    #[inline(always)]
    pub(crate) fn new(store: &'a Store<L, F>, word: usize, field: usize, shared: usize) -> Self {
        Self {
            store,
            word,
            field,
            shared,
        }
    }

    /// For `counter_group!`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn __new(store: &'a Store<L, F>, word: usize, field: usize, shared: usize) -> Self {
        Self::new(store, word, field, shared)
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(self) {
        self.add(1);
    }

    /// Adds `n`, which may be negative, modulo 2^64.
    #[inline(always)]
    pub fn add(self, n: i64) {
        self.store.add_batched(self.word, self.shared, n);
    }

    /// Adds `n` from a signal handler.
    pub fn add_signal_safe(self, n: i64) {
        match self.store.get() {
            Some(table) => table.add_past(self.shared, n),
            None => {
                _ = self
                    .store
                    .early(self.field)
                    .fetch_add(n.cast_unsigned(), Ordering::Release);
            }
        }
    }

    /// The approximate sum: two loads, however many slots there are.
    #[inline]
    pub fn read(self) -> i64 {
        let early = self.store.early(self.field).load(Ordering::Acquire);
        let central = self.store.get().map_or(0, |table| {
            table
                .batch_words(self.shared)
                .central
                .load(Ordering::Acquire)
        });
        central.wrapping_add(early).cast_signed()
    }

    /// The exact sum, modulo 2^64. Looks at every slot.
    pub fn sum(self) -> i64 {
        let early = self.store.early(self.field).load(Ordering::Acquire);
        let slots = self.store.get().map_or(0, |table| {
            let base = table.batch_words(self.shared).base;
            let totals = table.sum(self.word);
            totals.wrapping_add(base.load(Ordering::Acquire))
        });
        slots.wrapping_add(early).cast_signed()
    }

    /// How far [`read`](Self::read) may be from [`sum`](Self::sum) while no add is running: the slots in use
    /// times one less than the batch.
    ///
    /// After a batch was lowered, slots may still hold residues that the larger one allowed; until they have
    /// folded, each counts with what it really holds. See [`Batched::set_batch`](crate::Batched::set_batch).
    pub fn bound(self) -> u64 {
        let Some(table) = self.store.get() else {
            return 0;
        };
        let limit = u64::from(self.store.batch_or_default()) - 1;
        let slots = table.slots_in_use();
        if !self.store.lowered() {
            return limit.saturating_mul(slots.len() as u64);
        }
        let high = u64::from(self.store.high_batch()) - 1;
        slots
            .iter()
            .map(|slot| residue(slot, self.word).unsigned_abs().clamp(limit, high))
            .fold(0, u64::saturating_add)
    }

    /// How far `read` may be off, adds that are running included; none where the number of writers is not
    /// known.
    fn bound_while_adding(self) -> Option<u64> {
        let writers = self.store.writers()?;
        let in_flight = self.store.get().map_or(0, |table| {
            let largest = table
                .batch_words(self.shared)
                .largest
                .load(Ordering::Relaxed);
            // Between its commit and its addition to the approximate sum, an add hides a residue below the
            // batch and its own amount; one past the slots hides its amount.
            let below = 2 * (u64::from(self.store.high_batch()) - 1);
            below.max(largest)
        });
        Some(
            self.bound()
                .saturating_add(writers.saturating_mul(in_flight)),
        )
    }

    /// Between which values the exact sum is, at the moment of the call and with adds running.
    ///
    /// Where the number of threads that may be inside an add is not known (see
    /// [`Builder::writers`](crate::Builder::writers)), both ends are the exact sum, which looks at every slot.
    pub fn read_bounds(self) -> (i64, i64) {
        let read = self.read();
        if let Some(bound) = self.bound_while_adding() {
            let low = read.saturating_sub_unsigned(bound);
            return (low, read.saturating_add_unsigned(bound));
        }
        let sum = self.sum();
        (sum, sum)
    }

    /// How the exact sum compares to `rhs`. Looks at the slots only when the approximate sum is too close to
    /// tell.
    pub fn compare(self, rhs: i64) -> Order {
        // A bound that has to look at every slot saves nothing.
        if !self.store.lowered() {
            let read = self.read();
            if let Some(bound) = self.bound_while_adding()
                && i128::from(read).abs_diff(i128::from(rhs)) > u128::from(bound)
            {
                return read.cmp(&rhs);
            }
        }
        self.sum().cmp(&rhs)
    }

    /// Publishes what the calling thread's (or this CPU's) slot holds back.
    pub fn sync(self) {
        if let Some(table) = self.store.get() {
            table.sync(self.word, self.shared);
        }
    }

    /// Every slot with its label, total and unpublished part; the values add up to [`sum`](Self::sum), and
    /// the pending parts to its difference from [`read`](Self::read).
    pub fn slots(self) -> impl Iterator<Item = SlotValue<i64>> + use<'a, L, F> {
        let table = self.store.get();
        let word = self.word;
        let base = table.map_or(0, |table| {
            let base = table.batch_words(self.shared).base;
            base.load(Ordering::Acquire)
        });
        let early = self.store.early(self.field).load(Ordering::Acquire);
        let base = (SlotLabel::Base, base.wrapping_add(early).cast_signed(), 0);
        table
            .into_iter()
            .flat_map(Table::labelled)
            .filter(|(label, _)| !matches!(label, SlotLabel::Overflow(_)))
            .map(move |(label, slot)| {
                let value = slot.word(word).load(Ordering::Relaxed).cast_signed();
                (label, value, residue(slot, word))
            })
            .chain(std::iter::once(base))
            .map(|(label, value, pending)| SlotValue {
                label,
                value,
                pending,
            })
    }
}

/// What a slot holds that is not published.
fn residue<const L: usize>(slot: &Slot<L>, word: usize) -> i64 {
    let total = slot.word(word).load(Ordering::Relaxed);
    let published = slot.word(word + 1).load(Ordering::Relaxed);
    total.wrapping_sub(published).cast_signed()
}
