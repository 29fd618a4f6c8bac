//! Both arms of the counters, switched while counting.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, Ordering};

use cairn_extents::{BackendKind, Config, CounterMode, ExtentCache, Status};

#[test]
fn switching_the_arm_while_others_count_loses_nothing() {
    const LOOKUPS: u64 = 100_000;
    let cache = ExtentCache::new(Config::new().with_counter_slots(4));
    let file = cache.map(1);
    file.cache(0, 10, Status::Written(5)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                s.spawn(|| {
                    for _ in 0..LOOKUPS {
                        assert!(file.lookup(3).is_some());
                        assert!(file.lookup(30).is_none());
                    }
                })
            })
            .collect();
        s.spawn(|| {
            let mut batches = [64, 128, 256, 32].into_iter().cycle();
            let kinds = [
                BackendKind::Owned,
                BackendKind::Striped,
                BackendKind::RseqCpu,
            ];
            let mut kinds = kinds.into_iter().cycle();
            while !done.load(Ordering::Relaxed) {
                cache.set_counter_mode(CounterMode::Shared);
                cache.set_counter_batch(batches.next().unwrap()).unwrap();
                cache.set_counter_mode(CounterMode::PerCpu);
                cache.set_counter_backend(kinds.next().unwrap());
            }
        });
        for reader in readers {
            reader.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let info = cache.info();
    assert_eq!((info.hits, info.misses), (2 * LOOKUPS, 2 * LOOKUPS));
    let report = cache.counters().report();
    for reading in [report.hits, report.misses, report.all, report.reclaimable] {
        assert!(reading.exact.abs_diff(reading.approximate) <= reading.bound);
    }
    assert_eq!((report.all.exact, report.reclaimable.exact), (1, 1));
}

#[test]
fn the_shared_arm_is_exact_and_has_no_slots() {
    let cache = ExtentCache::new(Config::new());
    cache.set_counter_mode(CounterMode::Shared);
    let file = cache.map(1);
    file.cache(0, 10, Status::Hole).unwrap();
    for _ in 0..5 {
        file.lookup(0);
    }
    let report = cache.counters().report();
    assert_eq!(report.mode, CounterMode::Shared);
    assert_eq!((report.hits.exact, report.hits.approximate), (5, 5));
    assert!(cache.counters().slots().iter().all(|s| s.hits == 0));
}

#[test]
fn slots_show_who_counted() {
    let cache = ExtentCache::new(Config::new());
    let file = cache.map(1);
    for _ in 0..7 {
        file.lookup(0);
    }
    let slots = cache.counters().slots();
    assert_eq!(slots.iter().map(|s| s.misses).sum::<i64>(), 7);
    assert!(
        slots.iter().any(
            |s| s.misses > 0 && (s.label.starts_with("cpu ") || s.label.starts_with("thread "))
        )
    );
    assert!(cache.set_counter_batch(0).is_err());
}

#[test]
fn a_backend_counts_from_its_choice_on_and_costs_nothing_before() {
    let cache = ExtentCache::new(Config::new().with_counter_slots(4));
    let file = cache.map(1);
    let rows = |backend| {
        let all = cache.counters().slots();
        let of = all.into_iter().filter(|row| row.backend == backend);
        of.map(|row| row.misses).sum::<i64>()
    };
    file.lookup(0);
    let report = cache.counters().report();
    let alone = report.misses.bound;
    let slots = cache.counters().slots();
    let first = slots.iter().filter(|r| r.backend == BackendKind::RseqCpu);
    let most = first.count() as u64 * u64::from(report.batch - 1);
    assert!(alone <= most, "{alone} of one backend, {most} at most");
    for (backend, n) in [(BackendKind::Owned, 3), (BackendKind::Striped, 5)] {
        cache.set_counter_backend(backend);
        assert_eq!(cache.counters().mode(), CounterMode::PerCpu);
        assert_eq!(cache.counters().report().backend.kind(), backend);
        for _ in 0..n {
            file.lookup(0);
        }
        assert_eq!(rows(backend), n);
    }
    // The choice waits while the shared arm receives.
    cache.set_counter_mode(CounterMode::Shared);
    cache.set_counter_backend(BackendKind::Owned);
    assert_eq!(cache.counters().mode(), CounterMode::Shared);
    file.lookup(0);
    cache.set_counter_mode(CounterMode::PerCpu);
    file.lookup(0);
    assert_eq!(rows(BackendKind::Owned), 4);
    let report = cache.counters().report();
    assert_eq!(report.misses.exact, 11);
    assert!(
        report.misses.bound > alone,
        "slots of three backends hold back more"
    );
}
