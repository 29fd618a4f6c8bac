//! Checking what was written.

use crate::job::data::Pattern;
use crate::words::words;

words! {
    /// `verify=`: what each block carries.
    pub enum VerifyKind {
        /// Nothing.
        None = "0",
        /// MD5.
        Md5 = "md5",
        /// CRC-64.
        Crc64 = "crc64",
        /// CRC-32.
        Crc32 = "crc32",
        /// CRC-32C by instruction.
        Crc32cIntel = "crc32c-intel",
        /// CRC-32C.
        Crc32c = "crc32c",
        /// CRC-16.
        Crc16 = "crc16",
        /// CRC-7.
        Crc7 = "crc7",
        /// xxHash, 32 bit.
        Xxhash = "xxhash",
        /// SHA-1.
        Sha1 = "sha1",
        /// SHA-256.
        Sha256 = "sha256",
        /// SHA-512.
        Sha512 = "sha512",
        /// SHA3-224.
        Sha3_224 = "sha3-224",
        /// SHA3-256.
        Sha3_256 = "sha3-256",
        /// SHA3-384.
        Sha3_384 = "sha3-384",
        /// SHA3-512.
        Sha3_512 = "sha3-512",
        /// The header only.
        Meta = "meta",
        /// `verify_pattern`, with a header.
        Pattern = "pattern",
        /// Pretends: for testing the machinery.
        Null = "null",
    }
}

/// Checking what was written.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Verify {
    /// `verify=` (default 0).
    pub kind: VerifyKind,
    /// Whether blocks carry headers; only a pattern without `verify=` goes without.
    pub headers: bool,
    /// `do_verify=` (default 1): read back after a write phase.
    pub do_verify: bool,
    /// `verify_only`: check what an earlier run wrote.
    pub only: bool,
    /// `verify_pattern=`; given alone it sets the kind to `pattern`.
    pub pattern: Option<Pattern>,
    /// `verify_interval=`: a header every this many bytes; `None` means every block.
    pub interval: Option<u32>,
    /// `verify_offset=`: where in the interval the header stands.
    pub offset: u32,
    /// `verify_fatal=` (default 0): stop at the first mismatch.
    pub fatal: bool,
    /// `verify_dump=` (default 0): write expected and received block to files.
    pub dump: bool,
    /// `verify_backlog=`: check after this many writes; `None` means at the end.
    pub backlog: Option<u64>,
    /// `verify_backlog_batch=`.
    pub backlog_batch: Option<u32>,
    /// `verify_async=` (default 0): threads that check.
    pub async_threads: u32,
    /// `verify_async_cpus=`, as CPU numbers; empty is all.
    pub async_cpus: Vec<u32>,
    /// `verify_state_save=` (default 1).
    pub state_save: bool,
    /// `verify_state_load=` (default 0).
    pub state_load: bool,
    /// `experimental_verify=` (default 0).
    pub experimental: bool,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            kind: VerifyKind::None,
            headers: true,
            do_verify: true,
            only: false,
            pattern: None,
            interval: None,
            offset: 0,
            fatal: false,
            dump: false,
            backlog: None,
            backlog_batch: None,
            async_threads: 0,
            async_cpus: Vec::new(),
            state_save: true,
            state_load: false,
            experimental: false,
        }
    }
}
