//! One file's map, shared by many threads.

mod cursor;
mod exclusive;
mod read;
mod reclaim;
mod reserve;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeSet;
use std::fmt;

use crate::cache::Group;
use crate::config::{Config, DroppedDelayed, Rules};
use crate::modify::Tokens;
use crate::seq::Seq;
use crate::sync::{Arc, AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, Weak, lock, try_lock};
use crate::tree::Tree;

pub use cursor::{Cursor, Reader};
pub(crate) use exclusive::Exclusive;
pub use read::Iter;
pub use update::Modify;

/// What is known of the blocks of one file.
///
/// Obtained from [`ExtentCache::map`](crate::ExtentCache::map), or alone by
/// [`ExtentMap::standalone`]. Look-ups take no lock and, once an entry is marked as referenced,
/// write nothing that other threads read. Every change is atomic to them: a look-up sees all of it
/// or nothing.
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
    tree: Tree,
    seq: Seq,
    pub(crate) group: Arc<Group>,
    writer: Mutex<Writer>,
    /// Where the shrinker goes on. Only written by the writer.
    resume: AtomicU32,
    precached: AtomicBool,
    ino: u64,
    pub(crate) this: Weak<ExtentMap>,
    /// Place in the group's list, 0 when not on it. Only touched under the list's lock.
    pub(crate) ticket: AtomicU64,
}

/// What only the writer of a map needs.
#[derive(Default)]
struct Writer {
    /// Clusters that are partly allocated and partly delayed.
    pendings: BTreeSet<u32>,
    tokens: Tokens,
}

impl ExtentMap {
    pub(crate) fn create(ino: u64, group: Arc<Group>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            tree: Tree::new(),
            seq: Seq::new(),
            group,
            writer: Mutex::new(Writer::default()),
            resume: AtomicU32::new(0),
            precached: AtomicBool::new(false),
            ino,
            this: this.clone(),
            ticket: AtomicU64::new(0),
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
        self.tree.known()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that the shrinker may take: all but the delayed ones.
    pub fn reclaimable(&self) -> u32 {
        self.tree.known().saturating_sub(self.tree.kept())
    }

    /// Number of changes so far: a cookie to hand to [`is_current`](Self::is_current) and the
    /// `_if` operations.
    #[inline]
    pub fn seq(&self) -> u64 {
        self.seq.cookie()
    }

    /// Whether no change was even begun since the cookie was taken.
    pub fn is_current(&self, seq: u64) -> bool {
        self.seq.is_current(seq)
    }

    /// Where the shrinker goes on.
    pub fn resume_point(&self) -> u32 {
        self.resume.load(Ordering::Relaxed)
    }

    /// Tells the shrinker to pass this map over as long as others give something.
    pub fn set_precached(&self, on: bool) {
        self.precached.store(on, Ordering::Relaxed);
    }

    /// Whether the shrinker passes this map over at first.
    pub fn is_precached(&self) -> bool {
        self.precached.load(Ordering::Relaxed)
    }

    /// Becomes the map's writer. Waits for the one there is.
    fn write(&self) -> Exclusive<'_> {
        Exclusive::new(self, lock(&self.writer))
    }

    /// Becomes the map's writer if there is none.
    pub(crate) fn try_write(&self) -> Option<Exclusive<'_>> {
        Some(Exclusive::new(self, try_lock(&self.writer)?))
    }

    fn counts(&self) -> (u32, u32) {
        (self.len(), self.reclaimable())
    }
}

impl Drop for ExtentMap {
    fn drop(&mut self) {
        let held = self.counts();
        if self.tree.kept() > 0 {
            let clusters = self.write().reserved_clusters();
            if clusters > 0 {
                self.group.report_dropped(DroppedDelayed {
                    ino: self.ino,
                    clusters,
                });
            }
        }
        self.tree.dismantle(self.group.arena());
        self.group.forget(&self.ticket, held);
    }
}

impl fmt::Debug for ExtentMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentMap")
            .field("ino", &self.ino)
            .field("len", &self.len())
            .field("reclaimable", &self.reclaimable())
            .field("seq", &self.seq())
            .finish_non_exhaustive()
    }
}
