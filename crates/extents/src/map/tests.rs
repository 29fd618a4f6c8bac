//! What happens when memory runs out, at every allocation there is.

use std::collections::BTreeMap;

use super::ExtentMap;
use crate::arena::Faults;
use crate::reference::ReferenceMap;
use crate::types::{Extent, Released, Status};
use crate::{Cached, Config, Error, ExtentCache, Rules};

/// A map of many leaves, every fifth entry delayed, and its model.
fn many(cluster_bits: u8) -> (ExtentCache, std::sync::Arc<ExtentMap>, ReferenceMap) {
    let cache = ExtentCache::new(Config::new().with_cluster_bits(cluster_bits));
    let map = cache.map(1);
    let rules = Rules {
        cluster_bits,
        ..Rules::default()
    };
    let mut model = ReferenceMap::new(rules);
    for i in 0..2_000 {
        let (lblk, status) = (10 * i, Status::Written(u64::from(i) * 100));
        if i % 5 == 0 {
            map.insert_delayed(lblk, 6, false, false).expect("memory");
            model.insert_delayed(lblk, 6, false, false).expect("legal");
        } else {
            let _ = map.insert(lblk, 6, status).expect("memory");
            let _ = model.insert(lblk, 6, status).expect("legal");
        }
    }
    (cache, map, model)
}

fn faults(map: &ExtentMap, faults: Faults) {
    map.group.arena().set_faults(faults);
}

fn fail_at(n: u64) -> Faults {
    Faults {
        fail_at: Some(n),
        ..Faults::default()
    }
}

fn same(map: &ExtentMap, model: &ReferenceMap) {
    faults(map, Faults::default());
    assert_eq!(map.snapshot(), model.iter().collect::<Vec<_>>());
    assert_eq!(
        (map.len(), map.reclaimable()),
        (model.len(), model.reclaimable())
    );
    assert!((0..20_000).all(|at| map.is_pending(at) == model.is_pending(at)));
}

/// bda3efaf774f and others: what changes the truth takes the reserve, so it never
/// fails for a single lack of memory; reservations are counted once.
#[test]
fn changes_of_the_truth_survive_any_single_lack_of_memory() {
    for cluster_bits in [0, 4] {
        for n in 0..6 {
            let (_cache, map, mut model) = many(cluster_bits);
            for at in [3, 5_003, 9_996, 13_333] {
                faults(&map, fail_at(n));
                let removed = map.remove(at, 17);
                assert_eq!(removed, model.remove(at, 17), "removal {n} at {at}");
                faults(&map, fail_at(n));
                map.insert_delayed(at + 3, 2, true, false)
                    .expect("never fails");
                model.insert_delayed(at + 3, 2, true, false).expect("legal");
                faults(&map, fail_at(n));
                let inserted = map.insert(at + 1, 9, Status::Unwritten(7));
                assert_eq!(inserted, model.insert(at + 1, 9, Status::Unwritten(7)));
            }
            same(&map, &model);
        }
    }
}

/// What was read from disk can be read again: without memory it is left out, in silence.
#[test]
fn readings_are_left_out_without_memory() {
    let (_cache, map, model) = many(0);
    for n in 0..5 {
        faults(&map, fail_at(n));
        let cached = map.cache(7, 2, Status::Hole).expect("legal");
        if cached == Cached::Ignored {
            same(&map, &model);
        } else {
            assert_eq!(cached, Cached::Inserted { remapped: false });
            let _ = map.remove(7, 2).expect("memory");
        }
        match n {
            0 => assert_eq!(cached, Cached::Ignored),
            3.. => assert_ne!(cached, Cached::Ignored),
            _ => {} // a full leaf takes more than one node
        }
    }
    faults(&map, fail_at(0));
    let loaded = map.load_leaf(
        &[(50_000, 3, Status::Hole), (60_000, 3, Status::Hole)],
        0..70_000,
    );
    assert!(loaded.is_ok());
    same(&map, &model);
}

/// Every operation at every allocation, the reserve's included, for good: an operation succeeds as
/// it should, or fails and leaves the map as it was, or forgets what can be read again, but never
/// a delayed block that it was not asked to remove.
#[test]
fn without_any_memory_nothing_delayed_is_lost() {
    type Change = fn(&ExtentMap) -> Result<Released, Error>;
    let changes: [(&str, Change); 4] = [
        ("remove", |map| map.remove(1_003, 40)),
        ("insert", |map| map.insert(1_003, 40, Status::Written(5))),
        ("delay", |map| {
            map.insert_delayed(1_003, 40, false, false)
                .map(|()| Released::default())
        }),
        ("clear", |map| {
            map.clear();
            Ok(Released::default())
        }),
    ];
    for (name, change) in changes {
        for from in 0..6 {
            let (cache, map, _) = many(0);
            let before = map.snapshot();
            faults(
                &map,
                Faults {
                    fail_from: Some(from),
                    urgent_too: true,
                    ..Faults::default()
                },
            );
            let seq = map.seq();
            let result = change(&map);
            faults(&map, Faults::default());
            let after = map.snapshot();
            let delayed_outside = |all: &[Extent]| {
                let delayed = all.iter().filter(|e| e.status == Status::Delayed);
                let blocks = delayed.flat_map(|e| e.lblk..e.end());
                blocks.filter(|b| !(1_003..1_043).contains(b)).count()
            };
            let (old, new) = (delayed_outside(&before), delayed_outside(&after));
            assert_eq!(old, new, "{name} {from}");
            if result.is_err() {
                assert_eq!(after, before, "{name} {from}");
                assert_eq!(map.seq(), seq);
            }
            let info = cache.info();
            assert_eq!(info.objects, after.len() as u64);
        }
    }
}

/// The same with few delayed blocks: removals and insertions work without a single free node.
#[test]
fn a_removal_always_removes() {
    for insert in [false, true] {
        let cache = ExtentCache::new(Config::new());
        let map = cache.map(1);
        for i in 0..1_000 {
            let _ = map
                .insert(4 * i, 2, Status::Written(u64::from(i) * 50))
                .expect("memory");
        }
        map.insert_delayed(5_000, 10, false, false).expect("memory");
        faults(
            &map,
            Faults {
                fail_from: Some(0),
                urgent_too: true,
                ..Faults::default()
            },
        );
        let released = if insert {
            map.insert(5_003, 4, Status::Written(9))
        } else {
            map.remove(5_003, 4)
        };
        assert_eq!(released.map(Released::total), Ok(4));
        map.insert_delayed(6_000, 1, false, false).expect("it fits");
        let left: Vec<_> = map
            .snapshot()
            .iter()
            .map(|e| (e.lblk, e.len, e.status))
            .collect();
        let delayed = |lblk, len| (lblk, len, Status::Delayed);
        assert_eq!(
            left,
            [delayed(5_000, 3), delayed(5_007, 3), delayed(6_000, 1)]
        );
        assert_eq!(cache.info().objects, 3);
        assert_eq!(cache.memory().live, 0);
    }
}

#[test]
fn shifts_and_shrinks_do_all_or_nothing_without_memory() {
    let (cache, map, mut model) = many(0);
    let fail_all = Faults {
        fail_from: Some(2),
        urgent_too: true,
        ..Faults::default()
    };
    faults(&map, fail_all);
    assert_eq!(map.shift_right(5_000, 100), Err(Error::NoMemory));
    same(&map, &model);
    faults(&map, fail_all);
    let scan = cache.shrink(1_000);
    faults(&map, Faults::default());
    // The model follows: without memory for what stays, everything stays, marks aside.
    let gone = 2_000 - map.len();
    assert_eq!(scan.freed, gone);
    for _ in 0..4 {
        cache.shrink(5_000);
    }
    let mut budget = 100_000;
    model.reclaim(&mut budget);
    let starts = |all: Vec<Extent>| -> BTreeMap<u32, u32> {
        all.into_iter().map(|e| (e.lblk, e.len)).collect()
    };
    assert_eq!(starts(map.snapshot()), starts(model.iter().collect()));
}
