//! The rules over a `BTreeMap`: short enough to be checked by reading.
//!
//! [`ReferenceMap`] keeps every rule of the cache for one file, for one thread. It is the model
//! that the concurrent map is tested against, and what a user would write by hand.

mod reserve;
mod shrink;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use crate::config::Rules;
use crate::types::{Extent, Lookup, MAX_BLOCK, Match, Status};

#[derive(Debug, Clone, Copy)]
struct Entry {
    len: u32,
    status: Status,
    referenced: bool,
}

/// What is known of one file's blocks, for one thread.
///
/// No two entries overlap, and no two neighbours could be one entry.
///
/// ```
/// use cairn_extents::{Match, Rules, Status, reference::ReferenceMap};
/// let mut map = ReferenceMap::new(Rules::default());
/// let _ = map.insert(0, 10, Status::Written(100))?;
/// let _ = map.remove(4, 2)?;
/// assert_eq!(map.lookup(7).map(|hit| hit.extent.lblk), Some(6));
/// assert_eq!(map.hole_at(4), 2);
/// # Ok::<(), cairn_extents::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReferenceMap {
    rules: Rules,
    entries: BTreeMap<u32, Entry>,
    pendings: BTreeSet<u32>,
    reclaimable: u32,
    resume: u32,
    seq: u64,
}

impl ReferenceMap {
    /// An empty map: nothing is known.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            entries: BTreeMap::new(),
            pendings: BTreeSet::new(),
            reclaimable: 0,
            resume: 0,
            seq: 0,
        }
    }

    /// The rules it keeps.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Entries held.
    pub fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries that the shrinker may take.
    pub fn reclaimable(&self) -> u32 {
        self.reclaimable
    }

    /// Changes so far that make earlier answers stale.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Where the shrinker goes on.
    pub fn resume_point(&self) -> u32 {
        self.resume
    }

    /// Whether the cluster of `lblk` is partly allocated and partly delayed.
    pub fn is_pending(&self, lblk: u32) -> bool {
        self.pendings.contains(&self.rules.cluster(lblk))
    }

    /// Pending clusters, in order.
    pub fn pendings(&self) -> impl Iterator<Item = u32> + '_ {
        self.pendings.iter().copied()
    }

    /// The entry that contains `lblk`, else the first one after it.
    pub fn at_or_after(&self, lblk: u32) -> Option<Extent> {
        self.containing(lblk)
            .or_else(|| self.entries.range(lblk..).next().map(extent))
    }

    /// The entry that contains `lblk`. Counts nothing, marks nothing.
    pub fn containing(&self, lblk: u32) -> Option<Extent> {
        self.entries
            .range(..=lblk)
            .next_back()
            .map(extent)
            .filter(|e| e.contains(lblk))
    }

    /// The entry that contains `lblk` as it was before, and marks it referenced.
    pub fn lookup(&mut self, lblk: u32) -> Option<Lookup> {
        let hit = self.peek(lblk)?;
        if !hit.extent.referenced
            && let Some(e) = self.entries.get_mut(&hit.extent.lblk)
        {
            e.referenced = true;
        }
        Some(hit)
    }

    pub(crate) fn peek(&self, lblk: u32) -> Option<Lookup> {
        let extent = self.containing(lblk)?;
        Some(Lookup {
            extent,
            seq: self.seq,
        })
    }

    /// The first entry of a wanted kind that intersects `lblk..=last`.
    pub fn find(&self, wanted: Match, lblk: u32, last: u32) -> Option<Extent> {
        self.from(lblk)
            .take_while(|e| e.lblk <= last)
            .find(|e| wanted.accepts(e.status))
    }

    /// Blocks from `lblk` on that are unknown or a hole, up to the next entry that is neither.
    pub fn hole_at(&self, lblk: u32) -> u32 {
        match self.from(lblk).find(|e| e.status != Status::Hole) {
            None => MAX_BLOCK - lblk,
            Some(e) => e.lblk.saturating_sub(lblk),
        }
    }

    /// Entries in order, the first one being the one that contains `lblk` or follows it.
    pub fn from(&self, lblk: u32) -> impl Iterator<Item = Extent> + '_ {
        let start = self.containing(lblk).map_or(lblk, |e| e.lblk);
        self.entries.range(start..).map(extent)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.entries.iter().map(extent)
    }

    /// Drops what can be read from disk again, keeps what is delayed.
    pub fn clear(&mut self) {
        self.entries.retain(|_, e| e.status.must_keep());
        self.reclaimable = 0;
    }

    fn put(&mut self, lblk: u32, entry: Entry) {
        self.reclaimable += u32::from(!entry.status.must_keep());
        let old = self.entries.insert(lblk, entry);
        debug_assert!(old.is_none(), "entries never share a start");
    }

    fn take(&mut self, lblk: u32) -> Option<Entry> {
        let entry = self.entries.remove(&lblk)?;
        self.reclaimable -= u32::from(!entry.status.must_keep());
        Some(entry)
    }
}

fn extent((&lblk, e): (&u32, &Entry)) -> Extent {
    Extent {
        lblk,
        len: e.len,
        status: e.status,
        referenced: e.referenced,
    }
}
