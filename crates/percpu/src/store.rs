//! What every counter type is made of: slots that appear when first needed, and words for the time before.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::backend::Effective;
use crate::cpus;
use crate::protocol::batch;
use crate::protocol::owner;
use crate::slots::{Found, Slots};
use crate::table::{Shape, Table};
use crate::thread;

/// Promotion: allocate slots at the first use.
const AT_ONCE: u32 = 0;
/// Promotion: allocate slots when a second thread comes; nobody came yet.
const NOBODY: u32 = u32::MAX;

/// Slots of `L` line pairs for `F` fields.
pub struct Store<const L: usize, const F: usize> {
    slots: Slots<L>,
    /// Batch of the batched fields; 0 until the slots exist, unless chosen before.
    batch: AtomicU32,
    /// The largest batch that may be in use.
    high_batch: AtomicU32,
    /// Threads that may be inside a batched add at once; 0 if nobody said.
    writers: AtomicU32,
    /// Promotion: `AT_ONCE`, `NOBODY`, or the hint of the first thread.
    first: AtomicU32,
    /// Whether a batch was lowered, so that residues above it may be left.
    lowered: AtomicBool,
    /// Shared words of batched fields that the slots need.
    batched: u32,
    /// What was added before there were slots.
    early: [AtomicU64; F],
}

impl<const L: usize, const F: usize> Store<L, F> {
    /// A store with `batched` batched fields, whose slots are allocated at the first use.
    pub const fn new(batched: u32) -> Self {
        Self {
            slots: Slots::new(),
            batch: AtomicU32::new(0),
            high_batch: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            first: AtomicU32::new(AT_ONCE),
            lowered: AtomicBool::new(false),
            batched,
            early: [const { AtomicU64::new(0) }; F],
        }
    }

    /// A store that stays one word per field until a second thread adds.
    pub(crate) const fn cold(batched: u32) -> Self {
        let mut new = Self::new(batched);
        new.first = AtomicU32::new(NOBODY);
        new
    }

    /// A store with slots of `shape`, allocated now.
    pub(crate) fn with_shape(batched: u32, shape: Shape, batch: Option<u32>, writers: u32) -> Self {
        let new = Self::new(batched);
        if let Some(batch) = batch {
            new.set_batch(batch);
        }
        new.writers.store(writers, Ordering::Relaxed);
        new.build(shape);
        new
    }

    /// The slots, if they exist.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Table<L>> {
        self.slots.table()
    }

    /// The slots, allocated now if they do not exist.
    pub(crate) fn table(&self) -> &Table<L> {
        match self.slots.table() {
            Some(table) => table,
            None => self.build(Shape::default()),
        }
    }

    /// Allocates the slots. The batch is known before they are published.
    #[cold]
    #[inline(never)]
    fn build(&self, shape: Shape) -> &Table<L> {
        if self.batch.load(Ordering::Relaxed) == 0 {
            let batch = default_batch();
            self.high_batch.fetch_max(batch, Ordering::Relaxed);
            // A set_batch that came between is kept.
            let _ = self
                .batch
                .compare_exchange(0, batch, Ordering::Release, Ordering::Relaxed);
        }
        let table = Box::new(Table::new(shape, self.batched as usize));
        self.slots.set(table)
    }

    /// The word that stands in for the slots before they exist.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "field numbers are constants of a type or of counter_group!, below F"
    )]
    pub(crate) fn early(&self, field: usize) -> &AtomicU64 {
        &self.early[field]
    }

    /// Adds to a plain field.
    #[inline(always)]
    pub(crate) fn add(&self, word: usize, field: usize, n: u64) {
        match self.slots.find(word) {
            Found::Own(slot) => owner::add(slot.word(word), n),
            Found::PerCpu(words) if words.add(n) => {}
            _ => self.add_slow(word, field, n),
        }
    }

    /// The add that finds no slot at first sight.
    #[cold]
    #[inline(never)]
    pub(crate) fn add_slow(&self, word: usize, field: usize, n: u64) {
        if self.slots.table().is_none() && self.alone() {
            self.early(field).fetch_add(n, Ordering::Relaxed);
        } else {
            self.table().add_slow(word, n, Ordering::Relaxed);
        }
    }

    /// Adds to the decrement half of a gauge, with a store that releases.
    #[inline(always)]
    pub(crate) fn add_release(&self, word: usize, n: u64) {
        match self.slots.find(word) {
            Found::Own(slot) => owner::add_release(slot.word(word), n),
            Found::PerCpu(words) if words.add_release(n) => {}
            _ => self.add_release_slow(word, n),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_release_slow(&self, word: usize, n: u64) {
        self.table().add_slow(word, n, Ordering::Release);
    }

    /// Adds to a batched field.
    #[inline(always)]
    pub(crate) fn add_batched(&self, word: usize, shared: usize, n: i64) {
        let batch = self.batch();
        if n.unsigned_abs() < u64::from(batch) {
            match self.slots.find(word) {
                Found::Own(slot) => {
                    let (total, published) = (slot.word(word), slot.word(word + 1));
                    if let Some(residue) = batch::add_owned(total, published, n, batch) {
                        self.publish(shared, residue);
                    }
                    return;
                }
                Found::PerCpu(words) => {
                    let shared = || self.table().batch_words(shared);
                    return batch::add_on_cpu(&words, shared, n, batch);
                }
                Found::Neither => {}
            }
        }
        self.add_batched_slow(word, shared, n);
    }

    /// The fold, once per batch.
    #[cold]
    #[inline(never)]
    fn publish(&self, shared: usize, residue: i64) {
        self.table().publish(shared, residue);
    }

    /// The batched add that finds no slot at first sight, or fills a batch on its own.
    #[cold]
    #[inline(never)]
    fn add_batched_slow(&self, word: usize, shared: usize, n: i64) {
        let table = self.table();
        table.add_batched_slow(word, shared, n, self.batch());
    }

    /// Whether promotion is on and the caller is the only thread that has added.
    fn alone(&self) -> bool {
        let first = self.first.load(Ordering::Relaxed);
        if first == AT_ONCE {
            return false;
        }
        let me = thread::hint();
        first == me
            || first == NOBODY
                && self
                    .first
                    .compare_exchange(NOBODY, me, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
    }

    /// Adds from a signal handler.
    pub(crate) fn add_from_signal(&self, word: usize, field: usize, n: u64) {
        match self.slots.table() {
            Some(table) => table.add_from_signal(word, n, Ordering::Relaxed),
            None => _ = self.early(field).fetch_add(n, Ordering::Relaxed),
        }
    }

    /// Sum of a plain field.
    #[inline]
    pub(crate) fn sum(&self, word: usize, field: usize) -> u64 {
        let slots = self.slots.table().map_or(0, |table| table.sum(word));
        // After the look at the slots: what was added early stays there for good.
        slots.wrapping_add(self.early(field).load(Ordering::Relaxed))
    }

    pub(crate) fn effective(&self) -> Effective {
        self.table().effective().clone()
    }

    pub(crate) fn overflow_hits(&self) -> u64 {
        self.slots.table().map_or(0, Table::overflow_hits)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.slots.table().map_or(0, Table::bytes)
    }

    /// The batch in force.
    #[inline]
    pub(crate) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    /// The batch in force, before the first use too.
    pub(crate) fn batch_or_default(&self) -> u32 {
        match self.batch() {
            0 => default_batch(),
            batch => batch,
        }
    }

    /// The largest batch that an add may still be using.
    pub(crate) fn high_batch(&self) -> u32 {
        self.high_batch
            .load(Ordering::Relaxed)
            .max(self.batch_or_default())
    }

    /// Changes the batch. The largest one is raised first, so that a bound is never below what an add allows.
    pub(crate) fn set_batch(&self, batch: u32) {
        self.high_batch.fetch_max(batch, Ordering::AcqRel);
        let before = self.batch.swap(batch, Ordering::AcqRel);
        if batch < before {
            self.lowered.store(true, Ordering::Release);
        }
    }

    /// Whether residues above the batch may be left from a larger one.
    pub(crate) fn lowered(&self) -> bool {
        self.lowered.load(Ordering::Acquire)
    }

    /// How many threads can be inside a batched add at once, where that is known.
    pub(crate) fn writers(&self) -> Option<u64> {
        match self.writers.load(Ordering::Relaxed) {
            0 => self.slots.table().map_or(Some(0), Table::writers),
            known => Some(u64::from(known)),
        }
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        for word in &mut self.early {
            *word.get_mut() = 0;
        }
        if let Some(table) = self.slots.table_mut() {
            table.clear();
        }
    }

    /// Nobody adds: the batch in force is the only one whose residues are left.
    pub(crate) fn forget_batches(&mut self) {
        *self.high_batch.get_mut() = *self.batch.get_mut();
        *self.lowered.get_mut() = false;
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut Table<L>> {
        self.slots.table_mut()
    }
}

impl<const L: usize, const F: usize> fmt::Debug for Store<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("early", &self.early)
            .field("batch", &self.batch_or_default())
            .field("slots", &self.get())
            .finish_non_exhaustive()
    }
}

/// The kernel's rule: 32, or twice the CPUs.
///
/// A fixed 32 collapses on large machines, where folds from all CPUs meet in one line.
fn default_batch() -> u32 {
    u32::try_from(2 * cpus::possible()).map_or(u32::MAX / 2, |batch| batch.max(32))
}
