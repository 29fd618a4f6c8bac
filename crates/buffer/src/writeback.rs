//! Dirty lists, write-back, flush.
//!
//! # What keeps a dirty buffer from being lost
//! - Who marks a clean buffer dirty puts its key on the shard's list, once per transition.
//! - Write-back takes the key off the list, then the buffer's lock bit, then the mark (`take_dirty`,
//!   whose fence pairs with the marker's), then the data. A mark that comes later makes a transition
//!   again and thus a new entry of the list.
//! - A write that fails marks the buffer again, before the lock bit is let go.
//! - Eviction passes by what is dirty, locked, or being changed.
//!
//! # What a flush covers
//! Buffers that were dirty when it began are on a list, or were taken off one by somebody who holds
//! `writing` shared until the write is done. So the flush takes the lists first, writes, and then
//! takes `writing` alone once, which waits for those. Only then is the device flushed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use cairn_block::{BlockDeviceExt, Caps, Error};
use cairn_flags::Probe;

use crate::cache::BufferCache;
use crate::error::BufferError;
use crate::index::Shard;

/// Buffers written back at once when room is needed.
const BATCH: usize = 16;

/// What an attempt to make room came to.
pub(crate) enum Progress {
    /// Something is clean now.
    Some,
    /// There was nothing to write, or all of it was in use.
    None,
    /// The device refused a block.
    Failed(u64, Error),
}

enum Outcome {
    /// Written, or clean already, or gone.
    Clean,
    /// In use; the key belongs back on the list.
    Busy,
    Failed(u64, Error),
}

impl<P: Probe> BufferCache<P> {
    #[cold]
    pub(crate) fn now_dirty(&self, block: u64, key: usize) {
        self.counts.dirtied().inc();
        self.index.shard(block).dirty().push(key);
    }

    /// Entries of the dirty lists: buffers that wait to be written.
    pub(crate) fn dirty_len(&self) -> usize {
        self.index.shards().iter().map(|s| s.dirty().len()).sum()
    }

    /// Makes who dirties too much write some of it back.
    #[cold]
    pub(crate) fn throttle(&self, block: u64) {
        let shard = self.index.shard(block);
        let most = self.config.dirty_limit / self.index.shards().len();
        if shard.dirty().len() > most {
            self.counts.throttled().inc();
            // A failure is kept for the next flush; the buffer is dirty again.
            let _ = self.write_some(shard);
        }
    }

    /// Writes back the oldest dirty buffers of a shard that nobody is using.
    pub(crate) fn write_some(&self, shard: &Shard) -> Progress {
        let _shared = self.writing.read().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<usize> = {
            let mut dirty = shard.dirty();
            let n = dirty.len().min(BATCH);
            dirty.drain(..n).collect()
        };
        let mut progress = Progress::None;
        for key in keys {
            match self.write_one(key, false) {
                Outcome::Clean => progress = Progress::Some,
                Outcome::Busy => shard.dirty().push(key),
                Outcome::Failed(block, e) => {
                    if matches!(progress, Progress::None) {
                        progress = Progress::Failed(block, e);
                    }
                }
            }
        }
        progress
    }

    pub(crate) fn write_back_one(&self, block: u64, key: usize) -> Result<(), BufferError> {
        let _shared = self.writing.read().unwrap_or_else(PoisonError::into_inner);
        match self.write_one(key, true) {
            Outcome::Clean | Outcome::Busy => Ok(()),
            Outcome::Failed(_, source) => Err(BufferError::Write {
                failed: 1,
                block,
                source,
            }),
        }
    }

    /// Writes one buffer back if it is dirty; without `wait` only if nobody uses it.
    fn write_one(&self, key: usize, wait: bool) -> Outcome {
        let Some(head) = self.slab.get(key) else {
            return Outcome::Clean;
        };
        let state = head.state();
        let io = if wait {
            state.lock()
        } else {
            match state.try_lock() {
                Some(guard) => guard,
                None => return Outcome::Busy,
            }
        };
        let early = if wait {
            None
        } else {
            match head.try_data() {
                Some(data) => Some(data),
                None => return Outcome::Busy,
            }
        };
        if !state.take_dirty() {
            return Outcome::Clean;
        }
        state.set_async_write(Ordering::Relaxed);
        state.set_req();
        let data = early.unwrap_or_else(|| head.data());
        let block = head.block();
        let (off, _) = self.place(block);
        let written = self.device.write_at(&data, off);
        let outcome = match written {
            Ok(()) => {
                self.counts.writes().inc();
                state.clear_write_eio_if_set(Ordering::Release);
                Outcome::Clean
            }
            Err(e) => {
                self.counts.write_errors().inc();
                self.keep_failure(block, e.clone());
                state.set_write_eio(Ordering::Release);
                if state.mark_dirty() {
                    self.index.shard(block).dirty().push(key);
                }
                Outcome::Failed(block, e)
            }
        };
        state.clear_async_write(Ordering::Relaxed);
        drop(data);
        drop(io);
        outcome
    }

    /// Writes back everything that was dirty when the call began, in the order of the blocks, then
    /// flushes the device.
    ///
    /// # Errors
    /// Blocks that cannot be written, which stay dirty and are written again by the next flush; or a
    /// device that does not flush. Everything else was written all the same.
    pub fn flush(&self) -> Result<(), BufferError> {
        let _one = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        self.counts.flushes().inc();
        // What failed before is dirty still and tried again now.
        self.failed.store(0, Ordering::Relaxed);
        self.take_failure();
        let mut all: Vec<(u64, usize)> = Vec::new();
        for shard in self.index.shards() {
            let keys = std::mem::take(&mut *shard.dirty());
            all.extend(
                keys.into_iter()
                    .filter_map(|key| Some((self.slab.get(key)?.block(), key))),
            );
        }
        all.sort_unstable();
        for (_, key) in all {
            self.write_one(key, true);
        }
        drop(self.writing.write().unwrap_or_else(PoisonError::into_inner));
        let failed = self.failed.swap(0, Ordering::Relaxed);
        if let Some((block, source)) = self.take_failure() {
            return Err(BufferError::Write {
                failed,
                block,
                source,
            });
        }
        if self.device.caps().contains(Caps::FLUSH) {
            self.device
                .flush()
                .map_err(|source| BufferError::Flush { source })?;
        }
        Ok(())
    }

    fn take_failure(&self) -> Option<(u64, Error)> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
