//! Range locks: a region of the device is shared by those who write and held alone by who frees.
//!
//! Readers take no lock. A page must not be freed while somebody copies to it, for the bytes would
//! be lost although the write returns success.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes of a region: what one huge page covers, and the most that is freed at once.
pub(crate) const REGION: u64 = 2 << 20;

/// Most locks of a device; regions beyond share them.
const MOST: u64 = 1024;

#[repr(align(128))]
struct Padded(RwLock<()>);

pub(crate) struct Stripes {
    locks: Box<[Padded]>,
    mask: u64,
}

impl Stripes {
    pub(crate) fn new(len: u64) -> Self {
        let n = len.div_ceil(REGION).next_power_of_two().clamp(1, MOST);
        Self {
            locks: (0..n).map(|_| Padded(RwLock::new(()))).collect(),
            mask: n - 1,
        }
    }

    #[inline]
    fn of(&self, off: u64) -> &RwLock<()> {
        let i = ((off / REGION) & self.mask) as usize;
        #[expect(
            clippy::indexing_slicing,
            reason = "the mask is one less than the length"
        )]
        &self.locks[i].0
    }

    /// For a copy into the region of `off`.
    #[inline]
    pub(crate) fn share(&self, off: u64) -> RwLockReadGuard<'_, ()> {
        // The lock guards memory, not an invariant that a panic could have broken.
        self.of(off).read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For freeing in the region of `off`.
    pub(crate) fn own(&self, off: u64) -> RwLockWriteGuard<'_, ()> {
        self.of(off).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every region at once, for a cut through the whole device. Always in the same order.
    pub(crate) fn own_all(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.locks
            .iter()
            .map(|l| l.0.write().unwrap_or_else(PoisonError::into_inner))
            .collect()
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
}
