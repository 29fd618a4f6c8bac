//! A budget cut into credits: taken in chunks, spent locally, called back before a refusal.
//!
//! What is free stands in one shared word, `avail`, and in one word of credits per slot. Every change is a
//! compare-exchange that never takes more than the word holds, so
//! `avail + credits + used = capacity` at rest, and never more than the capacity is in use at any time:
//! an amount is always subtracted from one word before it is added to another.

use crate::sync::{AtomicU64, Ordering};

/// The words of one budget, as the caller of one operation sees them.
#[derive(Clone, Copy)]
pub(crate) struct Purse<'a> {
    /// What no slot holds.
    pub(crate) avail: &'a AtomicU64,
    /// The credits of the caller's slot.
    pub(crate) mine: &'a AtomicU64,
    /// How much to fetch beyond what is asked for, while there is plenty.
    pub(crate) chunk: u64,
    /// Below this, fetch only what is asked for, and return everything at once.
    pub(crate) near: u64,
}

/// Takes exactly `n` out of `word`, or nothing.
fn take(word: &AtomicU64, n: u64) -> bool {
    let mut seen = word.load(Ordering::Relaxed);
    while let Some(left) = seen.checked_sub(n) {
        match word.compare_exchange(seen, left, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

impl Purse<'_> {
    /// Takes `n` from the local credits, else from what no slot holds.
    pub(crate) fn try_take(self, n: u64) -> bool {
        take(self.mine, n) || self.fetch(n)
    }

    /// Takes `n` from the shared word, and a chunk with it while there is plenty.
    fn fetch(self, n: u64) -> bool {
        let mut seen = self.avail.load(Ordering::Relaxed);
        while let Some(left) = seen.checked_sub(n) {
            let extra = if left >= self.near {
                self.chunk.min(left)
            } else {
                0
            };
            let set = self.avail.compare_exchange(
                seen,
                left - extra,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match set {
                Ok(_) => {
                    if extra > 0 {
                        self.mine.fetch_add(extra, Ordering::Release);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Calls all credits back into the shared word, then takes `n` from it.
    pub(crate) fn recall<'b>(self, credits: impl Iterator<Item = &'b AtomicU64>, n: u64) -> bool {
        for slot in credits {
            let back = slot.swap(0, Ordering::Acquire);
            if back > 0 {
                self.avail.fetch_add(back, Ordering::Release);
            }
        }
        take(self.avail, n)
    }

    /// Gives `n` back: to the local credits up to two chunks, the rest, or all when little is left, to the
    /// shared word.
    pub(crate) fn give(self, n: u64) {
        let held = self.mine.load(Ordering::Relaxed);
        let plenty = self.avail.load(Ordering::Relaxed) >= self.near;
        if plenty && held.saturating_add(n) <= self.chunk.saturating_mul(2) {
            self.mine.fetch_add(n, Ordering::Release);
        } else {
            self.avail.fetch_add(n, Ordering::Release);
        }
    }
}
