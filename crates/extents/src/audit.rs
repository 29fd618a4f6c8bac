//! Whether a map and the counters hold together, checked while others work.
//!
//! Counts change under the writer's lock, so that is where they are compared. The lock is only taken when it
//! is free: no writer waits for more than the walk, and nobody waits for two.

use core::fmt;

use crate::cache::ExtentCache;
use crate::map::ExtentMap;
use crate::types::{Extent, Status};

/// Something that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// A map counts other than it holds.
    Entries {
        /// Inode of the map.
        ino: u64,
        /// Entries counted, and delayed ones among them.
        counted: (u32, u32),
        /// Entries there are, and delayed ones among them.
        found: (u32, u32),
    },
    /// The maps hold more entries than the cache counts.
    Sum {
        /// Entries of all maps, and reclaimable ones among them.
        held: (u64, u64),
        /// What the counters say.
        counted: (i64, i64),
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries {
                ino,
                counted,
                found,
            } => write!(
                f,
                "inode {ino} counts {} entries, {} delayed, and holds {}, {} delayed",
                counted.0, counted.1, found.0, found.1
            ),
            Self::Sum { held, counted } => write!(
                f,
                "the maps hold {} entries, {} reclaimable, and the counters say {}, {}",
                held.0, held.1, counted.0, counted.1
            ),
        }
    }
}

impl core::error::Error for Broken {}

/// Looks at the sum before it is called wrong: a map that is not looked at may add an entry on one CPU and
/// take it off on another while the slots are summed up.
const LOOKS: usize = 8;

impl ExtentMap {
    /// All entries at one moment, after they were counted. `None` when there are more than `most`, or when
    /// somebody is changing the map.
    ///
    /// # Errors
    /// The map counts other than it holds.
    pub fn audit(&self, most: u32) -> Option<Result<Vec<Extent>, Broken>> {
        if self.len() > most {
            return None;
        }
        let _writer = self.try_write()?;
        let entries: Vec<Extent> = self.iter_from(0).collect();
        let delayed =
            |e: &&Extent| matches!(e.status, Status::Delayed | Status::DelayedUnwritten(_));
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let found = (
            number(entries.len()),
            number(entries.iter().filter(delayed).count()),
        );
        let counted = (self.len(), self.len().saturating_sub(self.reclaimable()));
        Some(if found == counted {
            Ok(entries)
        } else {
            let ino = self.ino();
            Err(Broken::Entries {
                ino,
                counted,
                found,
            })
        })
    }
}

impl ExtentCache {
    /// Compares the entries of all maps with what the counters say, and gives the number of maps. `None` when
    /// there are more than `most` maps, or when somebody is changing one.
    ///
    /// Maps that were evicted while their files are open may hold more, so that only less is wrong.
    ///
    /// # Errors
    /// The maps hold more than is counted.
    pub fn audit(&self, most: usize) -> Option<Result<usize, Broken>> {
        if self.maps() > most {
            return None;
        }
        let inodes = self.inodes();
        let maps: Vec<_> = inodes.iter().filter_map(|ino| self.get(*ino)).collect();
        let writers: Option<Vec<_>> = maps.iter().map(|map| map.try_write()).collect();
        let _writers = writers?;
        let sum =
            |of: fn(&ExtentMap) -> u32| maps.iter().map(|map| u64::from(of(map))).sum::<u64>();
        let held = (sum(ExtentMap::len), sum(ExtentMap::reclaimable));
        let mut counted = (0, 0);
        for _ in 0..LOOKS {
            let report = self.counters().report();
            counted = (report.all.exact, report.reclaimable.exact);
            let covers = |held: u64, counted: i64| i64::try_from(held).is_ok_and(|n| n <= counted);
            if covers(held.0, counted.0) && covers(held.1, counted.1) {
                return Some(Ok(maps.len()));
            }
        }
        Some(Err(Broken::Sum { held, counted }))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::Config;

    #[test]
    fn what_is_counted_is_held() {
        let cache = ExtentCache::new(Config::new());
        let (one, two) = (cache.map(11), cache.map(12));
        let _ = one.insert(0, 8, Status::Written(100)).unwrap();
        let _ = one.insert(20, 8, Status::Delayed).unwrap();
        let _ = two.insert(0, 8, Status::Hole).unwrap();
        let entries = one.audit(100).unwrap().unwrap();
        assert_eq!(entries.len(), 2);
        assert!(one.audit(1).is_none(), "more than asked for");
        assert_eq!(cache.audit(100), Some(Ok(2)));
        assert!(cache.audit(1).is_none(), "more than asked for");
        let writer = one.try_write().unwrap();
        assert!(one.audit(100).is_none(), "somebody changes it");
        assert!(cache.audit(100).is_none(), "somebody changes it");
        drop(writer);
        // What was evicted may still be open and hold something.
        let _ = cache.evict(12);
        let _ = two.insert(0, 8, Status::Hole).unwrap();
        assert_eq!(cache.audit(100), Some(Ok(1)));
    }

    #[test]
    fn a_lost_count_is_found() {
        let cache = ExtentCache::new(Config::new());
        let map = cache.map(11);
        let _ = map.insert(0, 8, Status::Written(100)).unwrap();
        cache.counters().all(-1);
        let found = cache.audit(100).unwrap().unwrap_err();
        let sum = Broken::Sum {
            held: (1, 1),
            counted: (0, 1),
        };
        assert_eq!(found, sum);
        assert!(found.to_string().contains("hold 1 entries"), "{found}");
        cache.counters().all(1);
        assert_eq!(cache.audit(100), Some(Ok(1)));
    }

    #[test]
    fn nothing_is_found_while_maps_come_and_go() {
        let cache = ExtentCache::new(Config::new().with_counter_slots(4));
        let over = AtomicBool::new(false);
        let held = cache.map(1);
        std::thread::scope(|scope| {
            for worker in 0..2_u64 {
                let (cache, over, held) = (&cache, &over, &held);
                scope.spawn(move || {
                    let mut at = 0;
                    while !over.load(Ordering::Relaxed) {
                        let map = cache.map(2 + worker);
                        let _ = map.insert(at, 2, Status::Written(u64::from(at)));
                        let _ = held.insert(at, 3, Status::Hole);
                        let _ = held.remove(at, 2);
                        let _ = cache.evict(2 + worker);
                        at = (at + 7) % 500;
                    }
                });
            }
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = cache.shrink(64);
                }
            });
            let mut found = Ok(());
            for _ in 0..3000 {
                let sum = cache.audit(100).map_or(Ok(()), |sum| sum.map(|_| ()));
                let map = held.audit(1000).map_or(Ok(()), |map| map.map(|_| ()));
                found = found.and(sum).and(map);
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(found, Ok(()));
        });
    }
}
