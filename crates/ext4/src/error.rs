//! Why an operation was refused or failed.

use std::fmt;
use std::io;

use cairn_buffer::BufferError;

/// Shorthand for results of the file layer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a finding or an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Object {
    /// The superblock.
    Super,
    /// The descriptor of a group.
    Group(u32),
    /// The block bitmap of a group.
    BlockBitmap(u32),
    /// The inode bitmap of a group.
    InodeBitmap(u32),
    /// An inode.
    Inode(u32),
    /// A block of an inode's extent tree.
    ExtentBlock {
        /// The inode.
        ino: u32,
        /// The block.
        block: u64,
    },
    /// A block of a directory.
    DirBlock {
        /// The directory's inode.
        ino: u32,
        /// The block's place in the directory.
        lblk: u32,
    },
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Super => f.write_str("the superblock"),
            Self::Group(g) => write!(f, "the descriptor of group {g}"),
            Self::BlockBitmap(g) => write!(f, "the block bitmap of group {g}"),
            Self::InodeBitmap(g) => write!(f, "the inode bitmap of group {g}"),
            Self::Inode(ino) => write!(f, "inode {ino}"),
            Self::ExtentBlock { ino, block } => {
                write!(f, "extent tree block {block} of inode {ino}")
            }
            Self::DirBlock { ino, lblk } => write!(f, "block {lblk} of directory {ino}"),
        }
    }
}

/// Why an operation was refused or failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The device or the buffer cache failed.
    Buffer(BufferError),
    /// The device failed under file data.
    Device(cairn_block::Error),
    /// There is no file system of this format.
    NotExt4 {
        /// What stands where the format has 0xef53.
        magic: u16,
    },
    /// The image uses a feature that this layer does not know or does not write.
    Feature {
        /// Name of the feature, or its bit.
        name: String,
        /// What can be done about it.
        advice: &'static str,
    },
    /// Something on disk contradicts the format.
    Corrupt {
        /// What.
        object: Object,
        /// How.
        why: String,
    },
    /// A setting is wrong.
    Option {
        /// Which.
        key: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// The file system takes no changes.
    ReadOnly {
        /// Why.
        why: String,
    },
    /// No such name.
    NotFound {
        /// The name.
        name: String,
    },
    /// The name is there already.
    Exists {
        /// The name.
        name: String,
    },
    /// A component of a path is no directory.
    NotADirectory {
        /// The name.
        name: String,
    },
    /// A directory where a file is needed.
    IsADirectory {
        /// The name.
        name: String,
    },
    /// The directory has entries.
    NotEmpty {
        /// The name.
        name: String,
    },
    /// A name that no entry can have.
    BadName {
        /// The name.
        name: String,
        /// What would be right.
        why: &'static str,
    },
    /// Too many symbolic links in a row.
    Loop {
        /// The path.
        path: String,
    },
    /// No block is free.
    NoSpace {
        /// Blocks asked for.
        asked: u64,
        /// Blocks free.
        free: u64,
    },
    /// No inode is free.
    NoInodes {
        /// Inodes in all.
        inodes: u32,
    },
    /// The link count is at its end.
    TooManyLinks {
        /// The inode.
        ino: u32,
    },
    /// The file would end past the largest offset.
    TooBig {
        /// Where it would end.
        end: u64,
        /// Where it may end.
        max: u64,
    },
    /// A kind of inode or operation that this layer does not do.
    Unsupported {
        /// What.
        what: String,
    },
    /// A directory would become its own ancestor.
    IntoItself {
        /// The name.
        name: String,
    },
}

impl Error {
    pub(crate) fn corrupt(object: Object, why: impl Into<String>) -> Self {
        Self::Corrupt {
            object,
            why: why.into(),
        }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    /// The errno a kernel would answer.
    ///
    /// ```
    /// use cairn_ext4::Error;
    ///
    /// assert_eq!(Error::NoSpace { asked: 1, free: 0 }.errno(), 28);
    /// ```
    pub fn errno(&self) -> i32 {
        match self {
            Self::Buffer(e) => e.device().map_or(5, cairn_block::Error::errno),
            Self::Device(e) => e.errno(),
            Self::NotExt4 { .. }
            | Self::Feature { .. }
            | Self::Option { .. }
            | Self::BadName { .. }
            | Self::IntoItself { .. } => 22,
            Self::Corrupt { .. } => 117,
            Self::ReadOnly { .. } => 30,
            Self::NotFound { .. } => 2,
            Self::Exists { .. } => 17,
            Self::NotADirectory { .. } => 20,
            Self::IsADirectory { .. } => 21,
            Self::NotEmpty { .. } => 39,
            Self::Loop { .. } => 40,
            Self::NoSpace { .. } | Self::NoInodes { .. } => 28,
            Self::TooManyLinks { .. } => 31,
            Self::TooBig { .. } => 27,
            Self::Unsupported { .. } => 95,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(e) => write!(f, "{e}"),
            Self::Device(e) => write!(f, "{e}"),
            Self::NotExt4 { magic } => write!(
                f,
                "no ext4 file system: the magic number is {magic:#06x}, 0xef53 would be right"
            ),
            Self::Feature { name, advice } => write!(f, "feature `{name}`: {advice}"),
            Self::Corrupt { object, why } => write!(f, "{object}: {why}"),
            Self::Option { key, why } => write!(f, "`{key}`: {why}"),
            Self::ReadOnly { why } => write!(f, "the file system is read-only: {why}"),
            Self::NotFound { name } => write!(f, "`{name}`: no such file or directory"),
            Self::Exists { name } => write!(f, "`{name}`: exists already"),
            Self::NotADirectory { name } => write!(f, "`{name}`: not a directory"),
            Self::IsADirectory { name } => write!(f, "`{name}`: is a directory"),
            Self::NotEmpty { name } => write!(f, "`{name}`: the directory is not empty"),
            Self::BadName { name, why } => write!(f, "`{name}`: {why}"),
            Self::Loop { path } => write!(f, "`{path}`: more than 40 symbolic links"),
            Self::NoSpace { asked, free } => {
                write!(f, "no space: {asked} blocks asked for, {free} free")
            }
            Self::NoInodes { inodes } => write!(f, "all {inodes} inodes are in use"),
            Self::TooManyLinks { ino } => write!(f, "inode {ino}: more than 65000 links"),
            Self::TooBig { end, max } => {
                write!(
                    f,
                    "the file would end at byte {end}, at most {max} is possible"
                )
            }
            Self::Unsupported { what } => write!(f, "not supported: {what}"),
            Self::IntoItself { name } => {
                write!(f, "`{name}`: a directory cannot be moved into itself")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Buffer(e) => Some(e),
            Self::Device(e) => Some(e),
            _ => None,
        }
    }
}

impl From<BufferError> for Error {
    fn from(e: BufferError) -> Self {
        Self::Buffer(e)
    }
}

impl From<cairn_block::Error> for Error {
    fn from(e: cairn_block::Error) -> Self {
        Self::Device(e)
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        Self::from_raw_os_error(e.errno())
    }
}
