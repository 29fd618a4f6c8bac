//! Random operations, and a check of the map against both models after each.

use std::ops::Range;
use std::sync::Arc;

use cairn_extents::reference::ReferenceMap;
use cairn_extents::{Config, ExtentCache, ExtentMap, Generation, Match, Rules, Status};
use proptest::prelude::*;

use crate::blocks::Blocks;

/// Blocks that the operations reach.
pub(crate) const BLOCKS: u32 = 256;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Insert(Range<u32>, Status),
    Delayed(Range<u32>, bool, bool),
    Cache(Range<u32>, Status),
    Remove(Range<u32>),
    Lookup(u32),
    LookupMany(Vec<u32>),
    Cursor(Range<u32>),
    Find(Range<u32>, u8),
    Shrink(u32),
    LoadLeaf(Vec<(u32, u32, Status)>),
    ShiftLeft(u32, u32),
    ShiftRight(u32, u32),
    Clear,
}

fn range() -> impl Strategy<Value = Range<u32>> {
    (
        0..BLOCKS,
        prop_oneof![6 => 1..6_u32, 2 => 1..40_u32, 1 => 1..BLOCKS],
    )
        .prop_map(|(from, len)| from..(from + len).min(BLOCKS))
}

/// Of a few slides, so that neighbours often continue each other.
fn status() -> impl Strategy<Value = (u8, u64)> {
    (0..5_u8, 0..3_u64)
}

fn at(from: u32, (kind, slide): (u8, u64)) -> Status {
    let physical = 10_000 * slide + u64::from(from);
    match kind {
        0 | 1 => Status::Written(physical),
        2 => Status::Unwritten(physical),
        _ => Status::Hole,
    }
}

fn leaf() -> impl Strategy<Value = Vec<(u32, u32, Status)>> {
    let entry = (0..3_u32, 1..5_u32, status());
    (0..BLOCKS / 2, proptest::collection::vec(entry, 1..12)).prop_map(|(start, entries)| {
        let mut next = start;
        let mut leaf = Vec::new();
        for (gap, len, s) in entries {
            let lblk = next + gap;
            leaf.push((lblk, len, at(lblk, s)));
            next = lblk + len;
        }
        leaf
    })
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (range(), status()).prop_map(|(r, s)| Op::Insert(r.clone(), at(r.start, s))),
        3 => (range(), any::<bool>(), any::<bool>()).prop_map(|(r, a, b)| Op::Delayed(r, a, b)),
        6 => (range(), status()).prop_map(|(r, s)| Op::Cache(r.clone(), at(r.start, s))),
        4 => range().prop_map(Op::Remove),
        6 => (0..BLOCKS).prop_map(Op::Lookup),
        1 => proptest::collection::vec(0..BLOCKS, 1..40).prop_map(Op::LookupMany),
        1 => range().prop_map(Op::Cursor),
        2 => (range(), 1..16_u8).prop_map(|(r, m)| Op::Find(r, m)),
        2 => prop_oneof![1..8_u32, 1..200_u32].prop_map(Op::Shrink),
        1 => leaf().prop_map(Op::LoadLeaf),
        1 => (0..BLOCKS / 4, 0..8_u32).prop_map(|(f, b)| Op::ShiftLeft(f, b)),
        1 => (0..BLOCKS / 4, 0..8_u32).prop_map(|(f, b)| Op::ShiftRight(f, b)),
        1 => Just(Op::Clear),
    ]
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    let generation = prop_oneof![Just(Generation::VacantOnly), Just(Generation::Overwrite)];
    (
        generation,
        any::<bool>(),
        prop_oneof![Just(0), Just(2), Just(4)],
    )
        .prop_map(|(generation, upstream_conflicts, cluster_bits)| {
            let mut rules = Rules::new(generation);
            rules.upstream_conflicts = upstream_conflicts;
            rules.cluster_bits = cluster_bits;
            rules
        })
}

/// The map under test, beside the map of rules and the model of blocks.
pub(crate) struct Trio {
    cache: ExtentCache,
    map: Arc<ExtentMap>,
    reference: ReferenceMap,
    blocks: Blocks,
    hits: u64,
    misses: u64,
}

impl Trio {
    pub(crate) fn new(rules: Rules) -> Self {
        let cache = ExtentCache::new(
            Config::new()
                .with_generation(rules.generation)
                .with_upstream_conflicts(rules.upstream_conflicts)
                .with_cluster_bits(rules.cluster_bits),
        );
        Self {
            map: cache.map(1),
            cache,
            reference: ReferenceMap::new(rules),
            // Shifts to the right leave room for themselves by removing first.
            blocks: Blocks::new(rules, 2 * BLOCKS),
            hits: 0,
            misses: 0,
        }
    }

    /// Carries the operation out three times; panics if answers differ.
    #[allow(
        clippy::too_many_lines,
        reason = "one arm for each operation, each a few lines"
    )]
    pub(crate) fn run(&mut self, op: &Op) {
        match op {
            Op::Insert(r, status) => {
                let len = r.end - r.start;
                assert_eq!(
                    self.map.insert(r.start, len, *status),
                    self.reference.insert(r.start, len, *status)
                );
                self.blocks.insert(r.start, len, *status);
            }
            Op::Delayed(r, start, end) => {
                let len = r.end - r.start;
                assert_eq!(
                    self.map.insert_delayed(r.start, len, *start, *end),
                    self.reference.insert_delayed(r.start, len, *start, *end)
                );
                self.blocks.insert(r.start, len, Status::Delayed);
            }
            Op::Cache(r, status) => {
                let len = r.end - r.start;
                let cached = self.map.cache(r.start, len, *status);
                assert_eq!(cached, self.reference.cache(r.start, len, *status));
                assert_eq!(cached, Ok(self.blocks.cache(r.start, len, *status)));
            }
            Op::Remove(r) => {
                let len = r.end - r.start;
                assert_eq!(
                    self.map.remove(r.start, len),
                    self.reference.remove(r.start, len)
                );
                self.blocks.remove(r.start, len);
            }
            Op::Lookup(at) => {
                let found = self.map.lookup(*at);
                self.looked_up(*at, found.map(|f| f.extent));
                assert!(found.is_none_or(|f| f.seq == self.map.seq()));
            }
            Op::LookupMany(blocks) => {
                let before: Vec<_> = blocks.iter().map(|&b| self.map.containing(b)).collect();
                let mut found = vec![None; blocks.len()];
                self.map.lookup_many(blocks, &mut found);
                for ((&at, found), before) in blocks.iter().zip(found).zip(before) {
                    // Within a batch, one look-up marks the entry for the next.
                    let found = found.map(|f| f.extent);
                    let unmarked = |e: cairn_extents::Extent| (e.lblk, e.len, e.status);
                    assert_eq!(found.map(unmarked), before.map(unmarked));
                    let expected = self.reference.lookup(at).map(|f| f.extent);
                    assert_eq!(found, expected);
                    assert_eq!(found, self.blocks.lookup(at));
                    self.count(found.is_some());
                }
            }
            Op::Cursor(r) => {
                let map = self.map.clone();
                let mut cursor = map.cursor();
                for at in r.clone() {
                    self.looked_up(at, cursor.lookup(at).map(|f| f.extent));
                }
            }
            Op::Find(r, bits) => {
                let wanted = matching(*bits);
                let found = self.map.find(wanted, r.start, r.end - 1);
                assert_eq!(found, self.reference.find(wanted, r.start, r.end - 1));
                assert_eq!(found, self.blocks.find(wanted, r.start, r.end - 1));
                let hole = self.map.hole_at(r.start);
                assert_eq!(hole, self.reference.hole_at(r.start));
                assert_eq!(hole, self.blocks.hole_at(r.start));
                assert_eq!(
                    self.map.scan_cluster(wanted, r.start),
                    self.reference.scan_cluster(wanted, r.start)
                );
            }
            Op::Shrink(budget) => {
                let mut left = i64::from(*budget);
                let freed = self.reference.reclaim(&mut left);
                let scan = self.cache.shrink(*budget);
                assert_eq!(scan.freed, freed);
                assert_eq!(i64::from(scan.visited), i64::from(*budget) - left);
                assert_eq!(self.map.resume_point(), self.reference.resume_point());
                self.rewrite_blocks();
            }
            Op::LoadLeaf(entries) => {
                let range = 0..u32::MAX;
                assert_eq!(
                    self.map.load_leaf(entries, range.clone()),
                    self.reference.load_leaf(entries, range)
                );
                self.rewrite_blocks();
            }
            Op::ShiftLeft(from, by) => {
                let result = self.map.shift_left(*from, *by);
                assert_eq!(result, self.reference.shift_left(*from, *by));
                self.blocks.seq += u64::from(result.is_ok() && *by > 0);
                self.rewrite_blocks();
            }
            Op::ShiftRight(from, by) => {
                let room = BLOCKS - by;
                self.run(&Op::Remove(room.min(BLOCKS - 1)..BLOCKS));
                let result = self.map.shift_right(*from, *by);
                assert_eq!(result, self.reference.shift_right(*from, *by));
                self.blocks.seq += u64::from(result.is_ok() && *by > 0);
                self.rewrite_blocks();
            }
            Op::Clear => {
                self.map.clear();
                self.reference.clear();
                self.blocks.clear();
            }
        }
    }

    fn looked_up(&mut self, at: u32, found: Option<cairn_extents::Extent>) {
        assert_eq!(
            found,
            self.reference.lookup(at).map(|f| f.extent),
            "block {at}"
        );
        assert_eq!(found, self.blocks.lookup(at), "block {at}");
        self.count(found.is_some());
    }

    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
    }

    /// What the model of blocks has no rule of its own for is taken over from the map of rules.
    fn rewrite_blocks(&mut self) {
        let seq = self.blocks.seq;
        self.blocks = Blocks::new(self.reference.rules(), 2 * BLOCKS);
        for e in self.reference.iter() {
            self.blocks.insert(e.lblk, e.len, e.status);
        }
        for e in self.reference.iter().filter(|e| e.referenced) {
            self.blocks.lookup(e.lblk);
        }
        self.blocks.seq = seq;
    }

    /// Compares everything that can be seen.
    pub(crate) fn compare(&self) {
        let entries = self.map.snapshot();
        assert_eq!(entries, self.reference.iter().collect::<Vec<_>>());
        assert_eq!(entries, self.blocks.entries());
        assert_eq!(self.map.len(), self.reference.len());
        assert_eq!(self.map.reclaimable(), self.reference.reclaimable());
        assert_eq!(self.map.seq(), self.reference.seq());
        assert_eq!(self.map.seq(), self.blocks.seq);
        for at in 0..BLOCKS {
            assert_eq!(self.map.is_pending(at), self.reference.is_pending(at));
        }
        let info = self.cache.info();
        assert_eq!(
            (info.objects, info.reclaimable, info.hits, info.misses),
            (
                u64::from(self.map.len()),
                u64::from(self.map.reclaimable()),
                self.hits,
                self.misses
            )
        );
        assert_eq!(info.inodes_on_list, u64::from(self.map.reclaimable() > 0));
    }
}

fn matching(bits: u8) -> Match {
    [
        Match::WRITTEN,
        Match::UNWRITTEN,
        Match::DELAYED,
        Match::HOLE,
    ]
    .into_iter()
    .enumerate()
    .filter(|(i, _)| bits >> i & 1 != 0)
    .map(|(_, m)| m)
    .reduce(|a, b| a | b)
    .unwrap_or(Match::ANY)
}
