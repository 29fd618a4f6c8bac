//! What is read from the disk meets what is known already.

use cairn_extents::Status::{Delayed, Hole, Written};
use cairn_extents::{Cached, Config, Error, ExtentMap, Generation};

use crate::{delay, entries, overwriting, plain, put};

/// f22a0ef2231a: extents about to be freed were cached.
#[test]
fn what_was_read_before_a_change_is_not_cached_after_it() {
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

/// 8b4b19a2f963: a hole was cached where an extent was cut for a moment; the blocks were
/// reserved a second time.
#[test]
fn nothing_is_cached_while_a_range_is_being_changed() {
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

/// ae3e5ebbdd77, a5567347b6f5: what is read again over a part of it.
#[test]
fn a_longer_reading_replaces_its_part() {
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

/// ae3e5ebbdd77: a hole read from disk over delayed blocks.
#[test]
fn a_hole_over_delayed_blocks_is_refused_in_silence() {
    let map = overwriting();
    delay(&map, 5, 2);
    assert_eq!(map.cache(0, 10, Hole).unwrap(), Cached::HoleOverDelayed);
    assert_eq!(entries(&map), [(5, 2, Delayed)]);
}

/// Linux loses what it passed before the conflict.
#[test]
fn a_conflict_loses_nothing_unless_asked_to() {
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

/// Another block under the same kind.
#[test]
fn a_reading_that_contradicts_is_reported() {
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

/// 2f8e0a7c6c89: writes into a hole missed each time.
#[test]
fn a_hole_once_read_is_known() {
    let map = plain();
    assert!(map.lookup(5).is_none());
    map.cache(0, 100, Hole).unwrap();
    assert_eq!(map.lookup(5).unwrap().extent.status, Hole);
    assert_eq!(map.lookup(6).unwrap().extent.len, 100);
}
