//! An address and a limit that are published together: nobody may follow the address before the limit says so.
//!
//! *Ordering*: the limit is stored last, with release, and loaded first, with acquire.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// Nothing below a limit of 0; then an address that is good for everything below the limit.
pub(crate) struct View<T> {
    at: AtomicPtr<T>,
    limit: AtomicUsize,
}

impl<T> View<T> {
    /// A view of nothing, over a null pointer and a zero.
    pub(crate) const fn over(at: AtomicPtr<T>, limit: AtomicUsize) -> Self {
        Self { at, limit }
    }

    /// Shows `at` to those who ask for less than `limit`. Several threads may do so, each with the same values.
    pub(crate) fn show(&self, at: *mut T, limit: usize) {
        self.at.store(at, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Release);
    }

    /// The address, if `wanted` is below the limit.
    #[inline(always)]
    pub(crate) fn below(&self, wanted: usize) -> Option<*mut T> {
        self.below_as(wanted, Ordering::Acquire)
    }

    /// Address and limit, if the limit is above 0.
    #[inline(always)]
    pub(crate) fn all(&self) -> Option<(*mut T, usize)> {
        let limit = self.limit.load(Ordering::Acquire);
        (limit > 0).then(|| (self.at.load(Ordering::Relaxed), limit))
    }

    /// [`below`](Self::below) with the ordering that takes over what is shown.
    #[inline(always)]
    pub(crate) fn below_as(&self, wanted: usize, look: Ordering) -> Option<*mut T> {
        (wanted < self.limit.load(look)).then(|| self.at.load(Ordering::Relaxed))
    }
}
