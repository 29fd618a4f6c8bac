//! `cairn image`: file systems in image files.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `cairn image`.
#[derive(Debug, Args)]
pub(crate) struct ImageArgs {
    /// What to do with the image.
    #[command(subcommand)]
    pub(crate) action: ImageAction,
}

/// What can be done with an image.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageAction {
    /// Make an empty ext4 file system in a file or block device; what was there is lost
    Mkfs(MkfsArgs),
    /// What kind of file system it is, and how full
    Info(ImageFile),
    /// List a directory, or one file
    Ls(ImagePath),
    /// Print a file
    Cat(ImagePath),
    /// Copy a file into the image; one of the same name is replaced
    Put(PutArgs),
    /// Copy a file out of the image
    Get(GetArgs),
    /// Check everything: bitmaps, counts, names, checksums
    Check(ImageFile),
}

/// `cairn image mkfs`.
#[derive(Debug, Args)]
pub(crate) struct MkfsArgs {
    /// The file, made if it is missing
    pub(crate) image: PathBuf,
    /// Bytes, with a unit: `64m`, `2g`
    #[arg(long, value_name = "N", value_parser = cairn_block::spec::units::parse_size)]
    pub(crate) size: u64,
    /// Bytes in a block: 1024, 2048 or 4096
    #[arg(long, value_name = "N", default_value = "4096", value_parser = block_size)]
    pub(crate) block_size: u32,
}

/// An image alone.
#[derive(Debug, Args)]
pub(crate) struct ImageFile {
    /// The file or block device
    pub(crate) image: PathBuf,
}

/// An image and a path in it.
#[derive(Debug, Args)]
pub(crate) struct ImagePath {
    /// The file or block device
    pub(crate) image: PathBuf,
    /// Path in the image, from its root
    #[arg(default_value = "/")]
    pub(crate) path: String,
}

/// `cairn image put`.
#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The file or block device
    pub(crate) image: PathBuf,
    /// File to copy
    pub(crate) src: PathBuf,
    /// Path in the image; a directory keeps the file's name
    pub(crate) path: String,
}

/// `cairn image get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The file or block device
    pub(crate) image: PathBuf,
    /// Path in the image
    pub(crate) path: String,
    /// File to write; a directory keeps the file's name
    pub(crate) dst: PathBuf,
}

/// A block size, as a size with or without a unit.
fn block_size(text: &str) -> Result<u32, String> {
    let size = cairn_block::spec::units::parse_size(text)?;
    match size {
        1024 | 2048 | 4096 => u32::try_from(size).map_err(|e| e.to_string()),
        _ => Err("1024, 2048 or 4096 would be right".to_owned()),
    }
}
