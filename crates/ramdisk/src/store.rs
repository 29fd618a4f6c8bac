//! The backing: a mapping with what is needed to free parts of it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    FallocateFlags, FlockOperation, MemfdFlags, SealFlags, SeekFrom, fallocate, fcntl_add_seals,
    fdatasync, flock, ftruncate, memfd_create, seek,
};
use rustix::io::Errno;

use crate::bitmap::{Bitmap, PAGE};
use crate::config::{Backing, RamConfig, RamError, Reserve};
use crate::map::Mapping;

/// Bytes of a device that is being made, where the file behind it can be told from memory.
pub(crate) struct Store {
    map: Mapping,
    /// The memory file or the file on disk.
    file: Option<File>,
    durable: bool,
    /// Cleared when the file system turns out not to free; then it is not asked again.
    frees: AtomicBool,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "RamConfig::check refuses sizes that do not fit usize"
)]
const fn us(n: u64) -> usize {
    n as usize
}

impl Store {
    pub(crate) fn new(config: &RamConfig, bits: &Bitmap) -> Result<Self, RamError> {
        // Whole pages, so that the last one can be cleared as a whole. Of a file, the part of the last
        // page behind its end is memory that is never written out.
        let bytes = config.max.next_multiple_of(PAGE);
        let len = us(bytes);
        let (map, file) = match &config.backing {
            Backing::Memfd => {
                let file = memfd(bytes)
                    .map_err(|e| RamError::system("a memory file cannot be made")(e.into()))?;
                let map = Mapping::of_file(&file, len)
                    .map_err(RamError::system(format!("{len} bytes cannot be mapped")))?;
                (map, Some(file))
            }
            Backing::Anonymous => {
                let map = Mapping::anonymous(len)
                    .map_err(RamError::system(format!("{len} bytes cannot be mapped")))?;
                (map, None)
            }
            Backing::File { path, sparse } => {
                let file = open(path, config, *sparse)?;
                known_data(&file, config.size, bits).map_err(RamError::system(format!(
                    "{} cannot be read",
                    path.display()
                )))?;
                let map = Mapping::of_file(&file, len).map_err(RamError::system(format!(
                    "{} cannot be mapped",
                    path.display()
                )))?;
                (map, Some(file))
            }
        };
        // What was reserved is kept, so that a later write cannot fail.
        let keeps = matches!(config.backing, Backing::File { sparse: false, .. });
        Ok(Self {
            map,
            file,
            durable: matches!(config.backing, Backing::File { .. }),
            frees: AtomicBool::new(config.reserve == Reserve::Lazy && !keeps),
        })
    }

    /// Takes all memory now. Returns whether it is locked as well.
    pub(crate) fn reserve(&self, config: &RamConfig) -> Result<bool, RamError> {
        if config.reserve == Reserve::Lazy {
            return Ok(false);
        }
        let what = format!("{} bytes cannot be reserved", config.size);
        if let (Some(file), false) = (&self.file, self.durable) {
            // Gives a clean ENOSPC where touching pages would give a signal.
            fallocate(file, FallocateFlags::empty(), 0, config.size)
                .map_err(|e| RamError::system(what.clone())(e.into()))?;
        }
        self.map
            .populate(us(config.size))
            .map_err(RamError::system(what))?;
        Ok(config.reserve == Reserve::Locked && self.map.lock().is_ok())
    }

    pub(crate) fn want_huge(&self) -> bool {
        self.map.want_huge().is_ok()
    }

    #[inline]
    pub(crate) fn copy_out(&self, off: u64, to: &mut [u8]) {
        self.map.copy_out(us(off), to);
    }

    #[inline]
    pub(crate) fn copy_in(&self, off: u64, from: &[u8]) {
        self.map.copy_in(us(off), from);
    }

    pub(crate) fn zero(&self, off: u64, len: u64) {
        self.map.zero(us(off), us(len));
    }

    /// Whether freeing gives memory back.
    pub(crate) fn frees(&self) -> bool {
        self.frees.load(Ordering::Relaxed)
    }

    /// Frees whole pages, which read as zeros afterwards. Where that is not possible they are
    /// zeroed, and `false` says so.
    pub(crate) fn free(&self, off: u64, len: u64) -> bool {
        let done = match &self.file {
            Some(file) => fallocate(
                file,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                off,
                len,
            )
            .map_err(io::Error::from),
            None => self.map.drop_private(us(off), us(len)),
        };
        if let Err(e) = done {
            if e.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) {
                self.frees.store(false, Ordering::Relaxed);
            }
            self.zero(off, len);
            return false;
        }
        true
    }

    /// Makes what was written durable, if the backing can be.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &self.file {
            Some(file) if self.durable => Ok(fdatasync(file)?),
            _ => Ok(()),
        }
    }

    pub(crate) const fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}

fn memfd(len: u64) -> Result<File, Errno> {
    let fd = memfd_create("cairn-ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, len)?;
    // Nobody can cut the file under the mapping, so no access to it can end in SIGBUS.
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(File::from(fd))
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
