//! The device: reads, writes, and what it says about itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_block::{
    BlockDevice, Caps, Coalesce, Device, DeviceInfo, Error, Extent, MappedRegion, Node, Op,
    ReqFlags, Result, Stats, check,
};

use crate::bitmap::{Bitmap, PAGE};
use crate::config::{Backing, RamConfig, RamError, Reserve};
use crate::memory;
use crate::space::Space;
use crate::store::Store;
use crate::stripes::{Stripes, regions};

cairn_percpu::counter_group! {
    pub(crate) struct RamCounts {
        zero_page_reads,
        discarded_bytes,
        freed_bytes,
        flushes,
        fua,
    }
}

/// A block device in memory.
///
/// ```
/// use cairn_block::{BlockDevice, BlockDeviceExt, ReqFlags};
/// use cairn_ramdisk::Ram;
///
/// let disk = Ram::with_len(1 << 20)?;
/// disk.write_at(b"stone", 4096)?;
/// disk.discard(0..8192, ReqFlags::empty())?;
/// assert_eq!(disk.read_vec(4096, 5)?, [0; 5]);
/// assert_eq!(disk.stats().get("allocated"), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ram {
    pub(crate) config: RamConfig,
    pub(crate) info: DeviceInfo,
    /// Bytes it holds now; up to `config.max`.
    pub(crate) len: AtomicU64,
    pub(crate) store: Store,
    /// Pages that hold data. **Clear means that the page behind it reads as zeros.**
    pub(crate) bits: Bitmap,
    /// Pages that are clear, zeroed and not freed yet.
    pub(crate) waiting: Bitmap,
    pub(crate) stripes: Stripes,
    pub(crate) space: Space,
    pub(crate) counts: RamCounts,
    /// One resize at a time.
    resizing: Mutex<()>,
    locked: bool,
    huge: bool,
}

pub(crate) const fn pages(off: u64, len: u64) -> (u64, u64) {
    (off / PAGE, (off + len).div_ceil(PAGE))
}

impl Ram {
    /// Makes a device.
    ///
    /// # Errors
    /// A wrong setting, a size that memory cannot hold, or what the system refuses.
    pub fn new(config: RamConfig) -> Result<Self, RamError> {
        config.check()?;
        let bits = Bitmap::new(config.max.div_ceil(PAGE));
        let store = Store::new(&config, &bits)?;
        let huge = config.huge && store.want_huge();
        let locked = store.reserve(&config)?;
        let space = Space::new(config.limit);
        let known = bits.count(0, config.max.div_ceil(PAGE));
        if !space.reserve(known) {
            return Err(RamError::Config {
                key: "limit",
                why: format!("the file holds {} bytes already", known * PAGE),
            });
        }
        space.settle(known, known);
        Ok(Self {
            info: config.info(),
            len: AtomicU64::new(config.size),
            store,
            bits,
            waiting: Bitmap::new(config.max.div_ceil(PAGE)),
            stripes: Stripes::new(config.max),
            space,
            counts: RamCounts::new(),
            resizing: Mutex::new(()),
            locked,
            huge,
            config,
        })
    }

    /// Makes a device of `len` bytes with everything else as [`RamConfig::new`] has it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_len(len: u64) -> Result<Self, RamError> {
        Self::new(RamConfig::new(len))
    }

    /// Settings that could not be had, a sentence each.
    pub fn degraded(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if self.config.reserve == Reserve::Locked && !self.locked {
            all.push("memory is reserved but not locked: the limit on locked memory is too low");
        }
        if self.config.huge && !self.huge {
            all.push("no huge pages: this backing or kernel does not give them");
        }
        all
    }

    /// Bytes that hold data.
    pub fn allocated(&self) -> u64 {
        self.space.allocated_bytes()
    }

    #[inline]
    pub(crate) fn info_now(&self) -> DeviceInfo {
        let mut info = self.info;
        info.len = self.len.load(Ordering::Relaxed);
        info
    }

    pub(crate) const fn fixed_caps() -> Caps {
        Caps::WRITE
            .union(Caps::FLUSH)
            .union(Caps::FUA_NATIVE)
            .union(Caps::DISCARD)
            .union(Caps::DISCARD_ZEROES)
            .union(Caps::ZERO)
            .union(Caps::EXTENTS)
            .union(Caps::SNAPSHOT)
            .union(Caps::MULTI_CONN)
    }

    /// What a device of this configuration can do, before it exists.
    pub(crate) fn caps_of(config: &RamConfig) -> Caps {
        let mut caps = Self::fixed_caps() | Caps::RESIZE;
        let kept = config.reserve != Reserve::Lazy
            || matches!(config.backing, Backing::File { sparse: false, .. });
        caps.set(Caps::FAST_ZERO, !kept);
        caps.set(Caps::ZCOPY, config.backing != Backing::Anonymous);
        if config.read_only {
            caps -= Caps::WRITE
                | Caps::DISCARD
                | Caps::DISCARD_ZEROES
                | Caps::ZERO
                | Caps::FAST_ZERO
                | Caps::RESIZE
                | Caps::FUA;
        }
        caps
    }

    /// Copies out; the range was checked.
    #[inline]
    pub(crate) fn read_slice(&self, mut off: u64, mut to: &mut [u8]) {
        let end = off + to.len() as u64;
        let last = end.div_ceil(PAGE);
        while off < end {
            let (data, next) = self.bits.run(off / PAGE, last);
            #[expect(clippy::cast_possible_truncation, reason = "at most to.len()")]
            let n = ((next * PAGE).min(end) - off) as usize;
            let (part, rest) = to.split_at_mut(n);
            if data {
                self.store.copy_out(off, part);
            } else {
                // Reading a hole through a shared mapping would allocate it.
                part.fill(0);
                self.counts.zero_page_reads().add(next - off / PAGE);
            }
            to = rest;
            off += n as u64;
        }
    }

    /// Copies in; the range was checked against the size of a moment ago.
    #[inline]
    pub(crate) fn write_slice(&self, off: u64, mut from: &[u8]) -> Result<()> {
        for (at, n) in regions(off, from.len() as u64) {
            #[expect(clippy::cast_possible_truncation, reason = "at most from.len()")]
            let (part, rest) = from.split_at(n as usize);
            self.write_region(at, part)?;
            from = rest;
        }
        Ok(())
    }

    #[inline]
    fn write_region(&self, off: u64, from: &[u8]) -> Result<()> {
        let len = from.len() as u64;
        let (first, end) = pages(off, len);
        let guard = self.stripes.share(off);
        self.still_inside(Op::Write, off, len)?;
        if self.bits.run(first, end) == (true, end) {
            self.store.copy_in(off, from);
            return Ok(());
        }
        drop(guard);
        self.write_new(off, from)
    }

    /// A write that allocates.
    #[cold]
    fn write_new(&self, off: u64, from: &[u8]) -> Result<()> {
        let len = from.len() as u64;
        let (first, end) = pages(off, len);
        let mut swept = false;
        loop {
            let guard = self.stripes.share(off);
            self.still_inside(Op::Write, off, len)?;
            let reserved = self.claim(first, end);
            let Some(reserved) = reserved else {
                drop(guard);
                if swept || self.space.pending() == 0 {
                    return Err(self.no_space(off));
                }
                self.free_waiting();
                swept = true;
                continue;
            };
            self.store.copy_in(off, from);
            let used = self.commit(first, end);
            self.space.settle(reserved, used);
            return Ok(());
        }
    }

    /// Takes the pages that are not resident from the limit, before they are touched.
    pub(crate) fn claim(&self, first: u64, end: u64) -> Option<u64> {
        if !self.space.limited() {
            return Some(0);
        }
        let need = self.bits.count_clear_in_both(&self.waiting, first, end);
        self.space.reserve(need).then_some(need)
    }

    /// Sets the bits of pages that were copied to; returns how many became resident by it.
    pub(crate) fn commit(&self, first: u64, end: u64) -> u64 {
        let mut used = 0;
        for page in first..end {
            if self.bits.set(page) {
                // Only who set the bit takes the page off the waiting list, and only a discard,
                // which the region's lock keeps out, puts it there.
                if self.waiting.test(page) {
                    self.waiting.clear(page, page + 1);
                    self.space.unwait(1);
                } else {
                    used += 1;
                }
            }
        }
        used
    }

    pub(crate) fn no_space(&self, offset: u64) -> Error {
        Error::NoSpace {
            offset,
            limit: self.space.limit_bytes().unwrap_or(0),
        }
    }

    /// A resize may have come between the check and the lock.
    #[inline]
    pub(crate) fn still_inside(&self, op: Op, offset: u64, len: u64) -> Result<()> {
        let size = self.len.load(Ordering::Relaxed);
        if offset + len <= size {
            return Ok(());
        }
        Err(Error::OutOfRange {
            op,
            offset,
            len,
            size,
        })
    }

    fn sync(&self, offset: u64) -> Result<()> {
        self.store.sync().map_err(|e| Error::io(offset, e))
    }

    pub(crate) fn after(&self, offset: u64, flags: ReqFlags) -> Result<()> {
        if flags.contains(ReqFlags::FUA) {
            self.counts.fua().inc();
            self.sync(offset)?;
        }
        Ok(())
    }
}

impl BlockDevice for Ram {
    fn info(&self) -> DeviceInfo {
        self.info_now()
    }

    fn caps(&self) -> Caps {
        let mut caps = Self::caps_of(&self.config);
        if !self.store.frees() {
            caps -= Caps::FAST_ZERO;
        }
        caps
    }

    #[inline]
    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        check::request(&self.info_now(), Op::Read, off, check::bytes_mut(bufs))?;
        if !flags.is_empty() {
            check::flags(self.caps(), Op::Read, flags)?;
        }
        let mut at = off;
        for buf in bufs {
            self.read_slice(at, buf);
            at += buf.len() as u64;
        }
        Ok(())
    }

    #[inline]
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info_now(), Op::Write, off, check::bytes(bufs))?;
        if !flags.is_empty() {
            check::flags(self.caps(), Op::Write, flags)?;
        }
        let mut at = off;
        for buf in bufs {
            self.write_slice(at, buf)?;
            at += buf.len() as u64;
        }
        self.after(off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.counts.flushes().inc();
        self.sync(0)
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info_now(), Op::Discard, &range)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        self.clear(Op::Discard, range.start, len)?;
        self.counts.discarded_bytes().add(len);
        self.after(range.start, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info_now(), Op::WriteZeroes, &range)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        self.write_zeroes_checked(range.start, len, flags)?;
        self.after(range.start, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info_now(), Op::Extents, &range)?;
        let end = range.start + len;
        let last = end.div_ceil(PAGE);
        let mut join = Coalesce::new(each);
        let mut at = range.start;
        while at < end {
            let (data, next) = self.bits.run(at / PAGE, last);
            let stop = (next * PAGE).min(end);
            let extent = if data {
                Extent::data(stop - at)
            } else {
                Extent::hole(stop - at)
            };
            if join.push(extent).is_break() {
                return Ok(());
            }
            at = stop;
        }
        join.finish();
        Ok(())
    }

    fn resize(&self, new_len: u64) -> Result<()> {
        if self.info.read_only {
            return Err(Error::ReadOnly { op: Op::Resize });
        }
        let block = u64::from(self.info.logical_block);
        if !new_len.is_multiple_of(block) {
            return Err(Error::Misaligned {
                offset: 0,
                len: new_len,
                need: self.info.logical_block,
            });
        }
        if new_len == 0 || new_len > self.config.max {
            return Err(Error::OutOfRange {
                op: Op::Resize,
                offset: 0,
                len: new_len,
                size: self.config.max,
            });
        }
        let _one = self.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.len.load(Ordering::Relaxed);
        if new_len < old {
            // Every write re-checks the size under its region's lock, so after this store and the
            // locks that clearing takes nothing lands behind the end.
            self.len.store(new_len, Ordering::Relaxed);
            self.clear_beyond(new_len, old);
        } else {
            self.len.store(new_len, Ordering::Relaxed);
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<Device> {
        let all = self.stripes.own_all();
        let len = self.len.load(Ordering::Relaxed);
        let used = self.space.allocated_bytes();
        if !self.config.force && memory::available().is_some_and(|have| used > have.bytes) {
            return Err(Error::io(0, io::Error::from_raw_os_error(12)));
        }
        let mut config = self.config.clone();
        config.size = len;
        config.backing = match config.backing {
            Backing::File { .. } => Backing::Memfd,
            other => other,
        };
        config.force = true;
        config.id = None;
        let mut copy = Self::new(config).map_err(|e| Error::io(0, io::Error::other(e)))?;
        copy.config.force = self.config.force;
        let last = len.div_ceil(PAGE);
        let mut page = 0;
        let mut buf = vec![0; 1 << 16];
        while page < last {
            let (data, next) = self.bits.run(page, last);
            let mut at = page * PAGE;
            let end = (next * PAGE).min(len);
            while data && at < end {
                let n = usize::try_from(end - at).map_or(buf.len(), |n| n.min(buf.len()));
                let part = buf.get_mut(..n).unwrap_or_default();
                self.store.copy_out(at, part);
                copy.write_slice(at, part)?;
                at += n as u64;
            }
            page = next;
        }
        drop(all);
        Ok(Arc::new(copy))
    }

    fn stats(&self) -> Stats {
        let c = self.counts.snapshot();
        Stats::new()
            .bytes("allocated", self.space.allocated_bytes())
            .bytes("peak", self.space.peak_bytes())
            .bytes("limit", self.space.limit_bytes().unwrap_or(0))
            .bytes("waiting", self.space.pending_bytes())
            .bytes("discarded", c.discarded_bytes)
            .bytes("freed", c.freed_bytes)
            .count("zero_page_reads", c.zero_page_reads)
            .count("flushes", c.flushes)
            .count("fua", c.fua)
            .count("huge", u64::from(self.huge))
            .count("locked", u64::from(self.locked))
    }

    fn as_mapped(&self) -> Option<&dyn MappedRegion> {
        self.store.file().is_some().then_some(self as _)
    }

    fn describe(&self) -> Node {
        let mut config = self.config.clone();
        config.size = self.len.load(Ordering::Relaxed);
        config.node()
    }
}
