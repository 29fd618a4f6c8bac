//! The portable way to sleep: a fixed table of mutexes and condition variables, chosen by address.
//!
//! A waker takes the mutex after it changed the word. A sleeper compares the word under the mutex:
//! either it came first, then the waker finds it asleep; or it comes later, then the mutex shows it
//! the change. Whoever shares a slot wakes together and looks again, so there are no labels here.
//!
//! In the loom models there is one slot per label, and waking one wakes just one, so that they check
//! the hand-over that relies on the futex doing so.

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::Outcome;
use crate::word::Word;

struct Slot {
    mutex: Mutex<()>,
    wakeup: Condvar,
}

/// Slots; sleeping is rare, so this only keeps unrelated words mostly apart.
#[cfg(not(loom))]
const SLOTS: usize = 64;

#[cfg(not(loom))]
static TABLE: [Slot; SLOTS] = [const {
    Slot {
        mutex: Mutex::new(()),
        wakeup: Condvar::new(),
    }
}; SLOTS];

#[cfg(not(loom))]
fn slot(address: *const (), _label: u32) -> &'static Slot {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address.
    let hash = (address.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    #[expect(clippy::indexing_slicing, reason = "the remainder is below SLOTS")]
    &TABLE[hash as usize % SLOTS]
}

#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: [Slot; 2] = [(); 2].map(|()| Slot {
        mutex: Mutex::new(()),
        wakeup: Condvar::new(),
    });
}

/// A model has one word with at most two waiters bits, one odd and one even.
#[cfg(loom)]
fn slot(_address: *const (), label: u32) -> &'static Slot {
    &TABLE[label as usize % 2]
}

/// Sleeps unless the word differs from `seen`.
pub(super) fn wait<W: Word>(
    cell: &W::Atomic,
    seen: W,
    label: u32,
    deadline: Option<Instant>,
) -> Outcome {
    let slot = slot((&raw const *cell).cast(), label);
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
pub(super) fn wake_all(address: *const (), label: u32) {
    let slot = slot(address, label);
    drop(slot.mutex.lock().unwrap_or_else(PoisonError::into_inner));
    slot.wakeup.notify_all();
}

/// Wakes one that sleeps on `address`: all in the slot, since the one woken may wait for another
/// word.
pub(super) fn wake_one(address: *const (), label: u32) {
    #[cfg(not(loom))]
    wake_all(address, label);
    #[cfg(loom)]
    {
        let slot = slot(address, label);
        drop(slot.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        slot.wakeup.notify_one();
    }
}
