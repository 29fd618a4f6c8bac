//! Readers, writers and the shrinker at the same time, on real threads.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cairn_extents::{Config, Extent, ExtentCache, ExtentMap, Status};

/// Runs `test` on a thread of its own; a hang is a failure.
fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match is_done.recv_timeout(Duration::from_mins(1)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hung"),
        _ => thread.join().unwrap(),
    }
}

/// Far more blocks than a physical run has, so that the generation can be read off the number.
const STRIDE: u64 = 1 << 24;

fn generation(e: &Extent) -> u64 {
    e.status.physical().unwrap() / STRIDE
}

/// One writer gives `blocks` one generation after another: as a whole, and in between in pieces.
/// Whatever readers see, and in whatever way they look, a block's generation never goes back, and
/// a whole is seen whole.
fn no_reader_sees_half_a_change(blocks: u32, rounds: u64) {
    let map = ExtentMap::standalone(1, Config::new());
    let done = AtomicBool::new(false);
    let check = |last: &mut u64, e: &Extent, at: u32| {
        assert!(e.contains(at), "{e} for {at}");
        let now = generation(e);
        assert!(now >= *last, "generation {now} of block {at} after {last}");
        // Even generations are one run, odd ones end in pieces of four blocks.
        if now.is_multiple_of(2) && e.len != blocks {
            assert!(e.len >= 4, "{e}");
        }
        *last = now;
    };
    let _ = map.insert(0, blocks, Status::Written(0)).unwrap();
    std::thread::scope(|s| {
        let (map, done, check) = (&map, &done, &check);
        s.spawn(move || {
            let mut seen = 0;
            let mut at = 1;
            while !done.load(Ordering::Relaxed) {
                at = (at * 7 + 3) % blocks;
                check(&mut seen, &map.lookup(at).unwrap().extent, at);
            }
        });
        s.spawn(move || {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let mut cursor = map.cursor();
                for at in (0..blocks).step_by(3) {
                    check(&mut seen, &cursor.lookup(at).unwrap().extent, at);
                }
            }
        });
        s.spawn(move || {
            let lblks: Vec<u32> = (0..32).map(|i| i * (blocks / 32)).collect();
            let mut found = vec![None; lblks.len()];
            // The answers of a batch are not of one moment, so blocks are followed one by one.
            let mut seen = vec![0; lblks.len()];
            while !done.load(Ordering::Relaxed) {
                map.lookup_many(&lblks, &mut found);
                for ((found, seen), &at) in found.iter().zip(&mut seen).zip(&lblks) {
                    check(seen, &found.unwrap().extent, at);
                }
            }
        });
        for round in 1..=rounds {
            let physical = |lblk: u32| round * STRIDE + u64::from(lblk);
            if round % 2 == 0 {
                let _ = map.insert(0, blocks, Status::Written(physical(0))).unwrap();
                continue;
            }
            // From left to right, so that what a reader saw is only ever replaced by newer.
            let _ = map
                .insert(0, blocks, Status::Unwritten(physical(0)))
                .unwrap();
            for lblk in (0..blocks).step_by(8) {
                let _ = map
                    .insert(lblk, 4, Status::Written(physical(lblk)))
                    .unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn no_reader_sees_half_a_change_of_a_small_map() {
    within_a_minute(|| no_reader_sees_half_a_change(32, 4_000));
}

#[test]
fn no_reader_sees_half_a_change_of_a_tree() {
    within_a_minute(|| no_reader_sees_half_a_change(12_800, 60));
}

/// A review of the kernel's sequence numbers: two increments without the lock lose one.
#[test]
fn no_sequence_number_is_lost() {
    within_a_minute(|| {
        let map = ExtentMap::standalone(1, Config::new());
        std::thread::scope(|s| {
            for thread in 0..3_u32 {
                let map = &map;
                s.spawn(move || {
                    let mut last = 0;
                    for i in 0..5_000 {
                        let lblk = 1000 * thread + i % 100;
                        let _ = map.insert(lblk, 1, Status::Written(u64::from(i))).unwrap();
                        let now = map.seq();
                        assert!(now > last);
                        last = now;
                    }
                });
            }
        });
        assert_eq!(map.seq(), 15_000);
    });
}

/// What was read before a change is never cached after it, with threads.
#[test]
fn no_stale_reading_is_cached() {
    within_a_minute(|| {
        let map = ExtentMap::standalone(1, Config::new());
        let disk = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (map, disk, done) = (&map, &disk, &done);
            for _ in 0..2 {
                s.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let seq = map.seq();
                        let read = disk.load(Ordering::Acquire);
                        let _ = map.cache_if(seq, 0, 8, Status::Written(read * STRIDE));
                    }
                });
            }
            for round in 1..20_000 {
                disk.store(round, Ordering::Release);
                let _ = map.remove(0, 8).unwrap();
                if let Some(hit) = map.lookup(3) {
                    assert_eq!(generation(&hit.extent), round, "an old reading was cached");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    });
}

/// A cookie is current only while nothing newer could have been seen.
#[test]
fn a_current_cookie_means_an_unchanged_answer() {
    within_a_minute(|| {
        let map = ExtentMap::standalone(1, Config::new());
        let _ = map.insert(0, 8, Status::Written(0)).unwrap();
        let newest_seen = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (map, newest_seen, done) = (&map, &newest_seen, &done);
            s.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let hit = map.lookup(0).unwrap();
                    newest_seen.fetch_max(generation(&hit.extent), Ordering::SeqCst);
                }
            });
            s.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let hit = map.lookup(0).unwrap();
                    let newest = newest_seen.load(Ordering::SeqCst);
                    if map.is_current(hit.seq) {
                        assert!(generation(&hit.extent) >= newest);
                    }
                }
            });
            for round in 1..50_000 {
                let status = Status::Written(round * STRIDE);
                let _ = map.insert(0, 8, status).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    });
}

/// Statistics, list and map locks, removals against the shrinker.
#[test]
fn the_shrinker_meets_everybody_and_the_counts_are_right() {
    within_a_minute(|| {
        let cache = ExtentCache::new(Config::new());
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let (cache, done) = (&cache, &done);
            let workers: Vec<_> = (0..3_u64)
                .map(|worker| {
                    s.spawn(move || {
                        for i in 0..6_000_u32 {
                            let ino = u64::from(i % 13) + worker % 2;
                            let map = cache.map(ino);
                            let lblk = i * 7 % 600;
                            match i % 6 {
                                0..=2 => {
                                    let status = Status::Written(u64::from(i) * 1000);
                                    let _ = map.insert(lblk, 3, status).unwrap();
                                }
                                3 => drop(map.insert_delayed(lblk, 2, false, false)),
                                4 => drop(map.lookup(lblk)),
                                _ => drop(map.remove(lblk, 20)),
                            }
                            if i % 97 == 0 {
                                let _ = cache.evict(ino);
                            }
                        }
                    })
                })
                .collect();
            s.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let scan = cache.shrink(200);
                    assert!(scan.visited <= 200);
                    let _ = cache.info().to_string();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let held: u64 = cache
            .inodes()
            .into_iter()
            .map(|ino| cache.map(ino).snapshot().len() as u64)
            .sum();
        let reclaimable: u64 = cache
            .inodes()
            .into_iter()
            .map(|ino| u64::from(cache.map(ino).reclaimable()))
            .sum();
        let info = cache.info();
        assert_eq!((info.objects, info.reclaimable), (held, reclaimable));
        while cache.info().reclaimable > 0 {
            cache.shrink(1_000);
        }
        assert_eq!(cache.info().inodes_on_list, 0);
        for ino in cache.inodes() {
            let _ = cache.evict(ino);
        }
        assert_eq!((cache.info().objects, cache.maps()), (0, 0));
        cache.flush();
        assert_eq!(cache.memory().live, 0);
    });
}
