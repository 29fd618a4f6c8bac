//! The switches that this crate's own hot paths read.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cairn_extents::ExtentCache;

use crate::shrinker::Shrinker;

/// Read once per operation with one relaxed load each, written only when a person or a scenario
/// switches. Nothing else shares the line, so the loads stay in every core's cache.
#[repr(align(128))]
pub(crate) struct Switches {
    extent_cache: AtomicBool,
    followers: Mutex<Vec<Follower>>,
    shrinker: OnceLock<Arc<Shrinker>>,
}

/// Is told when the extent cache is switched.
type Follower = Box<dyn Fn(bool) + Send + Sync>;

impl Switches {
    pub(crate) const fn new() -> Self {
        Self {
            extent_cache: AtomicBool::new(true),
            followers: Mutex::new(Vec::new()),
            shrinker: OnceLock::new(),
        }
    }

    /// Whether look-ups ask the extent status cache.
    #[inline]
    pub(crate) fn extent_cache(&self) -> bool {
        self.extent_cache.load(Ordering::Relaxed)
    }

    pub(crate) fn set_extent_cache(&self, on: bool) {
        self.extent_cache.store(on, Ordering::Relaxed);
        for follower in self
            .followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            follower(on);
        }
    }

    /// The shrinker of the cache that these switches belong to; it lives as long as they do.
    pub(crate) fn shrinker(&self, cache: &ExtentCache) -> Arc<Shrinker> {
        let made = || Arc::new(Shrinker::new(cache.clone()));
        Arc::clone(self.shrinker.get_or_init(made))
    }

    /// Tells `follower` from now on whenever the extent cache is switched.
    pub(crate) fn follow(&self, follower: impl Fn(bool) + Send + Sync + 'static) {
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(follower));
    }
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switches")
            .field("extent_cache", &self.extent_cache())
            .finish_non_exhaustive()
    }
}
