//! `file`: a file or a block device of the system.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{
    FallocateFlags, FlockOperation, OFlags, SeekFrom, fallocate, fdatasync, flock, ftruncate, seek,
};
use rustix::io::Errno;

use crate::iov::{gather, scatter, us};
use crate::spec::units::print_size;
use crate::{
    BlockDevice, BuildError, Caps, Coalesce, Device, DeviceInfo, Error, Extent, Node, Op, Param,
    ParamKind, Planned, Registry, ReqFlags, Result, Shape, Site, check,
};

/// Alignment that suits direct I/O on every disk that is sold.
const DIRECT: u32 = 4096;

/// How to open a [`FileDevice`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in a spec"
)]
pub struct FileConfig {
    path: PathBuf,
    size: Option<u64>,
    direct: bool,
    sparse: bool,
    lock: bool,
    read_only: bool,
}

impl FileConfig {
    /// An existing file or block device.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            size: None,
            direct: false,
            sparse: true,
            lock: true,
            read_only: false,
        }
    }

    /// Makes the file if it is missing, and `bytes` long if it is shorter.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Passes the page cache by. Requests must be multiples of 4096 then.
    #[must_use]
    pub const fn direct(mut self, yes: bool) -> Self {
        self.direct = yes;
        self
    }

    /// Whether space is taken as it is written (the default) instead of all at once.
    #[must_use]
    pub const fn sparse(mut self, yes: bool) -> Self {
        self.sparse = yes;
        self
    }

    /// Whether the file is locked against other processes (the default).
    #[must_use]
    pub const fn lock(mut self, yes: bool) -> Self {
        self.lock = yes;
        self
    }

    /// Takes no changes.
    #[must_use]
    pub const fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }
}

/// A file or block device, through `pread` and `pwrite`.
pub struct FileDevice {
    file: File,
    config: FileConfig,
    info: DeviceInfo,
    len: AtomicU64,
    regular: bool,
    /// Whether holes can be punched; cleared when the file system refuses after all.
    punches: AtomicBool,
    id: Option<Box<str>>,
}

fn at<T>(off: u64, result: io::Result<T>) -> Result<T> {
    result.map_err(|e| Error::io(off, e))
}

impl FileDevice {
    /// Opens the file.
    ///
    /// # Errors
    /// What the system says, or that the file is locked by another process.
    pub fn open(config: FileConfig) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(!config.read_only);
        if config.size.is_some() && !config.read_only {
            options.create(true).truncate(false);
        }
        if config.direct {
            #[expect(clippy::cast_possible_wrap, reason = "a flag bit far below the sign")]
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let file = options.open(&config.path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a regular file nor a block device",
            ));
        }
        if config.lock {
            let how = if config.read_only {
                FlockOperation::NonBlockingLockShared
            } else {
                FlockOperation::NonBlockingLockExclusive
            };
            flock(&file, how).map_err(|e| match e {
                Errno::WOULDBLOCK => io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "it is locked by another process (lock=0 opens it all the same)",
                ),
                e => e.into(),
            })?;
        }
        let mut len = seek(&file, SeekFrom::End(0))?;
        if let Some(size) = config.size
            && kind.is_file()
            && !config.read_only
            && size > len
        {
            ftruncate(&file, size)?;
            if !config.sparse {
                fallocate(&file, FallocateFlags::empty(), 0, size)?;
            }
            len = size;
        }
        let mut info = DeviceInfo::new(len);
        if config.direct {
            info.logical_block = DIRECT;
            info.mem_align = DIRECT;
            len -= len % u64::from(DIRECT);
            info.len = len;
        }
        info.read_only = config.read_only;
        info.volatile_cache = true;
        let punches = kind.is_file() && !config.read_only && can_punch(&file, len);
        Ok(Self {
            file,
            config,
            info,
            len: AtomicU64::new(len),
            regular: kind.is_file(),
            punches: AtomicBool::new(punches),
            id: None,
        })
    }

    crate::layer::with_id!();

    fn now(&self) -> DeviceInfo {
        let mut info = self.info;
        info.len = self.len.load(Ordering::Relaxed);
        info
    }

    fn after(&self, off: u64, flags: ReqFlags) -> Result<()> {
        if flags.contains(ReqFlags::FUA) {
            at(off, fdatasync(&self.file).map_err(Into::into))?;
        }
        Ok(())
    }

    /// Punches, or says that it cannot and will not again.
    fn punch(&self, off: u64, len: u64) -> io::Result<bool> {
        if !self.punches.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, how, off, len) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP) => {
                self.punches.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn write_zeros(&self, off: u64, len: u64) -> io::Result<()> {
        let zeros = Aligned::new(us(len.min(1 << 20)));
        let mut done = 0;
        while done < len {
            let n = us((len - done).min(zeros.len() as u64));
            self.file.write_all_at(zeros.get(n), off + done)?;
            done += n as u64;
        }
        Ok(())
    }
}

/// Asks with a hole behind the end, where there is nothing to lose.
fn can_punch(file: &File, len: u64) -> bool {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, how, len.next_multiple_of(4096), 4096).is_ok()
}

/// Memory that direct I/O takes.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + DIRECT as usize];
        let start = bytes.as_ptr().align_offset(DIRECT as usize);
        Self { bytes, start }
    }

    fn len(&self) -> usize {
        self.bytes.len() - DIRECT as usize
    }

    fn get(&self, len: usize) -> &[u8] {
        self.bytes
            .get(self.start..self.start + len)
            .unwrap_or_default()
    }

    fn get_mut(&mut self, len: usize) -> &mut [u8] {
        self.bytes
            .get_mut(self.start..self.start + len)
            .unwrap_or_default()
    }
}

impl BlockDevice for FileDevice {
    fn info(&self) -> DeviceInfo {
        self.now()
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::FLUSH | Caps::EXTENTS | Caps::MULTI_CONN;
        if !self.info.read_only {
            caps |= Caps::WRITE | Caps::FUA_EMULATED | Caps::ZERO;
            caps.set(
                Caps::DISCARD | Caps::DISCARD_ZEROES,
                self.punches.load(Ordering::Relaxed),
            );
            caps.set(Caps::RESIZE, self.regular);
        }
        caps
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = us(check::bytes_mut(bufs));
        check::request(&self.now(), Op::Read, off, len as u64)?;
        check::flags(self.caps(), Op::Read, flags)?;
        match bufs {
            [one] if !self.config.direct => at(off, self.file.read_exact_at(one, off)),
            list => {
                let mut bounce = Aligned::new(len);
                at(off, self.file.read_exact_at(bounce.get_mut(len), off))?;
                scatter(bounce.get(len), list);
                Ok(())
            }
        }
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.now(), Op::Write, off, len)?;
        check::flags(self.caps(), Op::Write, flags)?;
        match bufs {
            [one] if !self.config.direct => at(off, self.file.write_all_at(one, off))?,
            list => {
                let mut bounce = Aligned::new(us(len));
                bounce.get_mut(us(len)).copy_from_slice(&gather(list));
                at(off, self.file.write_all_at(bounce.get(us(len)), off))?;
            }
        }
        self.after(off, flags)
    }

    fn flush(&self) -> Result<()> {
        at(0, fdatasync(&self.file).map_err(Into::into))
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.now(), Op::Discard, &range)?;
        check::capable(self.caps(), Op::Discard)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        if len > 0 && !at(range.start, self.punch(range.start, len))? {
            return Err(Error::unsupported(Op::Discard));
        }
        self.after(range.start, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.now(), Op::WriteZeroes, &range)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let off = range.start;
        if len > 0 {
            let punched = !flags.contains(ReqFlags::NO_HOLE) && at(off, self.punch(off, len))?;
            if !punched {
                at(off, self.write_zeros(off, len))?;
            }
        }
        self.after(off, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.now(), Op::Extents, &range)?;
        let end = range.start + len;
        let mut join = Coalesce::new(each);
        let mut pos = range.start;
        while pos < end {
            let data = match seek(&self.file, SeekFrom::Data(pos)) {
                Ok(data) => data.clamp(pos, end),
                Err(Errno::NXIO) => end,
                // A device that cannot tell holds data as far as anybody knows.
                Err(_) => pos,
            };
            if join.push(Extent::hole(data - pos)).is_break() {
                return Ok(());
            }
            if data == end {
                break;
            }
            let hole = match seek(&self.file, SeekFrom::Hole(data)) {
                Ok(hole) if hole > data => hole.min(end),
                _ => end,
            };
            if join.push(Extent::data(hole - data)).is_break() {
                return Ok(());
            }
            pos = hole;
        }
        join.finish();
        Ok(())
    }

    fn resize(&self, new_len: u64) -> Result<()> {
        if self.info.read_only {
            return Err(Error::ReadOnly { op: Op::Resize });
        }
        check::capable(self.caps(), Op::Resize)?;
        if new_len == 0 || !new_len.is_multiple_of(u64::from(self.info.logical_block)) {
            return Err(Error::Misaligned {
                offset: 0,
                len: new_len,
                need: self.info.logical_block,
            });
        }
        let old = self.len.load(Ordering::Relaxed);
        if new_len < old {
            self.len.store(new_len, Ordering::Relaxed);
            at(0, ftruncate(&self.file, new_len).map_err(Into::into))
        } else {
            at(0, ftruncate(&self.file, new_len).map_err(Into::into))?;
            self.len.store(new_len, Ordering::Relaxed);
            Ok(())
        }
    }

    fn describe(&self) -> Node {
        describe(&self.config, self.id.as_deref())
    }
}

fn describe(config: &FileConfig, id: Option<&str>) -> Node {
    Node::new("file")
        .arg("path", config.path.display())
        .opt_arg("size", config.size.map(print_size))
        .opt_arg("direct", config.direct.then_some(1))
        .opt_arg("sparse", (!config.sparse).then_some(0))
        .opt_arg("lock", (!config.lock).then_some(0))
        .opt_arg("readonly", config.read_only.then_some(1))
        .with_id(id)
}

const PARAMS: &[Param] = &[
    Param::new("path", ParamKind::Text, "the file or block device")
        .required()
        .positional(),
    Param::new(
        "size",
        ParamKind::Size,
        "makes the file, or lengthens it to this",
    ),
    Param::new("direct", ParamKind::Switch, "passes the page cache by").or("0"),
    Param::new("sparse", ParamKind::Switch, "takes space as it is written").or("1"),
    Param::new("lock", ParamKind::Switch, "locks it against others").or("1"),
    Param::new("readonly", ParamKind::Switch, "takes no changes").or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "file",
        "a file or block device of the system",
        Shape::Leaf,
        PARAMS,
        build,
    );
}

fn build(site: &Site<'_>) -> Result<Device, BuildError> {
    let args = site.args();
    let path = args.text("path").unwrap_or_default();
    site.may_open(path)?;
    let mut config = FileConfig::new(path)
        .direct(args.on("direct"))
        .sparse(args.on("sparse"))
        .lock(args.on("lock"))
        .read_only(args.on("readonly"));
    if let Some(size) = args.number("size") {
        let block = if config.direct { DIRECT } else { 1 };
        check::size(size, block).map_err(|why| args.refuse("size", why))?;
        config = config.size(size);
    }
    if site.planning() {
        return plan(site, &config);
    }
    let device = FileDevice::open(config.clone()).map_err(|source| cannot(&config, source))?;
    if device.info().len == 0 {
        return Err(args
            .refuse("path", "the file is empty: size=SIZE makes it larger")
            .into());
    }
    Ok(Arc::new(device.with_id(args.id())))
}

fn cannot(config: &FileConfig, source: io::Error) -> BuildError {
    let path = config.path.display();
    let makes = source.kind() == io::ErrorKind::NotFound && config.size.is_none();
    BuildError::Io {
        node: "file",
        what: if makes {
            format!("{path} cannot be opened (size=SIZE makes it)")
        } else {
            format!("{path} cannot be opened")
        },
        source,
    }
}

/// Looks without making, locking or changing anything.
fn plan(site: &Site<'_>, config: &FileConfig) -> Result<Device, BuildError> {
    let exists = Path::exists(&config.path);
    if let (false, Some(size), false) = (exists, config.size, config.read_only) {
        let mut info = DeviceInfo::new(size);
        info.volatile_cache = true;
        if config.direct {
            info.logical_block = DIRECT;
            info.mem_align = DIRECT;
        }
        let caps = Caps::FLUSH
            | Caps::EXTENTS
            | Caps::MULTI_CONN
            | Caps::WRITE
            | Caps::FUA_EMULATED
            | Caps::ZERO
            | Caps::DISCARD
            | Caps::DISCARD_ZEROES
            | Caps::RESIZE;
        let node = describe(config, site.args().id());
        return Ok(Arc::new(Planned::new(info, caps, node)));
    }
    let mut quiet = config.clone();
    quiet.size = None;
    quiet.lock = false;
    quiet.read_only = true;
    let device = FileDevice::open(quiet).map_err(|source| cannot(config, source))?;
    let mut info = device.info();
    info.read_only = config.read_only;
    info.len = config.size.map_or(info.len, |size| size.max(info.len));
    let mut caps = device.caps();
    if !config.read_only {
        caps |= Caps::WRITE | Caps::FUA_EMULATED | Caps::ZERO;
        if device.regular {
            caps |= Caps::DISCARD | Caps::DISCARD_ZEROES | Caps::RESIZE;
        }
    }
    let node = describe(config, site.args().id());
    let planned = Planned::new(info, caps, node).reading(Arc::new(device));
    Ok(Arc::new(planned))
}
