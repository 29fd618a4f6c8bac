//! The portable way to sleep: a fixed table of mutexes and condition variables, chosen by address.
//!
//! A waker takes the mutex after it changed the word. A sleeper compares the word under the mutex:
//! either it came first, then the waker finds it asleep; or it comes later, then the mutex shows it
//! the change. Whoever shares a slot wakes together and looks again, so there are no labels here.

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::Outcome;
use crate::word::Word;

/// Slots; sleeping is rare, so this only keeps unrelated words mostly apart.
const SLOTS: usize = if cfg!(loom) { 1 } else { 64 };

struct Slot {
    mutex: Mutex<()>,
    wakeup: Condvar,
}

#[cfg(not(loom))]
static TABLE: [Slot; SLOTS] = [const {
    Slot {
        mutex: Mutex::new(()),
        wakeup: Condvar::new(),
    }
}; SLOTS];

#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: [Slot; SLOTS] = [Slot {
        mutex: Mutex::new(()),
        wakeup: Condvar::new(),
    }];
}

fn slot(address: *const ()) -> &'static Slot {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address.
    let hash = (address.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    #[expect(clippy::indexing_slicing, reason = "the remainder is below SLOTS")]
    &TABLE[hash as usize % SLOTS]
}

/// Sleeps unless the word differs from `seen`.
pub(super) fn wait<W: Word>(cell: &W::Atomic, seen: W, deadline: Option<Instant>) -> Outcome {
    let slot = slot((&raw const *cell).cast());
    let guard = slot.mutex.lock().unwrap_or_else(PoisonError::into_inner);
    if W::load(cell, Relaxed) != seen {
        return Outcome::Changed;
    }
    match deadline {
        None => {
            let _guard = slot
                .wakeup
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
            Outcome::Woken
        }
        Some(at) => {
            let left = at.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Outcome::TimedOut;
            }
            let (_guard, result) = slot
                .wakeup
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner);
            if result.timed_out() {
                Outcome::TimedOut
            } else {
                Outcome::Woken
            }
        }
    }
}

/// Wakes all that sleep in the slot of `address`, which need not be valid.
pub(super) fn wake(address: *const ()) {
    let slot = slot(address);
    drop(slot.mutex.lock().unwrap_or_else(PoisonError::into_inner));
    slot.wakeup.notify_all();
}
