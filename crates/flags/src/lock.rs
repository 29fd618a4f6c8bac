//! The bit lock: one bit is the lock, another says that somebody waits for it.
//!
//! # Hand-over
//! An owner that met no waiter unlocks by `fetch_sub(LOCK)`, one `lock xadd`, whose old word tells
//! whether a waiter came meanwhile. It borrows from no other bit, since the owner holds the bit.
//! An owner that saw the waiters bit when it locked clears both bits in one RMW and wakes one
//! waiter. Who is woken locks with the waiters bit set again, because there may be more: so the
//! chain of wake-ups goes on until a wake-up finds nobody, and the bit stays clear.
//!
//! Neither way touches the word after the RMW that unlocks: the next owner may free it. The wake-up
//! uses the address alone.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use bitflags::{Bits, Flags};

use crate::atomic::{AtomicFlags, BitName};
use crate::probe::Probe;
use crate::sync::spin_hint;
use crate::word::Word;

impl<F: Flags, P: Probe> AtomicFlags<F, P>
where
    F::Bits: Word,
{
    /// Locks bit `LOCK` if it is free. `WAITERS` must belong to this lock alone.
    ///
    /// # Ordering
    /// A relaxed load; if the bit is clear, one RMW, with `Acquire` when it locks. A failure orders
    /// nothing, found by the load or by the RMW: looking first is allowed to lock acquisition
    /// alone among the test-and-set operations (Linux 415d83249709 kept only that one).
    #[inline(always)]
    pub fn try_lock<const LOCK: u32, const WAITERS: u32>(
        &self,
    ) -> Option<BitGuard<'_, F, P, LOCK, WAITERS>> {
        let mask = Self::one::<LOCK>();
        let seen = self.peek();
        if seen & mask != F::Bits::EMPTY {
            Self::note_avoided(mask);
            return None;
        }
        if self.test_and_set::<LOCK>(Acquire) {
            return None;
        }
        Some(BitGuard {
            word: self,
            contended: seen & Self::one::<WAITERS>() != F::Bits::EMPTY,
        })
    }

    /// Locks bit `LOCK`, spinning for as long as it takes. Needs no operating system; where there
    /// is one, the blocking `lock` is the better choice.
    ///
    /// # Ordering
    /// `Acquire` when it returns. It spins on relaxed loads, so the line stays shared meanwhile
    /// (as `bit_spin_lock()` does, `include/linux/bit_spinlock.h`).
    pub fn spin_lock<const LOCK: u32, const WAITERS: u32>(
        &self,
    ) -> BitGuard<'_, F, P, LOCK, WAITERS> {
        loop {
            if let Some(guard) = self.try_lock::<LOCK, WAITERS>() {
                return guard;
            }
            while self.peek() & Self::one::<LOCK>() != F::Bits::EMPTY {
                spin_hint();
            }
        }
    }

    /// Unlocks a lock whose guard was [leaked](BitGuard::leak), maybe by another thread.
    ///
    /// # Ordering
    /// One RMW with `Release`, so that the next owner sees what this one wrote; the same RMW when the
    /// lock is not held (a release build ignores that).
    ///
    /// # Panics
    /// In debug builds when the lock is not held, with the bit's name.
    pub fn release_leaked<const LOCK: u32, const WAITERS: u32>(&self) {
        let (lock, waiters) = (Self::one::<LOCK>(), Self::one::<WAITERS>());
        self.debug_assert_held::<LOCK>();
        let address = self.address();
        let old = F::Bits::fetch_and(&self.cell, !(lock | waiters), Release);
        Self::note_rmw(lock, || !old & lock);
        if old & waiters != F::Bits::EMPTY {
            wake_one::<F>(address, WAITERS);
        }
    }

    /// Where the word is: all that a wake-up may use once the word is unlocked.
    #[inline(always)]
    pub(crate) fn address(&self) -> *const () {
        (&raw const self.cell).cast()
    }

    #[inline(always)]
    fn debug_assert_held<const LOCK: u32>(&self) {
        debug_assert!(
            self.peek() & Self::one::<LOCK>() != F::Bits::EMPTY,
            "lock bit `{}` is released but not held",
            BitName::<F>::new(LOCK),
        );
    }
}

#[cfg(any(feature = "std", loom))]
#[cold]
pub(crate) fn wake_one<F: Flags>(address: *const (), waiters: u32)
where
    F::Bits: Word,
{
    crate::park::wake_one::<F::Bits>(address, waiters);
}

/// Without an operating system nobody sleeps, so there is nobody to wake.
#[cfg(not(any(feature = "std", loom)))]
#[inline(always)]
pub(crate) fn wake_one<F: Flags>(_address: *const (), _waiters: u32) {}

/// Holds a bit lock until it is dropped.
///
/// The guard may move to another thread: bit locks have no owner thread, so that an I/O completion
/// may unlock what its submitter locked.
///
/// # Ordering
/// Dropping it is one RMW with `Release`. It always changes the word. That the RMW also tells of
/// waiters is the idea of the kernel's b91e1302ad9b ("mm: optimize `PageWaiters` bit use for
/// `unlock_page()`", 2016): no second look, hence no fence between clear and look.
///
/// # Panics
/// Dropping it panics in debug builds when the bit is clear: somebody cleared it through
/// `as_raw()`.
#[must_use = "the lock is released when the guard is dropped"]
pub struct BitGuard<'a, F: Flags, P: Probe, const LOCK: u32, const WAITERS: u32>
where
    F::Bits: Word,
{
    pub(crate) word: &'a AtomicFlags<F, P>,
    /// The waiters bit may be set: unlock clears it and wakes in any case.
    pub(crate) contended: bool,
}

impl<F: Flags, P: Probe, const LOCK: u32, const WAITERS: u32> BitGuard<'_, F, P, LOCK, WAITERS>
where
    F::Bits: Word,
{
    /// Keeps the lock held beyond the guard. Whoever ends the work calls `release_leaked` on the
    /// word (or the method that `state_bits!` names after the bit).
    pub fn leak(self) {
        core::mem::forget(self);
    }
}

impl<F: Flags, P: Probe, const LOCK: u32, const WAITERS: u32> Drop
    for BitGuard<'_, F, P, LOCK, WAITERS>
where
    F::Bits: Word,
{
    #[inline(always)]
    fn drop(&mut self) {
        let word = self.word;
        let lock = AtomicFlags::<F, P>::one::<LOCK>();
        let waiters = AtomicFlags::<F, P>::one::<WAITERS>();
        word.debug_assert_held::<LOCK>();
        AtomicFlags::<F, P>::note_rmw(lock, || F::Bits::EMPTY);
        let address = word.address();
        if self.contended {
            F::Bits::fetch_and(&word.cell, !(lock | waiters), Release);
            wake_one::<F>(address, WAITERS);
        } else if F::Bits::fetch_sub(&word.cell, lock, Release) & waiters != F::Bits::EMPTY {
            wake_one::<F>(address, WAITERS);
        }
    }
}

impl<F: Flags, P: Probe, const LOCK: u32, const WAITERS: u32> fmt::Debug
    for BitGuard<'_, F, P, LOCK, WAITERS>
where
    F::Bits: Word,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BitGuard")
            .field("bit", &format_args!("{}", BitName::<F>::new(LOCK)))
            .field("word", &self.word.load(Relaxed).bits().to_u64())
            .finish()
    }
}
