//! The tree against the plainest model there is: one value per block.
#![allow(clippy::cast_possible_truncation, reason = "few blocks")]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::node::{CHILDREN, LEAF_ITEMS};
use super::path::{InnerRef, LeafRef};
use super::{Root, Tree};
use crate::arena::{Arena, Faults, NODE_BYTES};
use crate::types::Status;
use crate::value::{Item, Value};

/// Values and marks of every block of a small block space.
#[derive(Clone)]
struct Blocks(Vec<(Value, bool)>);

impl Blocks {
    fn new(blocks: usize) -> Self {
        Self(vec![(Value::UNKNOWN, false); blocks])
    }

    fn set(&mut self, from: u32, to: u32, value: Value) {
        self.0[from as usize..to as usize].fill((value, false));
        for at in [from, to] {
            // One run has one mark.
            if at > 0 && (at as usize) < self.0.len() {
                self.spread(at);
            }
        }
    }

    fn run(&self, at: u32) -> std::ops::Range<usize> {
        let value = self.0[at as usize].0;
        let mut range = at as usize..at as usize + 1;
        while range.start > 0 && self.0[range.start - 1].0 == value {
            range.start -= 1;
        }
        while range.end < self.0.len() && self.0[range.end].0 == value {
            range.end += 1;
        }
        range
    }

    fn spread(&mut self, at: u32) {
        let range = self.run(at);
        let marked = self.0[range.clone()].iter().any(|b| b.1);
        let value = self.0[at as usize].0;
        self.0[range].fill((value, marked));
    }

    fn mark(&mut self, at: u32) {
        let range = self.run(at);
        let value = self.0[at as usize].0;
        self.0[range].fill((value, value.is_known()));
    }
}

/// Goes over the whole tree; panics if it is not as it should be. Returns its boundaries.
fn check(tree: &Tree) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    if let Some(root) = tree.root() {
        check_node(root, 0, u32::MAX, &mut items);
    } else {
        let version = tree.version.load(std::sync::atomic::Ordering::Relaxed);
        tree.small.items(version, |item| items.push(item));
    }
    for pair in items.windows(2) {
        assert!(pair[0].key < pair[1].key, "keys ascend");
        assert_ne!(pair[0].value, pair[1].value, "runs are maximal");
    }
    let known = items.iter().filter(|i| i.value.is_known()).count();
    let kept = items.iter().filter(|i| i.value.must_keep()).count();
    assert_eq!((tree.known() as usize, tree.kept() as usize), (known, kept));
    assert!(items.iter().all(|i| i.value.is_known() || !i.referenced));
    items
}

fn check_node(root: Root, first: u32, end: u32, items: &mut Vec<Item>) {
    if root.height == 0 {
        // SAFETY: the test is alone with the tree.
        let leaf = unsafe { LeafRef::new(root.node) };
        let own: Vec<Item> = leaf.read.items(0..leaf.read.len()).collect();
        assert!(!own.is_empty() && own.len() <= LEAF_ITEMS);
        assert_eq!(own[0].key, first, "a leaf begins at its first block");
        assert!(own.iter().all(|i| i.key < end));
        items.extend(own);
        return;
    }
    // SAFETY: the test is alone with the tree.
    let inner = unsafe { InnerRef::new(root.node) };
    let n = inner.read.len();
    assert!((1..=CHILDREN).contains(&n));
    for at in 0..n {
        let low = if at == 0 { first } else { inner.read.key(at) };
        let high = if at + 1 == n {
            end
        } else {
            inner.read.key(at + 1)
        };
        assert!(low < high && high <= end);
        let child = Root {
            node: inner.child(at),
            height: root.height - 1,
        };
        check_node(child, low, high, items);
    }
}

fn splice(tree: &Tree, arena: &Arena, from: u32, to: u32, value: Value) -> bool {
    let items = [Item {
        key: from,
        value,
        referenced: false,
    }];
    // SAFETY: the test is the only writer.
    unsafe { tree.splice(arena, false, (from, to), &items) }.is_ok()
}

fn compare(tree: &Tree, blocks: &Blocks) {
    let items = check(tree);
    let mut boundaries = BTreeSet::new();
    for at in 0..blocks.0.len() as u32 {
        let expected = blocks.run(at);
        let run = tree.run_at(at, false);
        boundaries.insert(run.start);
        assert_eq!(run.start as usize, expected.start, "block {at}");
        if expected.end < blocks.0.len() {
            assert_eq!(run.end as usize, expected.end, "block {at}");
        }
        assert_eq!(
            (run.value(), run.referenced()),
            blocks.0[at as usize],
            "block {at}"
        );
    }
    let below = items.iter().filter(|i| (i.key as usize) < blocks.0.len());
    assert_eq!(below.count(), boundaries.len());
}

#[derive(Debug, Clone)]
enum Op {
    Set(u32, u32, u8, u8),
    Mark(u32),
}

fn ops(blocks: u32, count: usize) -> impl Strategy<Value = Vec<Op>> {
    let range = (0..blocks, prop_oneof![8 => 1..4_u32, 2 => 1..blocks])
        .prop_map(move |(from, len)| (from, (from + len).min(blocks)));
    let op = prop_oneof![
        6 => (range, 0..5_u8, 0..3_u8).prop_map(|((from, to), kind, slide)| Op::Set(from, to, kind, slide)),
        1 => (0..blocks).prop_map(Op::Mark),
    ];
    proptest::collection::vec(op, 1..count)
}

/// A value such that neighbours often, but not always, continue each other.
fn value(from: u32, kind: u8, slide: u8) -> Value {
    let physical = u64::from(from) + 1000 * u64::from(slide);
    match kind {
        1 => Value::new(from, Status::Written(physical)),
        2 => Value::new(from, Status::Unwritten(physical)),
        3 => Value::new(from, Status::Delayed),
        4 => Value::new(from, Status::Hole),
        _ => Value::UNKNOWN,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_leave_the_tree_as_the_blocks(ops in ops(600, 600)) {
        let arena = Arena::new(false);
        let mut tree = Tree::new();
        let mut blocks = Blocks::new(600);
        for op in ops {
            match op {
                Op::Set(from, to, kind, slide) => {
                    let value = value(from, kind, slide);
                    prop_assert!(splice(&tree, &arena, from, to, value));
                    blocks.set(from, to, value);
                }
                Op::Mark(at) => {
                    tree.run_at(at, true);
                    blocks.mark(at);
                }
            }
        }
        compare(&tree, &blocks);
        tree.dismantle(&arena);
        prop_assert_eq!(arena.memory().live, 0);
    }
}

/// Single blocks in random order, then ranges of all widths removed: all heights, both ways.
#[test]
fn a_tree_of_four_levels_grows_and_shrinks() {
    const BLOCKS: u32 = 120_000;
    let arena = Arena::new(false);
    let mut tree = Tree::new();
    let mut blocks = Blocks::new(BLOCKS as usize);
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: u32| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % u64::from(below)) as u32
    };
    for _ in 0..60_000 {
        let at = next(BLOCKS);
        let value = Value::new(at, Status::Written(u64::from(next(1_000_000))));
        assert!(splice(&tree, &arena, at, at + 1, value));
        blocks.set(at, at + 1, value);
    }
    assert_eq!(tree.root().map(|r| r.height), Some(3));
    compare(&tree, &blocks);
    for step in 0..400 {
        let from = next(BLOCKS);
        let to = (from + 1 + next(1 << (step % 14))).min(BLOCKS);
        assert!(splice(&tree, &arena, from, to, Value::UNKNOWN));
        blocks.set(from, to, Value::UNKNOWN);
        check(&tree);
    }
    compare(&tree, &blocks);
    assert!(splice(&tree, &arena, 0, BLOCKS, Value::UNKNOWN));
    assert_eq!((tree.known(), tree.root().is_none()), (0, true));
    tree.dismantle(&arena);
    assert_eq!(arena.memory().live, 0);
}

#[test]
fn appending_fills_the_leaves() {
    let arena = Arena::new(false);
    let mut tree = Tree::new();
    for i in 0..50_000_u32 {
        let value = Value::new(3 * i, Status::Written(u64::from(i) * 100));
        assert!(splice(&tree, &arena, 3 * i, 3 * i + 3, value));
    }
    assert_eq!(check(&tree).len(), 50_001);
    let per_entry = arena.memory().live as f64 / 50_000.0;
    assert!(per_entry < 12.0, "{per_entry} bytes an entry");
    tree.dismantle(&arena);
}

#[test]
fn an_allocation_that_fails_changes_nothing() {
    for fail_at in 0..12 {
        let arena = Arena::new(false);
        let mut tree = Tree::new();
        let mut blocks = Blocks::new(20_000);
        for i in 0..4_000_u32 {
            let value = Value::new(4 * i, Status::Written(u64::from(i) * 100));
            assert!(splice(&tree, &arena, 4 * i, 4 * i + 2, value));
            blocks.set(4 * i, 4 * i + 2, value);
        }
        let live = arena.memory().live;
        let mut failed = 0;
        for at in [7, 4_001, 9_999, 15_000] {
            arena.set_faults(Faults {
                fail_at: Some(fail_at),
                ..Faults::default()
            });
            let value = Value::new(at, Status::Hole);
            if splice(&tree, &arena, at, at + 1, value) {
                blocks.set(at, at + 1, value);
            } else {
                failed += 1;
            }
            arena.set_faults(Faults::default());
        }
        match fail_at {
            0 => assert_eq!(failed, 4, "every change makes a leaf"),
            1..8 => {}
            _ => assert_eq!(failed, 0, "no change makes so many nodes"),
        }
        compare(&tree, &blocks);
        assert!(arena.memory().live.abs_diff(live) <= 8 * NODE_BYTES);
        tree.dismantle(&arena);
        assert_eq!(arena.memory().live, 0);
    }
}
