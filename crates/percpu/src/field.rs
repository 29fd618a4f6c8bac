//! One counter of a store: what a plain field of a group gives, and what a [`Counter`](crate::Counter) is.

use std::sync::atomic::Ordering;

use crate::counter::CounterOps;
use crate::handle::Handle;
use crate::slot::{SlotLabel, SlotValue};
use crate::store::Store;
use crate::table::Table;

/// A plain counter of a [`counter_group!`](crate::counter_group).
#[derive(Debug, Clone, Copy)]
pub struct CounterField<'a, const L: usize, const F: usize> {
    store: &'a Store<L, F>,
    word: usize,
    field: usize,
}

impl<'a, const L: usize, const F: usize> CounterField<'a, L, F> {
    /// The counter at `word`, the `field`th of its store.
    #[inline(always)]
    pub(crate) fn new(store: &'a Store<L, F>, word: usize, field: usize) -> Self {
        Self { store, word, field }
    }

    /// For `counter_group!`, with the arguments of a batched field.
    #[doc(hidden)]
    #[inline(always)]
    pub fn __new(store: &'a Store<L, F>, word: usize, field: usize, _shared: usize) -> Self {
        Self::new(store, word, field)
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(self) {
        self.add(1);
    }

    /// Adds `n`, modulo 2^64.
    #[inline(always)]
    pub fn add(self, n: u64) {
        self.store.add(self.word, self.field, n);
    }

    /// Adds `n` from a signal handler.
    pub fn add_signal_safe(self, n: u64) {
        self.store.add_from_signal(self.word, self.field, n);
    }

    /// The total, modulo 2^64.
    #[inline]
    pub fn sum(self) -> u64 {
        self.store.sum(self.word, self.field)
    }

    /// The calling thread's slot, found once.
    #[inline(always)]
    pub fn handle(self) -> Handle<'a, L, F> {
        Handle::new(self.store, self.word, self.field)
    }

    /// Every slot with its label; the values add up to the sum.
    pub fn slots(self) -> impl Iterator<Item = SlotValue<u64>> + use<'a, L, F> {
        let Self { store, word, field } = self;
        let table = store.get();
        let early = store.early(field).load(Ordering::Relaxed);
        let base = (early != 0).then_some((SlotLabel::Base, early));
        table
            .into_iter()
            .flat_map(Table::labelled)
            .map(move |(label, slot)| (label, slot.word(word).load(Ordering::Relaxed)))
            .chain(base)
            .map(|(label, value)| SlotValue {
                label,
                value,
                pending: 0,
            })
    }
}

impl<const L: usize, const F: usize> CounterOps for CounterField<'_, L, F> {
    #[inline(always)]
    fn inc(&self) {
        (*self).inc();
    }

    #[inline(always)]
    fn add(&self, n: u64) {
        (*self).add(n);
    }

    #[inline]
    fn sum(&self) -> u64 {
        (*self).sum()
    }
}
