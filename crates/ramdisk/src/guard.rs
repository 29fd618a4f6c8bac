//! A lock for each page, where blocks must not tear, and a checksum, where bytes must not rot.
//!
//! Locks are shared by pages far apart. Everything that changes a page's bytes or its bit holds the
//! page's lock alone; a reader shares it, and looks at the bit under it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::bitmap::zeroed;

/// Locks of a device.
const LOCKS: u64 = 1024;

#[repr(align(64))]
struct Padded(RwLock<()>);

pub(crate) struct Guards {
    locks: Box<[Padded]>,
    sums: Option<Box<[AtomicU64]>>,
}

impl Guards {
    pub(crate) fn new(pages: u64, checksums: bool) -> io::Result<Self> {
        Ok(Self {
            locks: (0..LOCKS.min(pages.max(1)))
                .map(|_| Padded(RwLock::new(())))
                .collect(),
            sums: checksums.then(|| zeroed(pages)).transpose()?,
        })
    }

    fn of(&self, page: u64) -> &RwLock<()> {
        let i = page % self.locks.len() as u64;
        #[expect(
            clippy::indexing_slicing,
            clippy::cast_possible_truncation,
            reason = "a remainder of the length"
        )]
        &self.locks[i as usize].0
    }

    pub(crate) fn share(&self, page: u64) -> RwLockReadGuard<'_, ()> {
        // The lock guards memory, not an invariant that a panic could have broken.
        self.of(page).read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn own(&self, page: u64) -> RwLockWriteGuard<'_, ()> {
        self.of(page)
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn sums(&self) -> bool {
        self.sums.is_some()
    }

    fn sum_of(&self, page: u64) -> Option<&AtomicU64> {
        self.sums.as_ref()?.get(usize::try_from(page).ok()?)
    }

    /// Under the page's lock, alone.
    pub(crate) fn keep(&self, page: u64, bytes: &[u8]) {
        if let Some(sum) = self.sum_of(page) {
            sum.store(cairn_block::crc32c(bytes).into(), Ordering::Relaxed);
        }
    }

    /// Under the page's lock. The two sums when they differ.
    pub(crate) fn differs(&self, page: u64, bytes: &[u8]) -> Option<(u64, u64)> {
        let kept = self.sum_of(page)?.load(Ordering::Relaxed);
        let now = u64::from(cairn_block::crc32c(bytes));
        (kept != now).then_some((kept, now))
    }
}
