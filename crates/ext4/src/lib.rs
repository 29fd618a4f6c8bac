#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod alloc;
mod back;
mod bitmap;
mod check;
mod crc;
mod dir;
mod dirindex;
mod edit;
mod entry;
mod error;
mod evict;
mod file;
mod format;
mod fs;
mod group;
mod inode;
mod names;
mod node;
mod num;
mod pages;
mod path;
mod raw;
mod rename;
mod resize;
mod space;
mod superblock;
mod tree;
mod write;

pub use check::{Finding, Report, check};
pub use error::{Error, Object, Result};
pub use file::File;
pub use format::{FormatOptions, format};
pub use fs::{Ext4, MountOptions, ROOT_INO, StatFs};
pub use names::Dir;
pub use path::{DirEntry, Stat};
pub use raw::{FileType, Time};
