//! When memory that readers may still see can be used again.
//!
//! A reader announces the epoch in a slot of its own, then reads; a writer unlinks, raises the
//! epoch, and frees what was unlinked before epoch `t` once every announced epoch is above `t`.
//!
//! The argument, with X unlinked before the epoch went from `t` to `t + 1`:
//!
//! - A reader that announced more than `t` read the epoch after it was raised. The raise releases,
//!   the read acquires, so the reader sees the unlink and cannot reach X.
//! - A reader that announced `t` or less and can reach X made its announcement before it read the
//!   link to X. Announcement and read are a store and a load, which hardware may swap; either a
//!   full fence on each side forbids it, or, where Linux offers it, the writer makes every thread
//!   of the process pass a fence ([`Barrier::heavy`], membarrier(2)) and readers pay nothing. So
//!   if the read missed the unlink, the writer's look at the slots finds the announcement.
//!
//! Readers write their own slot and nothing else: no line is shared in the steady state.

use crate::barrier::Barrier;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// One reader thread's announcement: the epoch, or 0 while it reads nothing.
#[repr(align(128))]
pub(crate) struct Slot {
    epoch: AtomicU64,
    taken: AtomicBool,
    next: AtomicPtr<Slot>,
}

impl Slot {
    /// Announces; `false` if the thread had done so already.
    #[inline]
    pub(crate) fn enter(&self, domain: &Domain) -> bool {
        if self.epoch.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let epoch = domain.epoch.0.load(Ordering::Acquire);
        self.epoch.store(epoch, Ordering::Relaxed);
        domain.barrier.light();
        true
    }

    /// Gives the slot back at the end of a thread.
    #[cfg(not(loom))]
    pub(crate) fn unregister(&self) {
        self.epoch.store(0, Ordering::Release);
        self.taken.store(false, Ordering::Release);
    }

    /// Takes the announcement back. Release: what was read was read before.
    #[inline]
    pub(crate) fn leave(&self) {
        self.epoch.store(0, Ordering::Release);
    }
}

#[repr(align(128))]
struct Epoch(AtomicU64);

/// Readers and writers that know of each other.
pub(crate) struct Domain {
    epoch: Epoch,
    barrier: Barrier,
    slots: AtomicPtr<Slot>,
}

impl Domain {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            epoch: Epoch(AtomicU64::new(1)),
            barrier: Barrier::new(),
            slots: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            epoch: Epoch(AtomicU64::new(1)),
            barrier: Barrier::new(),
            slots: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Asks the kernel for what readers will need, so that no look-up has to wait for it.
    pub(crate) fn prepare(&self) {
        self.barrier.prepare();
    }

    /// A slot for the calling thread. Slots are never freed, so there are as many as threads ever
    /// read at a time.
    pub(crate) fn register(&self) -> &'static Slot {
        self.barrier.prepare();
        for slot in self.slots() {
            let free =
                slot.taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            if free.is_ok() {
                return slot;
            }
        }
        let slot: &'static Slot = Box::leak(Box::new(Slot {
            epoch: AtomicU64::new(0),
            taken: AtomicBool::new(true),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }));
        let new = std::ptr::from_ref(slot).cast_mut();
        let mut head = self.slots.load(Ordering::Relaxed);
        loop {
            slot.next.store(head, Ordering::Relaxed);
            match self
                .slots
                .compare_exchange(head, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return slot,
                Err(now) => head = now,
            }
        }
    }

    /// Ends an epoch: what was unlinked so far belongs to the epoch returned, or to earlier ones.
    pub(crate) fn advance(&self) -> u64 {
        self.epoch.0.fetch_add(1, Ordering::AcqRel)
    }

    /// What was unlinked in epochs below this one is seen by no reader any more.
    pub(crate) fn oldest(&self) -> u64 {
        if !self.barrier.heavy() {
            return 0;
        }
        self.slots()
            .map(|slot| slot.epoch.load(Ordering::Acquire))
            .filter(|&epoch| epoch != 0)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn slots(&self) -> impl Iterator<Item = &'static Slot> {
        let mut next = self.slots.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: the list holds null or leaked slots, published by a releasing exchange.
            let slot: &'static Slot = unsafe { next.as_ref() }?;
            next = slot.next.load(Ordering::Relaxed);
            Some(slot)
        })
    }
}
