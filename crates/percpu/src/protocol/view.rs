//! An address and a limit that are published together: nobody may follow the address before both are there.
//!
//! *Ordering*: the address is stored last, with release, and loaded first, with acquire.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// Nothing, which the first address stands for; then an address that is good for everything below a limit, which is at least `FLOOR`.
///
/// Up to the floor the limit need not be looked at, which spares the common case a load.
pub(crate) struct View<T, const FLOOR: usize> {
    at: AtomicPtr<T>,
    limit: AtomicUsize,
}

impl<T, const FLOOR: usize> View<T, FLOOR> {
    /// A view of nothing, over an address that stands for it.
    pub(crate) const fn over(at: AtomicPtr<T>, limit: AtomicUsize) -> Self {
        Self { at, limit }
    }

    /// Shows `at` to those who ask for less than `limit`, unless that is below the floor. Several threads may
    /// do so, each with the same values.
    pub(crate) fn show(&self, at: *mut T, limit: usize) {
        if limit >= FLOOR {
            self.limit.store(limit, Ordering::Relaxed);
            self.at.store(at, Ordering::Release);
        }
    }

    /// The address, or what stands for none. It is good for everything below the limit, and so below the floor.
    #[inline(always)]
    pub(crate) fn address(&self) -> *mut T {
        self.address_as(Ordering::Acquire)
    }

    /// [`address`](Self::address) with the ordering that takes over what is shown.
    #[inline(always)]
    pub(crate) fn address_as(&self, look: Ordering) -> *mut T {
        self.at.load(look)
    }

    /// The limit. Only after [`address`](Self::address) gave one.
    #[inline(always)]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
}
