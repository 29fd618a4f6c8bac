//! Reservations: what is delayed is counted once, and released once.

use std::sync::{Arc, Mutex};

use cairn_extents::Status::{Delayed, Hole, Unwritten, Written};
use cairn_extents::{Config, DroppedDelayed, Error, ExtentCache, Match, Status};

use crate::{clustered, delay, entries, plain, put};

/// d2dc317d564a: unwritten blocks over a delayed one inherited "delayed" for ever.
#[test]
fn unwritten_over_delayed_is_purely_unwritten() {
    let map = plain();
    delay(&map, 1, 1);
    assert_eq!(map.insert(0, 32, Unwritten(500)).unwrap().total(), 1);
    assert_eq!(entries(&map), [(0, 32, Unwritten(500))]);
    assert_eq!(map.insert(0, 32, Written(500)).unwrap().total(), 0);
    assert_eq!(entries(&map), [(0, 32, Written(500))]);
}

/// 1da18e38cb97: the cluster that stays partly delayed was not released with the other.
#[test]
fn of_two_clusters_one_is_released() {
    let map = clustered(4);
    delay(&map, 0, 32);
    assert_eq!(map.remove(0, 31).unwrap().total(), 1);
    assert_eq!(map.remove(31, 1).unwrap().total(), 1);
}

/// 40ea98396a32: counting began at the start of the removal, not at the first delayed block.
#[test]
fn counting_begins_at_the_first_delayed_block() {
    let map = clustered(2);
    delay(&map, 6, 10);
    assert_eq!(map.remove(0, 8).unwrap().total(), 1);
    assert_eq!(entries(&map), [(8, 8, Delayed)]);
}

/// 0ea6560abb3b: what was looked up as a hole was preallocated meanwhile, then overwritten.
#[test]
fn a_reservation_on_a_stale_look_up_is_refused() {
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

/// 94426f4b9648: zeroing a part lost the delayed blocks beside it.
#[test]
fn what_is_delayed_beside_the_changed_part_stays() {
    let map = plain();
    delay(&map, 0, 20);
    assert_eq!(map.insert(5, 10, Unwritten(99)).unwrap().total(), 10);
    assert_eq!(
        entries(&map),
        [(0, 5, Delayed), (5, 10, Unwritten(99)), (15, 5, Delayed)]
    );
}

/// f4c2d372b89a: reservations were released when nobody could account for them any more.
#[test]
fn a_dropped_map_reports_what_it_still_reserves() {
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

/// 131294c35ed6: a cluster of which a part is delayed was not seen as reserved.
#[test]
fn any_delayed_block_of_a_cluster_counts() {
    let map = clustered(4);
    put(&map, 0, 10, Written(100));
    delay(&map, 13, 1);
    assert!(map.scan_cluster(Match::DELAYED, 2));
    assert!(!map.scan_cluster(Match::DELAYED, 16));
    assert!(map.scan_range(Match::DELAYED, 0, 13) && !map.scan_range(Match::DELAYED, 0, 12));
}

/// The tail of a split delayed entry got a poisonous block.
#[test]
fn a_split_delayed_entry_has_no_block_on_either_side() {
    let map = plain();
    delay(&map, 0, 10);
    assert_eq!(map.remove(3, 2).unwrap().total(), 2);
    assert_eq!(entries(&map), [(0, 3, Delayed), (5, 5, Delayed)]);
    assert_eq!(map.lookup(7).unwrap().extent.physical_at(7), None);
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
