//! The cache: look-up, read-through, eviction.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cairn_block::{BlockDeviceExt, Device};
use cairn_flags::{NoProbe, PolicyCell, Probe, SetPolicy};
use sharded_slab::{Entry, Slab};

use crate::buffer::BufferRef;
use crate::error::BufferError;
use crate::head::Head;
use crate::index::{Index, Inner, Shard};
use crate::recent;
use crate::state::BhState;
use crate::stats::{BufferStats, Counts};
use crate::writeback::Progress;

/// Times that a look-up tries to make room; a buffer that is dirtied again in between costs another.
const ROUNDS: usize = 256;

/// The number of the next cache; 0 is none.
static CACHES: AtomicU64 = AtomicU64::new(1);

/// Settings of a [`BufferCache`].
///
/// ```
/// use cairn_buffer::CacheConfig;
///
/// let config = CacheConfig::new(4096, 1024); // 1024 buffers of 4 KiB
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    pub(crate) block_size: usize,
    pub(crate) capacity: usize,
    pub(crate) dirty_limit: usize,
    pub(crate) policy: SetPolicy,
}

impl CacheConfig {
    /// `capacity` buffers of `block_size` bytes; half of them may be dirty before writers must help
    /// to write back.
    pub const fn new(block_size: usize, capacity: usize) -> Self {
        Self {
            block_size,
            capacity,
            dirty_limit: capacity.div_ceil(2),
            policy: SetPolicy::CheckFirst,
        }
    }

    /// Dirty buffers above which who makes one more must write some back first.
    #[must_use]
    pub const fn dirty_limit(mut self, buffers: usize) -> Self {
        self.dirty_limit = buffers;
        self
    }

    /// How bits that may be set already are set at first.
    #[must_use]
    pub const fn policy(mut self, policy: SetPolicy) -> Self {
        self.policy = policy;
        self
    }
}

/// A cache of the blocks of a device.
///
/// `P` is the probe of the state words: none by default, or
/// [`CountingProbe`](crate::CountingProbe).
///
/// A cache that is dropped writes back what is dirty; errors are lost then, so call
/// [`flush`](Self::flush) before.
///
/// ```
/// use cairn_block::{BlockDeviceExt, Device};
/// use cairn_buffer::{BufferCache, CacheConfig};
/// use cairn_ramdisk::Ram;
/// use std::sync::Arc;
///
/// let disk: Device = Arc::new(Ram::with_len(1 << 20)?);
/// let cache = BufferCache::new(disk.clone(), CacheConfig::new(4096, 64))?;
/// let block = cache.get(7)?;
/// block.write(|bytes| bytes[..5].copy_from_slice(b"stone"))?;
/// assert_eq!(disk.read_vec(7 * 4096, 5)?, [0; 5]); // not written back yet
/// cache.flush()?;
/// assert_eq!(disk.read_vec(7 * 4096, 5)?, b"stone");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BufferCache<P: Probe = NoProbe> {
    /// Tells caches apart in what threads remember.
    id: u64,
    pub(crate) device: Device,
    pub(crate) config: CacheConfig,
    pub(crate) blocks: u64,
    pub(crate) len: u64,
    policy: PolicyCell,
    pub(crate) slab: Slab<Arc<Head<P>>>,
    pub(crate) index: Index,
    pub(crate) counts: Counts,
    /// Held shared by who writes buffers back outside of a flush.
    pub(crate) writing: RwLock<()>,
    /// One flush at a time.
    pub(crate) flushing: Mutex<()>,
    /// Failed writes, and the first one that no flush has reported yet.
    pub(crate) failed: AtomicU64,
    pub(crate) failure: Mutex<Option<(u64, cairn_block::Error)>>,
    abandoned: bool,
}

impl BufferCache<NoProbe> {
    /// A cache over `device`.
    ///
    /// # Errors
    /// A block size that is no power of two from 512 to 65536, or smaller than the device's logical
    /// block; no capacity.
    pub fn new(device: Device, config: CacheConfig) -> Result<Self, BufferError> {
        Self::probed(device, config)
    }
}

impl<P: Probe> BufferCache<P> {
    /// A cache over `device` whose state words report to `P`.
    ///
    /// # Errors
    /// As [`new`](BufferCache::new).
    pub fn probed(device: Device, config: CacheConfig) -> Result<Self, BufferError> {
        let info = device.info();
        let wrong = |key, why| Err(BufferError::Config { key, why });
        let size = config.block_size;
        if !size.is_power_of_two() || !(512..=65536).contains(&size) {
            return wrong(
                "block_size",
                format!("{size}: it must be a power of two from 512 to 65536"),
            );
        }
        if size < info.logical_block as usize {
            return wrong(
                "block_size",
                format!(
                    "{size}: at least the logical block of the device, {}",
                    info.logical_block
                ),
            );
        }
        if config.capacity == 0 {
            return wrong("capacity", "0: at least one buffer".to_owned());
        }
        Ok(Self {
            id: CACHES.fetch_add(1, Ordering::Relaxed),
            blocks: info.len.div_ceil(size as u64),
            len: info.len,
            policy: PolicyCell::new(config.policy),
            slab: Slab::new(),
            index: Index::new(config.capacity),
            counts: Counts::new(),
            writing: RwLock::new(()),
            flushing: Mutex::new(()),
            failed: AtomicU64::new(0),
            failure: Mutex::new(None),
            abandoned: false,
            device,
            config,
        })
    }

    /// The device below.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes in a block; the last one of the device may be shorter.
    pub const fn block_size(&self) -> usize {
        self.config.block_size
    }

    /// Blocks of the device.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// How bits that may be set already are set, now.
    #[inline]
    pub fn policy(&self) -> SetPolicy {
        self.policy.get()
    }

    /// Exchanges the policy while others work; takes effect at once.
    pub fn set_policy(&self, policy: SetPolicy) {
        self.policy.set(policy);
    }

    /// The block's buffer, read from the device if it is not cached.
    ///
    /// A buffer that this thread used lately is found without writing anything that others read. Any other takes
    /// one hash, one look into the index, one counted reference; no lock. A reference does not pin the
    /// buffer: what is clean may be given up for others meanwhile, and the reference then finds the
    /// block again.
    ///
    /// # Errors
    /// No such block, a failed read, or a cache full of buffers that cannot be written.
    #[inline]
    pub fn get(&self, block: u64) -> Result<BufferRef<'_, P>, BufferError> {
        if let Some(held) = recent::find(self.id, block) {
            self.counts.hits().inc();
            held.head.touch();
            return Ok(BufferRef::new(self, held));
        }
        self.get_afresh(block, true)
    }

    fn get_afresh(&self, block: u64, read: bool) -> Result<BufferRef<'_, P>, BufferError> {
        let entry = self.find_or_add(block)?;
        if !entry.state().uptodate() {
            self.fill(&entry, read)?;
        }
        Ok(self.held(&entry))
    }

    fn held(&self, entry: &Entry<'_, Arc<Head<P>>>) -> BufferRef<'_, P> {
        BufferRef::new(
            self,
            recent::keep(self.id, entry.block(), entry.key(), entry),
        )
    }

    /// The block of a reference that was held earlier, without a look-up as long as the buffer is
    /// still in the cache: for the few blocks that a file system keeps at hand.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn again(&self, handle: Handle) -> Result<BufferRef<'_, P>, BufferError> {
        if let Some(held) = recent::find(self.id, handle.block) {
            held.head.touch();
            return Ok(BufferRef::new(self, held));
        }
        let kept = self
            .slab
            .get(handle.key)
            .filter(|head| head.block() == handle.block && !head.detached());
        match kept {
            Some(entry) if entry.state().uptodate() => {
                entry.touch();
                Ok(self.held(&entry))
            }
            _ => self.get(handle.block),
        }
    }

    /// As [`get`](Self::get), for a caller that will overwrite the whole block: a block that is not
    /// cached is not read but made of zeros.
    ///
    /// # Errors
    /// No such block, or a cache full of buffers that cannot be written.
    pub fn get_new(&self, block: u64) -> Result<BufferRef<'_, P>, BufferError> {
        self.get_afresh(block, false)
    }

    /// Where a block lies on the device, and how long it is.
    pub(crate) fn place(&self, block: u64) -> (u64, usize) {
        let size = self.config.block_size as u64;
        let off = block * size;
        let len = usize::try_from(size.min(self.len - off)).unwrap_or(self.config.block_size);
        (off, len)
    }

    #[inline]
    fn find(&self, shard: &Shard, block: u64) -> Option<Entry<'_, Arc<Head<P>>>> {
        shard.find(block, |key| {
            self.slab
                .get(key)
                .filter(|head| head.block() == block && !head.detached())
        })
    }

    #[inline]
    fn find_or_add(&self, block: u64) -> Result<Entry<'_, Arc<Head<P>>>, BufferError> {
        if block >= self.blocks {
            return Err(BufferError::OutOfRange {
                block,
                blocks: self.blocks,
            });
        }
        let shard = self.index.shard(block);
        if let Some(entry) = self.find(shard, block) {
            self.counts.hits().inc();
            entry.touch();
            return Ok(entry);
        }
        self.add(shard, block)
    }

    #[cold]
    fn add(&self, shard: &Shard, block: u64) -> Result<Entry<'_, Arc<Head<P>>>, BufferError> {
        for _ in 0..ROUNDS {
            let mut inner = shard.lock();
            if let Some(entry) = self.find(shard, block) {
                self.counts.hits().inc();
                entry.touch();
                return Ok(entry);
            }
            if inner.len < self.index.per_shard() || self.evict(shard, &mut inner) {
                let key = self.slab.insert(Arc::new(Head::new(block)));
                if let Some(entry) = key.and_then(|k| self.slab.get(k)) {
                    shard.insert(&mut inner, block, entry.key());
                    self.counts.misses().inc();
                    return Ok(entry);
                }
                break;
            }
            drop(inner);
            match self.write_some(shard) {
                Progress::Some => {}
                // All are in use at this moment; others may be about to let go.
                Progress::None => std::thread::yield_now(),
                Progress::Failed(block, source) => {
                    return Err(BufferError::Write {
                        failed: 1,
                        block,
                        source,
                    });
                }
            }
        }
        Err(BufferError::Full {
            capacity: self.config.capacity,
            dirty: self.dirty_len(),
        })
    }

    /// Gives up one clean buffer of the shard: the first that the clock hand finds untouched.
    fn evict(&self, shard: &Shard, inner: &mut Inner) -> bool {
        let mut victim = None;
        shard.sweep(inner, |key| {
            let Some(head) = self.slab.get(key) else {
                return false;
            };
            if head.take_touched() || head.state().lock_held() || head.state().dirty() {
                return false;
            }
            // Who changes the data holds this lock and marks the buffer before letting go.
            let Some(mut data) = head.try_data_mut() else {
                return false;
            };
            if head.state().dirty() || head.state().lock_held() {
                return false;
            }
            head.detach();
            // Threads may remember the head for a while.
            drop(std::mem::take(&mut *data));
            drop(data);
            victim = Some((head.block(), key));
            true
        });
        let Some((block, key)) = victim else {
            return false;
        };
        shard.remove(inner, block);
        self.slab.remove(key);
        self.counts.evictions().inc();
        true
    }

    /// Makes the data valid: reads it, or fills it with zeros.
    #[cold]
    fn fill(&self, head: &Head<P>, read: bool) -> Result<(), BufferError> {
        let state = head.state();
        let _io = state.lock();
        if state.uptodate() {
            return Ok(());
        }
        let (off, len) = self.place(head.block());
        let mut data = head.data_mut();
        data.resize(len, 0);
        if read {
            state.set_req();
            self.counts.reads().inc();
            if let Err(source) = self.device.read_at(&mut data, off) {
                data.clear();
                self.counts.read_errors().inc();
                return Err(BufferError::Read {
                    block: head.block(),
                    source,
                });
            }
        } else {
            state.set_fresh(Ordering::Relaxed);
        }
        state.set_mapped(Ordering::Relaxed);
        drop(data);
        state.publish_uptodate();
        Ok(())
    }

    /// What was counted so far.
    pub fn stats(&self) -> BufferStats {
        let c = self.counts.snapshot();
        BufferStats {
            hits: c.hits,
            misses: c.misses,
            reads: c.reads,
            read_errors: c.read_errors,
            writes: c.writes,
            write_errors: c.write_errors,
            dirtied: c.dirtied,
            evictions: c.evictions,
            flushes: c.flushes,
            throttled: c.throttled,
            cached: self
                .index
                .shards()
                .iter()
                .map(|s| s.lock().len as u64)
                .sum(),
            dirty: self.dirty_len() as u64,
        }
    }

    /// Shows up to `most` cached buffers with their states, in no order, without disturbing anybody.
    pub fn heads(&self, most: usize) -> Vec<HeadInfo> {
        self.index
            .shards()
            .iter()
            .flat_map(Shard::keys)
            .filter_map(|key| self.slab.get(key))
            .take(most)
            .map(|head| HeadInfo {
                block: head.block(),
                state: head.state().snapshot(),
            })
            .collect()
    }

    /// Drops the cache without writing back what is dirty, as a power cut would.
    pub fn abandon(mut self) {
        self.abandoned = true;
    }

    pub(crate) fn keep_failure(&self, block: u64, error: cairn_block::Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert((block, error));
    }
}

/// Where a buffer was when it was last referenced; see [`BufferCache::again`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    pub(crate) block: u64,
    pub(crate) key: usize,
}

/// A buffer as [`BufferCache::heads`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeadInfo {
    /// Number of its block.
    pub block: u64,
    /// Its state word.
    pub state: BhState,
}

impl<P: Probe> Drop for BufferCache<P> {
    fn drop(&mut self) {
        if !self.abandoned {
            // Nobody is left to hear of an error; flush() is the way to learn of it.
            let _ = self.flush();
        }
        // Threads may remember heads for a while; these hold no bytes.
        recent::forget(self.id);
        let keys = self.index.shards().iter().flat_map(Shard::keys);
        for head in keys.filter_map(|key| self.slab.get(key)) {
            let mut data = head.data_mut();
            head.detach();
            drop(std::mem::take(&mut *data));
        }
    }
}

/// A cache that threads share.
pub type SharedCache<P = NoProbe> = Arc<BufferCache<P>>;
