//! The switches that this crate's own hot paths read.

use std::sync::atomic::{AtomicBool, Ordering};

/// Read once per operation with one relaxed load each, written only when a person or a scenario
/// switches. Nothing else shares the line, so the loads stay in every core's cache.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Switches {
    extent_cache: AtomicBool,
}

impl Switches {
    pub(crate) const fn new() -> Self {
        Self {
            extent_cache: AtomicBool::new(true),
        }
    }

    /// Whether look-ups ask the extent status cache.
    #[inline]
    pub(crate) fn extent_cache(&self) -> bool {
        self.extent_cache.load(Ordering::Relaxed)
    }

    pub(crate) fn set_extent_cache(&self, on: bool) {
        self.extent_cache.store(on, Ordering::Relaxed);
    }
}
