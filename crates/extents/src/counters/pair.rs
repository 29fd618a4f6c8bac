//! One counter in two arms.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use super::{CounterMode, Reading};

/// The shared arm and the per-CPU arm of one counter.
pub(super) struct Pair {
    shared: AtomicI64,
    batched: AtomicI64,
    batch: AtomicU32,
}

impl Pair {
    pub(super) fn new() -> Self {
        Self {
            shared: AtomicI64::new(0),
            batched: AtomicI64::new(0),
            batch: AtomicU32::new(32),
        }
    }

    #[inline]
    pub(super) fn add(&self, by: i64, mode: CounterMode) {
        match mode {
            CounterMode::Shared => self.shared.fetch_add(by, Ordering::Relaxed),
            CounterMode::PerCpu => self.batched.fetch_add(by, Ordering::Relaxed),
        };
    }

    pub(super) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    pub(super) fn set_batch(&self, batch: u32) {
        self.batch.store(batch, Ordering::Relaxed);
    }

    pub(super) fn backend(&self) -> String {
        format!("one atomic, batch {}", self.batch())
    }

    pub(super) fn reading(&self) -> Reading {
        let exact = self.shared.load(Ordering::Relaxed) + self.batched.load(Ordering::Relaxed);
        Reading {
            exact,
            approximate: exact,
            bound: 0,
        }
    }

    pub(super) fn slots(&self) -> Vec<(String, i64)> {
        vec![("all".to_owned(), self.batched.load(Ordering::Relaxed))]
    }
}
