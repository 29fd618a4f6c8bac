//! The device: reads, writes, and what it says about itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cairn_block::{
    BlockDevice, Caps, Coalesce, Device, DeviceInfo, Error, Extent, MappedRegion, Node, Op,
    ReqFlags, Result, Stats, check,
};

use crate::bitmap::{Bitmap, PAGE, PAGE_BYTES};
use crate::config::{Backing, Fill, RamConfig, Reserve};
use crate::error::RamError;
use crate::guard::Guards;
use crate::memory;
use crate::quick::Quick;
use crate::space::Space;
use crate::store::Store;
use crate::stripes::Stripes;

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
    pub(crate) quick: Quick,
    /// Pages that hold data. **Clear means that the page behind it reads as zeros.**
    pub(crate) bits: Bitmap,
    /// Pages that are clear, zeroed and not freed yet.
    pub(crate) waiting: Bitmap,
    pub(crate) stripes: Stripes,
    pub(crate) space: Space,
    /// A lock for each page, where that was asked for.
    pub(crate) guards: Option<Guards>,
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
        let count = config.max.div_ceil(PAGE);
        let no_room = || RamError::system(format!("the bookkeeping of {count} pages"));
        let bits = Bitmap::new(count).map_err(no_room())?;
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
        let guards = config
            .guarded()
            .then(|| Guards::new(count, config.checksum))
            .transpose()
            .map_err(no_room())?;
        let ram = Self {
            info: config.info(),
            len: AtomicU64::new(config.size),
            quick: Quick::new(
                config.logical,
                !config.guarded() && !config.unmapped(),
                !config.read_only,
            ),
            store,
            bits,
            waiting: Bitmap::new(count).map_err(no_room())?,
            stripes: Stripes::new(config.max),
            space,
            guards,
            counts: RamCounts::new(),
            resizing: Mutex::new(()),
            locked,
            huge,
            config,
        };
        ram.know_sums()?;
        crate::fill::fill(&ram, &ram.config)?;
        Ok(ram)
    }

    /// Takes the checksums of what a file holds already.
    fn know_sums(&self) -> Result<(), RamError> {
        let Some(guards) = self.guards.as_ref().filter(|g| g.sums()) else {
            return Ok(());
        };
        let mut bytes = [0; PAGE_BYTES];
        for page in (0..self.config.size.div_ceil(PAGE)).filter(|p| self.bits.test(*p)) {
            self.store
                .copy_out(page * PAGE, &mut bytes)
                .map_err(RamError::system("the file cannot be read"))?;
            guards.keep(page, &bytes);
        }
        Ok(())
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

    /// Whether its pages are huge ones, as far as the system was willing.
    const fn huge_pages(&self) -> bool {
        self.huge || matches!(self.config.backing, Backing::HugeTlb { .. })
    }

    /// Bytes that hold data.
    pub fn allocated(&self) -> u64 {
        self.space.allocated_bytes()
    }

    pub(crate) fn len_now(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn info_now(&self) -> DeviceInfo {
        let mut info = self.info;
        info.len = self.len_now();
        info
    }

    /// Calls `each` with the first and the end byte of every run of pages that hold data.
    pub(crate) fn each_run(
        &self,
        len: u64,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let last = len.div_ceil(PAGE);
        let mut page = 0;
        while page < last {
            let (data, next) = self.bits.run(page, last);
            if data {
                each(page * PAGE, (next * PAGE).min(len))?;
            }
            page = next;
        }
        Ok(())
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
            || matches!(
                config.backing,
                Backing::File { sparse: false, .. } | Backing::HugeTlb { .. }
            );
        caps.set(Caps::FAST_ZERO, !kept);
        // What goes straight to a file or a socket passes the locks of pages by, and the kernel may
        // not send pages of the pool.
        let straight = !config.guarded()
            && !config.unmapped()
            && !matches!(config.backing, Backing::Anonymous | Backing::HugeTlb { .. });
        caps.set(Caps::ZCOPY, straight);
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

    /// Any read; out of the way of the short ones.
    #[inline(never)]
    fn read_list(&self, bufs: &mut [IoSliceMut<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info_now(), Op::Read, off, check::bytes_mut(bufs))?;
        if !flags.is_empty() {
            check::flags(self.caps(), Op::Read, flags)?;
        }
        let mut at = off;
        for buf in bufs {
            self.read_slice(at, buf)?;
            at += buf.len() as u64;
        }
        Ok(())
    }

    /// Any write.
    #[inline(never)]
    fn write_list(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
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
        if let [buf] = &mut *bufs
            && flags.is_empty()
            && self.read_quick(off, buf)
        {
            return Ok(());
        }
        self.read_list(bufs, off, flags)
    }

    #[inline]
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        if let [buf] = bufs
            && flags.is_empty()
            && self.write_quick(off, buf)
        {
            return Ok(());
        }
        self.write_list(bufs, off, flags)
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
            self.clear_beyond(new_len, old)?;
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
        // The copy has its bytes from here, and takes them as it needs them.
        config.fill = Fill::Empty;
        config.force = true;
        config.id = None;
        let mut copy = Self::new(config).map_err(|e| Error::io(0, io::Error::other(e)))?;
        copy.config.force = self.config.force;
        let mut buf = vec![0; 1 << 16];
        self.each_run(len, |mut at, end| {
            while at < end {
                let n = usize::try_from(end - at).map_or(buf.len(), |n| n.min(buf.len()));
                let part = buf.get_mut(..n).unwrap_or_default();
                self.read_slice(at, part)?;
                copy.write_slice(at, part)?;
                at += n as u64;
            }
            Ok(())
        })?;
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
            .count("huge", u64::from(self.huge_pages()))
            .count("reserved", u64::from(self.config.reserve != Reserve::Lazy))
            .count("locked", u64::from(self.locked))
    }

    fn as_mapped(&self) -> Option<&dyn MappedRegion> {
        self.caps().contains(Caps::ZCOPY).then_some(self as _)
    }

    fn describe(&self) -> Node {
        let mut config = self.config.clone();
        config.size = self.len.load(Ordering::Relaxed);
        config.node()
    }
}
