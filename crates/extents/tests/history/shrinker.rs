//! Reclaim, and the counts that it goes by.

use cairn_extents::Status::{Delayed, Hole, Unwritten, Written};
use cairn_extents::{Config, ExtentCache};

use crate::{delay, entries, put};

/// dd4759255188: many delayed entries before those that can be taken.
#[test]
fn the_shrinker_gets_past_any_number_of_delayed_entries() {
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

/// edaa53cac8fd and reports of lock-ups of seconds: one scan's work is bounded over all files.
#[test]
fn a_scan_visits_no_more_than_its_budget() {
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

/// 2be12de98a1c: hot entries went with the cold ones.
#[test]
fn hot_entries_survive_one_pass_and_go_in_the_second() {
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

/// Counters went below nothing when a status was changed in place.
#[test]
fn counts_follow_every_change_of_status() {
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
