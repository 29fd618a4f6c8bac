//! Faults that extent caches had, each as the input that showed it. The comments name the commits
//! of Linux, or the report, from which the input comes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use cairn_extents::{
    Cached, Config, DroppedDelayed, Error, ExtentCache, ExtentMap, Generation, MAX_BLOCK, Match,
    Status,
};
use proptest::prelude::*;

use Status::{Delayed, Hole, Unwritten, Written};

fn plain() -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new())
}

fn overwriting() -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new().with_generation(Generation::Overwrite))
}

fn clustered(bits: u8) -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new().with_cluster_bits(bits))
}

/// First block, blocks and status of every entry.
fn entries(map: &ExtentMap) -> Vec<(u32, u32, Status)> {
    let all = map.snapshot().into_iter();
    all.map(|e| (e.lblk, e.len, e.status)).collect()
}

fn put(map: &ExtentMap, lblk: u32, len: u32, status: Status) {
    let _ = map.insert(lblk, len, status).unwrap();
}

fn delay(map: &ExtentMap, lblk: u32, len: u32) {
    map.insert_delayed(lblk, len, false, false).unwrap();
}

/// 1, d2dc317d564a: unwritten blocks over a delayed one inherited "delayed" for ever.
#[test]
fn row_01_unwritten_over_delayed_is_purely_unwritten() {
    let map = plain();
    delay(&map, 1, 1);
    assert_eq!(map.insert(0, 32, Unwritten(500)).unwrap().total(), 1);
    assert_eq!(entries(&map), [(0, 32, Unwritten(500))]);
    assert_eq!(map.insert(0, 32, Written(500)).unwrap().total(), 0);
    assert_eq!(entries(&map), [(0, 32, Written(500))]);
}

/// 2, 768d612f7982: a piece merged away was freed, then read.
#[test]
fn row_02_a_piece_put_into_its_own_run_changes_nothing() {
    let map = plain();
    put(&map, 0, 30, Written(100));
    put(&map, 10, 10, Written(110));
    assert_eq!(entries(&map), [(0, 30, Written(100))]);
}

/// 3, 1da18e38cb97: the cluster that stays partly delayed was not released with the other.
#[test]
fn row_03_of_two_clusters_one_is_released() {
    let map = clustered(4);
    delay(&map, 0, 32);
    assert_eq!(map.remove(0, 31).unwrap().total(), 1);
    assert_eq!(map.remove(31, 1).unwrap().total(), 1);
}

/// 4, 40ea98396a32: counting began at the start of the removal, not at the first delayed block.
#[test]
fn row_04_counting_begins_at_the_first_delayed_block() {
    let map = clustered(2);
    delay(&map, 6, 10);
    assert_eq!(map.remove(0, 8).unwrap().total(), 1);
    assert_eq!(entries(&map), [(8, 8, Delayed)]);
}

/// 8, 0ea6560abb3b: what was looked up as a hole was preallocated meanwhile, then overwritten.
#[test]
fn row_08_a_reservation_on_a_stale_look_up_is_refused() {
    let map = plain();
    put(&map, 0, 10, Hole);
    let seen = map.lookup(3).unwrap();
    put(&map, 3, 1, Unwritten(77));
    let refused = map.insert_delayed_if(seen.seq, 3, 1, false, false);
    assert!(matches!(
        refused,
        Err(Error::Stale {
            modifying: false,
            ..
        })
    ));
    assert_eq!(map.lookup(3).unwrap().extent.status, Unwritten(77));
    let seen = map.lookup(5).unwrap();
    map.insert_delayed_if(seen.seq, 5, 1, false, false).unwrap();
    assert_eq!(map.lookup(5).unwrap().extent.status, Delayed);
}

/// 9, d36f6ed761b5, and 10, d323877484765, 991ed014de08: ranges that wrap, of broken inodes.
#[test]
fn row_09_ranges_that_wrap_are_errors_and_change_nothing() {
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

/// 11, f70749ca4294: block 0xffffffff was stored and crashed later.
#[test]
fn row_11_the_last_block_is_one_before_the_largest_number() {
    let map = plain();
    assert!(map.cache(u32::MAX, 1, Written(9)).is_err());
    map.cache(u32::MAX - 1, 1, Written(9)).unwrap();
    assert_eq!(entries(&map), [(u32::MAX - 1, 1, Written(9))]);
    assert!(map.lookup(u32::MAX).is_none());
    assert!(map.lookup(u32::MAX - 1).is_some());
}

/// 12, 2f974865ffdf: a length of 0 meant 2^32 blocks.
#[test]
fn row_12_nothing_of_no_length_happens() {
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

/// 13, 5946d08937; 15, 082cd4ec240b; 16, 0a944e8a6c66: leaves out of order or overlapping.
#[test]
fn row_13_unordered_and_overlapping_leaves_are_rejected_whole() {
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

/// 14, syzbot ccf1421545dbe5caa20c: a corrupt leaf over cached blocks.
#[test]
fn row_14_a_corrupt_leaf_conflicts_and_does_not_panic() {
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
    /// 17, bugzilla 205197 and 218596: random bytes as extents.
    #[test]
    fn row_17_any_leaf_is_loaded_or_refused(
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

/// 18, dd4759255188: many delayed entries before those that can be taken.
#[test]
fn row_18_the_shrinker_gets_past_any_number_of_delayed_entries() {
    let cache = ExtentCache::new(Config::new());
    let map = cache.map(1);
    for i in 0..500 {
        delay(&map, 4 * i, 2);
    }
    for i in 500..600 {
        put(&map, 4 * i, 2, Written(u64::from(i) * 100));
    }
    let mut freed = 0;
    let mut scans = 0;
    while freed < 100 {
        let scan = cache.shrink(64);
        assert!(scan.visited <= 64, "{scan:?}");
        freed += scan.freed;
        scans += 1;
        assert!(scans <= 10, "600 entries at 64 a time");
    }
    assert_eq!((map.len(), map.reclaimable()), (500, 0));
}

/// 19, edaa53cac8fd and reports of lock-ups of seconds: one scan's work is bounded over all files.
#[test]
fn row_19_a_scan_visits_no_more_than_its_budget() {
    let cache = ExtentCache::new(Config::new());
    for ino in 0..200 {
        let map = cache.map(ino);
        for i in 0..20 {
            put(&map, 3 * i, 1, Written(u64::from(i) * 10));
        }
    }
    for budget in [1, 7, 128, 1000] {
        let scan = cache.shrink(budget);
        assert_eq!((scan.visited, scan.freed), (budget, budget));
    }
}

/// 21, 2be12de98a1c: hot entries went with the cold ones.
#[test]
fn row_21_hot_entries_survive_one_pass_and_go_in_the_second() {
    let cache = ExtentCache::new(Config::new());
    let map = cache.map(1);
    for i in 0..100 {
        put(&map, 2 * i, 1, Written(u64::from(i) * 10));
    }
    for i in 0..50 {
        map.lookup(4 * i);
    }
    assert_eq!(cache.shrink(100).freed, 50);
    assert!(map.snapshot().iter().all(|e| e.lblk % 4 == 0));
    map.lookup(0);
    assert_eq!(cache.shrink(50).freed, 49);
    assert_eq!(entries(&map), [(0, 1, Written(0))]);
}

/// 22, 7f0d8e1d607c: an error path removed a range in which blocks were delayed anew.
#[test]
fn row_22_a_removal_on_old_knowledge_is_refused() {
    let map = plain();
    put(&map, 0, 10, Written(1));
    let seq = map.seq();
    delay(&map, 4, 2);
    assert!(matches!(
        map.remove_if(seq, 0, 10),
        Err(Error::Stale {
            expected: 1,
            current: 2,
            ..
        })
    ));
    assert_eq!(map.len(), 3);
    assert_eq!(map.remove_if(map.seq(), 0, 10).unwrap().total(), 2);
    assert!(map.is_empty());
}

/// 23, 94426f4b9648: zeroing a part lost the delayed blocks beside it.
#[test]
fn row_23_what_is_delayed_beside_the_changed_part_stays() {
    let map = plain();
    delay(&map, 0, 20);
    assert_eq!(map.insert(5, 10, Unwritten(99)).unwrap().total(), 10);
    assert_eq!(
        entries(&map),
        [(0, 5, Delayed), (5, 10, Unwritten(99)), (15, 5, Delayed)]
    );
}

/// 24, 713e8dde3e71: a stale written entry was seen after the blocks became unwritten.
#[test]
fn row_24_unwritten_over_written_is_unwritten() {
    let map = plain();
    put(&map, 0, 20, Written(100));
    put(&map, 5, 5, Unwritten(105));
    assert_eq!(map.lookup(7).unwrap().extent.status, Unwritten(105));
    assert_eq!(entries(&map)[2], (10, 10, Written(110)));
}

/// 25, 2c1d23289bc2: a removal to the end was one block short.
#[test]
fn row_25_a_removal_to_the_end_takes_the_last_block() {
    let map = plain();
    put(&map, u32::MAX - 1, 1, Written(9));
    let start = u32::MAX - 10;
    let _ = map.remove(start, MAX_BLOCK - start).unwrap();
    assert!(map.is_empty());
}

/// 26, f22a0ef2231a: extents about to be freed were cached.
#[test]
fn row_26_what_was_read_before_a_change_is_not_cached_after_it() {
    let map = plain();
    let seq = map.seq();
    let _ = map.remove(0, 100).unwrap();
    assert!(!map.is_current(seq));
    assert!(matches!(
        map.cache_if(seq, 0, 10, Written(5)),
        Err(Error::Stale { .. })
    ));
    assert!(map.is_empty());
    map.cache_if(map.seq(), 0, 10, Written(5)).unwrap();
    assert_eq!(map.len(), 1);
}

/// 27, 8b4b19a2f963: a hole was cached where an extent was cut for a moment; the blocks were
/// reserved a second time.
#[test]
fn row_27_nothing_is_cached_while_a_range_is_being_changed() {
    let map = plain();
    let token = map.begin_modify(10, 10).unwrap();
    let seq = map.seq();
    assert!(matches!(
        map.cache(15, 10, Hole),
        Err(Error::Stale {
            modifying: true,
            ..
        })
    ));
    assert!(matches!(
        map.cache_if(seq, 5, 6, Hole),
        Err(Error::Stale {
            modifying: true,
            ..
        })
    ));
    assert!(map.load_leaf(&[(0, 30, Written(1))], 0..30).is_err());
    map.cache(20, 10, Hole).unwrap();
    put(&map, 12, 2, Written(70));
    drop(token);
    assert!(!map.is_current(seq), "the end of the change makes it stale");
    map.cache(15, 5, Hole).unwrap();
}

/// 28, 6d882ea3b093; 29, 79b592e8f1b4; 30, 5f1a1cccebf8: status on disk changed behind the cache.
#[test]
fn row_28_a_removed_or_replaced_range_never_shows_what_it_was() {
    let map = plain();
    map.cache(0, 100, Unwritten(1000)).unwrap();
    let _ = map.remove(40, 60).unwrap();
    assert!(map.lookup(40).is_none() && map.lookup(99).is_none());
    assert_eq!(map.lookup(39).unwrap().extent.len, 40);
    put(&map, 0, 10, Written(1000));
    assert_eq!(map.lookup(5).unwrap().extent.status, Written(1000));
}

/// 31, ae3e5ebbdd77, a5567347b6f5: what is read again over a part of it.
#[test]
fn row_31_a_longer_reading_replaces_its_part() {
    let map = overwriting();
    map.cache(3, 2, Written(103)).unwrap();
    assert_eq!(
        map.cache(0, 10, Written(100)).unwrap(),
        Cached::Inserted { remapped: false }
    );
    assert_eq!(entries(&map), [(0, 10, Written(100))]);
    assert_eq!(map.seq(), 0);
    let vacant = plain();
    vacant.cache(3, 2, Written(103)).unwrap();
    assert_eq!(vacant.cache(0, 10, Written(100)).unwrap(), Cached::Ignored);
    assert_eq!(vacant.len(), 1);
}

/// 32, ae3e5ebbdd77: a hole read from disk over delayed blocks.
#[test]
fn row_32_a_hole_over_delayed_blocks_is_refused_in_silence() {
    let map = overwriting();
    delay(&map, 5, 2);
    assert_eq!(map.cache(0, 10, Hole).unwrap(), Cached::HoleOverDelayed);
    assert_eq!(entries(&map), [(5, 2, Delayed)]);
}

/// 33: Linux loses what it passed before the conflict.
#[test]
fn row_33_a_conflict_loses_nothing_unless_asked_to() {
    for upstream in [false, true] {
        let config = Config::new()
            .with_generation(Generation::Overwrite)
            .with_upstream_conflicts(upstream);
        let map = ExtentMap::standalone(1, config);
        put(&map, 0, 3, Written(100));
        delay(&map, 5, 2);
        let cached = map.cache(0, 10, Written(100)).unwrap();
        assert!(matches!(cached, Cached::Conflict(e) if e.lblk == 5 && e.status == Delayed));
        assert_eq!(map.len(), if upstream { 1 } else { 2 });
    }
}

/// 34: another block under the same kind.
#[test]
fn row_34_a_reading_that_contradicts_is_reported() {
    let map = overwriting();
    put(&map, 0, 10, Written(100));
    let cached = map.cache(2, 3, Written(999)).unwrap();
    assert!(matches!(cached, Cached::Conflict(e) if (e.lblk, e.len) == (0, 10)));
    assert_eq!(entries(&map), [(0, 10, Written(100))]);
    // Partly beside it, the newer reading wins and says so.
    let cached = map.cache(8, 4, Written(500)).unwrap();
    assert_eq!(cached, Cached::Inserted { remapped: true });
    assert_eq!(entries(&map), [(0, 8, Written(100)), (8, 4, Written(500))]);
}

/// 38, f4c2d372b89a: reservations were released when nobody could account for them any more.
#[test]
fn row_38_a_dropped_map_reports_what_it_still_reserves() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let report = seen.clone();
    let config = Config::new()
        .with_cluster_bits(4)
        .on_dropped_delayed(move |dropped| report.lock().unwrap().push(dropped));
    let cache = ExtentCache::new(config);
    let map = cache.map(7);
    delay(&map, 0, 40);
    drop(map);
    assert_eq!(
        cache.evict(7).total(),
        3,
        "an eviction hands them to its caller"
    );
    let map = cache.map(8);
    delay(&map, 0, 17);
    drop(cache);
    drop(map);
    assert_eq!(
        *seen.lock().unwrap(),
        [DroppedDelayed {
            ino: 8,
            clusters: 2
        }]
    );
}

/// 39, 91dd8c114499: an iteration whose lock is dropped between steps went back.
#[test]
fn row_39_an_iteration_never_goes_back() {
    let map = plain();
    for i in 0..10 {
        put(&map, 10 * i, 5, Written(u64::from(i) * 100));
    }
    let mut seen = Vec::new();
    for e in map.iter_from(0) {
        seen.push((e.lblk, e.end()));
        // What follows grows to the left, over what was handed out.
        put(&map, 0, 100, Written(5000));
    }
    assert_eq!(seen, [(0, 5), (5, 100)]);
    assert_eq!(
        map.iter_from(50).next().unwrap().lblk,
        0,
        "the first one is whole"
    );
}

/// 40, 131294c35ed6: a cluster of which a part is delayed was not seen as reserved.
#[test]
fn row_40_any_delayed_block_of_a_cluster_counts() {
    let map = clustered(4);
    put(&map, 0, 10, Written(100));
    delay(&map, 13, 1);
    assert!(map.scan_cluster(Match::DELAYED, 2));
    assert!(!map.scan_cluster(Match::DELAYED, 16));
    assert!(map.scan_range(Match::DELAYED, 0, 13) && !map.scan_range(Match::DELAYED, 0, 12));
}

/// 41, 2f8e0a7c6c89: writes into a hole missed each time.
#[test]
fn row_41_a_hole_once_read_is_known() {
    let map = plain();
    assert!(map.lookup(5).is_none());
    map.cache(0, 100, Hole).unwrap();
    assert_eq!(map.lookup(5).unwrap().extent.status, Hole);
    assert_eq!(map.lookup(6).unwrap().extent.len, 100);
}

/// 42, 9f1118223aa0: a punched range was unknown instead of a hole.
#[test]
fn row_42_a_punch_between_holes_is_one_hole() {
    let map = plain();
    put(&map, 0, 10, Hole);
    put(&map, 10, 10, Written(100));
    put(&map, 20, 10, Hole);
    let _ = map.remove(10, 10).unwrap();
    assert!(map.lookup(15).is_none());
    put(&map, 10, 10, Hole);
    assert_eq!(entries(&map), [(0, 30, Hole)]);
}

/// 43, 6430dea07e85: a hole was cached over delayed blocks.
#[test]
fn row_43_a_hole_ends_at_the_first_delayed_block() {
    let map = plain();
    put(&map, 10, 5, Hole);
    delay(&map, 30, 5);
    assert_eq!(map.hole_at(0), 30);
    assert_eq!(map.hole_at(12), 18);
    assert_eq!(map.hole_at(32), 0);
    assert_eq!(map.hole_at(35), MAX_BLOCK - 35);
}

/// 44, c4b4b3fba866: an over-long hole hid data from a search.
#[test]
fn row_44_data_written_into_a_hole_splits_it() {
    let map = plain();
    put(&map, 0, 1000, Hole);
    put(&map, 500, 1, Written(9));
    assert_eq!(
        entries(&map),
        [(0, 500, Hole), (500, 1, Written(9)), (501, 499, Hole)]
    );
    assert_eq!(
        map.find(Match::WRITTEN | Match::UNWRITTEN, 0, 999)
            .unwrap()
            .lblk,
        500
    );
}

/// 45, syzbot: blocks shifted to the right wrapped.
#[test]
fn row_45_a_shift_moves_everything_or_nothing() {
    let map = plain();
    put(&map, 5, 5, Written(100));
    put(&map, u32::MAX - 3, 2, Written(900));
    let before = (entries(&map), map.seq());
    let error = map.shift_right(0, 3).unwrap_err();
    assert!(
        error.to_string().contains("a block number would leave"),
        "{error}"
    );
    assert!(
        map.shift_left(7, 3).is_err(),
        "blocks 4 to 6 are not all unknown"
    );
    assert!(map.shift_left(2, 3).is_err());
    assert_eq!((entries(&map), map.seq()), before);
    map.shift_right(8, 1).unwrap();
    let shifted = [
        (5, 3, Written(100)),
        (9, 2, Written(103)),
        (u32::MAX - 2, 2, Written(900)),
    ];
    assert_eq!(entries(&map), shifted);
    map.shift_left(9, 1).unwrap();
    assert_eq!((entries(&map), map.seq()), (before.0, before.1 + 2));
    let clustered = clustered(4);
    assert!(
        clustered.shift_left(24, 8).is_err(),
        "no multiple of the cluster size"
    );
}

/// 50: counters went below nothing when a status was changed in place.
#[test]
fn row_50_counts_follow_every_change_of_status() {
    let cache = ExtentCache::new(Config::new());
    let map = cache.map(1);
    for status in [Delayed, Written(5), Delayed, Hole, Unwritten(5), Delayed] {
        put(&map, 0, 10, status);
        let info = cache.info();
        let reclaimable = u64::from(status != Delayed);
        assert_eq!((info.objects, info.reclaimable), (1, reclaimable));
        assert_eq!(info.inodes_on_list, reclaimable);
    }
    let _ = map.remove(0, 10).unwrap();
    assert_eq!(cache.info().objects, 0);
}

/// 52: Linux answers with a first candidate beyond the end of the search.
#[test]
fn row_52_a_search_ends_where_it_should() {
    let map = plain();
    delay(&map, 20, 5);
    assert_eq!(map.find(Match::DELAYED, 0, 10), None);
    put(&map, 0, 1, Written(9));
    assert_eq!(map.find(Match::DELAYED, 0, 10), None);
    assert_eq!(map.find(Match::DELAYED, 0, 20).unwrap().lblk, 20);
}

/// 53: the tail of a split delayed entry got a poisonous block.
#[test]
fn row_53_a_split_delayed_entry_has_no_block_on_either_side() {
    let map = plain();
    delay(&map, 0, 10);
    assert_eq!(map.remove(3, 2).unwrap().total(), 2);
    assert_eq!(entries(&map), [(0, 3, Delayed), (5, 5, Delayed)]);
    assert_eq!(map.lookup(7).unwrap().extent.physical_at(7), None);
}

/// btrfs ae1e766f623f, 1020443840569: only files with something to reclaim are listed.
#[test]
fn files_without_anything_to_reclaim_are_not_visited() {
    let cache = ExtentCache::new(Config::new());
    for ino in 0..100 {
        delay(&cache.map(ino), 0, 5);
    }
    put(&cache.map(50), 10, 5, Written(1));
    assert_eq!(cache.info().inodes_on_list, 1);
    let scan = cache.shrink(10);
    assert_eq!((scan.freed, scan.visited), (1, 2));
}

/// rangemap, issue 24: ranges that are put together again stayed in pieces.
#[test]
fn what_is_put_together_again_is_one_run() {
    let value = |slide: u64, lblk: u32| Written(100_000 * slide + u64::from(lblk));
    let map = plain();
    put(&map, 99, 102, value(7, 99));
    put(&map, 190, 11, value(6, 190));
    put(&map, 190, 11, value(7, 190));
    assert_eq!(entries(&map), [(99, 102, value(7, 99))]);
    let map = plain();
    put(&map, 58, 47, value(65, 58));
    put(&map, 65, 40, value(36, 65));
    put(&map, 65, 40, value(65, 65));
    assert_eq!(entries(&map), [(58, 47, value(65, 58))]);
}

#[test]
fn an_inert_cache_knows_nothing_and_does_nothing() {
    let cache = ExtentCache::new(Config::new());
    let map = cache.map(1);
    put(&map, 0, 10, Written(1));
    cache.set_inert(true);
    assert!(map.lookup(5).is_none());
    assert!(!map.scan_range(Match::ANY, 0, 10));
    put(&map, 0, 10, Hole);
    map.cache(50, 1, Hole).unwrap();
    cache.set_inert(false);
    assert_eq!(entries(&map), [(0, 10, Written(1))]);
    assert_eq!(
        (cache.info().hits, cache.info().misses, map.seq()),
        (0, 0, 1)
    );
}

#[test]
fn the_info_text_is_the_kernels() {
    let cache = ExtentCache::new(Config::new());
    assert_eq!(
        cache.info().to_string(),
        "stats:\n  0 objects\n  0 reclaimable objects\n  0/0 cache hits/misses\naverage:\n  \
         0 us scan time\n  0 shrunk objects\n"
    );
    put(&cache.map(12), 0, 3, Written(1));
    put(&cache.map(13), 0, 3, Written(1));
    delay(&cache.map(13), 9, 3);
    cache.map(13).lookup(0);
    cache.map(13).lookup(90);
    assert_eq!(
        cache.info().to_string(),
        "stats:\n  3 objects\n  2 reclaimable objects\n  1/1 cache hits/misses\n  2 inodes on list\n\
         average:\n  0 us scan time\n  0 shrunk objects\nmaximum:\n  13 inode (2 objects, 1 reclaimable)\n  \
         0 us max scan time\n"
    );
}

#[test]
fn legacy_kernels_had_unwritten_blocks_that_were_delayed() {
    let both = Status::DelayedUnwritten(500);
    let error = plain().insert(0, 5, both).unwrap_err();
    assert_eq!(error, Error::LegacyStatus { lblk: 0, len: 5 });
    let cache = ExtentCache::new(Config::new().with_legacy_ud(true));
    let map = cache.map(1);
    put(&map, 0, 5, both);
    put(&map, 5, 5, Status::DelayedUnwritten(505));
    assert_eq!(entries(&map), [(0, 10, both)]);
    assert_eq!((map.reclaimable(), cache.shrink(10).freed), (0, 0));
    assert_eq!(
        map.remove(0, 10).unwrap().total(),
        0,
        "they are not reserved"
    );
}
