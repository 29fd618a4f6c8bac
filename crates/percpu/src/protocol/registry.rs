//! Small dense ids for threads, one owner at a time, without a lock.
//!
//! A bitmap: claiming sets the lowest clear bit, releasing clears it. There is no list to corrupt and no lock
//! that a thread lost in a fork could leave held.
//!
//! **Hand-over.** The releasing store is the end of everything the old owner wrote to its slots; the claim of
//! the same bit acquires it. The bit's word is only ever changed by read-modify-write operations, so the
//! release sequence is not broken by neighbours that claim or release other bits in between. Relaxed, the
//! next owner could load a value older than the last add and store over it.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Ids per word of the bitmap.
const BITS: u32 = u64::BITS;

/// The ids `0..64 * W`.
pub(crate) struct Registry<const W: usize> {
    /// A set bit is an id in use.
    words: [AtomicU64; W],
    /// One more than the highest id ever given out.
    high: AtomicU32,
}

impl<const W: usize> Registry<W> {
    /// A registry over zeroed words. They come from the caller since not every kind of atomic can be made in
    /// a constant.
    pub(crate) const fn over(words: [AtomicU64; W], high: AtomicU32) -> Self {
        Self { words, high }
    }

    /// Takes the lowest free id, or none when all are in use.
    pub(crate) fn claim(&self) -> Option<u32> {
        self.claim_as(Ordering::Acquire)
    }

    /// Gives `id` back. The caller has made its last write as the owner.
    pub(crate) fn release(&self, id: u32) {
        self.release_as(id, Ordering::Release);
    }

    /// [`claim`](Self::claim) with the ordering that takes the slots over.
    pub(crate) fn claim_as(&self, take: Ordering) -> Option<u32> {
        for (base, word) in (0..).step_by(BITS as usize).zip(&self.words) {
            let mut seen = word.load(Ordering::Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones();
                match word.compare_exchange(seen, seen | 1 << bit, take, Ordering::Relaxed) {
                    Ok(_) => {
                        let id = base + bit;
                        self.high.fetch_max(id + 1, Ordering::Relaxed);
                        return Some(id);
                    }
                    Err(now) => seen = now,
                }
            }
        }
        None
    }

    /// [`release`](Self::release) with the ordering that hands the slots on.
    pub(crate) fn release_as(&self, id: u32, hand_on: Ordering) {
        if let Some(word) = self.words.get((id / BITS) as usize) {
            word.fetch_and(!(1 << (id % BITS)), hand_on);
        }
    }

    /// One more than the highest id ever given out: no thread with a higher one has ever added.
    pub(crate) fn high_water(&self) -> u32 {
        self.high.load(Ordering::Relaxed)
    }

    /// Frees every id but `keep`. Only for the child of a fork, where one thread lives: the writes of the
    /// vanished threads were copied with the memory, so there is nothing left to hand over.
    #[cfg(any(test, all(unix, not(miri))))]
    pub(crate) fn keep_only(&self, keep: Option<u32>) {
        for (base, word) in (0..).step_by(BITS as usize).zip(&self.words) {
            let kept = keep
                .and_then(|id| id.checked_sub(base))
                .filter(|bit| *bit < BITS)
                .map_or(0, |bit| 1 << bit);
            word.fetch_and(kept, Ordering::Relaxed);
        }
    }
}
