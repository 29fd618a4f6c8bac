//! How many pages are in use, and the hard limit.
//!
//! A page is *allocated* when its bit is set. A page is *pending* when it was discarded and zeroed
//! but its memory has not gone back yet. Both are resident and count against the limit.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bitmap::PAGE;

pub(crate) struct Space {
    resident: AtomicU64,
    pending: AtomicU64,
    peak: AtomicU64,
    /// In pages.
    limit: Option<u64>,
}

impl Space {
    pub(crate) fn new(limit_bytes: Option<u64>) -> Self {
        Self {
            resident: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: limit_bytes.map(|b| b / PAGE),
        }
    }

    pub(crate) const fn limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes pages from the limit before they are touched; all of them or none.
    pub(crate) fn reserve(&self, pages: u64) -> bool {
        let Some(limit) = self.limit else {
            return true;
        };
        if pages == 0 {
            return true;
        }
        let took = self
            .resident
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                now.checked_add(pages).filter(|sum| *sum <= limit)
            });
        if let Ok(before) = took {
            self.peak.fetch_max(before + pages, Ordering::Relaxed);
        }
        took.is_ok()
    }

    /// After a reservation of `reserved`, `used` pages became resident.
    pub(crate) fn settle(&self, reserved: u64, used: u64) {
        if self.limit.is_some() {
            // Another thread may have allocated some of the same pages first.
            let back = reserved.saturating_sub(used);
            if back > 0 {
                self.resident.fetch_sub(back, Ordering::Relaxed);
            }
        } else if used > 0 {
            let before = self.resident.fetch_add(used, Ordering::Relaxed);
            self.peak.fetch_max(before + used, Ordering::Relaxed);
        }
    }

    /// Pages went back to the system.
    pub(crate) fn release(&self, pages: u64) {
        if pages > 0 {
            self.resident.fetch_sub(pages, Ordering::Relaxed);
        }
    }

    /// Pages were zeroed and wait to be freed.
    pub(crate) fn wait(&self, pages: u64) {
        if pages > 0 {
            self.pending.fetch_add(pages, Ordering::Relaxed);
        }
    }

    /// Pages wait no more: freed, or written again.
    pub(crate) fn unwait(&self, pages: u64) {
        if pages > 0 {
            self.pending.fetch_sub(pages, Ordering::Relaxed);
        }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.resident
            .load(Ordering::Relaxed)
            .saturating_sub(self.pending())
            * PAGE
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending() * PAGE
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed) * PAGE
    }

    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.limit.map(|pages| pages * PAGE)
    }
}
