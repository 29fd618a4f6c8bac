//! Blocking: the lock's slow path, and waits for one bit to be set or cleared.
//!
//! # Protocol
//! A waiter sets the waiters bit by an RMW, which also shows the bit it waits for, and sleeps only
//! if the word is still what that RMW left. The other side changes the bit and learns of the
//! waiters bit from the same RMW; if it was set, it wakes after the change. In the word's
//! modification order the waiter's RMW is either before the change, and then the changer sees the
//! waiters bit, or after it, and then the waiter sees the change. Reading the waiters bit *before*
//! the change would lose wake-ups.
//!
//! Sleepers are filed under the waiters bit: bits with waiters bits of their own wake their own
//! waiters alone, and bits that share one wake each other's, as they must.

use core::sync::atomic::Ordering;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::time::Duration;
use std::time::Instant;

use bitflags::{Bits, Flags};

use crate::atomic::AtomicFlags;
use crate::lock::BitGuard;
use crate::park::{self, Outcome};
use crate::probe::Probe;
use crate::sync::spin_hint;
use crate::word::Word;

/// Looks before a locker sleeps: about the time of a short critical section and well below that
/// of a sleep and a wake-up, 2 to 10 us.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The instant `timeout` from now; `None`, no deadline, when the clock cannot express it.
fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

impl<F: Flags, P: Probe> AtomicFlags<F, P>
where
    F::Bits: Word,
{
    /// Locks bit `LOCK`, sleeping while another holds it. `WAITERS` must belong to this lock alone.
    ///
    /// The lock is not fair: a thread that comes at the right moment overtakes sleepers.
    ///
    /// # Ordering
    /// `Acquire` when it returns, by the RMW that locks; without locking it does not return. The
    /// kernel's `lock_buffer()` rests on `test_and_set_bit_lock()` in the same way.
    #[inline]
    pub fn lock<const LOCK: u32, const WAITERS: u32>(&self) -> BitGuard<'_, F, P, LOCK, WAITERS> {
        if let Some(guard) = self.try_lock::<LOCK, WAITERS>() {
            return guard;
        }
        loop {
            // Without a deadline it returns with the lock only.
            if let Some(guard) = self.lock_slowly::<LOCK, WAITERS>(None) {
                return guard;
            }
        }
    }

    /// Locks bit `LOCK`, or gives up after `timeout`.
    ///
    /// # Ordering
    /// `Acquire` when it locks; nothing when it does not, for there is nothing to be read then.
    pub fn lock_timeout<const LOCK: u32, const WAITERS: u32>(
        &self,
        timeout: Duration,
    ) -> Option<BitGuard<'_, F, P, LOCK, WAITERS>> {
        self.try_lock::<LOCK, WAITERS>()
            .or_else(|| self.lock_slowly::<LOCK, WAITERS>(deadline(timeout)))
    }

    #[cold]
    fn lock_slowly<const LOCK: u32, const WAITERS: u32>(
        &self,
        deadline: Option<Instant>,
    ) -> Option<BitGuard<'_, F, P, LOCK, WAITERS>> {
        let (lock, waiters) = (Self::one::<LOCK>(), Self::one::<WAITERS>());
        for _ in 0..SPINS {
            let seen = self.peek();
            if seen & lock == F::Bits::EMPTY
                && let Some(guard) = self.try_lock::<LOCK, WAITERS>()
            {
                return Some(guard);
            }
            // Others sleep already: the section is not short, or its owner has no CPU.
            if seen & waiters != F::Bits::EMPTY {
                break;
            }
            spin_hint();
        }
        loop {
            // One RMW locks or announces. It sets the waiters bit in both cases: who comes from
            // sleep does not know whether others still sleep, and must wake them in turn.
            let old = F::Bits::fetch_or(&self.cell, lock | waiters, Acquire);
            Self::note_rmw(lock, || old);
            if old & lock == F::Bits::EMPTY {
                return Some(BitGuard {
                    word: self,
                    contended: true,
                });
            }
            // Giving up here passes a wake-up on: the lock was held just now with the waiters bit
            // set, so its owner will wake the next one.
            if park::expired(deadline) {
                return None;
            }
            park::wait(&self.cell, old | lock | waiters, WAITERS, deadline);
        }
    }

    /// Waits until bit `BIT` is set by [`set_and_wake`](Self::set_and_wake).
    ///
    /// # Ordering
    /// `Acquire` when it returns, whether it slept or not: who waited reads what the setter wrote
    /// (the kernel's `wait_on_bit()` has promised so since 8238b4579866, 2022).
    pub fn wait_set<const BIT: u32, const WAITERS: u32>(&self) {
        self.wait_until::<BIT, WAITERS>(true, None);
    }

    /// Waits until bit `BIT` is set, at most for `timeout`; returns whether it is set.
    ///
    /// # Ordering
    /// `Acquire` when it returns true; nothing when false.
    pub fn wait_set_timeout<const BIT: u32, const WAITERS: u32>(&self, timeout: Duration) -> bool {
        self.wait_until::<BIT, WAITERS>(true, Some(timeout))
    }

    /// Waits until bit `BIT` is cleared, by [`clear_and_wake`](Self::clear_and_wake) or, when it is
    /// a lock bit with its waiters bit, by an unlock. It does not take the lock.
    ///
    /// # Ordering
    /// `Acquire` when it returns, whether it slept or not.
    pub fn wait_clear<const BIT: u32, const WAITERS: u32>(&self) {
        self.wait_until::<BIT, WAITERS>(false, None);
    }

    /// Waits until bit `BIT` is cleared, at most for `timeout`; returns whether it is clear.
    ///
    /// # Ordering
    /// `Acquire` when it returns true; nothing when false.
    pub fn wait_clear_timeout<const BIT: u32, const WAITERS: u32>(
        &self,
        timeout: Duration,
    ) -> bool {
        self.wait_until::<BIT, WAITERS>(false, Some(timeout))
    }

    #[inline]
    fn wait_until<const BIT: u32, const WAITERS: u32>(
        &self,
        set: bool,
        timeout: Option<Duration>,
    ) -> bool {
        let bit = Self::one::<BIT>();
        if (F::Bits::load(&self.cell, Acquire) & bit != F::Bits::EMPTY) == set {
            return true;
        }
        self.wait_slowly::<BIT, WAITERS>(set, timeout.and_then(deadline))
    }

    #[cold]
    fn wait_slowly<const BIT: u32, const WAITERS: u32>(
        &self,
        set: bool,
        deadline: Option<Instant>,
    ) -> bool {
        let (bit, waiters) = (Self::one::<BIT>(), Self::one::<WAITERS>());
        let mut woken = false;
        loop {
            let seen = F::Bits::load(&self.cell, Acquire);
            if (seen & bit != F::Bits::EMPTY) == set {
                // An unlock wakes one sleeper only. Who only waited for a clear bit has no use for
                // the lock: the wake-up goes on to the next, who may. (Sets wake all.)
                if woken && !set {
                    park::wake_one::<F::Bits>(self.address(), WAITERS);
                }
                return true;
            }
            let mut announced = seen | waiters;
            if seen & waiters == F::Bits::EMPTY {
                announced = F::Bits::fetch_or(&self.cell, waiters, Relaxed) | waiters;
                Self::note_rmw(waiters, || F::Bits::EMPTY);
                if (announced & bit != F::Bits::EMPTY) == set {
                    continue;
                }
            }
            // The waiters bit is set and the change has not come: giving up loses no wake-up.
            if park::expired(deadline) {
                return false;
            }
            woken |= park::wait(&self.cell, announced, WAITERS, deadline) == Outcome::Woken;
        }
    }

    /// Sets bit `BIT` and wakes all who wait for that through `WAITERS`.
    ///
    /// # Ordering
    /// One RMW with `order`, also when the bit was set before; give at least `Release` so that
    /// waiters see what was written before. The wake-up comes after it and uses the word's address
    /// only. The RMW itself tells of waiters: a look of its own would need a full barrier before
    /// it, as the kernel's `wake_up_bit()` asks of its callers (`kernel/sched/wait_bit.c`).
    #[inline]
    pub fn set_and_wake<const BIT: u32, const WAITERS: u32>(&self, order: Ordering) {
        let (bit, waiters) = (Self::one::<BIT>(), Self::one::<WAITERS>());
        let address = self.address();
        // Setting one bit and clearing the other is one step only as an exchange.
        let mut old = self.peek();
        let failure = Relaxed;
        while let Err(seen) =
            F::Bits::exchange(&self.cell, old, (old | bit) & !waiters, order, failure)
        {
            old = seen;
        }
        Self::note_rmw(bit, || old);
        if old & waiters != F::Bits::EMPTY {
            park::wake_all::<F::Bits>(address, WAITERS);
        }
    }

    /// Clears bit `BIT` and wakes all who wait for that through `WAITERS`. For events; a lock bit
    /// is unlocked by its guard.
    ///
    /// # Ordering
    /// One RMW with `order`, also when the bit was clear before; give at least `Release` so that
    /// waiters see what was written before. The wake-up comes after it and uses the word's address
    /// only. See [`set_and_wake`](Self::set_and_wake) for why no fence is needed.
    #[inline]
    pub fn clear_and_wake<const BIT: u32, const WAITERS: u32>(&self, order: Ordering) {
        let (bit, waiters) = (Self::one::<BIT>(), Self::one::<WAITERS>());
        let address = self.address();
        let old = F::Bits::fetch_and(&self.cell, !(bit | waiters), order);
        Self::note_rmw(bit, || !old);
        if old & waiters != F::Bits::EMPTY {
            park::wake_all::<F::Bits>(address, WAITERS);
        }
    }
}
