//! The other arm of every comparison: one atomic word.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counter::CounterOps;

/// One plain atomic that all threads fight over.
///
/// Kept to be compared with: it is never padded, striped or otherwise helped.
///
/// ```
/// use cairn_percpu::SharedCounter;
///
/// let objects = SharedCounter::new();
/// objects.add(5);
/// objects.add_i64(-2);
/// assert_eq!((objects.sum(), objects.sum_i64()), (3, 3));
/// ```
#[derive(Debug, Default)]
pub struct SharedCounter {
    word: AtomicU64,
}

impl SharedCounter {
    /// A counter at 0.
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// Adds 1.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`, modulo 2^64.
    #[inline]
    pub fn add(&self, n: u64) {
        self.word.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds `n`, which may be negative, modulo 2^64.
    #[inline]
    pub fn add_i64(&self, n: i64) {
        self.add(n.cast_unsigned());
    }

    /// The total, modulo 2^64.
    #[inline]
    pub fn sum(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// The total of signed adds.
    #[inline]
    pub fn sum_i64(&self) -> i64 {
        self.sum().cast_signed()
    }

    /// The total so far, and zero from here on.
    pub fn drain(&mut self) -> u64 {
        std::mem::take(self.word.get_mut())
    }
}

impl CounterOps for SharedCounter {
    #[inline]
    fn inc(&self) {
        self.inc();
    }

    #[inline]
    fn add(&self, n: u64) {
        self.add(n);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.sum()
    }
}
