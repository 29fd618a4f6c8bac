//! Questions to a map. None takes a lock.

use super::ExtentMap;
use crate::pin::pin;
use crate::sync::lock;
use crate::tree::BATCH;
use crate::types::{Extent, Lookup, MAX_BLOCK, Match, Status};
use crate::value::Run;

impl ExtentMap {
    /// The whole entry that contains `lblk`, as it was before; then marks it referenced. Counts a
    /// hit or a miss. A block beyond the legal range is a miss.
    #[inline]
    pub fn lookup(&self, lblk: u32) -> Option<Lookup> {
        if self.group.is_inert() {
            return None;
        }
        let seq = self.seq();
        let run = self.run(lblk, true);
        self.count(run.is_known());
        run.extent().map(|extent| Lookup { extent, seq })
    }

    /// As [`lookup`](Self::lookup), and the start of the next entry if there is one.
    pub fn lookup_next(&self, lblk: u32) -> Option<(Lookup, Option<u32>)> {
        let hit = self.lookup(lblk)?;
        let next = self.at_or_after(hit.extent.end()).map(|e| e.lblk);
        Some((hit, next))
    }

    /// Looks many blocks up at once, so that their waits for memory overlap; `found` gets as many
    /// answers. The blocks may come in any order. Marks and counts as [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If the slices differ in length.
    ///
    /// ```
    /// use cairn_extents::{Config, ExtentMap, Status};
    /// let map = ExtentMap::standalone(12, Config::new());
    /// map.cache(0, 100, Status::Written(5000))?;
    /// let mut found = [None; 3];
    /// map.lookup_many(&[7, 99, 100], &mut found);
    /// assert_eq!(found.map(|f| f.is_some()), [true, true, false]);
    /// # Ok::<(), cairn_extents::Error>(())
    /// ```
    pub fn lookup_many(&self, lblks: &[u32], found: &mut [Option<Lookup>]) {
        assert_eq!(lblks.len(), found.len(), "one answer for each block");
        if self.group.is_inert() {
            found.fill(None);
            return;
        }
        let seq = self.seq();
        let mut hits = 0;
        self.each_run(
            lblks,
            true,
            |run, slot: &mut Option<Lookup>| {
                *slot = run.extent().map(|extent| Lookup { extent, seq });
                hits += u32::from(slot.is_some());
            },
            found,
        );
        let all = u32::try_from(lblks.len()).unwrap_or(u32::MAX);
        self.group.counters.hits(hits);
        self.group.counters.misses(all - hits);
    }

    /// [`containing`](Self::containing) for many blocks at once.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn containing_many(&self, lblks: &[u32], found: &mut [Option<Extent>]) {
        assert_eq!(lblks.len(), found.len(), "one answer for each block");
        self.each_run(lblks, false, |run, slot| *slot = run.extent(), found);
    }

    fn each_run<T>(
        &self,
        lblks: &[u32],
        mark: bool,
        mut put: impl FnMut(Run, &mut T),
        found: &mut [T],
    ) {
        let pin = pin();
        let mut runs = [UNKNOWN; BATCH];
        for (lblks, found) in lblks.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            self.tree.runs_at(&pin, lblks, mark, &mut runs);
            for ((run, slot), &lblk) in runs.iter().zip(found).zip(lblks) {
                put(if lblk < MAX_BLOCK { *run } else { UNKNOWN }, slot);
            }
        }
    }

    #[inline]
    pub(super) fn count(&self, hit: bool) {
        if hit {
            self.group.counters.hits(1);
        } else {
            self.group.counters.misses(1);
        }
    }

    /// The run that contains `lblk`; nothing is known of a block out of range.
    #[inline]
    fn run(&self, lblk: u32, mark: bool) -> Run {
        if lblk == MAX_BLOCK {
            return UNKNOWN;
        }
        self.tree.run_at(lblk, mark)
    }

    /// Marks the entry that contains `lblk` as referenced, as a look-up does, but counts nothing.
    pub fn touch(&self, lblk: u32) {
        self.run(lblk, true);
    }

    /// The entry that contains `lblk`. Counts nothing, marks nothing.
    #[inline]
    pub fn containing(&self, lblk: u32) -> Option<Extent> {
        if lblk == MAX_BLOCK {
            return None;
        }
        self.tree.run_at(lblk, false).extent()
    }

    /// The entry that contains `lblk`, else the first one after it. Counts nothing, marks nothing.
    pub fn at_or_after(&self, lblk: u32) -> Option<Extent> {
        let mut at = lblk;
        while at < MAX_BLOCK {
            let run = self.tree.run_at(at, false);
            if let Some(extent) = run.extent() {
                return Some(extent);
            }
            at = run.end;
        }
        None
    }

    /// The first entry of a wanted kind that intersects `lblk..=last`. Counts nothing, marks
    /// nothing.
    ///
    /// A search over several entries sees each of them as it is when it comes there.
    pub fn find(&self, wanted: Match, lblk: u32, last: u32) -> Option<Extent> {
        if self.group.is_inert() {
            return None;
        }
        let mut at = lblk;
        while at <= last {
            let extent = self.at_or_after(at).filter(|e| e.lblk <= last)?;
            if wanted.accepts(extent.status) {
                return Some(extent);
            }
            at = extent.end();
        }
        None
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
        let mut at = lblk;
        while let Some(e) = self.at_or_after(at) {
            if e.status != Status::Hole {
                return e.lblk.saturating_sub(lblk);
            }
            at = e.end();
        }
        MAX_BLOCK - lblk
    }

    /// Whether the cluster of `lblk` is partly allocated and partly delayed. Takes the writer's
    /// lock for a moment.
    pub fn is_pending(&self, lblk: u32) -> bool {
        let cluster = self.rules().cluster(lblk);
        lock(&self.writer).pendings.contains(&cluster)
    }

    /// All entries at one moment, in order. Holds writers off.
    pub fn snapshot(&self) -> Vec<Extent> {
        let _writer = lock(&self.writer);
        self.iter_from(0).collect()
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

const UNKNOWN: Run = Run::unknown(0, MAX_BLOCK);

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
