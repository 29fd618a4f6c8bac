//! Whether a device answers quickly enough for the connection's own thread.

use std::time::Duration;

/// What one request may take, besides its bytes.
const REQUEST: Duration = Duration::from_micros(20);
/// Batches that must be slow, or requests that must be quick, before the way is changed. One slow batch
/// may have been another thread's turn on the CPU.
const SLOW_BATCHES: u32 = 4;
const QUICK_REQUESTS: u32 = 64;

/// Decides between inline execution and worker threads, by what requests took.
#[derive(Debug, Default)]
pub(super) struct Pace {
    slow: bool,
    run: u32,
}

impl Pace {
    /// Whether requests are to be handed over.
    pub(super) const fn slow(&self) -> bool {
        self.slow
    }

    /// Whether `requests` of `bytes` in `took` were slow. A byte may take a nanosecond.
    fn is_slow(requests: u32, bytes: u64, took: Duration) -> bool {
        took > REQUEST * requests + Duration::from_nanos(bytes)
    }

    /// A batch ran inline.
    pub(super) fn inline(&mut self, requests: u32, bytes: u64, took: Duration) {
        if self.slow || requests == 0 {
            return;
        }
        if Self::is_slow(requests, bytes, took) {
            self.run += 1;
            if self.run >= SLOW_BATCHES {
                self.slow = true;
                self.run = 0;
            }
        } else {
            self.run = 0;
        }
    }

    /// A worker finished a request.
    pub(super) fn handed(&mut self, bytes: u64, took: Duration) {
        if !self.slow {
            return;
        }
        if Self::is_slow(1, bytes, took) {
            self.run = 0;
        } else {
            self.run += 1;
            if self.run >= QUICK_REQUESTS {
                self.slow = false;
                self.run = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_batch_changes_nothing() {
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.inline(1, 4096, Duration::from_millis(3));
            pace.inline(1, 4096, Duration::from_micros(1));
        }
        assert!(!pace.slow());
        for _ in 0..4 {
            pace.inline(1, 4096, Duration::from_micros(100));
        }
        assert!(pace.slow());
        for _ in 0..64 {
            pace.handed(4096, Duration::from_micros(2));
        }
        assert!(!pace.slow());
    }

    #[test]
    fn bytes_take_time() {
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.inline(1, 1 << 20, Duration::from_micros(500));
        }
        assert!(!pace.slow());
    }
}
