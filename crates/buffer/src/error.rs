//! Why a buffer could not be had or written.

use std::fmt;

use cairn_block::Error;

/// Why a buffer could not be had or written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum BufferError {
    /// The device has no such block.
    OutOfRange {
        /// The block asked for.
        block: u64,
        /// Blocks of the device.
        blocks: u64,
    },
    /// The block cannot be read.
    Read {
        /// The block.
        block: u64,
        /// What the device said.
        source: Error,
    },
    /// Blocks could not be written. They are dirty still, marked, and written again later.
    Write {
        /// How many writes failed.
        failed: u64,
        /// The first block that failed.
        block: u64,
        /// What the device said of it.
        source: Error,
    },
    /// The device did not flush; what was written since its last flush may not be durable.
    Flush {
        /// What the device said.
        source: Error,
    },
    /// The cache is full of buffers that cannot be written or are in use.
    Full {
        /// Buffers the cache may hold.
        capacity: usize,
        /// Those that wait to be written.
        dirty: usize,
    },
    /// The cache cannot be made with these settings.
    Config {
        /// The setting.
        key: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
}

impl BufferError {
    /// What the device said, if it said anything.
    pub const fn device(&self) -> Option<&Error> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } | Self::Flush { source } => {
                Some(source)
            }
            _ => None,
        }
    }
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { block, blocks } => {
                write!(f, "block {block} is past the device ({blocks} blocks)")
            }
            Self::Read { block, source } => write!(f, "block {block} cannot be read: {source}"),
            Self::Write {
                failed,
                block,
                source,
            } => write!(
                f,
                "{failed} blocks cannot be written and stay dirty, the first is {block}: {source}"
            ),
            Self::Flush { source } => write!(f, "the device does not flush: {source}"),
            Self::Full { capacity, dirty } => write!(
                f,
                "all {capacity} buffers are in use, {dirty} of them wait to be written"
            ),
            Self::Config { key, why } => write!(f, "`{key}`: {why}"),
        }
    }
}

impl std::error::Error for BufferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.device().map(|e| e as _)
    }
}
