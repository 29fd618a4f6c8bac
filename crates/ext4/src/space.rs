//! How much is free, counted per thread or CPU, and the claims on it.
//!
//! Space is claimed before it is searched for, so that a claim that was granted finds its blocks: a
//! claim counts as dirty until blocks are allocated for it. Whether a claim fits is decided by the
//! approximate sums as long as these are far apart, as Linux does; near the end by the exact sums, and
//! then by one thread at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cairn_percpu::{Batched, Builder};

use crate::error::{Error, Result};
use crate::group::Group;
use crate::num::low32;
use crate::superblock::Geometry;

/// Blocks kept for extent trees of data that is written back, at most.
const MOST_KEPT: u64 = 4096;
/// Part of the blocks kept for that.
const KEPT_PART: u64 = 50;

pub(crate) struct Space {
    free: Batched,
    dirty: Batched,
    inodes: Batched,
    dirs: Batched,
    /// Blocks that only extent trees may take.
    kept: u64,
    /// Distance below which the exact sums decide.
    watermark: u64,
    near: Mutex<()>,
    /// Claims until one is refused; `u64::MAX` for never.
    fuse: AtomicU64,
}

/// What space is claimed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Data,
    /// A block of an extent tree, which may use what is kept for them.
    Tree,
}

fn counter(slots: Option<usize>) -> Batched {
    let builder: Builder<Batched> = Batched::builder();
    match slots {
        Some(n) => builder.slots(n).build(),
        None => builder.build(),
    }
}

impl Space {
    pub(crate) fn new(
        geo: &Geometry,
        _reserved: u64,
        groups: &[Group],
        slots: Option<usize>,
    ) -> Self {
        let (mut free, mut inodes, mut dirs) = (0_u64, 0_u64, 0_u64);
        for group in groups {
            let desc = group.lock();
            free += u64::from(desc.free_blocks);
            inodes += u64::from(desc.free_inodes);
            dirs += u64::from(desc.used_dirs);
        }
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let space = Self {
            free: counter(slots),
            dirty: counter(slots),
            inodes: counter(slots),
            dirs: counter(slots),
            kept: (geo.blocks / KEPT_PART).min(MOST_KEPT),
            watermark: 0,
            near: Mutex::new(()),
            fuse: AtomicU64::new(u64::MAX),
        };
        space.free.add(free.cast_signed());
        space.inodes.add(inodes.cast_signed());
        space.dirs.add(dirs.cast_signed());
        let batch = u64::from(space.free.batch());
        Self {
            watermark: 4 * batch * cpus,
            ..space
        }
    }

    /// Promises `n` blocks.
    ///
    /// # Errors
    /// Fewer are free and not promised.
    pub(crate) fn claim(&self, n: u64, purpose: For) -> Result<()> {
        self.blow()?;
        let need = match purpose {
            For::Data => n + self.kept,
            For::Tree => n,
        };
        let left = self.free.read().saturating_sub(self.dirty.read());
        let far = self.watermark + 2 * (self.free.bound() + self.dirty.bound());
        if left >= (need + far).cast_signed() {
            self.dirty.add(n.cast_signed());
            return Ok(());
        }
        let _one = self.near.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.free.sum().saturating_sub(self.dirty.sum());
        if left >= need.cast_signed() {
            self.dirty.add(n.cast_signed());
            return Ok(());
        }
        Err(Error::NoSpace {
            asked: n,
            free: left.max(0).cast_unsigned().saturating_sub(need - n),
        })
    }

    /// Promises as many blocks up to `n` as there are, at least one.
    pub(crate) fn claim_up_to(&self, n: u64, purpose: For) -> Result<u64> {
        let mut n = n;
        loop {
            match self.claim(n, purpose) {
                Err(Error::NoSpace { free, .. }) if n > 1 => n = free.clamp(1, n - 1),
                other => return other.map(|()| n),
            }
        }
    }

    /// Takes a promise back.
    pub(crate) fn unclaim(&self, n: u64) {
        if n > 0 {
            self.dirty.add(-n.cast_signed());
        }
    }

    /// Promises blocks again that were allocated for a promise a moment ago and are being given back.
    pub(crate) fn reclaim(&self, n: u64) {
        self.dirty.add(n.cast_signed());
    }

    /// Blocks that were promised are allocated now.
    pub(crate) fn allocated(&self, n: u64) {
        self.free.add(-n.cast_signed());
        self.dirty.add(-n.cast_signed());
    }

    /// Blocks are free again.
    pub(crate) fn freed(&self, n: u64) {
        self.free.add(n.cast_signed());
    }

    pub(crate) fn inode_taken(&self, dir: bool) {
        self.inodes.add(-1);
        if dir {
            self.dirs.add(1);
        }
    }

    pub(crate) fn inode_freed(&self, dir: bool) {
        self.inodes.add(1);
        if dir {
            self.dirs.add(-1);
        }
    }

    /// Free inodes, directories and free blocks, roughly, as the choice of a group needs them.
    pub(crate) fn roughly(&self) -> (u64, u64) {
        let positive = |n: i64| n.max(0).cast_unsigned();
        (positive(self.inodes.read()), positive(self.free.read()))
    }

    pub(crate) fn free_blocks(&self) -> u64 {
        self.free.sum().max(0).cast_unsigned()
    }
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.dirty.sum().max(0).cast_unsigned()
    }
    pub(crate) fn free_inodes(&self) -> u32 {
        low32(self.inodes.sum().max(0).cast_unsigned())
    }
    pub(crate) fn directories(&self) -> u32 {
        low32(self.dirs.sum().max(0).cast_unsigned())
    }

    /// Lets the claim after the next `n` be refused, for tests of what follows.
    pub(crate) fn set_fuse(&self, n: u64) {
        self.fuse.store(n, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn blow(&self) -> Result<()> {
        if self.fuse.load(Ordering::Relaxed) == u64::MAX {
            return Ok(());
        }
        let last = self
            .fuse
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                if n == u64::MAX {
                    None
                } else {
                    Some(n.saturating_sub(1))
                }
            });
        if last == Ok(0) {
            return Err(Error::NoSpace { asked: 1, free: 0 });
        }
        Ok(())
    }
}
