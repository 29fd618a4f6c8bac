//! Many files: one group of maps with its counters and its shrinker.

mod list;
mod registry;
mod shrink;

use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, lock};

use crate::arena::{Arena, MemoryReport};
use crate::config::{Config, DroppedDelayed, Rules};
use crate::counters::{CounterMode, Counters};
use crate::info::{Averages, Info, Largest};
use crate::map::ExtentMap;
use crate::pin::DOMAIN;
use crate::types::{MAX_BLOCK, Released};

use list::List;
use registry::Registry;

pub use shrink::Scan;

/// What the maps of one group share.
pub(crate) struct Group {
    config: Config,
    inert: AtomicBool,
    pub(crate) counters: Counters,
    list: Mutex<List>,
    averages: Mutex<Averages>,
    arena: Arena,
}

impl Group {
    pub(crate) fn new(config: Config) -> Self {
        DOMAIN.prepare();
        Self {
            inert: AtomicBool::new(false),
            counters: Counters::new(config.counter_slots),
            arena: Arena::new(config.huge_pages),
            config,
            list: Mutex::new(List::default()),
            averages: Mutex::new(Averages::default()),
        }
    }

    pub(crate) fn rules(&self) -> Rules {
        self.config.rules
    }

    #[inline]
    pub(crate) fn is_inert(&self) -> bool {
        self.inert.load(Ordering::Relaxed)
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    fn list(&self) -> MutexGuard<'_, List> {
        lock(&self.list)
    }

    fn averages(&self) -> MutexGuard<'_, Averages> {
        lock(&self.averages)
    }

    /// Applies a change of a map's counts. The caller holds the map's writer lock; the list lock
    /// is only ever taken inside it or alone.
    pub(crate) fn account(&self, map: &ExtentMap, before: (u32, u32), after: (u32, u32)) {
        self.counters.all(i64::from(after.0) - i64::from(before.0));
        self.counters
            .reclaimable(i64::from(after.1) - i64::from(before.1));
        if before.1 == 0 && after.1 > 0 {
            self.list().append(map);
        } else if before.1 > 0 && after.1 == 0 {
            self.list().remove(&map.ticket);
        }
    }

    /// Takes a dropped map's counts off.
    pub(crate) fn forget(&self, ticket: &AtomicU64, held: (u32, u32)) {
        self.counters.all(-i64::from(held.0));
        self.counters.reclaimable(-i64::from(held.1));
        if held.1 > 0 {
            self.list().remove(ticket);
        }
    }

    pub(crate) fn report_dropped(&self, dropped: DroppedDelayed) {
        if let Some(hook) = &self.config.on_drop {
            hook(dropped);
        }
    }
}

/// The extent status cache of one file system: a map for each inode, one shrinker, one set of
/// counters.
///
/// Cheap to clone; clones are the same cache.
///
/// ```
/// use cairn_extents::{Config, ExtentCache, Status};
/// let cache = ExtentCache::new(Config::new());
/// let file = cache.map(12);
/// file.cache(0, 8, Status::Written(1000))?;
/// assert!(file.lookup(3).is_some() && file.lookup(9).is_none());
/// let info = cache.info();
/// assert_eq!((info.objects, info.hits, info.misses), (1, 1, 1));
/// assert_eq!(cache.shrink(128).freed, 0, "looked up, so it gets a second chance");
/// assert_eq!(cache.shrink(128).freed, 1);
/// # Ok::<(), cairn_extents::Error>(())
/// ```
#[derive(Clone)]
pub struct ExtentCache {
    group: Arc<Group>,
    registry: Arc<Registry>,
}

impl ExtentCache {
    /// A cache without files.
    pub fn new(config: Config) -> Self {
        Self {
            group: Arc::new(Group::new(config)),
            registry: Arc::new(Registry::default()),
        }
    }

    /// The rules its maps keep.
    pub fn rules(&self) -> Rules {
        self.group.rules()
    }

    /// The map of an inode, made if there is none. Keep it beside the inode: look-ups then go
    /// straight to it.
    pub fn map(&self, ino: u64) -> Arc<ExtentMap> {
        self.registry
            .get_or_insert(ino, || ExtentMap::create(ino, self.group.clone()))
    }

    /// The map of an inode if there is one.
    pub fn get(&self, ino: u64) -> Option<Arc<ExtentMap>> {
        self.registry.get(ino)
    }

    /// Number of maps, empty ones included.
    pub fn maps(&self) -> usize {
        self.registry.len()
    }

    /// Inodes that have a map, in no order.
    pub fn inodes(&self) -> Vec<u64> {
        self.registry.inodes()
    }

    /// Empties the inode's map as a removal of the whole file does, and forgets it. Waits for a
    /// shrinker that is in the map.
    pub fn evict(&self, ino: u64) -> Released {
        let Some(map) = self.registry.remove(ino) else {
            return Released::default();
        };
        map.remove(0, MAX_BLOCK).unwrap_or_default()
    }

    /// In an inert cache every look-up misses, searches find nothing, and changes do nothing.
    pub fn set_inert(&self, on: bool) {
        self.group.inert.store(on, Ordering::Relaxed);
    }

    /// Chooses which arm counts from now on; see [`CounterMode`].
    pub fn set_counter_mode(&self, mode: CounterMode) {
        self.group.counters.set_mode(mode);
    }

    /// Chooses what the per-CPU arm counts with, while others count; what cannot be had here counts on
    /// owned slots, and [`Counters::report`] says why.
    pub fn set_counter_backend(&self, kind: cairn_percpu::BackendKind) {
        self.group.counters.set_backend(kind);
    }

    /// Sets the batch of the per-CPU counters while others count; bounds stay right.
    ///
    /// # Errors
    /// A batch of 0 or one that is too large; then nothing changes.
    pub fn set_counter_batch(&self, batch: u32) -> Result<(), cairn_percpu::BatchError> {
        self.group.counters.set_batch(batch)
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.group.counters
    }

    /// Approximate number of entries that the shrinker may take.
    pub fn count(&self) -> u64 {
        u64::try_from(self.group.counters.approximate_reclaimable()).unwrap_or(0)
    }

    /// Exact number of entries that the shrinker may take.
    pub fn reclaimable(&self) -> u64 {
        self.info().reclaimable
    }

    /// Visits up to `budget` entries and frees those that were not looked up since the last visit.
    pub fn shrink(&self, budget: u32) -> Scan {
        shrink::scan(&self.group, budget, None)
    }

    /// As [`shrink`](Self::shrink), called from inside an operation on `own`, which is passed over.
    pub fn shrink_except(&self, budget: u32, own: &ExtentMap) -> Scan {
        shrink::scan(&self.group, budget, Some(own))
    }

    /// Memory of the trees of all maps. Maps of up to four entries need none.
    pub fn memory(&self) -> MemoryReport {
        self.group.arena.memory()
    }

    /// Makes ready for use what no reader can see any more, and gives back to the system what is spare:
    /// without it, up to 16 MiB of free memory is kept for changes to come.
    pub fn flush(&self) {
        self.group.arena.flush();
    }

    /// What the shrinker did so far.
    pub fn averages(&self) -> Averages {
        *self.group.averages()
    }

    /// The statistics at this moment.
    pub fn info(&self) -> Info {
        let maps = self.group.list().maps();
        let mut largest: Option<Largest> = None;
        for map in &maps {
            let (objects, reclaimable) = (map.len(), map.reclaimable());
            if largest.is_none_or(|l| objects > l.objects) {
                largest = Some(Largest {
                    ino: map.ino(),
                    objects,
                    reclaimable,
                });
            }
        }
        let averages = self.averages();
        self.group
            .counters
            .info(maps.len() as u64, averages, largest)
    }
}

impl std::fmt::Debug for ExtentCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtentCache")
            .field("maps", &self.maps())
            .field("info", &self.info())
            .finish_non_exhaustive()
    }
}
