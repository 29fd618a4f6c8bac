//! Flat files: a file is one window of the device, with a map of its own.
//!
//! This stands in for a file system. It makes the look-ups that ext4 makes for direct I/O, in the
//! extent status cache and in the same order (a write looks up twice: once to see whether it only
//! overwrites, once to map), and it keeps the states a block can be in. It has no directory, no
//! allocator and no metadata on disk.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_block::{BlockDeviceExt, Caps, Device, ReqFlags};
use cairn_extents::{Extent, ExtentMap, Status};

use crate::layout::{BLOCK, BLOCK_USIZE, Layout};
use crate::switches::Switches;

/// How the blocks of a new file begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Laid out: every block is written.
    Written,
    /// Allocated only: every block reads as zeros until it is written.
    Unwritten,
    /// Not allocated.
    Hole,
}

/// A file on a window of a device.
pub(crate) struct FlatFile {
    ino: u64,
    device: Device,
    size: u64,
    layout: Layout,
    /// One bit a block, set once it is written; `None` when every block was from the start.
    written: Option<Box<[AtomicU64]>>,
    fresh: Fresh,
    cached: Arc<ExtentMap>,
    switches: Arc<Switches>,
    /// Held while blocks turn from unwritten or hole to written, as ext4 holds the inode's data lock.
    convert: Mutex<()>,
    /// Largest request the device takes.
    max_transfer: u64,
    fua: Fua,
}

/// How a write is made durable before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fua {
    /// The device takes the flag.
    Flag,
    /// Write, then flush.
    Flush,
}

/// What a file is made from.
pub(crate) struct FileSpec {
    pub(crate) ino: u64,
    /// First byte of the window, a multiple of [`BLOCK`].
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) fresh: Fresh,
}

impl FlatFile {
    /// A file of `spec.size` bytes. Sizes that are no multiple of a block end in a partial one.
    pub(crate) fn new(
        spec: &FileSpec,
        device: Device,
        cached: Arc<ExtentMap>,
        switches: Arc<Switches>,
    ) -> Self {
        let blocks = u32::try_from(spec.size.div_ceil(BLOCK)).unwrap_or(u32::MAX);
        let layout = Layout::new(spec.start / BLOCK, blocks);
        let written = (spec.fresh != Fresh::Written).then(|| {
            (0..blocks.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect()
        });
        let info = device.info();
        let file = Self {
            ino: spec.ino,
            size: spec.size,
            layout,
            written,
            fresh: spec.fresh,
            cached,
            switches,
            convert: Mutex::new(()),
            max_transfer: match info.max_transfer {
                0 => u64::MAX,
                n => u64::from(n),
            },
            fua: if device
                .caps()
                .intersects(Caps::FUA_NATIVE | Caps::FUA_EMULATED)
            {
                Fua::Flag
            } else {
                Fua::Flush
            },
            device,
        };
        // Whoever lays a file out knows what it allocated: ext4's allocator inserts it too.
        for first in file.layout.run_starts() {
            let (lblk, len, physical) = file.layout.run(first);
            let status = match spec.fresh {
                Fresh::Written => Status::Written(physical),
                Fresh::Unwritten => Status::Unwritten(physical),
                Fresh::Hole => Status::Hole,
            };
            // A fresh map and a legal range: nothing to refuse, nothing was reserved.
            let _ = file.cached.insert(lblk, len, status);
        }
        file
    }

    pub(crate) fn ino(&self) -> u64 {
        self.ino
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.layout.blocks()
    }

    pub(crate) fn map(&self) -> &Arc<ExtentMap> {
        &self.cached
    }

    /// What is known of a block: by the cache, and on a miss by the mapping below, which is then
    /// cached.
    #[inline]
    fn look_up(&self, lblk: u32) -> Extent {
        if !self.switches.extent_cache() {
            return self.below(lblk);
        }
        match self.cached.lookup(lblk) {
            Some(hit) => hit.extent,
            None => self.miss(lblk),
        }
    }

    #[cold]
    fn miss(&self, lblk: u32) -> Extent {
        // The number is read before the mapping is, so that what is cached was still true after.
        let seq = self.cached.seq();
        let found = self.below(lblk);
        // Refused when the file changed meanwhile: the next look-up tries again.
        let _ = self
            .cached
            .cache_if(seq, found.lblk, found.len, found.status);
        found
    }

    /// The mapping itself: what ext4 would read from the file's extent tree.
    fn below(&self, lblk: u32) -> Extent {
        let Some(written) = &self.written else {
            return self.layout.written(lblk);
        };
        // Blocks of one state within one word of the bitmap: short, but found with one load.
        let (first, len, physical) = self.layout.run(lblk);
        let word = written
            .get((lblk / 64) as usize)
            .map_or(0, |w| w.load(Ordering::Acquire));
        let bit = |l: u32| word >> (l % 64) & 1;
        let state = bit(lblk);
        let low = first.max(lblk & !63);
        let high = (first + len).min((lblk & !63).saturating_add(64));
        let mut from = lblk;
        while from > low && bit(from - 1) == state {
            from -= 1;
        }
        let mut to = lblk + 1;
        while to < high && bit(to) == state {
            to += 1;
        }
        let place = physical + u64::from(from - first);
        Extent {
            lblk: from,
            len: to - from,
            status: match (state, self.fresh) {
                (1, _) | (_, Fresh::Written) => Status::Written(place),
                (_, Fresh::Unwritten) => Status::Unwritten(place),
                (_, Fresh::Hole) => Status::Hole,
            },
            referenced: false,
        }
    }

    /// The part of `len` bytes at `off` that `extent` covers, and its place on the device.
    #[inline]
    fn part(&self, extent: &Extent, off: u64, len: u64) -> (u64, Option<u64>) {
        let start = u64::from(extent.lblk) * BLOCK;
        let into = off - start;
        let covered = u64::from(extent.len) * BLOCK - into;
        let place = match extent.status {
            Status::Written(p) => Some(p * BLOCK + into),
            _ => None,
        };
        (len.min(covered).min(self.max_transfer), place)
    }

    /// Fills `buf` with the bytes at `off`; one look-up for each extent touched.
    #[inline]
    pub(crate) fn read(&self, off: u64, buf: &mut [u8]) -> cairn_block::Result<()> {
        self.check(off, buf.len())?;
        let mut rest = buf;
        let mut off = off;
        while !rest.is_empty() {
            let extent = self.look_up(block_of(off));
            let (n, place) = self.part(&extent, off, rest.len() as u64);
            let (now, later) = split(rest, n);
            match place {
                Some(place) => self.device.read_at(now, place)?,
                None => now.fill(0),
            }
            rest = later;
            off += n;
        }
        Ok(())
    }

    /// Writes `buf` at `off`: the look-up of the overwrite check, then one for each extent touched.
    #[inline]
    pub(crate) fn write(&self, off: u64, buf: &[u8], durable: bool) -> cairn_block::Result<()> {
        self.check(off, buf.len())?;
        if buf.is_empty() {
            return Ok(());
        }
        // What the check found is not used further: the mapping step asks again, as ext4 does.
        std::hint::black_box(self.look_up(block_of(off)));
        let mut rest = buf;
        let mut off = off;
        while !rest.is_empty() {
            let extent = self.look_up(block_of(off));
            let (n, place) = self.part(&extent, off, rest.len() as u64);
            let n_now = usize::try_from(n).unwrap_or(rest.len());
            let (now, later) = rest.split_at(n_now.min(rest.len()));
            match place {
                Some(place) => self.put(now, place, durable)?,
                None => self.write_first(off, now, durable)?,
            }
            rest = later;
            off += n;
        }
        Ok(())
    }

    #[inline]
    fn put(&self, buf: &[u8], place: u64, durable: bool) -> cairn_block::Result<()> {
        if !durable {
            return self.device.write_at(buf, place);
        }
        match self.fua {
            Fua::Flag => {
                self.device
                    .write_vectored_at(&[std::io::IoSlice::new(buf)], place, ReqFlags::FUA)
            }
            Fua::Flush => {
                self.device.write_at(buf, place)?;
                self.device.flush()
            }
        }
    }

    /// A write onto blocks that were not written when looked up: what they do not get from the write
    /// becomes zeros, then they are known as written, below and in the cache.
    #[cold]
    fn write_first(&self, off: u64, buf: &[u8], durable: bool) -> cairn_block::Result<()> {
        let _converting = self.convert.lock().unwrap_or_else(PoisonError::into_inner);
        let end = off + buf.len() as u64;
        let mut at = off;
        let mut rest = buf;
        while at < end {
            let lblk = block_of(at);
            let block = u64::from(lblk) * BLOCK;
            let n = (block + BLOCK).min(end) - at;
            let (now, later) =
                rest.split_at(usize::try_from(n).unwrap_or(rest.len()).min(rest.len()));
            let (first, _, physical) = self.layout.run(lblk);
            let place = (physical + u64::from(lblk - first)) * BLOCK;
            let whole = now.len() as u64 == BLOCK;
            if !whole && !self.is_written(lblk) {
                // The rest of the block must not show what lay there before.
                self.device.write_at(&[0; BLOCK_USIZE], place)?;
            }
            self.put(now, place + (at - block), durable)?;
            self.set_written(lblk);
            rest = later;
            at += n;
        }
        let (lblk, last) = (block_of(off), block_of(end - 1));
        let mut at = lblk;
        while at <= last {
            let (first, len, physical) = self.layout.run(at);
            let n = (first + len).min(last + 1) - at;
            // A legal range of this file; nothing was reserved, so nothing is released.
            let _ = self
                .cached
                .insert(at, n, Status::Written(physical + u64::from(at - first)));
            at += n;
        }
        Ok(())
    }

    fn is_written(&self, lblk: u32) -> bool {
        self.written.as_ref().is_none_or(|words| {
            words
                .get((lblk / 64) as usize)
                .is_some_and(|w| w.load(Ordering::Acquire) >> (lblk % 64) & 1 == 1)
        })
    }

    fn set_written(&self, lblk: u32) {
        if let Some(word) = self
            .written
            .as_ref()
            .and_then(|w| w.get((lblk / 64) as usize))
        {
            word.fetch_or(1 << (lblk % 64), Ordering::Release);
        }
    }

    /// Makes everything written so far durable.
    pub(crate) fn flush(&self) -> cairn_block::Result<()> {
        self.device.flush()
    }

    fn check(&self, off: u64, len: usize) -> cairn_block::Result<()> {
        match off.checked_add(len as u64) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(cairn_block::Error::OutOfRange {
                op: cairn_block::Op::Write,
                offset: off,
                len: len as u64,
                size: self.size,
            }),
        }
    }
}

#[inline]
fn block_of(off: u64) -> u32 {
    // A file has fewer than 2^32 blocks and `off` lies inside it.
    u32::try_from(off / BLOCK).unwrap_or(u32::MAX)
}

#[inline]
fn split(buf: &mut [u8], n: u64) -> (&mut [u8], &mut [u8]) {
    let n = usize::try_from(n).unwrap_or(buf.len()).min(buf.len());
    buf.split_at_mut(n)
}

impl fmt::Debug for FlatFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlatFile")
            .field("ino", &self.ino)
            .field("size", &self.size)
            .field("fresh", &self.fresh)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
