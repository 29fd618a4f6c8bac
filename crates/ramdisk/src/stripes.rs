//! Range locks: a region of the device is shared by those who write and held alone by who frees.
//!
//! Readers take no lock. A page must not be freed while somebody copies to it, for the bytes would
//! be lost although the write returns success.
//!
//! # How a writer shares a region without a locked instruction
//! Each thread has a slot of its own in which it writes the region that it copies to, and then looks
//! whether the region is closed. Who frees closes the region first and then looks at all slots. Between
//! store and look stands the asymmetric fence of [`cairn_block::asymmetric`]: either the writer sees
//! that the region is closed, and goes to the region's lock, or who frees sees the slot, and waits for it.
//! A read-write lock here would wait for all stores of the copy before it lets go, and would move its
//! cache line between the writers.
//!
//! While one thread alone has ever written, it frees without the fence, which is a system call: a thread
//! says that it begins to write with a full fence between that and its first look, and who frees has one
//! between closing and asking who writes.
//!
//! The writer's `Acquire` look at an open region sees what the last owner did before its `Release`
//! opening; the owner's `Acquire` look at an emptied slot sees what the writer copied.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cairn_block::asymmetric;

use crate::thread;

/// Bytes of a region: what one huge page covers, and the most that is freed at once.
pub(crate) const REGION: u64 = 2 << 20;

/// Most locks of a device; regions beyond share them.
const MOST: u64 = 1024;

/// Threads that have a slot; those beyond use the locks.
const SLOTS: usize = 128;

#[repr(align(128))]
struct Region {
    lock: RwLock<()>,
    closed: AtomicBool,
}

/// 0, or one more than the number of the region in use.
#[repr(align(128))]
#[derive(Default)]
struct Slot(AtomicU64);

pub(crate) struct Stripes {
    regions: Box<[Region]>,
    mask: u64,
    slots: Box<[Slot]>,
    /// A bit for each slot that was ever used.
    writers: Writers,
}

/// On a line of its own: it is read at each write, and written once by each thread.
#[repr(align(128))]
#[derive(Default)]
struct Writers([AtomicU64; SLOTS / 64]);

impl Writers {
    #[inline]
    fn know(&self, me: usize) {
        let bit = 1 << (me % 64);
        if let Some(word) = self.0.get(me / 64)
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }

    /// The slots to look at, and whether any is not the caller's own.
    fn others(&self) -> ([u64; SLOTS / 64], bool) {
        fence(Ordering::SeqCst);
        let me = thread::number();
        let all = self.0.each_ref().map(|w| w.load(Ordering::SeqCst));
        let any = all.iter().enumerate().any(|(i, word)| {
            let mine = if me / 64 == i { 1 << (me % 64) } else { 0 };
            word & !mine != 0
        });
        (all, any)
    }
}

/// A writer's share of a region.
pub(crate) enum Shared<'a> {
    Slot(&'a AtomicU64),
    /// Of a thread without a slot, or in a region that somebody wants alone.
    Lock {
        _guard: RwLockReadGuard<'a, ()>,
    },
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Self::Slot(slot) = self {
            slot.store(0, Ordering::Release);
        }
    }
}

/// A region held alone.
pub(crate) struct Alone<'a> {
    closed: &'a AtomicBool,
    _guard: RwLockWriteGuard<'a, ()>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // Fields are dropped after this: opened before the lock goes, or the next owner's closing
        // would be undone.
        self.closed.store(false, Ordering::Release);
    }
}

impl Stripes {
    pub(crate) fn new(len: u64) -> Self {
        asymmetric::prepare();
        let n = len.div_ceil(REGION).next_power_of_two().clamp(1, MOST);
        Self {
            regions: (0..n)
                .map(|_| Region {
                    lock: RwLock::new(()),
                    closed: AtomicBool::new(false),
                })
                .collect(),
            mask: n - 1,
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            writers: Writers::default(),
        }
    }

    #[inline]
    fn of(&self, off: u64) -> (u64, &Region) {
        let i = (off / REGION) & self.mask;
        #[expect(
            clippy::indexing_slicing,
            reason = "the mask is one less than the length"
        )]
        (i, &self.regions[i as usize])
    }

    /// For a copy into the region of `off`. A thread holds one share of a device at a time.
    #[inline]
    pub(crate) fn share(&self, off: u64) -> Shared<'_> {
        let (i, region) = self.of(off);
        let me = thread::number();
        if let Some(Slot(slot)) = self.slots.get(me) {
            self.writers.know(me);
            slot.store(i + 1, Ordering::Relaxed);
            asymmetric::light();
            if !region.closed.load(Ordering::Acquire) {
                return Shared::Slot(slot);
            }
            slot.store(0, Ordering::Release);
        }
        Shared::Lock {
            // The lock guards memory, not an invariant that a panic could have broken.
            _guard: region.lock.read().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// For freeing in the region of `off`.
    pub(crate) fn own(&self, off: u64) -> Alone<'_> {
        let (i, region) = self.of(off);
        let alone = region.close();
        self.wait(|slot| slot == i + 1);
        alone
    }

    /// Every region at once, for a cut through the whole device. Always in the same order.
    pub(crate) fn own_all(&self) -> Vec<Alone<'_>> {
        let alone = self.regions.iter().map(Region::close).collect();
        self.wait(|slot| slot != 0);
        alone
    }

    /// Waits for the writers that were there before the closing. Each is inside one copy.
    fn wait(&self, inside: impl Fn(u64) -> bool) {
        let (words, others) = self.writers.others();
        if !others {
            return;
        }
        asymmetric::heavy();
        for (word, slots) in words.iter().zip(self.slots.chunks(64)) {
            let mut left = *word;
            while left != 0 {
                let Some(Slot(slot)) = slots.get(left.trailing_zeros() as usize) else {
                    break;
                };
                left &= left - 1;
                let mut tries = 0_u32;
                while inside(slot.load(Ordering::Acquire)) {
                    tries += 1;
                    if tries < 128 {
                        hint::spin_loop();
                    } else {
                        // The writer may have lost its processor.
                        std::thread::yield_now();
                    }
                }
            }
        }
    }
}

impl Region {
    fn close(&self) -> Alone<'_> {
        let guard = self.lock.write().unwrap_or_else(PoisonError::into_inner);
        self.closed.store(true, Ordering::SeqCst);
        Alone {
            closed: &self.closed,
            _guard: guard,
        }
    }
}

/// Splits a range at region borders.
pub(crate) fn regions(off: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = off + len;
    let mut at = off;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let next = ((at / REGION + 1) * REGION).min(end);
        let part = (at, next - at);
        at = next;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_split_at_borders() {
        assert_eq!(regions(5, 0).count(), 0);
        assert_eq!(
            regions(REGION - 1, REGION + 2).collect::<Vec<_>>(),
            [(REGION - 1, 1), (REGION, REGION), (2 * REGION, 1)]
        );
    }

    /// Writers raise a flag while they share, and who is alone must find none raised.
    fn nobody_is_inside(threads: usize) {
        let stripes = Stripes::new(2 * REGION);
        let inside: [AtomicU64; 2] = Default::default();
        std::thread::scope(|s| {
            for t in 0..threads {
                let (stripes, inside) = (&stripes, &inside);
                s.spawn(move || {
                    for n in 0..4000_usize {
                        let r = (n + t) % 2;
                        let share = stripes.share(r as u64 * REGION);
                        inside[r].fetch_add(1, Ordering::SeqCst);
                        hint::spin_loop();
                        inside[r].fetch_sub(1, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
            s.spawn(|| {
                for n in 0..1000_usize {
                    if n % 10 == 0 {
                        let all = stripes.own_all();
                        let seen: u64 = inside.iter().map(|i| i.load(Ordering::SeqCst)).sum();
                        assert_eq!(seen, 0);
                        drop(all);
                    } else {
                        let one = stripes.own(n as u64 % 2 * REGION);
                        assert_eq!(inside[n % 2].load(Ordering::SeqCst), 0);
                        drop(one);
                    }
                }
            });
        });
    }

    #[test]
    fn who_is_alone_is_alone() {
        nobody_is_inside(3);
        // More threads than slots: some take the locks.
        nobody_is_inside(SLOTS + 8);
    }
}
