//! Files and directories of the ext4 layer, as the workloads use them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_block::{Device, Error, Op};
use cairn_buffer::CountingProbe;
use cairn_ext4::{Dir, Ext4, File, FormatOptions, MountOptions, format};
use cairn_extents::{ExtentCache, ExtentMap};
use cairn_flags::{NoProbe, Probe};

use crate::file::FlatFile;
use crate::layout::BLOCK;
use crate::pattern::{Held, Pattern};
use crate::switches::Switches;

/// Bytes of the device for each inode, at most: workloads have few files.
const INODE_RATIO: u64 = 256 << 10;
/// Inodes beyond those of the workload's files.
const SPARE_INODES: u64 = 256;

/// The directory of the tasks of creat-clo.
const SHARED: &str = "/creat-clo";

/// Bytes that a name takes at most: its inode, its entry, and the block of an entry that begins one.
const NAME_BYTES: u64 = 1280;

/// Bytes that a file system takes for itself beside files of `bytes`, with room for extent trees and for so
/// many names of files without data.
pub(crate) const fn overhead(bytes: u64, names: u64) -> u64 {
    (16 << 20) + bytes / 32 + names * NAME_BYTES
}

/// Makes the directories that `path` leads through; returns the path as the file system has it.
///
/// # Errors
/// What the file layer says.
pub(crate) fn directories<P: Probe>(fs: &Ext4<P>, path: &str) -> Result<String, cairn_ext4::Error> {
    let mut parts: Vec<&str> = path
        .split('/')
        .filter(|p| !p.is_empty() && *p != "." && *p != "..")
        .collect();
    let name = parts.pop().unwrap_or("file");
    let mut at = String::new();
    for dir in parts {
        at = format!("{at}/{dir}");
        match fs.mkdir(&at) {
            Ok(()) | Err(cairn_ext4::Error::Exists { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(format!("{at}/{name}"))
}

/// Makes a file system for so many files on a device and mounts it.
///
/// # Errors
/// A device that is too small for one or keeps nothing, in words.
pub(crate) fn make<P: Probe>(
    device: &Device,
    cache: &ExtentCache,
    switches: &Switches,
    threads: usize,
    files: u64,
) -> Result<Arc<Ext4<P>>, cairn_ext4::Error> {
    // Several file systems share the cache: each has its own range of names.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let ratio = (device.info().len / (files + SPARE_INODES)).clamp(1024, INODE_RATIO);
    format(device, &FormatOptions::new().inode_ratio(ratio))?;
    let base = NEXT.fetch_add(1, Ordering::Relaxed) << 32;
    let options = MountOptions::new()
        .extents(cache.clone(), base)
        .counter_slots(threads);
    let fs = Arc::new(Ext4::<P>::mount_probed(Arc::clone(device), &options)?);
    let follower = Arc::downgrade(&fs);
    switches.follow(move |on| {
        if let Some(fs) = follower.upgrade() {
            fs.set_extent_cache(on);
        }
    });
    Ok(fs)
}

/// An error of the file layer as one of a device, with the place in the file.
fn told(e: &cairn_ext4::Error, op: Op, offset: u64) -> Error {
    match e {
        cairn_ext4::Error::Device(e) => e.clone(),
        cairn_ext4::Error::Buffer(e) if e.device().is_some() => {
            e.device().cloned().unwrap_or(Error::Shutdown)
        }
        cairn_ext4::Error::NoSpace { free, .. } => Error::NoSpace {
            offset,
            limit: free * BLOCK,
        },
        cairn_ext4::Error::ReadOnly { .. } => Error::ReadOnly { op },
        e => Error::io(offset, std::io::Error::other(e.to_string())),
    }
}

/// Makes the directory in which all tasks of creat-clo work.
///
/// # Errors
/// What the file layer says.
pub(crate) fn shared_dir<P: Probe>(fs: &Ext4<P>) -> Result<Dir<P>, cairn_ext4::Error> {
    match fs.mkdir(SHARED) {
        Ok(()) | Err(cairn_ext4::Error::Exists { .. }) => fs.dir(SHARED),
        Err(e) => Err(e),
    }
}

/// A file of a job.
pub(crate) struct LayerFile<P: Probe = NoProbe> {
    fs: Arc<Ext4<P>>,
    file: File<P>,
    size: u64,
    /// Its blocks are allocated before they are written.
    ahead: bool,
}

impl<P: Probe> LayerFile<P> {
    /// A file of `size` bytes at `path`, its directories made as needed; allocated if `ahead`.
    ///
    /// # Errors
    /// What the file layer says.
    pub(crate) fn new(
        fs: &Arc<Ext4<P>>,
        path: &str,
        size: u64,
        ahead: bool,
    ) -> Result<Self, cairn_ext4::Error> {
        let file = fs.create(directories(fs, path)?)?;
        if ahead {
            fs.allocate(&file, 0, size, false)?;
        }
        fs.truncate(&file, size)?;
        Ok(Self {
            fs: Arc::clone(fs),
            file,
            size,
            ahead,
        })
    }

    /// Lets go of the file, which keeps its name.
    ///
    /// # Errors
    /// What the file layer says.
    pub(crate) fn close(self) -> Result<(), cairn_ext4::Error> {
        self.fs.close(self.file)
    }

    pub(crate) fn ino(&self) -> u64 {
        u64::from(self.file.ino())
    }

    pub(crate) fn blocks(&self) -> u32 {
        u32::try_from(self.size.div_ceil(BLOCK)).unwrap_or(u32::MAX)
    }

    pub(crate) fn map(&self) -> &Arc<ExtentMap> {
        self.file.map()
    }

    fn check(&self, op: Op, off: u64, len: usize) -> cairn_block::Result<()> {
        match off.checked_add(len as u64) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Error::OutOfRange {
                op,
                offset: off,
                len: len as u64,
                size: self.size,
            }),
        }
    }

    #[inline]
    pub(crate) fn read(&self, off: u64, buf: &mut [u8]) -> cairn_block::Result<()> {
        self.check(Op::Read, off, buf.len())?;
        match self.fs.read_at(&self.file, off, buf) {
            Ok(n) if n == buf.len() => Ok(()),
            Ok(_) => Err(Error::OutOfRange {
                op: Op::Read,
                offset: off,
                len: buf.len() as u64,
                size: self.file.size(),
            }),
            Err(e) => Err(told(&e, Op::Read, off)),
        }
    }

    #[inline]
    pub(crate) fn write(&self, off: u64, buf: &[u8], durable: bool) -> cairn_block::Result<()> {
        self.check(Op::Write, off, buf.len())?;
        self.fs
            .write_direct(&self.file, off, buf, durable)
            .map_err(|e| told(&e, Op::Write, off))
    }

    pub(crate) fn flush(&self) -> cairn_block::Result<()> {
        self.fs
            .fsync(&self.file)
            .map_err(|e| told(&e, Op::Flush, 0))
    }

    fn allocate(&self, off: u64, len: u64, keep: bool) -> cairn_block::Result<()> {
        self.fs
            .allocate(&self.file, off, len, keep)
            .map_err(|e| told(&e, Op::Write, off))
    }

    fn punch(&self, off: u64, len: u64) -> cairn_block::Result<()> {
        self.fs
            .punch_hole(&self.file, off, len)
            .map_err(|e| told(&e, Op::Discard, off))
    }

    fn truncate(&self, size: u64) -> cairn_block::Result<()> {
        self.fs
            .truncate(&self.file, size)
            .map_err(|e| told(&e, Op::Write, size))
    }

    /// Gives all blocks back, then has the size again that it was made with.
    fn anew(&self) -> cairn_block::Result<()> {
        self.truncate(0)?;
        if self.ahead {
            self.allocate(0, self.size, false)?;
        }
        self.truncate(self.size)
    }
}

impl<P: Probe> fmt::Debug for LayerFile<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerFile")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// What a file without a file system cannot do.
fn flat(op: Op) -> Error {
    Error::unsupported_because(op, "a flat file has no space of its own")
}

/// A file of a job, on either layer.
#[derive(Debug)]
pub(crate) enum AnyFile {
    /// A window of the device.
    Flat(FlatFile),
    /// A file of the ext4 layer.
    Layer(LayerFile),
    /// The same, on buffers whose flag words are counted.
    Counted(LayerFile<CountingProbe>),
}

impl AnyFile {
    pub(crate) fn ino(&self) -> u64 {
        match self {
            Self::Flat(file) => file.ino(),
            Self::Layer(file) => file.ino(),
            Self::Counted(file) => file.ino(),
        }
    }

    pub(crate) fn blocks(&self) -> u32 {
        match self {
            Self::Flat(file) => file.blocks(),
            Self::Layer(file) => file.blocks(),
            Self::Counted(file) => file.blocks(),
        }
    }

    pub(crate) fn map(&self) -> &Arc<ExtentMap> {
        match self {
            Self::Flat(file) => file.map(),
            Self::Layer(file) => file.map(),
            Self::Counted(file) => file.map(),
        }
    }

    #[inline]
    pub(crate) fn read(&self, off: u64, buf: &mut [u8]) -> cairn_block::Result<()> {
        match self {
            Self::Flat(file) => file.read(off, buf),
            Self::Layer(file) => file.read(off, buf),
            Self::Counted(file) => file.read(off, buf),
        }
    }

    #[inline]
    pub(crate) fn write(&self, off: u64, buf: &[u8], durable: bool) -> cairn_block::Result<()> {
        match self {
            Self::Flat(file) => file.write(off, buf, durable),
            Self::Layer(file) => file.write(off, buf, durable),
            Self::Counted(file) => file.write(off, buf, durable),
        }
    }

    pub(crate) fn flush(&self) -> cairn_block::Result<()> {
        match self {
            Self::Flat(file) => file.flush(),
            Self::Layer(file) => file.flush(),
            Self::Counted(file) => file.flush(),
        }
    }

    /// Allocates the blocks of a range; the file grows to its end unless `keep`.
    pub(crate) fn allocate(&self, off: u64, len: u64, keep: bool) -> cairn_block::Result<()> {
        match self {
            Self::Flat(_) => Err(flat(Op::Write)),
            Self::Layer(file) => file.allocate(off, len, keep),
            Self::Counted(file) => file.allocate(off, len, keep),
        }
    }

    /// Makes a range a hole.
    pub(crate) fn punch(&self, off: u64, len: u64) -> cairn_block::Result<()> {
        match self {
            Self::Flat(_) => Err(flat(Op::Discard)),
            Self::Layer(file) => file.punch(off, len),
            Self::Counted(file) => file.punch(off, len),
        }
    }

    /// Makes it so long.
    pub(crate) fn truncate(&self, size: u64) -> cairn_block::Result<()> {
        match self {
            Self::Flat(_) => Err(flat(Op::Write)),
            Self::Layer(file) => file.truncate(size),
            Self::Counted(file) => file.truncate(size),
        }
    }

    /// Empties it, as if it were removed and made again. A window of the device has nothing to give back.
    pub(crate) fn anew(&self) -> cairn_block::Result<()> {
        match self {
            Self::Flat(_) => Ok(()),
            Self::Layer(file) => file.anew(),
            Self::Counted(file) => file.anew(),
        }
    }
}

/// What a task of creat-clo works on when it works on files.
pub(crate) struct FileTask<P: Probe> {
    fs: Arc<Ext4<P>>,
    dir: Dir<P>,
    name: String,
    /// Files that are created and closed between two that are deleted; 1 deletes each.
    round: u64,
    done: u64,
}

impl<P: Probe> FileTask<P> {
    /// A task of its own name in the directory of all tasks.
    pub(crate) fn new(fs: &Arc<Ext4<P>>, dir: &Dir<P>, number: usize, round: u64) -> Self {
        Self {
            fs: Arc::clone(fs),
            dir: dir.clone(),
            name: format!("tmp.{number}"),
            round,
            done: 0,
        }
    }

    /// Creates and closes one file, and removes it if it is its time.
    ///
    /// # Errors
    /// What the file layer says, in words.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), cairn_ext4::Error> {
        let file = if self.done.is_multiple_of(self.round) {
            self.fs.create_in(&self.dir, &self.name)?
        } else {
            self.fs.open_in(&self.dir, &self.name)?
        };
        self.fs.close(file)?;
        self.done += 1;
        if self.done.is_multiple_of(self.round) {
            self.fs.unlink_in(&self.dir, &self.name)?;
        }
        Ok(())
    }
}

/// What a task of creat-clo does for each file.
pub(crate) enum Work<P: Probe> {
    /// The recorded accesses to buffers.
    Pattern(Pattern<P>),
    /// A file of the ext4 layer.
    Files(FileTask<P>),
}

/// A task at work.
pub(crate) enum Working<'w, P: Probe> {
    Pattern(Held<'w, P>),
    Files(&'w mut FileTask<P>),
}

impl<P: Probe> Work<P> {
    /// Holds what the task works on.
    ///
    /// # Errors
    /// What cannot be had, in words.
    pub(crate) fn begin(&mut self) -> Result<Working<'_, P>, String> {
        Ok(match self {
            Self::Pattern(pattern) => Working::Pattern(pattern.held().map_err(|e| e.to_string())?),
            Self::Files(task) => Working::Files(task),
        })
    }
}

impl<P: Probe> Working<'_, P> {
    /// Creates, closes and deletes one file.
    ///
    /// # Errors
    /// What failed, in words.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), String> {
        match self {
            Self::Pattern(held) => held.triple().map_err(|e| e.to_string()),
            Self::Files(task) => task.step().map_err(|e| e.to_string()),
        }
    }
}
