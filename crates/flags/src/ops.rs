//! Operations whose ordering the caller picks, and the masked updates.
//!
//! The rules are those of the kernel's bit operations (`Documentation/atomic_bitops.txt`), with the
//! caller's ordering in place of the kernel's fixed one: what returns nothing promises no order
//! unless asked, what returns an old value is ordered as asked *even when it changes nothing*,
//! since callers act on the value they got.

use core::sync::atomic::Ordering;

use bitflags::{Bits, Flags};

use crate::atomic::AtomicFlags;
use crate::probe::Probe;
use crate::word::Word;

impl<F: Flags, P: Probe> AtomicFlags<F, P>
where
    F::Bits: Word,
{
    /// Replaces the whole word.
    ///
    /// # Ordering
    /// One store with `order`; a store has no "unchanged". It does not continue the release sequence of earlier setters: a
    /// reader that sees only this store synchronizes with this store alone.
    #[inline(always)]
    pub fn store(&self, flags: F, order: Ordering) {
        F::Bits::store(&self.cell, flags.bits(), order);
    }

    /// Replaces the whole word and returns the old one. Reports an RMW for each bit in either.
    ///
    /// # Ordering
    /// One exchange with `order`, also when the word stays as it is: whoever swaps a word in may
    /// act on the old one in either case (as with `xchg()`, `Documentation/atomic_t.txt`).
    #[inline(always)]
    pub fn swap(&self, flags: F, order: Ordering) -> F {
        let new = flags.bits();
        let old = F::Bits::swap(&self.cell, new, order);
        Self::note_rmw(old | new, || !(old ^ new));
        F::from_bits_retain(old)
    }

    /// Sets `flags`, whether they are set or not. On x86-64 one `lock or`.
    ///
    /// # Ordering
    /// One RMW with `order`, also when nothing changes: it does not know. `Relaxed` is the kernel's
    /// `set_bit()` (`Documentation/atomic_bitops.txt`: no return value, no order).
    #[inline(always)]
    pub fn set(&self, flags: F, order: Ordering) {
        let mask = flags.bits();
        Self::note_rmw(mask, || self.peek());
        F::Bits::fetch_or(&self.cell, mask, order);
    }

    /// Clears `flags`, whether they are set or not. On x86-64 one `lock and`.
    ///
    /// # Ordering
    /// One RMW with `order`, also when nothing changes. Clearing looks first in no form but
    /// [`clear_if_set`](Self::clear_if_set), just as in the kernel (`BUFFER_FNS` in
    /// `include/linux/buffer_head.h` looks before it sets, not before it clears): who clears a bit
    /// mostly knows that it is set.
    #[inline(always)]
    pub fn clear(&self, flags: F, order: Ordering) {
        let mask = flags.bits();
        Self::note_rmw(mask, || !self.peek());
        F::Bits::fetch_and(&self.cell, !mask, order);
    }

    /// Clears those of `flags` that are set, if any is; returns whether this call cleared any.
    ///
    /// # Ordering
    /// A relaxed load; if any bit is set, one RMW with `order`. If none is set, nothing is ordered,
    /// whatever `order` says: the look is all that happens. Sound under the same conditions as
    /// [`set_if_clear`](Self::set_if_clear).
    #[inline(always)]
    pub fn clear_if_set(&self, flags: F, order: Ordering) -> bool {
        let mask = flags.bits();
        if self.peek() & mask == F::Bits::EMPTY {
            Self::note_avoided(mask);
            return false;
        }
        Self::note_rmw(mask, || !self.peek());
        let old = F::Bits::fetch_and(&self.cell, !mask, order);
        F::Bits::picked(old, mask) != F::Bits::EMPTY
    }

    /// Inverts `flags`. On x86-64 one `lock xor`.
    ///
    /// # Ordering
    /// One RMW with `order`; it always changes the word. The kernel's `change_bit()`, unordered
    /// there (`Documentation/atomic_bitops.txt`).
    #[inline(always)]
    pub fn toggle(&self, flags: F, order: Ordering) {
        let mask = flags.bits();
        Self::note_rmw(mask, || F::Bits::EMPTY);
        F::Bits::fetch_xor(&self.cell, mask, order);
    }

    /// Sets `flags` if `value`, else clears them.
    ///
    /// # Ordering
    /// One RMW with `order`, also when nothing changes; the kernel's `assign_bit()`
    /// (`include/linux/bitops.h`).
    #[inline(always)]
    pub fn assign(&self, flags: F, value: bool, order: Ordering) {
        if value {
            self.set(flags, order);
        } else {
            self.clear(flags, order);
        }
    }

    /// Sets one bit and tells whether it was set before. On x86-64 one `lock bts`.
    ///
    /// # Ordering
    /// One RMW with `order`, also when the bit was set before. It never looks first: callers rely
    /// on the order of a failed attempt, and Linux removed its relaxed early exit in 415d83249709
    /// (2022) after work items were lost.
    #[inline(always)]
    pub fn test_and_set<const BIT: u32>(&self, order: Ordering) -> bool {
        let mask = Self::one::<BIT>();
        let old = F::Bits::picked(F::Bits::fetch_or(&self.cell, mask, order), mask);
        Self::note_rmw(mask, || old);
        old != F::Bits::EMPTY
    }

    /// Clears one bit and tells whether it was set before. On x86-64 one `lock btr`.
    ///
    /// # Ordering
    /// One RMW with `order`, also when the bit was clear before; see
    /// [`test_and_set`](Self::test_and_set).
    #[inline(always)]
    pub fn test_and_clear<const BIT: u32>(&self, order: Ordering) -> bool {
        let mask = Self::one::<BIT>();
        let old = F::Bits::picked(F::Bits::fetch_and(&self.cell, !mask, order), mask);
        Self::note_rmw(mask, || !old);
        old != F::Bits::EMPTY
    }

    /// Inverts one bit and tells whether it was set before. On x86-64 one `lock btc`.
    ///
    /// # Ordering
    /// One RMW with `order`; it always changes the word. See [`test_and_set`](Self::test_and_set).
    #[inline(always)]
    pub fn test_and_toggle<const BIT: u32>(&self, order: Ordering) -> bool {
        let mask = Self::one::<BIT>();
        let old = F::Bits::picked(F::Bits::fetch_xor(&self.cell, mask, order), mask);
        Self::note_rmw(mask, || F::Bits::EMPTY);
        old != F::Bits::EMPTY
    }

    /// Sets `flags` and returns the whole old word. On x86-64 a compare-and-swap loop: where one
    /// bit's old value is enough, take [`test_and_set`](Self::test_and_set).
    ///
    /// # Ordering
    /// One RMW with `order`, also when nothing changes: the old word is acted upon in either case
    /// (`Documentation/atomic_t.txt` on operations that return a value).
    #[inline(always)]
    pub fn fetch_set(&self, flags: F, order: Ordering) -> F {
        let mask = flags.bits();
        let old = F::Bits::fetch_or(&self.cell, mask, order);
        Self::note_rmw(mask, || old);
        F::from_bits_retain(old)
    }

    /// Clears `flags` and returns the whole old word. On x86-64 a compare-and-swap loop: where one
    /// bit's old value is enough, take [`test_and_clear`](Self::test_and_clear).
    ///
    /// # Ordering
    /// One RMW with `order`, also when nothing changes: the old word is acted upon in either case
    /// (`Documentation/atomic_t.txt` on operations that return a value).
    #[inline(always)]
    pub fn fetch_clear(&self, flags: F, order: Ordering) -> F {
        let mask = flags.bits();
        let old = F::Bits::fetch_and(&self.cell, !mask, order);
        Self::note_rmw(mask, || !old);
        F::from_bits_retain(old)
    }

    /// Clears `clear`, then sets `set`, in one step, and returns the old word. A
    /// compare-and-swap loop.
    ///
    /// Two related bits, such as "checked" and its "valid" result, change together this way, so
    /// that nobody sees one without the other.
    ///
    /// # Ordering
    /// One RMW with `AcqRel`, also when nothing changes: the exchange is done all the same, so that
    /// its result is as fresh and as ordered as that of a change. The kernel's `set_mask_bits()`
    /// (`include/linux/bitops.h`).
    #[inline]
    pub fn update_mask(&self, clear: F, set: F) -> F {
        let (clear, set) = (clear.bits(), set.bits());
        let mut old = self.peek();
        loop {
            let new = (old & !clear) | set;
            match F::Bits::exchange(&self.cell, old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    Self::note_rmw(clear | set, || !(old ^ new));
                    return F::from_bits_retain(old);
                }
                Err(seen) => old = seen,
            }
        }
    }

    /// Clears `clear` unless any of `test` is set, in one step; returns whether it cleared. A
    /// compare-and-swap loop.
    ///
    /// # Ordering
    /// One RMW with `AcqRel` when no bit of `test` is set, also when nothing changes. An acquire
    /// load when one is: what its release-setter wrote before is visible, since the refusal is acted
    /// upon. The kernel's `bit_clear_unless()` (`include/linux/bitops.h`).
    #[inline]
    pub fn clear_unless(&self, clear: F, test: F) -> bool {
        let (clear, test) = (clear.bits(), test.bits());
        let mut old = F::Bits::load(&self.cell, Ordering::Acquire);
        loop {
            if old & test != F::Bits::EMPTY {
                Self::note_avoided(clear);
                return false;
            }
            let new = old & !clear;
            match F::Bits::exchange(&self.cell, old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    Self::note_rmw(clear, || !(old ^ new));
                    return true;
                }
                Err(seen) => old = seen,
            }
        }
    }
}
