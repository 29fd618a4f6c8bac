//! A level that goes up and down.

use std::sync::atomic::Ordering;

use crate::backend::Effective;
use crate::builder::{Build, Builder, Parts};
use crate::protocol::owner;
use crate::slot::{Slot, SlotLabel, SlotValue};
use crate::store::Store;
use crate::table::Table;

/// Word and early field of the increments.
const UP: usize = 0;
/// Word and early field of the decrements.
const DOWN: usize = 1;

/// How many of something there are now: requests in flight, open files, dirty buffers.
///
/// Never below zero as long as each decrement follows its increment, on whatever thread: ups and downs are
/// counted apart, and read in an order that cannot see a down without its up. One signed slot per thread
/// would dip below zero whenever a reader meets the down first.
///
/// *Ordering*: a decrement releases, and [`sum`](Self::sum) acquires it.
///
/// ```
/// use cairn_percpu::Gauge;
///
/// static OPEN: Gauge = Gauge::new();
/// OPEN.inc();
/// std::thread::spawn(|| OPEN.dec()).join().expect("the thread does not panic");
/// assert_eq!(OPEN.sum(), 0);
/// ```
#[derive(Debug)]
pub struct Gauge {
    store: Store<1, 2>,
}

impl Gauge {
    /// A gauge at 0.
    pub const fn new() -> Self {
        Self {
            store: Store::new(0),
        }
    }

    /// Chooses backend and slots.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes 1 away.
    #[inline(always)]
    pub fn dec(&self) {
        self.sub(1);
    }

    /// Adds `n`.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.store.add(UP, UP, n);
    }

    /// Takes `n` away.
    #[inline(always)]
    pub fn sub(&self, n: u64) {
        self.store.add_release(DOWN, n);
    }

    /// [`add`](Self::add) for signal handlers.
    pub fn add_signal_safe(&self, n: u64) {
        self.store.add_from_signal(UP, UP, n);
    }

    /// [`sub`](Self::sub) for signal handlers.
    pub fn sub_signal_safe(&self, n: u64) {
        match self.store.get() {
            Some(table) => table.add_from_signal(DOWN, n, Ordering::Release),
            None => _ = self.store.early(DOWN).fetch_add(n, Ordering::Release),
        }
    }

    /// The level now.
    pub fn sum(&self) -> i64 {
        let early_down = std::iter::once(self.store.early(DOWN));
        let early_up = std::iter::once(self.store.early(UP));
        match self.store.get() {
            Some(table) => owner::gauge(
                early_down.chain(table.words(DOWN)),
                early_up.chain(table.words(UP)),
            ),
            None => self.sum_without_slots(),
        }
    }

    /// The level while no slots were seen. Decrements first, as ever; and if slots appeared meanwhile, an
    /// increment in them may belong to a decrement that was seen.
    fn sum_without_slots(&self) -> i64 {
        let down = self.store.early(DOWN).load(Ordering::Acquire);
        let up = self.store.sum(UP, UP);
        up.wrapping_sub(down).cast_signed()
    }

    /// Every slot with its label. A slot may well stand below zero: what one thread adds another may take
    /// away. The values add up to [`sum`](Self::sum).
    pub fn slots(&self) -> impl Iterator<Item = SlotValue<i64>> {
        let table = self.store.get();
        let early = self
            .store
            .early(UP)
            .load(Ordering::Relaxed)
            .wrapping_sub(self.store.early(DOWN).load(Ordering::Relaxed))
            .cast_signed();
        let base = (early != 0).then_some((SlotLabel::Base, early));
        table
            .into_iter()
            .flat_map(Table::labelled)
            .map(|(label, slot)| (label, level(slot)))
            .chain(base)
            .map(|(label, value)| SlotValue {
                label,
                value,
                pending: 0,
            })
    }

    /// Forgets what the parent process counted. Without it the child of a fork goes on from the parent's
    /// level.
    pub fn reset_after_fork(&mut self) {
        self.store.clear();
    }

    /// The level so far, and zero from here on.
    pub fn drain(&mut self) -> i64 {
        let sum = self.sum();
        self.store.clear();
        sum
    }

    /// The backend that counts, and why it is that one. Allocates the slots if there are none.
    pub fn backend(&self) -> Effective {
        self.store.effective()
    }

    /// How many calls found no slot of their own and went to a shared overflow slot.
    pub fn overflow_hits(&self) -> u64 {
        self.store.overflow_hits()
    }

    /// Bytes in use, this value included.
    pub fn memory(&self) -> usize {
        self.store.bytes()
    }
}

/// Ups less downs of one slot.
fn level(slot: &Slot<1>) -> i64 {
    let down = slot.word(DOWN).load(Ordering::Acquire);
    let up = slot.word(UP).load(Ordering::Relaxed);
    up.wrapping_sub(down).cast_signed()
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new()
    }
}

impl Build for Gauge {
    fn from_parts(parts: Parts) -> Self {
        Self {
            store: parts.store(0),
        }
    }
}
