//! One file's map, shared by many threads.

mod read;
mod update;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crate::cache::Group;
use crate::config::{Config, DroppedDelayed, Rules};
use crate::modify::Tokens;
use crate::reference::ReferenceMap;
use crate::seq::Seq;

pub use read::Iter;
pub use update::Modify;

/// What is known of the blocks of one file.
///
/// Obtained from [`ExtentCache::map`](crate::ExtentCache::map), or alone by
/// [`ExtentMap::standalone`]. Every change is atomic to readers: a look-up sees all of it or
/// nothing.
///
/// ```
/// use cairn_extents::{Config, ExtentMap, Status};
/// let map = ExtentMap::standalone(12, Config::new());
/// map.cache(0, 16384, Status::Written(262_144))?;
/// let hit = map.lookup(100).expect("it was cached");
/// assert_eq!(hit.extent.physical_at(100), Some(262_244));
/// # Ok::<(), cairn_extents::Error>(())
/// ```
pub struct ExtentMap {
    ino: u64,
    pub(crate) group: Arc<Group>,
    pub(crate) this: Weak<ExtentMap>,
    seq: Seq,
    precached: AtomicBool,
    /// Place in the group's list, 0 when not on it. Only touched under the list's lock.
    pub(crate) ticket: AtomicU64,
    state: RwLock<State>,
}

pub(crate) struct State {
    pub(crate) map: ReferenceMap,
    pub(crate) tokens: Tokens,
}

impl ExtentMap {
    pub(crate) fn create(ino: u64, group: Arc<Group>) -> Arc<Self> {
        let rules = group.rules();
        Arc::new_cyclic(|this| Self {
            ino,
            group,
            this: this.clone(),
            seq: Seq::new(),
            precached: AtomicBool::new(false),
            ticket: AtomicU64::new(0),
            state: RwLock::new(State {
                map: ReferenceMap::new(rules),
                tokens: Tokens::default(),
            }),
        })
    }

    /// A map of its own, in a group of one.
    pub fn standalone(ino: u64, config: Config) -> Arc<Self> {
        Self::create(ino, Arc::new(Group::new(config)))
    }

    /// The inode it was made for.
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// The rules it keeps.
    pub fn rules(&self) -> Rules {
        self.group.rules()
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        self.read().map.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that the shrinker may take: all but the delayed ones.
    pub fn reclaimable(&self) -> u32 {
        self.read().map.reclaimable()
    }

    /// Number of changes so far: a cookie to hand to [`is_current`](Self::is_current) and the
    /// `_if` operations.
    pub fn seq(&self) -> u64 {
        self.seq.cookie()
    }

    /// Whether no change was even begun since the cookie was taken.
    pub fn is_current(&self, seq: u64) -> bool {
        self.seq.is_current(seq)
    }

    /// Where the shrinker goes on.
    pub fn resume_point(&self) -> u32 {
        self.read().map.resume_point()
    }

    /// Tells the shrinker to pass this map over as long as others give something.
    pub fn set_precached(&self, on: bool) {
        self.precached.store(on, Ordering::Relaxed);
    }

    /// Whether the shrinker passes this map over at first.
    pub fn is_precached(&self) -> bool {
        self.precached.load(Ordering::Relaxed)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, State>> {
        match self.state.try_write() {
            Ok(state) => Some(state),
            Err(std::sync::TryLockError::Poisoned(p)) => Some(p.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Brings the group's counters and list up to date after a change under the writer lock.
    pub(crate) fn account(&self, before: (u32, u32), state: &State) {
        let after = (state.map.len(), state.map.reclaimable());
        self.group.account(self, before, after);
    }
}

impl Drop for ExtentMap {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let before = (state.map.len(), state.map.reclaimable());
        let clusters = state
            .map
            .remove(0, crate::MAX_BLOCK)
            .map_or(0, |released| released.delayed_clusters);
        if clusters > 0 {
            self.group.report_dropped(DroppedDelayed {
                ino: self.ino,
                clusters,
            });
        }
        self.group.forget(&self.ticket, before);
    }
}

impl fmt::Debug for ExtentMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.read();
        f.debug_struct("ExtentMap")
            .field("ino", &self.ino)
            .field("len", &state.map.len())
            .field("reclaimable", &state.map.reclaimable())
            .field("seq", &self.seq.cookie())
            .finish_non_exhaustive()
    }
}
