//! What the buffers hold.

use crate::words::words;

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternPart {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `%o`: offset of the block, 8 bytes, native order.
    Offset,
    /// `'file'`: what the file holds, read when the job is set up.
    File(String),
}

/// A pattern repeated over the buffer: `0xdeadface`, `"text"`, `%o`, joined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    /// The pieces in order.
    pub parts: Vec<PatternPart>,
}

words! {
    /// `dedupe_mode=`.
    pub enum DedupeMode {
        /// Repeat the last block.
        Repeat = "repeat",
        /// Choose from a working set.
        WorkingSet = "working_set",
    }
}

/// What the buffers hold.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Buffers {
    /// `zero_buffers`: all zero.
    pub zero: bool,
    /// `refill_buffers`: new random content before each write.
    pub refill: bool,
    /// `scramble_buffers=` (default 1): change a little before each write, unless refilled.
    pub scramble: bool,
    /// `buffer_pattern=`.
    pub pattern: Option<Pattern>,
    /// `buffer_compress_percentage=`.
    pub compress_percent: Option<u8>,
    /// `buffer_compress_chunk=` (default 512).
    pub compress_chunk: u64,
    /// `dedupe_percentage=`.
    pub dedupe_percent: Option<u8>,
    /// `dedupe_mode=`.
    pub dedupe_mode: DedupeMode,
    /// `dedupe_working_set_percentage=` (default 5).
    pub dedupe_working_set_percent: u8,
    /// `dedupe_global=` (default 0).
    pub dedupe_global: bool,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            zero: false,
            refill: false,
            scramble: true,
            pattern: None,
            compress_percent: None,
            compress_chunk: 512,
            dedupe_percent: None,
            dedupe_mode: DedupeMode::Repeat,
            dedupe_working_set_percent: 5,
            dedupe_global: false,
        }
    }
}
