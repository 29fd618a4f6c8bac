//! What one event of a mechanism costs on this machine, so that a count of events can be weighed against the
//! cost of a whole operation.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Events between two looks at the clock.
const BATCH: u64 = 4096;

/// How long each is measured.
const TIME: Duration = Duration::from_millis(30);

/// A word on lines of its own.
#[repr(align(128))]
struct Apart(AtomicU64);

/// Nanoseconds of an event on a word that the thread has for itself, and on one that as many threads want as there
/// are CPUs (up to four).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// One thread.
    pub alone_ns: f64,
    /// Several threads on one word.
    pub contended_ns: f64,
    /// How many.
    pub threads: usize,
}

/// A read-modify-write that changes nothing: an atomic or of bits that are set.
pub(crate) fn set_again() -> Cost {
    cost(|word| {
        black_box(word.fetch_or(1, Ordering::AcqRel));
    })
}

/// A look at the word instead.
pub(crate) fn test() -> Cost {
    cost(|word| {
        black_box(word.load(Ordering::Acquire) & 1 != 0);
    })
}

/// An atomic addition.
pub(crate) fn add() -> Cost {
    cost(|word| {
        black_box(word.fetch_add(1, Ordering::Relaxed));
    })
}

/// An addition by a load and a store, as a thread's own slot allows.
pub(crate) fn add_own() -> Cost {
    let alone_ns = measure(1, |word| {
        word.store(
            word.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    });
    Cost {
        alone_ns,
        contended_ns: alone_ns,
        threads: 1,
    }
}

fn cost(event: impl Fn(&AtomicU64) + Sync) -> Cost {
    let threads = crate::environment::cpus().clamp(1, 4);
    let alone_ns = measure(1, &event);
    let contended_ns = if threads > 1 {
        measure(threads, &event)
    } else {
        alone_ns
    };
    Cost {
        alone_ns,
        contended_ns,
        threads,
    }
}

/// Median over batches of the first thread, so that an interruption does not count.
fn measure(threads: usize, event: impl Fn(&AtomicU64) + Sync) -> f64 {
    let word = Apart(AtomicU64::new(1));
    let over = AtomicBool::new(false);
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                start.wait();
                while !over.load(Ordering::Relaxed) {
                    for _ in 0..BATCH {
                        event(&word.0);
                    }
                }
            });
        }
        start.wait();
        let began = Instant::now();
        let mut batches = Vec::with_capacity(1 << 12);
        while began.elapsed() < TIME {
            let then = Instant::now();
            for _ in 0..BATCH {
                event(&word.0);
            }
            batches.push(then.elapsed().as_nanos() as f64 / BATCH as f64);
        }
        over.store(true, Ordering::Relaxed);
        crate::stats::median(&batches)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_cost_something() {
        for cost in [set_again(), test(), add(), add_own()] {
            assert!(cost.alone_ns > 0.0 && cost.contended_ns > 0.0 && cost.threads >= 1);
        }
    }
}
