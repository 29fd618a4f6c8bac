//! Block number to slab key, looked up without a lock.
//!
//! Open addressing with linear probing in two arrays of atomics. Changes to a shard happen under
//! its lock. A reader takes none: it may meet a slot whose tag and key belong together no more, or
//! miss an entry that is being moved. The first is found out by the slab, whose keys carry a
//! generation, and by the block number in the head; the second only sends the reader to the slow
//! path, which looks again under the lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Slot {
    /// Block number plus one; 0 is empty.
    tag: AtomicU64,
    key: AtomicUsize,
}

/// What changes under a shard's lock.
#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) len: usize,
    pub(crate) hand: usize,
}

/// A part of the index with its own lock, clock hand and dirty list.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct Shard {
    slots: Box<[Slot]>,
    inner: Mutex<Inner>,
    dirty: Mutex<Vec<usize>>,
}

#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[Shard]>,
    per_shard: usize,
}

/// Shards of a large cache.
const SHARDS: usize = 64;
/// Buffers for which one shard is enough: below it, uneven shards would waste room.
const SMALL: usize = 64;

/// Spreads block numbers that are close together (the multiplier of Fibonacci hashing).
const fn hash(block: u64) -> u64 {
    block.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only the low bits of a hash are wanted"
)]
const fn low(hash: u64) -> usize {
    hash as usize
}

impl Index {
    pub(crate) fn new(capacity: usize) -> Self {
        let shards = (capacity / SMALL).clamp(1, SHARDS);
        let shards = 1 << shards.ilog2();
        let per_shard = capacity / shards;
        let slots = (per_shard * 2).next_power_of_two().max(4);
        Self {
            shards: (0..shards)
                .map(|_| Shard {
                    slots: (0..slots).map(|_| Slot::default()).collect(),
                    inner: Mutex::default(),
                    dirty: Mutex::default(),
                })
                .collect(),
            per_shard,
        }
    }

    /// Buffers one shard may hold.
    pub(crate) const fn per_shard(&self) -> usize {
        self.per_shard
    }

    pub(crate) const fn shards(&self) -> &[Shard] {
        &self.shards
    }

    #[inline]
    pub(crate) fn shard(&self, block: u64) -> &Shard {
        // The high half chooses the shard, the low half the slot.
        let i = low(hash(block) >> 32) & (self.shards.len() - 1);
        #[expect(clippy::indexing_slicing, reason = "masked by a power of two")]
        &self.shards[i]
    }
}

impl Shard {
    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline]
    fn home(&self, block: u64) -> usize {
        low(hash(block) >> 16) & self.mask()
    }

    #[inline]
    fn slot(&self, i: usize) -> &Slot {
        #[expect(clippy::indexing_slicing, reason = "masked by a power of two")]
        &self.slots[i & self.mask()]
    }

    /// Offers the keys that stand for `block` to `check` until it takes one.
    #[inline]
    pub(crate) fn find<R>(
        &self,
        block: u64,
        mut check: impl FnMut(usize) -> Option<R>,
    ) -> Option<R> {
        let start = self.home(block);
        for i in start..start + self.slots.len() {
            let slot = self.slot(i);
            // Acquire: the key was stored before the tag.
            match slot.tag.load(Ordering::Acquire) {
                0 => return None,
                tag if tag == block + 1 => {
                    if let Some(found) = check(slot.key.load(Ordering::Acquire)) {
                        return Some(found);
                    }
                }
                _ => {}
            }
        }
        None
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn dirty(&self) -> MutexGuard<'_, Vec<usize>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry that is not there. The caller keeps the shard at most half full.
    pub(crate) fn insert(&self, inner: &mut Inner, block: u64, key: usize) {
        let start = self.home(block);
        let free = (start..start + self.slots.len())
            .map(|i| self.slot(i))
            .find(|slot| slot.tag.load(Ordering::Relaxed) == 0);
        if let Some(slot) = free {
            slot.key.store(key, Ordering::Relaxed);
            slot.tag.store(block + 1, Ordering::Release);
            inner.len += 1;
        }
    }

    /// Removes an entry and closes the gap, so that no look-up stops short of what lies behind it.
    pub(crate) fn remove(&self, inner: &mut Inner, block: u64) {
        let start = self.home(block);
        let found = (start..start + self.slots.len())
            .find(|i| self.slot(*i).tag.load(Ordering::Relaxed) == block + 1);
        let Some(mut gap) = found else {
            return;
        };
        inner.len -= 1;
        for i in gap + 1..gap + self.slots.len() {
            let slot = self.slot(i);
            let tag = slot.tag.load(Ordering::Relaxed);
            if tag == 0 {
                break;
            }
            // An entry may move back to the gap unless that lies before its home.
            let distance = |from: usize, to: usize| to.wrapping_sub(from) & self.mask();
            let home = self.home(tag - 1);
            if distance(home, i) >= distance(gap, i) {
                let empty = self.slot(gap);
                empty
                    .key
                    .store(slot.key.load(Ordering::Relaxed), Ordering::Relaxed);
                empty.tag.store(tag, Ordering::Release);
                gap = i;
            }
        }
        self.slot(gap).tag.store(0, Ordering::Release);
    }

    /// Keys in the order of the clock, from the hand on, twice around; the hand stays behind the key
    /// that `stop` takes.
    pub(crate) fn sweep(&self, inner: &mut Inner, mut stop: impl FnMut(usize) -> bool) -> bool {
        for _ in 0..2 * self.slots.len() {
            let slot = self.slot(inner.hand);
            inner.hand = (inner.hand + 1) & self.mask();
            if slot.tag.load(Ordering::Relaxed) != 0 && stop(slot.key.load(Ordering::Relaxed)) {
                return true;
            }
        }
        false
    }

    /// Blocks with their keys. Only under the lock do they belong together for sure.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, usize)> {
        self.slots.iter().filter_map(|slot| {
            let block = slot.tag.load(Ordering::Acquire).checked_sub(1)?;
            Some((block, slot.key.load(Ordering::Acquire)))
        })
    }

    /// Keys that are there now, for displays.
    pub(crate) fn keys(&self) -> impl Iterator<Item = usize> {
        self.slots
            .iter()
            .filter(|s| s.tag.load(Ordering::Acquire) != 0)
            .map(|s| s.key.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn like_a_map(ops in prop::collection::vec((any::<bool>(), 0_u64..60), 1..400)) {
            let index = Index::new(60);
            prop_assert_eq!(index.shards().len(), 1);
            let shard = &index.shards()[0];
            let mut model: HashMap<u64, usize> = HashMap::new();
            for (n, (add, block)) in ops.into_iter().enumerate() {
                let mut inner = shard.lock();
                if add && !model.contains_key(&block) {
                    shard.insert(&mut inner, block, n);
                    model.insert(block, n);
                } else {
                    shard.remove(&mut inner, block);
                    model.remove(&block);
                }
                prop_assert_eq!(inner.len, model.len());
                for b in 0..60 {
                    prop_assert_eq!(shard.find(b, Some), model.get(&b).copied());
                }
                prop_assert_eq!(shard.keys().count(), model.len());
            }
        }
    }

    #[test]
    fn shards_share_the_capacity() {
        for capacity in [1, 63, 64, 128, 1000, 1_000_000] {
            let index = Index::new(capacity);
            assert!(index.per_shard() * index.shards().len() <= capacity);
            assert!(index.per_shard() * index.shards().len() > capacity / 2);
        }
    }
}
