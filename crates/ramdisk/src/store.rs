//! The backing: a mapping with what is needed to free parts of it, or a file that is read and written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, SealFlags, SeekFrom, fallocate, fcntl_add_seals,
    fdatasync, flock, ftruncate, memfd_create, seek,
};
use rustix::io::Errno;

use crate::bitmap::{Bitmap, PAGE};
use crate::config::{Backing, FileIo, HugePage, Numa, RamConfig, Reserve};
use crate::error::RamError;
use crate::map::{Bind, Mapping};

/// Bytes of a device that is being made, where the file behind it can be told from memory.
pub(crate) struct Store {
    /// None where a file is read and written instead.
    map: Option<Mapping>,
    /// The memory file or the file on disk.
    file: Option<File>,
    /// Size of the file on disk; what lies behind it in the last page is zero.
    end: u64,
    durable: bool,
    /// Whether space must be asked for before a page is touched: where a file system that is full
    /// would answer the touch with a signal.
    asks: AtomicBool,
    /// Cleared when the file system turns out not to free; then it is not asked again.
    frees: AtomicBool,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "RamConfig::check refuses sizes that do not fit usize"
)]
pub(crate) const fn us(n: u64) -> usize {
    n as usize
}

/// What is written for zeros.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Store {
    pub(crate) fn new(config: &RamConfig, bits: &Bitmap) -> Result<Self, RamError> {
        // Whole pages, so that the last one can be cleared as a whole. Of a file, the part of the last
        // page behind its end is memory that is never written out.
        let bytes = config.max.next_multiple_of(PAGE);
        let len = us(bytes);
        let unmappable = || RamError::system(format!("{len} bytes cannot be mapped"));
        let (map, file) = match &config.backing {
            Backing::Memfd => {
                let file = memfd(bytes, MemfdFlags::empty(), config.shrinkable)?;
                let map = Mapping::of_file(&file, len).map_err(unmappable())?;
                (Some(map), Some(file))
            }
            Backing::HugeTlb { page } => {
                let size = match page {
                    HugePage::Mega2 => MemfdFlags::HUGE_2MB,
                    HugePage::Giga1 => MemfdFlags::HUGE_1GB,
                };
                let bytes = config.max.next_multiple_of(page.bytes());
                let file = memfd(bytes, MemfdFlags::HUGETLB | size, config.shrinkable)?;
                let map = Mapping::of_huge_pages(&file, us(bytes)).map_err(unmappable())?;
                (Some(map), Some(file))
            }
            Backing::Anonymous => {
                let map = Mapping::anonymous(len).map_err(unmappable())?;
                (Some(map), None)
            }
            Backing::File { path, sparse, io } => {
                let file = open(path, config, *sparse)?;
                known_data(&file, config.size, bits).map_err(RamError::system(format!(
                    "{} cannot be read",
                    path.display()
                )))?;
                let map = match io {
                    FileIo::Pread => None,
                    FileIo::Mapped => Some(Mapping::of_file(&file, len).map_err(
                        RamError::system(format!("{} cannot be mapped", path.display())),
                    )?),
                };
                (map, Some(file))
            }
        };
        if let (Some(map), Some(numa)) = (&map, config.numa) {
            bind(map, numa)?;
        }
        // What was reserved is kept, so that a later write cannot fail.
        let keeps = matches!(
            config.backing,
            Backing::File { sparse: false, .. } | Backing::HugeTlb { .. }
        );
        let asks = matches!(
            config.backing,
            Backing::File {
                sparse: true,
                io: FileIo::Mapped,
                ..
            }
        );
        Ok(Self {
            map,
            file,
            end: config.max,
            durable: matches!(config.backing, Backing::File { .. }),
            asks: AtomicBool::new(asks),
            frees: AtomicBool::new(config.reserve == Reserve::Lazy && !keeps),
        })
    }

    /// Takes all memory now. Returns whether it is locked as well.
    pub(crate) fn reserve(&self, config: &RamConfig) -> Result<bool, RamError> {
        let Some(map) = &self.map else {
            return Ok(false);
        };
        if config.reserve == Reserve::Lazy {
            return Ok(false);
        }
        let what = format!("{} bytes cannot be reserved", config.size);
        if let (Some(file), false) = (&self.file, self.durable) {
            // Gives a clean ENOSPC where touching pages would give a signal.
            fallocate(file, FallocateFlags::empty(), 0, config.size)
                .map_err(|e| RamError::system(what.clone())(e.into()))?;
        }
        map.populate(us(config.size))
            .map_err(RamError::system(what))?;
        Ok(config.reserve == Reserve::Locked && map.lock().is_ok())
    }

    pub(crate) fn want_huge(&self) -> bool {
        self.map.as_ref().is_some_and(|m| m.want_huge().is_ok())
    }

    /// The mapping, where there is one.
    #[inline]
    pub(crate) const fn map(&self) -> Option<&Mapping> {
        self.map.as_ref()
    }

    #[inline]
    pub(crate) fn copy_out(&self, off: u64, to: &mut [u8]) -> io::Result<()> {
        if let Some(map) = &self.map {
            map.copy_out(us(off), to);
            return Ok(());
        }
        self.read(off, to)
    }

    #[inline]
    pub(crate) fn copy_in(&self, off: u64, from: &[u8]) -> io::Result<()> {
        if let Some(map) = &self.map {
            map.copy_in(us(off), from);
            return Ok(());
        }
        self.write(off, from)
    }

    pub(crate) fn zero(&self, off: u64, len: u64) -> io::Result<()> {
        if let Some(map) = &self.map {
            map.zero(us(off), us(len));
            return Ok(());
        }
        let (mut at, end) = (off, off + len);
        while at < end {
            let n = us(end - at).min(ZEROS.len());
            self.write(at, ZEROS.get(..n).unwrap_or_default())?;
            at += n as u64;
        }
        Ok(())
    }

    /// The file behind an unmapped store.
    fn on_disk(&self) -> io::Result<&File> {
        self.file
            .as_ref()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn read(&self, off: u64, to: &mut [u8]) -> io::Result<()> {
        let inside = us(self.end.saturating_sub(off)).min(to.len());
        let (bytes, behind) = to.split_at_mut(inside);
        behind.fill(0);
        self.on_disk()?.read_exact_at(bytes, off).map_err(|e| {
            if e.kind() == io::ErrorKind::UnexpectedEof {
                self.cut()
            } else {
                e
            }
        })
    }

    fn write(&self, off: u64, from: &[u8]) -> io::Result<()> {
        let inside = us(self.end.saturating_sub(off)).min(from.len());
        self.on_disk()?
            .write_all_at(from.get(..inside).unwrap_or_default(), off)
    }

    fn cut(&self) -> io::Error {
        let now = self
            .file
            .as_ref()
            .and_then(|f| f.metadata().ok())
            .map_or(0, |m| m.len());
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!(
                "the file was cut from outside: it has {now} bytes and should have {}",
                self.end
            ),
        )
    }

    /// Takes space for pages that are touched next, where a touch without space would be a signal.
    pub(crate) fn ask(&self, off: u64, len: u64) -> io::Result<()> {
        if !self.asks.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        match fallocate(file, FallocateFlags::KEEP_SIZE, off, len) {
            Err(Errno::OPNOTSUPP) => {
                // A file system without it; not asked again.
                self.asks.store(false, Ordering::Relaxed);
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Whether freeing gives memory back.
    pub(crate) fn frees(&self) -> bool {
        self.frees.load(Ordering::Relaxed)
    }

    /// Frees whole pages, which read as zeros afterwards. Where that is not possible they are
    /// zeroed, and `false` says so.
    pub(crate) fn free(&self, off: u64, len: u64) -> io::Result<bool> {
        let done = match (&self.file, &self.map) {
            (Some(file), _) => fallocate(
                file,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                off,
                len,
            )
            .map_err(io::Error::from),
            (None, Some(map)) => map.drop_private(us(off), us(len)),
            (None, None) => Ok(()),
        };
        if let Err(e) = done {
            if e.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) {
                self.frees.store(false, Ordering::Relaxed);
            }
            self.zero(off, len)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Makes what was written durable, if the backing can be.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.file {
            Some(file) if self.durable => {
                if file.metadata()?.len() < self.end {
                    return Err(self.cut());
                }
                Ok(fdatasync(file)?)
            }
            _ => Ok(()),
        }
    }

    pub(crate) const fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

fn bind(map: &Mapping, numa: Numa) -> Result<(), RamError> {
    let mut nodes = [0_u64; 16];
    let (mode, shown) = match numa {
        Numa::Node(n) => {
            if let Some(word) = nodes.get_mut(n as usize / 64) {
                *word = 1 << (n % 64);
            }
            (Bind::Only, n.to_string())
        }
        Numa::Interleave => {
            nodes = online();
            (Bind::Interleave, "interleave".to_owned())
        }
    };
    map.bind(mode, &nodes).map_err(|e| RamError::Config {
        key: "numa",
        why: format!("{shown}: memory cannot be taken from there: {e}"),
    })
}

/// The memory nodes there are; the first where nothing tells.
fn online() -> [u64; 16] {
    let mut nodes = [0_u64; 16];
    let text = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            for n in first..=last.min(1023) {
                if let Some(word) = nodes.get_mut(n / 64) {
                    *word |= 1 << (n % 64);
                }
            }
        }
    }
    if nodes == [0; 16] {
        let [first, ..] = &mut nodes;
        *first = 1;
    }
    nodes
}

fn memfd(len: u64, pages: MemfdFlags, shrinkable: bool) -> Result<File, RamError> {
    let make = || -> Result<File, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | pages;
        let fd = memfd_create("cairn-ram", flags)?;
        ftruncate(&fd, len)?;
        if !shrinkable {
            // Nobody can cut the file under the mapping, so no access to it can end in SIGBUS.
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::SEAL)?;
        }
        Ok(File::from(fd))
    };
    make().map_err(|e| RamError::system("a memory file cannot be made")(e.into()))
}

fn open(path: &Path, config: &RamConfig, sparse: bool) -> Result<File, RamError> {
    let shown = path.display();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(RamError::system(format!("{shown} cannot be opened")))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| RamError::system(format!("{shown} is in use by another process"))(e.into()))?;
    let meta = file
        .metadata()
        .map_err(RamError::system(format!("{shown} cannot be examined")))?;
    if !meta.is_file() {
        return Err(RamError::Config {
            key: "path",
            why: format!("{shown} is no regular file"),
        });
    }
    if meta.len() > config.max {
        return Err(RamError::Config {
            key: "size",
            why: format!(
                "{shown} holds {} bytes already: give that size, or another file",
                meta.len()
            ),
        });
    }
    ftruncate(&file, config.max).map_err(|e| {
        RamError::system(format!("{shown} cannot be made {} bytes", config.max))(e.into())
    })?;
    if !sparse {
        fallocate(&file, FallocateFlags::empty(), 0, config.max).map_err(|e| {
            RamError::system(format!(
                "{shown} cannot be given {} bytes of space (sparse=1 takes it as it is written)",
                config.max
            ))(e.into())
        })?;
    }
    Ok(file)
}

/// Sets the bits of everything that a file holds already.
fn known_data(file: &File, len: u64, bits: &Bitmap) -> io::Result<()> {
    let mut at = 0;
    while at < len {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(e) => return Err(e.into()),
        };
        let hole = seek(file, SeekFrom::Hole(data))?;
        let end = hole.min(len);
        if data < end {
            bits.set_all(data / PAGE, end.div_ceil(PAGE));
        }
        at = hole;
    }
    Ok(())
}
