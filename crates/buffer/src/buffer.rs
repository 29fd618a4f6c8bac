//! A reference to a buffer, and what is done through it.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use cairn_flags::{NoProbe, Probe, SetPolicy};

use crate::cache::{BufferCache, Handle};
use crate::error::BufferError;
use crate::head::Head;
use crate::recent::Held;
use crate::state::BhState;

/// A reference to a cached buffer, for one thread. Derefs to its [`Head`].
pub struct BufferRef<'c, P: Probe = NoProbe> {
    cache: &'c BufferCache<P>,
    held: Rc<Held<P>>,
}

impl<'c, P: Probe> BufferRef<'c, P> {
    #[inline]
    pub(crate) const fn new(cache: &'c BufferCache<P>, held: Rc<Held<P>>) -> Self {
        Self { cache, held }
    }

    /// Shows the block's bytes.
    ///
    /// # Errors
    /// The block had been given up for others and cannot be read again.
    pub fn read<R>(&self, look: impl FnOnce(&[u8]) -> R) -> Result<R, BufferError> {
        let data = self.data();
        if self.detached() {
            drop(data);
            return self.cache.get(self.block())?.read(look);
        }
        Ok(look(&data))
    }

    /// Lets `change` change the block's bytes, and marks the buffer as by [`mark_dirty`](Self::mark_dirty).
    ///
    /// `change` runs with the block locked: it must not use the same block, nor flush.
    ///
    /// # Errors
    /// The block had been given up for others and cannot be read again; nothing was changed then.
    pub fn write<R>(&self, change: impl FnOnce(&mut [u8]) -> R) -> Result<R, BufferError> {
        self.change(true, change)
    }

    /// As [`write`](Self::write) for a block of file data, which is no metadata and has no priority.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_data<R>(&self, change: impl FnOnce(&mut [u8]) -> R) -> Result<R, BufferError> {
        self.change(false, change)
    }

    /// Looks at the block's bytes, and where `look` finds something to do lets `change` do it, as by
    /// [`write`](Self::write), in one hold of the block's lock. Where it finds nothing the buffer is not marked.
    ///
    /// ```
    /// # use cairn_buffer::{BufferCache, CacheConfig};
    /// # let disk = std::sync::Arc::new(cairn_ramdisk::Ram::with_len(1 << 20)?);
    /// let cache = BufferCache::new(disk, CacheConfig::new(4096, 16))?;
    /// let block = cache.get(3)?;
    /// let free = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0);
    /// assert_eq!(block.write_if(free, |bytes, at| { bytes[at] = 1; at })?, Some(0));
    /// assert_eq!(block.write_if(free, |bytes, at| { bytes[at] = 1; at })?, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_if<T, R>(
        &self,
        look: impl FnOnce(&[u8]) -> Option<T>,
        change: impl FnOnce(&mut [u8], T) -> R,
    ) -> Result<Option<R>, BufferError> {
        let mut data = self.data_mut();
        if self.detached() {
            drop(data);
            return self.cache.get(self.block())?.write_if(look, change);
        }
        let Some(found) = look(&data) else {
            return Ok(None);
        };
        let fresh = self.mark_locked(true);
        let result = change(&mut data, found);
        drop(data);
        if fresh {
            self.cache.throttle(self.block());
        }
        Ok(Some(result))
    }

    fn change<R>(
        &self,
        metadata: bool,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, BufferError> {
        let mut data = self.data_mut();
        if self.detached() {
            drop(data);
            return self.cache.get(self.block())?.change(metadata, change);
        }
        // Marked before the change, so that a change that panics half-way is written too. Write-back
        // may take the mark at once, but it reads the data only when this lock is let go; and until
        // it has, it holds the buffer's lock bit, which keeps eviction away.
        let fresh = self.mark_locked(metadata);
        let result = change(&mut data);
        drop(data);
        if fresh {
            self.cache.throttle(self.block());
        }
        Ok(result)
    }

    /// Marks the buffer as changed metadata: sets Meta, Prio and Uptodate as the live policy says, then
    /// Dirty, without losing the mark to a write-back that runs.
    ///
    /// This is what a file system calls after each change of a shared block, almost always to find the
    /// three bits set.
    #[inline]
    pub fn mark_dirty(&self) {
        self.set_hints();
        if self.state().mark_dirty() {
            self.cache.now_dirty(self.block(), self.held.key);
            self.cache.throttle(self.block());
        }
    }

    /// As [`mark_dirty`](Self::mark_dirty) by who has changed no byte since the buffer was marked last, or will
    /// change it by [`write`](Self::write): there is nothing yet that a write-back could miss, so the
    /// mark need not be ordered after it, and costs no barrier.
    #[inline]
    pub fn mark_unchanged(&self) {
        self.set_hints();
        if self.state().as_raw().set_if_clear(BhState::DIRTY) {
            self.cache.now_dirty(self.block(), self.held.key);
            self.cache.throttle(self.block());
        }
    }

    #[inline]
    fn set_hints(&self) {
        let state = self.state();
        let policy = self.cache.policy();
        state.set_meta_with(policy);
        state.set_prio_with(policy);
        match policy {
            SetPolicy::CheckFirst => {
                state.publish_uptodate();
            }
            // The word itself is asked: a publish bit has no unconditional form of its own.
            SetPolicy::AlwaysRmw => state.as_raw().set(BhState::UPTODATE, Ordering::Release),
        }
    }

    /// Marks under the lock of the data, held alone; returns whether the buffer was clean.
    ///
    /// The lock does the work of the barriers of `mark_dirty`. Who takes the mark reads the data under this lock,
    /// after. If it gets the lock after this hold, it sees the change, whatever the look at the bit said. If it had
    /// the lock before, the mark was gone before this hold began, and the look finds it gone.
    #[inline]
    fn mark_locked(&self, metadata: bool) -> bool {
        if metadata {
            self.set_hints();
        }
        let fresh = self.state().as_raw().set_if_clear(BhState::DIRTY);
        if fresh {
            self.cache.now_dirty(self.block(), self.held.key);
        }
        fresh
    }

    /// Writes the block back now if it is dirty. Durable only after a flush.
    ///
    /// # Errors
    /// The device's; the buffer stays dirty then.
    pub fn write_back(&self) -> Result<(), BufferError> {
        self.cache.write_back_one(self.block(), self.held.key)
    }

    /// A value to come back to this buffer with, by [`BufferCache::again`].
    ///
    /// ```
    /// use cairn_buffer::{BufferCache, CacheConfig};
    /// use std::sync::Arc;
    ///
    /// let disk = Arc::new(cairn_ramdisk::Ram::with_len(1 << 20)?);
    /// let cache = BufferCache::new(disk, CacheConfig::new(4096, 16))?;
    /// let handle = cache.get(3)?.handle();
    /// let before = cache.stats().hits;
    /// assert_eq!(cache.again(handle)?.block(), 3);
    /// assert_eq!(cache.stats().hits, before); // no look-up
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn handle(&self) -> Handle {
        Handle {
            block: self.block(),
            key: self.held.key,
        }
    }

    /// Takes the mark off a block that is free now and need not be written.
    pub fn forget(&self) {
        self.state().take_dirty();
    }
}

impl<P: Probe> Deref for BufferRef<'_, P> {
    type Target = Head<P>;

    #[inline]
    fn deref(&self) -> &Head<P> {
        &self.held.head
    }
}

impl<P: Probe> fmt::Debug for BufferRef<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferRef")
            .field("block", &self.block())
            .field("state", &self.state().snapshot())
            .finish_non_exhaustive()
    }
}
