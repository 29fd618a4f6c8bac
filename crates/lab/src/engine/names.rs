//! Operations on names: what fio's `filecreate`, `filestat`, `filedelete`, `dircreate`, `dirstat` and `dirdelete`
//! time.
//!
//! fio does such an operation in the place of opening a file. Each file is opened once in a pass, then has its
//! I/Os, which do nothing, and is done; so a job has as many operations in a pass as files, however many
//! I/Os the size of a file comes to. The latency of the operation is the only one there is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cairn_block::{Error, Result};
use cairn_buffer::CountingProbe;
use cairn_ext4::Ext4;
use cairn_fio::job::IoEngine;
use cairn_flags::Probe;

/// What is done to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOp {
    /// Opened, and made if it is not there.
    Create,
    /// Looked up, and its inode with it.
    Stat,
    /// Removed.
    Delete,
    /// Made as a directory; one that is there already is an error.
    MakeDir,
    /// Looked up as a directory.
    StatDir,
    /// Removed as an empty directory.
    RemoveDir,
}

impl NameOp {
    /// What an engine does to names, if it is one of those that do.
    pub(crate) const fn of(engine: IoEngine) -> Option<Self> {
        match engine {
            IoEngine::FileCreate => Some(Self::Create),
            IoEngine::FileStat => Some(Self::Stat),
            IoEngine::FileDelete => Some(Self::Delete),
            IoEngine::DirCreate => Some(Self::MakeDir),
            IoEngine::DirStat => Some(Self::StatDir),
            IoEngine::DirDelete => Some(Self::RemoveDir),
            _ => None,
        }
    }

    /// Whether the names are those of directories.
    pub(crate) const fn of_dirs(self) -> bool {
        matches!(self, Self::MakeDir | Self::StatDir | Self::RemoveDir)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat | Self::StatDir => "stat",
            Self::Delete => "delete",
            Self::MakeDir => "mkdir",
            Self::RemoveDir => "rmdir",
        }
    }

    fn run<P: Probe>(self, fs: &Ext4<P>, path: &str) -> cairn_ext4::Result<()> {
        match self {
            Self::Create => {
                let file = match fs.create(path) {
                    Err(cairn_ext4::Error::Exists { .. }) => fs.open(path),
                    made => made,
                }?;
                fs.close(file)
            }
            Self::Stat | Self::StatDir => fs.stat_path(path).map(drop),
            Self::Delete => fs.unlink(path),
            Self::MakeDir => fs.mkdir(path),
            Self::RemoveDir => fs.rmdir(path),
        }
    }
}

/// The file system that names are in.
#[derive(Clone)]
pub(crate) enum NameSpace {
    Plain(Arc<Ext4>),
    Counted(Arc<Ext4<CountingProbe>>),
}

/// A name as one clone of a job works on it.
pub(crate) struct Name {
    space: NameSpace,
    path: String,
    op: NameOp,
    /// Bytes of I/Os between two operations.
    len: u64,
    /// How many of them are still to come. Written by the one thread of the clone.
    left: AtomicU64,
}

impl Name {
    /// The name `path`, worked on each `len` bytes.
    pub(crate) const fn new(space: NameSpace, path: String, op: NameOp, len: u64) -> Self {
        Self {
            space,
            path,
            op,
            len,
            left: AtomicU64::new(0),
        }
    }

    /// An I/O of `len` bytes: the first of the name in a pass is the operation, timed on demand.
    pub(crate) fn io(&self, len: u64, timed: bool) -> (Option<u64>, Result<()>) {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left.saturating_sub(len), Ordering::Relaxed);
            return (None, Ok(()));
        }
        let begun = timed.then(Instant::now);
        let done = match &self.space {
            NameSpace::Plain(fs) => self.op.run(fs, &self.path),
            NameSpace::Counted(fs) => self.op.run(fs, &self.path),
        };
        // 2^64 ns are 584 years.
        let nanos = begun.map(|t| u64::try_from(t.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if done.is_ok() {
            let left = self.len.saturating_sub(len);
            self.left.store(left, Ordering::Relaxed);
        }
        (nanos, done.map_err(|e| told(&e)))
    }

    /// What failed, for people.
    pub(crate) fn describe(&self, error: &Error) -> String {
        let why = match error {
            Error::Io { source, .. } => source.to_string(),
            e => e.to_string(),
        };
        format!("{} of {}: {why}", self.op.word(), self.path)
    }
}

/// The error as one of a device, which has a number; [`Name::describe`] has the words.
fn told(e: &cairn_ext4::Error) -> Error {
    Error::io(0, io::Error::from_raw_os_error(e.errno()))
}
