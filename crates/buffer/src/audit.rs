//! Whether everything that refers to a buffer leads to it, checked while others work.

use std::fmt;

use cairn_flags::Probe;

use crate::{BhState, BufferCache};

/// A reference that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// The index names a buffer for this block, and there is none.
    Dangling {
        /// The block.
        block: u64,
    },
    /// The index names a buffer for this block that holds another one.
    Other {
        /// The block.
        block: u64,
        /// The block that the buffer holds.
        held: u64,
    },
    /// The index names a buffer that was given up.
    GivenUp {
        /// The block.
        block: u64,
    },
    /// A buffer waits to be written, and its data are not valid.
    DirtyWithoutData {
        /// The block.
        block: u64,
    },
    /// A part of the index counts other than it holds.
    Count {
        /// References counted.
        counted: usize,
        /// References there are.
        found: usize,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dangling { block } => {
                write!(f, "the index leads to no buffer for block {block}")
            }
            Self::Other { block, held } => {
                write!(
                    f,
                    "the index leads from block {block} to the buffer of block {held}"
                )
            }
            Self::GivenUp { block } => {
                write!(
                    f,
                    "the index leads to a buffer of block {block} that was given up"
                )
            }
            Self::DirtyWithoutData { block } => {
                write!(
                    f,
                    "the buffer of block {block} is dirty without being up to date"
                )
            }
            Self::Count { counted, found } => {
                write!(
                    f,
                    "the index counts {counted} buffers where it holds {found}"
                )
            }
        }
    }
}

impl std::error::Error for Broken {}

impl<P: Probe> BufferCache<P> {
    /// Follows every reference of the index, and gives their number. Each part of the index is looked at with
    /// its lock held: look-ups of buffers that are there go on, additions to that part wait.
    ///
    /// # Errors
    /// The first reference that does not lead to a buffer of its block.
    pub fn audit(&self) -> Result<usize, Broken> {
        let mut all = 0;
        for shard in self.index.shards() {
            let inner = shard.lock();
            let mut found = 0;
            for (block, key) in shard.entries() {
                found += 1;
                let head = self.slab.get(key).ok_or(Broken::Dangling { block })?;
                if head.block() != block {
                    let other = head.block();
                    return Err(Broken::Other { block, held: other });
                }
                if head.detached() {
                    return Err(Broken::GivenUp { block });
                }
                // One load of the word: no order between two looks to be minded.
                let state = head.state().snapshot();
                if state.contains(BhState::DIRTY) && !state.contains(BhState::UPTODATE) {
                    return Err(Broken::DirtyWithoutData { block });
                }
            }
            if found != inner.len {
                let counted = inner.len;
                return Err(Broken::Count { counted, found });
            }
            all += found;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{CacheConfig, NoProbe};

    fn cache(capacity: usize) -> BufferCache<NoProbe> {
        let disk = cairn_ramdisk::Ram::with_len(1 << 20).unwrap();
        BufferCache::new(Arc::new(disk), CacheConfig::new(4096, capacity)).unwrap()
    }

    #[test]
    fn every_kind_of_broken_reference_is_found() {
        let key = |cache: &BufferCache| {
            let entry = cache.get(7).unwrap();
            entry.write(|bytes| bytes.fill(1)).unwrap();
            entry.handle().key
        };
        let sound = cache(16);
        key(&sound);
        assert_eq!(sound.audit(), Ok(1));

        let other = cache(16);
        let at = key(&other);
        let shard = other.index.shard(9);
        shard.insert(&mut shard.lock(), 9, at);
        assert_eq!(other.audit(), Err(Broken::Other { block: 9, held: 7 }));

        let gone = cache(16);
        gone.slab.remove(key(&gone));
        assert_eq!(gone.audit(), Err(Broken::Dangling { block: 7 }));

        let given_up = cache(16);
        given_up.slab.get(key(&given_up)).unwrap().detach();
        assert_eq!(given_up.audit(), Err(Broken::GivenUp { block: 7 }));

        let dirty = cache(16);
        let at = dirty
            .slab
            .insert(std::sync::Arc::new(crate::Head::new(3)))
            .unwrap();
        let shard = dirty.index.shard(3);
        shard.insert(&mut shard.lock(), 3, at);
        dirty.slab.get(at).unwrap().state().mark_dirty();
        let found = dirty.audit().unwrap_err();
        assert_eq!(found, Broken::DirtyWithoutData { block: 3 });
        assert!(found.to_string().contains("block 3"), "{found}");
        dirty.abandon();

        let counted = cache(16);
        key(&counted);
        counted.index.shard(7).lock().len += 1;
        let (counted_as, found) = (2, 1);
        let wrong = Broken::Count {
            counted: counted_as,
            found,
        };
        assert_eq!(counted.audit(), Err(wrong));
    }

    #[test]
    fn nothing_is_found_while_buffers_come_and_go() {
        // Fewer buffers than blocks in use, so that most look-ups give one up for another.
        let cache = cache(128);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for start in 0..2 {
                let (cache, over) = (&cache, &over);
                scope.spawn(move || {
                    let mut block = start;
                    while !over.load(Ordering::Relaxed) {
                        block = (block * 5 + 1) % 256;
                        let buffer = cache.get(block).unwrap();
                        buffer
                            .write(|bytes| bytes[0] = bytes[0].wrapping_add(1))
                            .unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let found = cache.audit();
                if found.is_err() {
                    over.store(true, Ordering::Relaxed);
                }
                assert!(found.unwrap() <= 128);
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
