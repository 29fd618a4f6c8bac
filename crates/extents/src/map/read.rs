//! Questions to a map.

use super::ExtentMap;
use crate::types::{Extent, Lookup, Match};

impl ExtentMap {
    /// The whole entry that contains `lblk`, as it was before; then marks it referenced. Counts a
    /// hit or a miss. A block beyond the legal range is a miss.
    pub fn lookup(&self, lblk: u32) -> Option<Lookup> {
        let found = self.lookup_uncounted(lblk);
        if found.is_some() {
            self.group.counters.hits(1);
        } else {
            self.group.counters.misses(1);
        }
        found
    }

    /// As [`lookup`](Self::lookup), and the start of the next entry if there is one.
    pub fn lookup_next(&self, lblk: u32) -> Option<(Lookup, Option<u32>)> {
        let hit = self.lookup(lblk)?;
        let next = self.at_or_after(hit.extent.end()).map(|e| e.lblk);
        Some((hit, next))
    }

    fn lookup_uncounted(&self, lblk: u32) -> Option<Lookup> {
        if self.group.is_inert() {
            return None;
        }
        let hit = {
            let state = self.read();
            let extent = state.map.containing(lblk)?;
            Lookup {
                extent,
                seq: state.map.seq(),
            }
        };
        if !hit.extent.referenced {
            self.write().map.lookup(lblk);
        }
        Some(hit)
    }

    /// Marks the entry that contains `lblk` as referenced, as a look-up does, but counts nothing.
    pub fn touch(&self, lblk: u32) {
        self.write().map.lookup(lblk);
    }

    /// The entry that contains `lblk`. Counts nothing, marks nothing.
    pub fn containing(&self, lblk: u32) -> Option<Extent> {
        self.read().map.containing(lblk)
    }

    /// The entry that contains `lblk`, else the first one after it. Counts nothing, marks nothing.
    pub fn at_or_after(&self, lblk: u32) -> Option<Extent> {
        self.read().map.at_or_after(lblk)
    }

    /// The first entry of a wanted kind that intersects `lblk..=last`. Counts nothing, marks
    /// nothing.
    pub fn find(&self, wanted: Match, lblk: u32, last: u32) -> Option<Extent> {
        if self.group.is_inert() {
            return None;
        }
        self.read().map.find(wanted, lblk, last)
    }

    /// Whether a block of a wanted kind lies in `lblk..=last`.
    pub fn scan_range(&self, wanted: Match, lblk: u32, last: u32) -> bool {
        self.find(wanted, lblk, last).is_some()
    }

    /// Whether a block of a wanted kind lies in the cluster of `lblk`.
    pub fn scan_cluster(&self, wanted: Match, lblk: u32) -> bool {
        let rules = self.rules();
        let cluster = rules.cluster(lblk);
        self.scan_range(
            wanted,
            rules.cluster_first(cluster),
            rules.cluster_last(cluster),
        )
    }

    /// Blocks from `lblk` on that are unknown or a hole, up to the next entry that is neither.
    pub fn hole_at(&self, lblk: u32) -> u32 {
        self.read().map.hole_at(lblk)
    }

    /// Whether the cluster of `lblk` is partly allocated and partly delayed.
    pub fn is_pending(&self, lblk: u32) -> bool {
        self.read().map.is_pending(lblk)
    }

    /// All entries at one moment, in order.
    pub fn snapshot(&self) -> Vec<Extent> {
        self.read().map.iter().collect()
    }

    /// Entries in order from the one that contains `lblk` or follows it.
    ///
    /// Each step asks the map anew: changes between steps are seen, and what is handed out never
    /// goes back nor overlaps. An entry that grew to the left meanwhile is cut at its left.
    pub fn iter_from(&self, lblk: u32) -> Iter<'_> {
        Iter {
            map: self,
            next: Some(lblk),
            first: true,
        }
    }
}

/// Entries in order, see [`ExtentMap::iter_from`].
#[derive(Debug)]
pub struct Iter<'a> {
    map: &'a ExtentMap,
    next: Option<u32>,
    first: bool,
}

impl Iterator for Iter<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let from = self.next?;
        let Some(mut extent) = self.map.at_or_after(from) else {
            self.next = None;
            return None;
        };
        if extent.lblk < from && !self.first {
            extent = extent.tail_at(from);
        }
        self.first = false;
        self.next = Some(extent.end());
        Some(extent)
    }
}
