//! Striped locks over ranges of a device, for layers that must keep two things in step.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const STRIPES: usize = 64;
const SHIFT: u32 = 16;

/// Sixty-four locks; a range takes those of the 64 KiB pieces it touches, in their order.
pub(crate) struct RangeLocks {
    stripes: Vec<RwLock<()>>,
}

impl RangeLocks {
    pub(crate) fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| RwLock::new(())).collect(),
        }
    }

    fn touched(&self, off: u64, len: u64) -> impl Iterator<Item = &RwLock<()>> {
        let first = off >> SHIFT;
        let last = off.saturating_add(len.max(1) - 1) >> SHIFT;
        let all = last - first >= STRIPES as u64;
        let hit = move |i: usize| {
            let from = first % STRIPES as u64;
            let to = last % STRIPES as u64;
            let i = i as u64;
            all || if from <= to {
                (from..=to).contains(&i)
            } else {
                i >= from || i <= to
            }
        };
        // Always ascending, so that two ranges cannot wait for each other.
        self.stripes
            .iter()
            .enumerate()
            .filter(move |(i, _)| hit(*i))
            .map(|(_, lock)| lock)
    }

    /// With others that share.
    pub(crate) fn share(&self, off: u64, len: u64) -> Vec<RwLockReadGuard<'_, ()>> {
        self.touched(off, len)
            .map(|l| l.read().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    /// Alone.
    pub(crate) fn own(&self, off: u64, len: u64) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.touched(off, len)
            .map(|l| l.write().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_meet_share_a_stripe() {
        let locks = RangeLocks::new();
        let count = |off, len| locks.touched(off, len).count();
        assert_eq!(count(0, 0), 1);
        assert_eq!(count(0, 1 << SHIFT), 1);
        assert_eq!(count((1 << SHIFT) - 1, 2), 2);
        assert_eq!(count(63 << SHIFT, 2 << SHIFT), 2);
        assert_eq!(count(5 << SHIFT, 63 << SHIFT), 63);
        assert_eq!(count(5 << SHIFT, 64 << SHIFT), 64);
        assert_eq!(count(5, 1 << 40), 64);
        let held = locks.own(0, 10);
        assert!(locks.touched(9, 1).all(|l| l.try_read().is_err()));
        drop(held);
    }
}
