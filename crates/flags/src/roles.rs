//! The operations of the roles hint, publish and work, with their memory-order arguments.
//!
//! The RMW behind a look is marked as the cold path: who looks first expects to find the bit set.
//!
//! - **Hint**: nothing is ordered, so a set may be skipped whenever the bit looks set. A set can be
//!   lost only to a concurrent clear, which the role declares harmless.
//! - **Publish**: the first setter releases. Whoever finds the bit set has nothing to add, since
//!   nobody clears it while readers exist and the data is not written again.
//! - **Work**: a marker writes data and marks; a taker takes the mark and reads the data. If the
//!   marker may skip its RMW, it must not look before its data is visible to a taker that clears
//!   in between. That is the store-load reordering that only a full barrier forbids, and it takes
//!   one on each side: with the barriers, either the taker's clear is seen by the marker's second
//!   look, or the marker's data is seen by the taker's read.

use core::hint::cold_path;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release, SeqCst};

use bitflags::{Bits, Flags};

use crate::atomic::{AtomicFlags, BitName};
use crate::policy::SetPolicy;
use crate::probe::Probe;
use crate::sync::fence;
use crate::word::Word;

impl<F: Flags, P: Probe> AtomicFlags<F, P>
where
    F::Bits: Word,
{
    /// Sets `flags` unless all are set already; returns whether this call changed any.
    ///
    /// The line stays shared when there is nothing to do: that is the gain of the kernel's
    /// 60f91826ca62 ("buffer: Avoid setting buffer bits that are already set").
    ///
    /// # Ordering
    /// A relaxed load; if a bit is clear, one relaxed RMW. Orders nothing in either case, so it is
    /// right only where losing the set to a concurrent clear is harmless, or where setter and
    /// clearer hold a common lock.
    #[inline(always)]
    pub fn set_if_clear(&self, flags: F) -> bool {
        let mask = flags.bits();
        if self.peek() & mask == mask {
            Self::note_avoided(mask);
            return false;
        }
        cold_path();
        Self::note_rmw(mask, || self.peek());
        let old = F::Bits::fetch_or(&self.cell, mask, Relaxed);
        F::Bits::picked(old, mask) != mask
    }

    /// Sets `flags` as `policy` says: [`set`](Self::set), relaxed, or
    /// [`set_if_clear`](Self::set_if_clear).
    ///
    /// # Ordering
    /// Orders nothing under either policy, whether a bit changes or not: callers must be right under
    /// the weaker one.
    #[inline(always)]
    pub fn set_with(&self, flags: F, policy: SetPolicy) {
        match policy {
            SetPolicy::AlwaysRmw => self.set(flags, Relaxed),
            SetPolicy::CheckFirst => {
                self.set_if_clear(flags);
            }
        }
    }

    /// Publishes: what this thread wrote before is visible to whoever sees all of `flags` through
    /// [`contains_acquire`](Self::contains_acquire). Returns whether this call changed the word.
    ///
    /// Sound while nobody clears `flags` and the data stays as it was at the first publish.
    ///
    /// # Ordering
    /// A relaxed load; if a bit is clear, one RMW with `Release`. When all are set already it
    /// orders nothing: the first publisher released the data, and a caller that wants to *read* it
    /// must use the acquire test. (Linux dropped the look-first form in d4252071b97d and got it
    /// back in 2f79cdfe58c1, both 2022, after direct I/O had become 26.5 % slower.)
    ///
    /// # Panics
    /// In debug builds when a bit is clear afterwards: it was retracted while in use.
    #[inline(always)]
    pub fn publish(&self, flags: F) -> bool {
        let mask = flags.bits();
        if self.peek() & mask == mask {
            Self::note_avoided(mask);
            return false;
        }
        cold_path();
        Self::note_rmw(mask, || self.peek());
        let old = F::Bits::fetch_or(&self.cell, mask, Release);
        if cfg!(debug_assertions) {
            self.assert_published(mask);
        }
        F::Bits::picked(old, mask) != mask
    }

    /// Panics when a bit just published is clear.
    #[track_caller]
    fn assert_published(&self, mask: F::Bits) {
        let missing = mask & !self.peek();
        assert!(
            missing == F::Bits::EMPTY,
            "publish bit `{}` was retracted while a publisher was at work",
            BitName::<F>::new(missing.to_u64().trailing_zeros()),
        );
    }

    /// Retracts what [`publish`](Self::publish) said, on a word that others can reach.
    ///
    /// Prefer a fresh word, or [`clear_mut`](Self::clear_mut) on one that nobody else can reach.
    ///
    /// # Safety
    /// No other thread may publish or test `flags` from the start of this call until it learns, in
    /// a way that orders (a lock, a channel, another release), that the word is in use again.
    /// Otherwise a reader that saw the bit may read the data while it is written anew.
    ///
    /// # Ordering
    /// One RMW with `AcqRel`, also when nothing changes: the data may be rewritten after it, and
    /// not before.
    ///
    /// # Panics
    /// In debug builds when a bit is set again at once: a publisher was still at work.
    #[inline]
    pub unsafe fn retract(&self, flags: F) {
        let mask = flags.bits();
        Self::note_rmw(mask, || !self.peek());
        F::Bits::fetch_and(&self.cell, !mask, AcqRel);
        if cfg!(debug_assertions) {
            let again = mask & self.peek();
            assert!(
                again == F::Bits::EMPTY,
                "publish bit `{}` was published while it was retracted",
                BitName::<F>::new(again.to_u64().trailing_zeros()),
            );
        }
    }

    /// Marks work: a taker either finds `flags` set or sees all that this thread wrote before.
    /// Returns whether this call changed the word. Pairs with [`take_work`](Self::take_work).
    ///
    /// # Ordering
    /// If a bit is clear: a relaxed load, then one RMW with `AcqRel`. If all are set: a relaxed
    /// load, a full barrier (`fence(SeqCst)`), and a second look, so that the data is visible
    /// before the bit is trusted; a bit found clear the second time is set by the RMW. This is the
    /// form of the kernel's 1be62dc190eb ("Be more careful about marking buffers dirty", 2008),
    /// where the look overtook the data, a cleaner cleaned in between, and the data never reached
    /// the disk. Neither an acquire load nor a `SeqCst` load would do.
    #[inline(always)]
    pub fn mark_work(&self, flags: F) -> bool {
        let mask = flags.bits();
        if self.peek() & mask == mask {
            fence(SeqCst);
            if self.peek() & mask == mask {
                Self::note_avoided(mask);
                return false;
            }
        }
        self.mark_work_always(flags)
    }

    /// Marks work by an unconditional RMW; returns whether this call changed the word. The arm to
    /// compare [`mark_work`](Self::mark_work) with, and the better one where the bit is seldom set.
    ///
    /// # Ordering
    /// One RMW with `AcqRel`, also when nothing changes. It reads what the last taker wrote, or
    /// the taker's RMW comes later and reads it: no fence is needed.
    #[inline(always)]
    pub fn mark_work_always(&self, flags: F) -> bool {
        let mask = flags.bits();
        Self::note_rmw(mask, || self.peek());
        let old = F::Bits::fetch_or(&self.cell, mask, AcqRel);
        F::Bits::picked(old, mask) != mask
    }

    /// Takes work: clears `flags` and returns those that were set. What their markers wrote before
    /// marking is visible afterwards, also what a marker wrote that found the bit set.
    ///
    /// # Ordering
    /// One RMW with `AcqRel`, then a full barrier (`fence(SeqCst)`), also when nothing changes. The
    /// barrier pairs with the one in [`mark_work`](Self::mark_work); without it the data could be
    /// read before the clear is visible to a marker.
    #[inline(always)]
    pub fn take_work(&self, flags: F) -> F {
        let mask = flags.bits();
        let old = F::Bits::picked(F::Bits::fetch_and(&self.cell, !mask, AcqRel), mask);
        Self::note_rmw(mask, || !old);
        fence(SeqCst);
        F::from_bits_retain(old)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    bitflags::bitflags! {
        struct State: u32 { const UPTODATE = 1 << 1; }
    }

    #[test]
    #[should_panic(expected = "publish bit `UPTODATE` was retracted while a publisher was at work")]
    fn a_publish_bit_that_vanishes_is_named() {
        AtomicFlags::<State>::new().assert_published(State::UPTODATE.bits());
    }

    #[test]
    fn a_retracted_bit_can_be_published_again() {
        let word = AtomicFlags::<State>::new();
        assert!(word.publish(State::UPTODATE));
        // SAFETY: no other thread knows the word.
        unsafe { word.retract(State::UPTODATE) };
        assert!(!word.contains_acquire(State::UPTODATE));
        assert!(word.publish(State::UPTODATE));
    }
}
