//! Changes of the truth: what is put, cut, punched, shifted and found afterwards.

use cairn_extents::Status::{Hole, Unwritten, Written};
use cairn_extents::{Config, Error, ExtentCache, MAX_BLOCK, Match};

use crate::{clustered, delay, entries, plain, put};

/// 768d612f7982: a piece merged away was freed, then read.
#[test]
fn a_piece_put_into_its_own_run_changes_nothing() {
    let map = plain();
    put(&map, 0, 30, Written(100));
    put(&map, 10, 10, Written(110));
    assert_eq!(entries(&map), [(0, 30, Written(100))]);
}

/// 7f0d8e1d607c: an error path removed a range in which blocks were delayed anew.
#[test]
fn a_removal_on_old_knowledge_is_refused() {
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

/// 713e8dde3e71: a stale written entry was seen after the blocks became unwritten.
#[test]
fn unwritten_over_written_is_unwritten() {
    let map = plain();
    put(&map, 0, 20, Written(100));
    put(&map, 5, 5, Unwritten(105));
    assert_eq!(map.lookup(7).unwrap().extent.status, Unwritten(105));
    assert_eq!(entries(&map)[2], (10, 10, Written(110)));
}

/// 2c1d23289bc2: a removal to the end was one block short.
#[test]
fn a_removal_to_the_end_takes_the_last_block() {
    let map = plain();
    put(&map, u32::MAX - 1, 1, Written(9));
    let start = u32::MAX - 10;
    let _ = map.remove(start, MAX_BLOCK - start).unwrap();
    assert!(map.is_empty());
}

/// 6d882ea3b093, 79b592e8f1b4, 5f1a1cccebf8: status on disk changed behind the cache.
#[test]
fn a_removed_or_replaced_range_never_shows_what_it_was() {
    let map = plain();
    map.cache(0, 100, Unwritten(1000)).unwrap();
    let _ = map.remove(40, 60).unwrap();
    assert!(map.lookup(40).is_none() && map.lookup(99).is_none());
    assert_eq!(map.lookup(39).unwrap().extent.len, 40);
    put(&map, 0, 10, Written(1000));
    assert_eq!(map.lookup(5).unwrap().extent.status, Written(1000));
}

/// 91dd8c114499: an iteration whose lock is dropped between steps went back.
#[test]
fn an_iteration_never_goes_back() {
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

/// 9f1118223aa0: a punched range was unknown instead of a hole.
#[test]
fn a_punch_between_holes_is_one_hole() {
    let map = plain();
    put(&map, 0, 10, Hole);
    put(&map, 10, 10, Written(100));
    put(&map, 20, 10, Hole);
    let _ = map.remove(10, 10).unwrap();
    assert!(map.lookup(15).is_none());
    put(&map, 10, 10, Hole);
    assert_eq!(entries(&map), [(0, 30, Hole)]);
}

/// 6430dea07e85: a hole was cached over delayed blocks.
#[test]
fn a_hole_ends_at_the_first_delayed_block() {
    let map = plain();
    put(&map, 10, 5, Hole);
    delay(&map, 30, 5);
    assert_eq!(map.hole_at(0), 30);
    assert_eq!(map.hole_at(12), 18);
    assert_eq!(map.hole_at(32), 0);
    assert_eq!(map.hole_at(35), MAX_BLOCK - 35);
}

/// c4b4b3fba866: an over-long hole hid data from a search.
#[test]
fn data_written_into_a_hole_splits_it() {
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

/// syzbot: blocks shifted to the right wrapped.
#[test]
fn a_shift_moves_everything_or_nothing() {
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

/// Linux answers with a first candidate beyond the end of the search.
#[test]
fn a_search_ends_where_it_should() {
    let map = plain();
    delay(&map, 20, 5);
    assert_eq!(map.find(Match::DELAYED, 0, 10), None);
    put(&map, 0, 1, Written(9));
    assert_eq!(map.find(Match::DELAYED, 0, 10), None);
    assert_eq!(map.find(Match::DELAYED, 0, 20).unwrap().lblk, 20);
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
