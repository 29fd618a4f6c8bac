//! What threads remember of buffers is never more than a guess.
#![allow(clippy::unwrap_used, reason = "tests say what went wrong by panicking")]

use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Device};
use cairn_buffer::{BufferCache, CacheConfig};
use cairn_ramdisk::Ram;

const BLOCK: usize = 4096;

fn cache(capacity: usize) -> (Device, BufferCache) {
    let disk: Device = Arc::new(Ram::with_len(1 << 20).unwrap());
    let config = CacheConfig::new(BLOCK, capacity);
    (Arc::clone(&disk), BufferCache::new(disk, config).unwrap())
}

fn first(cache: &BufferCache, block: u64) -> u8 {
    let block = cache.get(block).unwrap();
    block.read(|bytes| bytes.first().copied()).unwrap().unwrap()
}

#[test]
fn a_buffer_that_was_given_up_meanwhile_is_looked_up_again() {
    let (_, cache) = cache(4);
    cache.get(0).unwrap().write(|b| b.fill(1)).unwrap();
    cache.flush().unwrap();
    let (handle, before) = (cache.get(0).unwrap().handle(), cache.stats().evictions);
    assert_eq!(first(&cache, 0), 1);
    let other = std::thread::scope(|scope| {
        let work = || {
            // All others push it out; then it is changed in a new buffer.
            for block in 1..200 {
                cache.get(block).unwrap();
            }
            cache.get(0).unwrap().write(|b| b.fill(2)).unwrap();
        };
        scope.spawn(work).join()
    });
    assert!(other.is_ok() && cache.stats().evictions > before);
    assert_eq!(first(&cache, 0), 2);
    let again = cache.again(handle).unwrap();
    assert_eq!(again.read(|b| b.first().copied()).unwrap(), Some(2));
}

#[test]
fn caches_are_told_apart() {
    let mut caches: Vec<_> = (0..3).map(|_| cache(16)).collect();
    for round in 0..20_u8 {
        for (n, (_, cache)) in (0_u8..).zip(&caches) {
            cache
                .get(5)
                .unwrap()
                .write(|b| b.fill(3 * round + n))
                .unwrap();
        }
        for (n, (_, cache)) in (0_u8..).zip(&caches) {
            assert_eq!(first(cache, 5), 3 * round + n);
        }
        // One goes, and a new one on the same block of its device comes.
        let (disk, old) = caches.remove(0);
        drop(old);
        assert_eq!(disk.read_vec(5 * 4096, 1).unwrap(), [3 * round]);
        let config = CacheConfig::new(BLOCK, 16);
        caches.insert(
            0,
            (Arc::clone(&disk), BufferCache::new(disk, config).unwrap()),
        );
        assert_eq!(first(&caches.first().unwrap().1, 5), 3 * round);
    }
}

#[test]
fn every_look_up_is_counted_and_only_changes_mark() {
    let (disk, cache) = cache(16);
    cache.get(1).unwrap();
    let before = cache.stats().hits;
    for _ in 0..100 {
        cache.get(1).unwrap();
    }
    assert_eq!(cache.stats().hits - before, 100);
    let block = cache.get(1).unwrap();
    let done = block.write_if(|b| b.contains(&9).then_some(()), |b, ()| b.fill(1));
    assert_eq!((done.unwrap(), cache.stats().dirty), (None, 0));
    let done = block.write_if(|b| b.contains(&0).then_some(7), <[u8]>::fill);
    assert_eq!((done.unwrap(), cache.stats().dirty), (Some(()), 1));
    cache.flush().unwrap();
    assert_eq!(disk.read_vec(4096, 1).unwrap(), [7]);
    block.mark_unchanged();
    block.mark_unchanged();
    assert_eq!(cache.stats().dirty, 1);
    let writes = cache.stats().writes;
    cache.flush().unwrap();
    assert_eq!(cache.stats().writes - writes, 1);
}

/// Changes find the mark set by a look without a barrier: the lock of the data has to do.
#[test]
fn no_change_is_lost_to_a_write_back() {
    let (disk, cache) = cache(8);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u64)
            .map(|thread| {
                let cache = &cache;
                scope.spawn(move || {
                    for n in 0..20_000_u64 {
                        let block = cache.get(2 * (n % 2) + thread).unwrap();
                        block.write(|b| b.fill(n.to_le_bytes()[0])).unwrap();
                        if n % 1000 > 997 {
                            // What was written before a flush began is on the device after it.
                            cache.flush().unwrap();
                            for (at, back) in [(n, 0_u8), (n - 1, 1)] {
                                let place = (2 * (at % 2) + thread) * 4096;
                                let want = n.to_le_bytes()[0].wrapping_sub(back);
                                assert_eq!(cache.device().read_vec(place, 1).unwrap(), [want]);
                            }
                        }
                    }
                })
            })
            .collect();
        let (cache, stop) = (&cache, &stop);
        scope.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for block in 0..4 {
                    cache.get(block).unwrap().write_back().unwrap();
                }
            }
        });
        // A writer that failed must not leave the other thread running.
        let ended: Vec<_> = writers.into_iter().map(|w| w.join().is_ok()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ended, [true, true]);
    });
    cache.flush().unwrap();
    for block in 0..4_u64 {
        let last = 19_998 + block / 2;
        assert_eq!(
            disk.read_vec(block * 4096, 1).unwrap(),
            last.to_le_bytes()[..1]
        );
    }
}
