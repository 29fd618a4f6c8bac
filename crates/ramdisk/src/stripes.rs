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
//! `tests/loom.rs` runs this file under loom, in both forms of the pair and without each of its fences.
//!
//! The writer's `Acquire` look at an open region sees what the last owner did before its `Release`
//! opening; the owner's `Acquire` look at an emptied slot sees what the writer copied.

use std::sync::PoisonError;

use crate::sync::{
    AtomicBool, AtomicU64, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard, asymmetric, fence,
    wait_a_little,
};
use crate::thread::{self, SLOTS};

/// Bytes of a region: what one huge page covers, and the most that is freed at once.
pub(crate) const REGION: u64 = 2 << 20;

/// Most locks of a device; regions beyond share them.
const MOST: u64 = 1024;

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
struct Writers([AtomicU64; SLOTS.div_ceil(64)]);

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
    fn others(&self) -> ([u64; SLOTS.div_ceil(64)], bool) {
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

/// A slot that says where its thread copies to, until it is dropped.
pub(crate) struct Inside<'a>(&'a AtomicU64);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A writer's share of a region; it ends with the drop.
pub(crate) enum Shared<'a> {
    Slot {
        _inside: Inside<'a>,
    },
    /// Of a thread without a slot, or in a region that somebody wants alone.
    Lock {
        _guard: RwLockReadGuard<'a, ()>,
    },
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
        if let Some(inside) = self.enter(off) {
            return Shared::Slot { _inside: inside };
        }
        let (_, region) = self.of(off);
        Shared::Lock {
            // The lock guards memory, not an invariant that a panic could have broken.
            _guard: region.lock.read().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// A share that needs no lock; none while somebody wants the region alone, and for threads without a
    /// slot.
    #[inline]
    pub(crate) fn enter(&self, off: u64) -> Option<Inside<'_>> {
        let (i, region) = self.of(off);
        let me = thread::number();
        let Slot(slot) = self.slots.get(me)?;
        self.writers.know(me);
        slot.store(i + 1, Ordering::Relaxed);
        let inside = Inside(slot);
        asymmetric::light();
        (!region.closed.load(Ordering::Acquire)).then_some(inside)
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
                    wait_a_little(tries);
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
