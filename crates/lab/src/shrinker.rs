//! Memory pressure on the extent status cache: a limit above which it is shrunk, and a shrink on demand.
//!
//! The kernel shrinks its cache when memory runs short: `do_shrink_slab` asks the cache's shrinker to scan
//! batches of 128 entries until enough was asked for. Here the limit stands for the memory there is: a
//! thread of its own looks at the count a hundred times a second while a limit is set, and sleeps while
//! none is. Look-ups meet no lock of it.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cairn_extents::ExtentCache;

/// Entries asked of one scan, `SHRINK_BATCH` of the kernel.
const BATCH: u32 = 128;

/// Time between two looks at the count.
const PERIOD: Duration = Duration::from_millis(10);

/// Limits that the policy `extent-limit` steps through; `None` first.
pub(crate) const LIMITS: [Option<u64>; 4] = [None, Some(16_384), Some(4096), Some(1024)];

/// What one shrink did: a series of scans of at most 128 entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shrink {
    /// Scans made.
    pub scans: u64,
    /// Entries scanned: those looked up since the scan before are kept once more.
    pub scanned: u64,
    /// Entries reclaimed.
    pub reclaimed: u64,
    /// Reclaimable entries left.
    pub left: u64,
}

impl Shrink {
    fn add(&mut self, more: Self) {
        self.scans += more.scans;
        self.scanned += more.scanned;
        self.reclaimed += more.reclaimed;
        self.left = more.left;
    }
}

/// Everything that was shrunk, and the last time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) limit: Option<u64>,
    pub(crate) sum: Shrink,
    pub(crate) last: Option<(Instant, Shrink)>,
}

/// The shrinker of one cache.
pub(crate) struct Shrinker {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    cache: ExtentCache,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    done: Done,
    ends: bool,
}

impl Shrinker {
    pub(crate) fn new(cache: ExtentCache) -> Self {
        Self {
            inner: Arc::new(Inner {
                cache,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            thread: Mutex::new(None),
        }
    }

    /// From now on no more than about so many reclaimable entries are held.
    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.inner.state().done.limit = limit;
        self.inner.changed.notify_all();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if limit.is_some() && thread.is_none() {
            let inner = Arc::clone(&self.inner);
            let spawned = thread::Builder::new()
                .name("shrinker".to_owned())
                .stack_size(128 << 10)
                .spawn(move || inner.watch());
            // Without a thread nothing is shrunk, and the counts say so.
            *thread = spawned.ok();
        }
    }

    /// Scans every reclaimable entry once, whatever the limit: what was not looked up since the scan before
    /// goes.
    pub(crate) fn shrink(&self) -> Shrink {
        let count = self.inner.reclaimable();
        self.inner.scan(count, 0)
    }

    pub(crate) fn done(&self) -> Done {
        self.inner.state().done
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reclaimable(&self) -> u64 {
        u64::try_from(self.cache.counters().report().reclaimable.exact).unwrap_or(0)
    }

    /// Scans up to `budget` entries, until no more than `keep` are left.
    fn scan(&self, budget: u64, keep: u64) -> Shrink {
        let mut shrink = Shrink::default();
        let mut count = self.reclaimable();
        while count > keep && shrink.scanned < budget {
            let ask = u32::try_from(budget - shrink.scanned).unwrap_or(BATCH);
            let scan = self.cache.shrink(ask.min(BATCH));
            shrink.scans += 1;
            shrink.scanned += u64::from(scan.visited);
            shrink.reclaimed += u64::from(scan.freed);
            count = count.saturating_sub(u64::from(scan.freed));
            if scan.visited == 0 {
                // Every map is at work just now; the next look finds them free.
                break;
            }
        }
        shrink.left = self.reclaimable();
        if shrink.scans > 0 {
            let mut state = self.state();
            state.done.sum.add(shrink);
            state.done.last = Some((Instant::now(), shrink));
        }
        shrink
    }

    /// The life of the thread.
    fn watch(&self) {
        let mut state = self.state();
        while !state.ends {
            let Some(limit) = state.done.limit else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let count = self.reclaimable();
            if count > limit {
                // Twice, as the first visit only takes the mark off what was looked up.
                self.scan(2 * count, limit);
            }
            let waited = self.changed.wait_timeout(self.state(), PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Shrinker {
    fn drop(&mut self) {
        self.inner.state().ends = true;
        self.inner.changed.notify_all();
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            // It scans at most what there is, and ends.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Shrinker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shrinker")
            .field("done", &self.done())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use cairn_extents::{Config, Status};

    use super::*;

    const N: u32 = 5000;

    /// A map of entries that do not merge, none of them looked up.
    fn cache() -> ExtentCache {
        let cache = ExtentCache::new(Config::new());
        fill(&cache, 0);
        cache
    }

    fn fill(cache: &ExtentCache, from: u32) {
        let map = cache.map(12);
        for i in from..from + N {
            // Nothing was reserved for these.
            let _ = map.insert(i, 1, Status::Written(u64::from(i) * 7)).unwrap();
        }
    }

    #[test]
    fn a_shrink_on_demand_spares_what_was_looked_up() {
        let cache = cache();
        let shrinker = Shrinker::new(cache.clone());
        let map = cache.map(12);
        for i in 0..100 {
            assert!(map.lookup(i).is_some());
        }
        let shrink = shrinker.shrink();
        let reclaimed = u64::from(N) - 100;
        assert_eq!(
            (shrink.scanned, shrink.reclaimed, shrink.left),
            (u64::from(N), reclaimed, 100)
        );
        assert_eq!(
            shrink.scans,
            u64::from(N.div_ceil(BATCH)),
            "in batches of 128"
        );
        assert_eq!(
            shrinker.shrink().reclaimed,
            100,
            "not looked up again, so they go"
        );
        let done = shrinker.done();
        assert_eq!(done.sum.reclaimed, u64::from(N));
        assert_eq!(done.last.unwrap().1.reclaimed, 100);
        assert_eq!(shrinker.shrink(), Shrink::default(), "nothing is left");
    }

    #[test]
    fn a_limit_is_kept_until_it_is_lifted() {
        let cache = cache();
        let shrinker = Shrinker::new(cache.clone());
        let wait = |holds: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !holds() {
                assert!(begun.elapsed() < Duration::from_secs(20), "{shrinker:?}");
                thread::sleep(Duration::from_millis(1));
            }
        };
        shrinker.set_limit(Some(1024));
        wait(&|| cache.reclaimable() <= 1024);
        let kept = cache.reclaimable();
        assert!(
            kept > 1024 - u64::from(BATCH),
            "no more than needed: {kept} left"
        );
        fill(&cache, N);
        wait(&|| cache.reclaimable() <= 1024);
        wait(&|| shrinker.done().sum.left <= 1024);
        shrinker.set_limit(None);
        // A scan that had begun before may still go on; the count settles.
        wait(&|| {
            let before = shrinker.done().sum.scans;
            thread::sleep(3 * PERIOD);
            shrinker.done().sum.scans == before
        });
        let sum = shrinker.done().sum;
        fill(&cache, 2 * N);
        thread::sleep(3 * PERIOD);
        assert_eq!(
            shrinker.done().sum,
            sum,
            "without a limit nothing is shrunk"
        );
        assert!(cache.reclaimable() >= u64::from(N));
    }

    #[test]
    fn delayed_entries_are_not_its_to_take() {
        let cache = ExtentCache::new(Config::new());
        let map = cache.map(12);
        for i in 0..300 {
            map.insert_delayed(2 * i, 1, false, false).unwrap();
        }
        let shrinker = Shrinker::new(cache.clone());
        assert_eq!(shrinker.shrink(), Shrink::default());
        assert_eq!(map.len(), 300);
    }
}
