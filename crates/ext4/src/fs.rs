//! A mounted file system: mounting, reading inodes, sync, unmounting.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_block::{BlockDeviceExt, Device};
use cairn_buffer::{BufferCache, CacheConfig, SharedCache};
use cairn_extents::ExtentCache;
use cairn_flags::{NoProbe, Probe, SetPolicy};
use cairn_percpu::Batched;

use crate::error::{Error, Object, Result};
use crate::evict::Rest;
use crate::group::{self, Group};
use crate::inode::{Inode, Table};
use crate::node::{self, Expect};
use crate::num::{part, us};
use crate::raw::{EXTENTS_FL, FileType, Raw, Time};
use crate::space::Space;
use crate::superblock::{Geometry, STATE_CLEAN, SUPER_AT, SUPER_LEN, Super};

/// The root directory's inode.
pub const ROOT_INO: u32 = 2;

/// How a file system is mounted.
///
/// ```
/// use cairn_ext4::MountOptions;
///
/// let options = MountOptions::new().buffers(1024).read_only(true);
/// ```
#[derive(Debug, Clone)]
pub struct MountOptions {
    buffers: usize,
    pages: u64,
    read_only: bool,
    policy: SetPolicy,
    slots: Option<usize>,
    extents: Option<(ExtentCache, u64)>,
}

impl MountOptions {
    /// Read and write, 8192 buffers, 16384 dirty pages, bits looked at before they are set.
    pub const fn new() -> Self {
        Self {
            buffers: 8192,
            pages: 16384,
            read_only: false,
            policy: SetPolicy::CheckFirst,
            slots: None,
            extents: None,
        }
    }

    /// Blocks of metadata that are cached.
    #[must_use]
    pub const fn buffers(mut self, buffers: usize) -> Self {
        self.buffers = buffers;
        self
    }

    /// Blocks of written data that may wait for write-back.
    #[must_use]
    pub const fn dirty_pages(mut self, pages: u64) -> Self {
        self.pages = pages;
        self
    }

    /// Whether changes are refused.
    #[must_use]
    pub const fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// How bits of buffers that may be set already are set at first.
    #[must_use]
    pub const fn policy(mut self, policy: SetPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Gives the counters slots for this many threads; more threads count rightly but share.
    #[must_use]
    pub const fn counter_slots(mut self, threads: usize) -> Self {
        self.slots = Some(threads);
        self
    }

    /// The extent status cache to use; one of its own by default. Its maps are named by the inode's number
    /// plus `base`, so that several file systems can share a cache.
    #[must_use]
    pub fn extents(mut self, cache: ExtentCache, base: u64) -> Self {
        self.extents = Some((cache, base));
        self
    }
}

impl Default for MountOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// On a line of its own: read by every look-up, written when somebody switches.
#[repr(align(128))]
pub(crate) struct Switch(AtomicBool);

impl std::ops::Deref for Switch {
    type Target = AtomicBool;
    fn deref(&self) -> &AtomicBool {
        &self.0
    }
}

/// A mounted file system, shared by any number of threads.
///
/// `P` is the probe of the state words of its buffers: none by default, or
/// [`CountingProbe`](cairn_buffer::CountingProbe).
///
/// ```
/// use cairn_ext4::{Ext4, FormatOptions, MountOptions};
/// use std::sync::Arc;
///
/// let disk: cairn_block::Device = Arc::new(cairn_ramdisk::Ram::with_len(16 << 20)?);
/// cairn_ext4::format(&disk, &FormatOptions::new())?;
/// let fs = Ext4::mount(disk, &MountOptions::new())?;
/// assert_eq!(fs.stat_path("/")?.ino, 2);
/// fs.unmount()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ext4<P: Probe = NoProbe> {
    pub(crate) cache: SharedCache<P>,
    pub(crate) device: Device,
    pub(crate) geo: Geometry,
    pub(crate) sup: Mutex<Super>,
    pub(crate) groups: Box<[Group]>,
    pub(crate) es: ExtentCache,
    es_base: u64,
    pub(crate) inodes: Table<P>,
    pub(crate) space: Space,
    read_only: Option<String>,
    pub(crate) extent_cache: Switch,
    /// Held while a directory moves to another parent.
    pub(crate) renames: Mutex<()>,
    /// What could not be given back yet.
    rests: Mutex<Vec<Rest>>,
    /// The first error that no caller has heard of.
    noted: Mutex<Option<Error>>,
    hasher: RandomState,
    /// Dirty pages of all files.
    pub(crate) pages: Batched,
    pub(crate) most_pages: u64,
    pub(crate) max_transfer: u64,
    ended: AtomicBool,
}

/// Space and inodes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatFs {
    /// Bytes in a block.
    pub block_size: u32,
    /// Blocks.
    pub blocks: u64,
    /// Blocks that are free, those promised to written data not yet allocated left out.
    pub free_blocks: u64,
    /// Inodes.
    pub inodes: u32,
    /// Inodes that are free.
    pub free_inodes: u32,
    /// Directories.
    pub directories: u32,
    /// Groups.
    pub groups: u32,
    /// Bytes of file system structures that are no files.
    pub uuid: [u8; 16],
}

impl Ext4<NoProbe> {
    /// Mounts the file system on `device`.
    ///
    /// # Errors
    /// No such file system, features that this layer does not know (by name), damage, or a failing device.
    pub fn mount(device: Device, options: &MountOptions) -> Result<Self> {
        Self::mount_probed(device, options)
    }
}

impl<P: Probe> Ext4<P> {
    /// As [`mount`](Ext4::mount), with state words that report to `P`.
    ///
    /// # Errors
    /// As for [`mount`](Ext4::mount).
    pub fn mount_probed(device: Device, options: &MountOptions) -> Result<Self> {
        let (sup, geo) = read_super(&device)?;
        let mut read_only = sup.read_only();
        let info = device.info();
        if options.read_only {
            read_only = Some("it was mounted so".to_owned());
        } else if info.read_only {
            read_only = Some("the device is".to_owned());
        }
        let config = CacheConfig::new(geo.block_size, options.buffers).policy(options.policy);
        let cache = Arc::new(BufferCache::probed(Arc::clone(&device), config)?);
        let groups = read_groups(&geo, &cache)?;
        let space = Space::new(&geo, sup.reserved_blocks(), &groups, options.slots);
        let mut es = cairn_extents::Config::new();
        if let Some(slots) = options.slots {
            es = es.with_counter_slots(slots);
        }
        let (es, es_base) = match &options.extents {
            Some((cache, base)) => (cache.clone(), *base),
            None => (ExtentCache::new(es), 0),
        };
        let fs = Self {
            es_base,
            max_transfer: match info.max_transfer {
                0 => u64::MAX,
                n => u64::from(n),
            },
            cache,
            device,
            geo,
            sup: Mutex::new(sup),
            groups,
            es,
            inodes: Table::new(),
            space,
            read_only,
            extent_cache: Switch(AtomicBool::new(true)),
            renames: Mutex::new(()),
            rests: Mutex::new(Vec::new()),
            noted: Mutex::new(None),
            hasher: RandomState::new(),
            pages: Batched::new(),
            most_pages: options.pages,
            ended: AtomicBool::new(false),
        };
        let root = fs.iget(ROOT_INO)?;
        if !root.is_dir() {
            return Err(Error::corrupt(
                Object::Inode(ROOT_INO),
                "the root is no directory",
            ));
        }
        if fs.read_only.is_none() {
            fs.begin()?;
        }
        Ok(fs)
    }

    /// Marks the image as mounted: not clean until it is unmounted.
    fn begin(&self) -> Result<()> {
        {
            let mut sup = self.sup();
            let state = sup.state() & !STATE_CLEAN;
            sup.set_state(state);
            sup.mounted(Time::now().secs32());
        }
        self.store_super()?;
        self.cache.flush()?;
        Ok(())
    }

    pub(crate) fn rests(&self) -> std::sync::MutexGuard<'_, Vec<Rest>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an error that cannot be returned where it happened, for the next sync to return.
    pub(crate) fn note(&self, e: Error) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get_or_insert(e);
    }

    pub(crate) fn sup(&self) -> std::sync::MutexGuard<'_, Super> {
        self.sup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the superblock into its buffer, with the counts of this moment.
    pub(crate) fn store_super(&self) -> Result<()> {
        let (block, at) = self.geo.super_place();
        let mut sup = self.sup();
        sup.set_free(self.space.free_blocks(), self.space.free_inodes());
        sup.set_write_time(Time::now().secs32());
        sup.seal();
        self.cache
            .get(block)?
            .write(|b| crate::num::put(b, at, &sup.raw))?;
        Ok(())
    }

    /// Refuses changes where none are possible.
    #[inline]
    pub(crate) fn writable(&self) -> Result<()> {
        match &self.read_only {
            None if self.ended.load(Ordering::Relaxed) => Err(Error::ReadOnly {
                why: "it was unmounted".to_owned(),
            }),
            None => Ok(()),
            Some(why) => Err(Error::ReadOnly { why: why.clone() }),
        }
    }

    /// The hash of a name in this mount.
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    /// The name of an inode's map in the extent status cache.
    pub(crate) fn es_key(&self, ino: u32) -> u64 {
        self.es_base.wrapping_add(u64::from(ino))
    }

    /// An inode's map in the extent status cache.
    pub(crate) fn es_map(&self, ino: u32) -> Arc<cairn_extents::ExtentMap> {
        self.es.map(self.es_key(ino))
    }

    /// An empty map in the extent status cache for a new inode: that of the last inode with this number, unless
    /// somebody who still holds that inode could reach it.
    pub(crate) fn new_es_map(&self, ino: u32) -> Arc<cairn_extents::ExtentMap> {
        if let Some(map) = self.inodes.take_spare(ino) {
            // The cache and this.
            if Arc::strong_count(&map) == 2 {
                // What the last holder did is seen.
                std::sync::atomic::fence(Ordering::Acquire);
                if map.is_empty() {
                    return map;
                }
            }
            let _ = self.es.evict(self.es_key(ino));
        }
        self.es_map(ino)
    }

    /// Why changes are refused, if they are.
    pub fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// Why the image itself takes no changes, however it is mounted.
    pub fn refuses_writes(&self) -> Option<String> {
        self.sup().read_only()
    }

    /// Its name, empty if it has none.
    pub fn label(&self) -> String {
        let raw = part(&self.sup().raw, 0x78, 16).to_vec();
        String::from_utf8_lossy(&raw)
            .trim_end_matches('\0')
            .to_owned()
    }

    /// Names of the features that it uses.
    pub fn features(&self) -> Vec<&'static str> {
        self.sup().features()
    }

    /// Whether the image was unmounted cleanly when it was mounted last.
    pub fn clean(&self) -> bool {
        self.sup().state() & STATE_CLEAN != 0
    }

    /// The cache of its metadata.
    pub const fn buffers(&self) -> &SharedCache<P> {
        &self.cache
    }

    /// The cache of its extents.
    pub const fn extents(&self) -> &ExtentCache {
        &self.es
    }

    /// The device it lies on.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes in a block.
    pub const fn block_size(&self) -> usize {
        self.geo.block_size
    }

    /// Whether look-ups ask the extent status cache (they do at first) or the extent trees alone.
    pub fn set_extent_cache(&self, on: bool) {
        self.extent_cache.store(on, Ordering::Relaxed);
    }

    /// Lets the claim of space or of an inode after the next `n` be refused, and all that follow; for
    /// tests of what happens then. `u64::MAX` ends it.
    #[doc(hidden)]
    pub fn refuse_claims_after(&self, n: u64) {
        self.space.set_fuse(n);
    }

    /// Space and inodes, exactly.
    pub fn statfs(&self) -> StatFs {
        StatFs {
            block_size: crate::num::low32(self.geo.block_size as u64),
            blocks: self.geo.blocks,
            free_blocks: self
                .space
                .free_blocks()
                .saturating_sub(self.space.dirty_blocks()),
            inodes: self.geo.inodes,
            free_inodes: self.space.free_inodes(),
            directories: self.space.directories(),
            groups: self.geo.groups,
            uuid: self.sup().uuid(),
        }
    }

    /// Block of the inode tables that holds an inode, and where in it.
    #[inline]
    pub(crate) fn inode_place(&self, ino: u32) -> Option<(u64, usize)> {
        let (group, index) = self.geo.inode_group(ino);
        let table = self.groups.get(us(group))?.places.table;
        let at = u64::from(index) * self.geo.inode_size as u64;
        let bs = self.geo.block_size as u64;
        Some((table + (at >> self.geo.block_bits), us(at & (bs - 1))))
    }

    /// An inode's bytes, checked.
    pub(crate) fn read_raw(&self, ino: u32) -> Result<Raw> {
        let wrong = |why: String| Error::corrupt(Object::Inode(ino), why);
        if ino == 0 || ino > self.geo.inodes {
            return Err(wrong(format!("there are {} inodes", self.geo.inodes)));
        }
        let (block, at) = self
            .inode_place(ino)
            .ok_or_else(|| wrong("no group".to_owned()))?;
        let raw = self
            .cache
            .get(block)?
            .read(|b| Raw::load(&self.geo, b, at))?;
        let seed = self.geo.inode_seed(ino, raw.generation());
        if !raw.intact(&self.geo, seed) {
            return Err(wrong("its checksum is wrong".to_owned()));
        }
        Ok(raw)
    }

    /// An inode that is in use.
    pub(crate) fn iget(&self, ino: u32) -> Result<Arc<Inode<P>>> {
        let mut shard = self.inodes.shard(ino);
        if let Some(inode) = shard.get(&ino) {
            return Ok(Arc::clone(inode));
        }
        let raw = self.read_raw(ino)?;
        let wrong = |why: String| Err(Error::corrupt(Object::Inode(ino), why));
        if ino != ROOT_INO && ino < self.geo.first_ino {
            return wrong("a reserved inode in a directory".to_owned());
        }
        if raw.links() == 0 {
            return wrong("it is not in use".to_owned());
        }
        let Some(kind) = raw.kind() else {
            return wrong(format!("mode {:#o} is of no kind", raw.mode()));
        };
        if raw.flags() & EXTENTS_FL != 0 {
            let expect = Expect {
                ino,
                block: 0,
                depth: None,
                from: 0,
            };
            node::check(&self.geo, 0, raw.root(), &expect)?;
        }
        if raw.size() > self.geo.max_size() {
            return wrong(format!("{} bytes", raw.size()));
        }
        if kind == FileType::Directory {
            let size = raw.size();
            if !size.is_multiple_of(self.geo.block_size as u64)
                || size == 0
                || size >> self.geo.block_bits > self.geo.blocks
            {
                return wrong(format!("a directory of {size} bytes"));
            }
        }
        let place = self.inode_place(ino).unwrap_or_default();
        let es = self.es_map(ino);
        let inode = Arc::new(Inode::new(&self.geo, ino, kind, raw, es, place));
        Table::trim(&mut shard, |old| {
            let _ = self.es.evict(self.es_key(old));
        });
        shard.insert(ino, Arc::clone(&inode));
        Ok(inode)
    }

    /// Writes everything back that was changed before the call, and flushes the device. A copy of the
    /// device taken then is a whole file system, but for files that are open and have no name.
    ///
    /// # Errors
    /// What could not be written stays in memory, and a later call tries again.
    pub fn sync(&self) -> Result<()> {
        if self.read_only.is_some() {
            return Ok(());
        }
        let written = self.write_back_all();
        let given = self.give_rests();
        let stored = self.store_stale_descs();
        self.store_super()?;
        self.cache.flush()?;
        let noted = self
            .noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        written
            .and(given)
            .and(stored)
            .and(noted.map_or(Ok(()), Err))
    }

    /// Writes everything back and marks the image clean. Nothing may be changed afterwards.
    ///
    /// # Errors
    /// What could not be written; the image is then not marked clean, and a further call tries again.
    pub fn unmount(&self) -> Result<()> {
        if self.read_only.is_some() || self.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        // Files that were dropped without being closed have no users any more.
        for inode in self.inodes.all() {
            if inode.body().links() == 0 {
                self.evict(&inode, Time::now());
            }
        }
        self.sync()?;
        {
            let mut sup = self.sup();
            let state = sup.state() | STATE_CLEAN;
            sup.set_state(state);
        }
        self.store_super()?;
        self.cache.flush()?;
        self.ended.store(true, Ordering::Release);
        Ok(())
    }
}

impl<P: Probe> Drop for Ext4<P> {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; unmount() is the way to learn of it.
        let _ = self.unmount();
    }
}

impl<P: Probe> std::fmt::Debug for Ext4<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ext4")
            .field("statfs", &self.statfs())
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// Reads and validates the superblock of a device.
pub(crate) fn read_super(device: &Device) -> Result<(Super, Geometry)> {
    let len = device.info().len;
    let whole = 4096_u64.max(u64::from(device.info().logical_block));
    if len < SUPER_AT + SUPER_LEN as u64 {
        return Err(Error::NotExt4 { magic: 0 });
    }
    let bytes = device.read_vec(0, us(whole.min(len)))?;
    Super::parse(part(&bytes, us(SUPER_AT), SUPER_LEN).to_vec(), len)
}

fn read_groups<P: Probe>(geo: &Geometry, cache: &BufferCache<P>) -> Result<Box<[Group]>> {
    let mut groups = Vec::with_capacity(us(geo.groups));
    for number in 0..geo.groups {
        let (block, at) = geo.desc_place(number);
        let buffer = cache.get(block)?;
        let (places, desc) =
            buffer.read(|b| group::parse(geo, number, part(b, at, geo.desc_size)))??;
        groups.push(Group::new(places, desc, buffer.handle()));
    }
    Ok(groups.into_boxed_slice())
}
