//! The four counters of a cache, each in two arms.
//!
//! Arm [`CounterMode::Shared`] is one contended atomic per counter, as Linux had it until commit
//! 520f897a3554; arm [`CounterMode::PerCpu`] counts in a slot of its own per CPU or thread and
//! folds batches. The switch may be thrown while others count: each counter's value is the sum of
//! both arms, so nothing is lost.

mod pair;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::info::{Averages, Info, Largest};
use pair::Pair;

/// Which arm receives what is counted from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CounterMode {
    /// One atomic per counter, shared by all threads.
    Shared,
    /// A slot per CPU or thread.
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
    /// How far the approximate value may be off, up or down.
    pub bound: i64,
}

/// One slot of the per-CPU arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    /// `cpu n` or `thread n`, as it is.
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

/// Hits, misses, entries and reclaimable entries.
pub struct Counters {
    mode: AtomicU32,
    hits: Pair,
    misses: Pair,
    all: Pair,
    reclaimable: Pair,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            mode: AtomicU32::new(CounterMode::default() as u32),
            hits: Pair::new(),
            misses: Pair::new(),
            all: Pair::new(),
            reclaimable: Pair::new(),
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
        self.hits.batch()
    }

    pub(crate) fn set_batch(&self, batch: u32) {
        for pair in [&self.hits, &self.misses, &self.all, &self.reclaimable] {
            pair.set_batch(batch);
        }
    }

    #[inline]
    pub(crate) fn hit(&self) {
        self.hits.add(1, self.mode());
    }

    #[inline]
    pub(crate) fn miss(&self) {
        self.misses.add(1, self.mode());
    }

    pub(crate) fn all(&self, by: i64) {
        if by != 0 {
            self.all.add(by, self.mode());
        }
    }

    pub(crate) fn reclaimable(&self, by: i64) {
        if by != 0 {
            self.reclaimable.add(by, self.mode());
        }
    }

    pub(crate) fn approximate_reclaimable(&self) -> i64 {
        self.reclaimable.reading().approximate
    }

    /// All four, with their error bounds.
    pub fn report(&self) -> CounterReport {
        CounterReport {
            mode: self.mode(),
            batch: self.batch(),
            backend: self.hits.backend(),
            hits: self.hits.reading(),
            misses: self.misses.reading(),
            all: self.all.reading(),
            reclaimable: self.reclaimable.reading(),
        }
    }

    /// The slots of the per-CPU arm, in order.
    pub fn slots(&self) -> Vec<SlotRow> {
        self.hits
            .slots()
            .into_iter()
            .zip(self.misses.slots())
            .map(|((label, hits), (_, misses))| SlotRow {
                label,
                hits,
                misses,
            })
            .collect()
    }

    pub(crate) fn info(&self, on_list: u64, averages: Averages, largest: Option<Largest>) -> Info {
        let count = |pair: &Pair| u64::try_from(pair.reading().exact).unwrap_or(0);
        Info {
            objects: count(&self.all),
            reclaimable: count(&self.reclaimable),
            hits: count(&self.hits),
            misses: count(&self.misses),
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
