//! The four counters of a cache, each in two arms.
//!
//! Arm [`CounterMode::Shared`] is one contended atomic per counter, as Linux had it until commit
//! 520f897a3554; arm [`CounterMode::PerCpu`] counts in a slot of its own per CPU or thread and
//! folds batches. The switch may be thrown while others count: each counter's value is the sum of
//! both arms, so nothing is lost.

use std::sync::atomic::{AtomicU32, Ordering};

use cairn_percpu::{BackendKind, BatchError, SharedCounter, SlotValue};

use crate::info::{Averages, Info, Largest};

cairn_percpu::counter_group! {
    /// The per-CPU arm: one slot holds all four.
    struct PerCpu {
        batched hits,
        batched misses,
        batched all,
        batched reclaimable,
    }
}

/// The shared arm of one counter, on lines of its own: what is measured is this word, not its
/// neighbours.
#[derive(Default)]
#[repr(align(128))]
struct Shared(SharedCounter);

/// Which arm receives what is counted from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CounterMode {
    /// One atomic per counter, shared by all threads.
    Shared,
    /// A slot per CPU where restartable sequences are available, else per thread.
    #[default]
    PerCpu,
}

/// One counter, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Every slot summed up.
    pub exact: i64,
    /// What is read without visiting the slots.
    pub approximate: i64,
    /// How far the approximate value may be off at rest, up or down.
    pub bound: u64,
}

/// One slot of the per-CPU arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    /// `cpu n` or `thread n`, as it is; `base` for what went past the slots.
    pub label: String,
    /// Look-ups that hit, counted here.
    pub hits: i64,
    /// Look-ups that missed, counted here.
    pub misses: i64,
}

/// Everything about the counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterReport {
    /// The arm that receives.
    pub mode: CounterMode,
    /// The batch of the per-CPU arm.
    pub batch: u32,
    /// The per-CPU arm's mechanism and why it was chosen.
    pub backend: String,
    /// Look-ups that hit.
    pub hits: Reading,
    /// Look-ups that missed.
    pub misses: Reading,
    /// Entries held.
    pub all: Reading,
    /// Entries that the shrinker may take.
    pub reclaimable: Reading,
}

/// One counter of the per-CPU arm.
macro_rules! reading {
    ($self:ident, $name:ident) => {{
        let shared = $self.$name.0.sum_i64();
        let percpu = $self.percpu.$name();
        Reading {
            exact: percpu.sum().wrapping_add(shared),
            approximate: percpu.read().wrapping_add(shared),
            bound: percpu.bound(),
        }
    }};
}

/// Hits, misses, entries and reclaimable entries.
pub struct Counters {
    mode: AtomicU32,
    percpu: PerCpu,
    hits: Shared,
    misses: Shared,
    all: Shared,
    reclaimable: Shared,
}

impl Counters {
    /// `slots` is the number of threads that count at a time, where slots belong to threads.
    pub(crate) fn new(slots: Option<usize>) -> Self {
        let mut builder = PerCpu::builder().backend(BackendKind::RseqCpu);
        if let Some(slots) = slots {
            builder = builder.slots(slots);
        }
        Self {
            mode: AtomicU32::new(CounterMode::default() as u32),
            percpu: builder.build(),
            hits: Shared::default(),
            misses: Shared::default(),
            all: Shared::default(),
            reclaimable: Shared::default(),
        }
    }

    /// The arm that receives.
    #[inline]
    pub fn mode(&self) -> CounterMode {
        if self.mode.load(Ordering::Relaxed) == CounterMode::Shared as u32 {
            CounterMode::Shared
        } else {
            CounterMode::PerCpu
        }
    }

    pub(crate) fn set_mode(&self, mode: CounterMode) {
        self.mode.store(mode as u32, Ordering::Relaxed);
    }

    /// The batch of the per-CPU arm.
    pub fn batch(&self) -> u32 {
        self.percpu.batch()
    }

    pub(crate) fn set_batch(&self, batch: u32) -> Result<(), BatchError> {
        self.percpu.set_batch(batch)
    }

    #[inline]
    pub(crate) fn hits(&self, n: u32) {
        match self.mode() {
            CounterMode::Shared => self.hits.0.add(u64::from(n)),
            CounterMode::PerCpu => self.percpu.hits().add(i64::from(n)),
        }
    }

    #[inline]
    pub(crate) fn misses(&self, n: u32) {
        match self.mode() {
            CounterMode::Shared => self.misses.0.add(u64::from(n)),
            CounterMode::PerCpu => self.percpu.misses().add(i64::from(n)),
        }
    }

    pub(crate) fn all(&self, by: i64) {
        match self.mode() {
            _ if by == 0 => {}
            CounterMode::Shared => self.all.0.add_i64(by),
            CounterMode::PerCpu => self.percpu.all().add(by),
        }
    }

    pub(crate) fn reclaimable(&self, by: i64) {
        match self.mode() {
            _ if by == 0 => {}
            CounterMode::Shared => self.reclaimable.0.add_i64(by),
            CounterMode::PerCpu => self.percpu.reclaimable().add(by),
        }
    }

    pub(crate) fn approximate_reclaimable(&self) -> i64 {
        let shared = self.reclaimable.0.sum_i64();
        self.percpu.reclaimable().read().wrapping_add(shared)
    }

    /// All four, with their error bounds.
    pub fn report(&self) -> CounterReport {
        CounterReport {
            mode: self.mode(),
            batch: self.batch(),
            backend: self.percpu.backend().to_string(),
            hits: reading!(self, hits),
            misses: reading!(self, misses),
            all: reading!(self, all),
            reclaimable: reading!(self, reclaimable),
        }
    }

    /// The slots of the per-CPU arm, in order. The shared arm has none.
    pub fn slots(&self) -> Vec<SlotRow> {
        let row = |(hits, misses): (SlotValue<i64>, SlotValue<i64>)| SlotRow {
            label: hits.label.to_string(),
            hits: hits.value,
            misses: misses.value,
        };
        self.percpu
            .hits()
            .slots()
            .zip(self.percpu.misses().slots())
            .map(row)
            .collect()
    }

    pub(crate) fn info(&self, on_list: u64, averages: Averages, largest: Option<Largest>) -> Info {
        let count = |reading: Reading| u64::try_from(reading.exact).unwrap_or(0);
        Info {
            objects: count(reading!(self, all)),
            reclaimable: count(reading!(self, reclaimable)),
            hits: count(reading!(self, hits)),
            misses: count(reading!(self, misses)),
            inodes_on_list: on_list,
            averages,
            largest,
        }
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.report().fmt(f)
    }
}
