//! Numbers of broken inodes and leaves: an error, and nothing changed.

use cairn_extents::Status::{Delayed, Hole, Unwritten, Written};
use cairn_extents::{Error, Status};
use proptest::prelude::*;

use crate::{delay, entries, overwriting, plain, put};

/// d36f6ed761b5, d323877484765 and 991ed014de08: ranges that wrap, of broken inodes.
#[test]
fn ranges_that_wrap_are_errors_and_change_nothing() {
    let map = plain();
    put(&map, 5, 5, Written(50));
    for (lblk, len) in [
        (1, u32::MAX),
        (u32::MAX, 1),
        (u32::MAX - 1, 2),
        (u32::MAX, u32::MAX),
    ] {
        let error = Error::Range { lblk, len };
        assert_eq!(map.insert(lblk, len, Written(1)).unwrap_err(), error);
        assert_eq!(map.cache(lblk, len, Hole).unwrap_err(), error);
        assert_eq!(
            map.insert_delayed(lblk, len, true, true).unwrap_err(),
            error
        );
        assert_eq!(map.remove(lblk, len).unwrap_err(), error);
        assert_eq!(map.begin_modify(lblk, len).unwrap_err(), error);
    }
    let physical = (1 << 48) - 4;
    let error = map.insert(0, 5, Written(physical)).unwrap_err();
    assert_eq!(
        error,
        Error::Physical {
            lblk: 0,
            len: 5,
            physical
        }
    );
    assert!(
        error
            .to_string()
            .contains("5 blocks from 0 at physical block 281474976710652")
    );
    assert_eq!(entries(&map), [(5, 5, Written(50))]);
    assert_eq!(map.seq(), 1);
}

/// f70749ca4294: block 0xffffffff was stored and crashed later.
#[test]
fn the_last_block_is_one_before_the_largest_number() {
    let map = plain();
    assert!(map.cache(u32::MAX, 1, Written(9)).is_err());
    map.cache(u32::MAX - 1, 1, Written(9)).unwrap();
    assert_eq!(entries(&map), [(u32::MAX - 1, 1, Written(9))]);
    assert!(map.lookup(u32::MAX).is_none());
    assert!(map.lookup(u32::MAX - 1).is_some());
}

/// 2f974865ffdf: a length of 0 meant 2^32 blocks.
#[test]
fn nothing_of_no_length_happens() {
    let map = plain();
    put(&map, 0, 10, Written(1));
    let seq = map.seq();
    put(&map, 3, 0, Hole);
    delay(&map, 3, 0);
    assert_eq!(map.remove(3, 0).unwrap().total(), 0);
    map.cache(50, 0, Hole).unwrap();
    assert_eq!(entries(&map), [(0, 10, Written(1))]);
    assert_eq!(map.seq(), seq);
}

/// 5946d08937, 082cd4ec240b, 0a944e8a6c66: leaves out of order or overlapping.
#[test]
fn unordered_and_overlapping_leaves_are_rejected_whole() {
    let map = plain();
    put(&map, 100, 1, Written(1));
    let leaves: [&[(u32, u32, Status)]; 5] = [
        &[(10, 5, Written(1)), (4, 2, Written(90))],
        &[(0, 10, Written(1)), (5, 10, Written(90))],
        &[(0, 10, Written(1)), (10, 0, Written(90))],
        &[(0, 10, Written(1)), (60, 10, Written(90))],
        &[(0, 10, Written(1)), (u32::MAX, 1, Written(90))],
    ];
    for leaf in leaves {
        let error = map.load_leaf(leaf, 0..64).unwrap_err();
        assert!(
            matches!(error, Error::Unordered { .. }),
            "{leaf:?}: {error}"
        );
        assert_eq!(entries(&map), [(100, 1, Written(1))]);
    }
    let error = map.load_leaf(leaves[1], 0..64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "leaf entry of 10 blocks at 5 must hold at least one block and lie within 10..64"
    );
}

/// syzbot ccf1421545dbe5caa20c: a corrupt leaf over cached blocks.
#[test]
fn a_corrupt_leaf_conflicts_and_does_not_panic() {
    let map = overwriting();
    map.cache(0, 1, Unwritten(113)).unwrap();
    map.cache(1, 35, Hole).unwrap();
    let before = entries(&map);
    let leaf = [
        (0, 1, Written(177)),
        (1, 15, Written(177)),
        (16, 1, Written(177)),
        (17, 10, Written(177)),
    ];
    let loaded = map.load_leaf(&leaf, 0..64).unwrap();
    assert_eq!((loaded.inserted, loaded.known, loaded.conflicts), (0, 0, 4));
    let mut overlapping = leaf.to_vec();
    overlapping.push((24, 3, Written(300)));
    assert!(map.load_leaf(&overlapping, 0..64).is_err());
    assert_eq!(entries(&map), before);
}

proptest! {
    /// Bugzilla 205197 and 218596: random bytes as extents.
    #[test]
    fn any_leaf_is_loaded_or_refused(
        leaf in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u64>(), 0..5_u8), 0..40),
        range in any::<std::ops::Range<u32>>(),
    ) {
        let leaf: Vec<_> = leaf
            .into_iter()
            .map(|(lblk, len, physical, kind)| {
                // Half of the numbers small, so that some leaves are nearly right.
                let (lblk, len) = if physical % 2 == 0 { (lblk % 64, len % 8) } else { (lblk, len) };
                let status = match kind {
                    0 => Written(physical),
                    1 => Unwritten(physical >> 20),
                    2 => Delayed,
                    3 => Status::DelayedUnwritten(physical),
                    _ => Hole,
                };
                (lblk, len, status)
            })
            .collect();
        for map in [plain(), overwriting()] {
            put(&map, 20, 10, Written(5));
            let before = map.snapshot();
            if map.load_leaf(&leaf, range.clone()).is_err() {
                prop_assert_eq!(map.snapshot(), before);
            }
            let mut end = 0;
            for e in map.snapshot() {
                prop_assert!(e.lblk >= end && e.len > 0);
                end = e.end();
            }
        }
    }
}
