//! Numbers of the protocol, as its public document names them.

pub(crate) const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943; // NBDMAGIC
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054; // IHAVEOPT
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;
pub(crate) const EXTENDED_CHUNK_MAGIC: u32 = 0x6e8a_278c;

pub(crate) const REQUEST_LEN: usize = 28;
pub(crate) const EXTENDED_REQUEST_LEN: usize = 32;
pub(crate) const EXTENDED_CHUNK_LEN: usize = 32;

/// Handshake flags of both sides.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 2;
/// Zeros behind the answer to `EXPORT_NAME`, unless both sides agreed to leave them out.
pub(crate) const EXPORT_NAME_PAD: usize = 124;

/// Longest string, in bytes.
pub const MAX_STRING: usize = 4096;

/// TCP port of the protocol.
pub const DEFAULT_PORT: u16 = 10809;

/// Most extents in one status chunk.
pub(crate) const MAX_EXTENTS: usize = 1 << 20;

/// Options of the handshake.
pub mod option {
    /// Enters transmission; has no error reply.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the session.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Asks for TLS.
    pub const STARTTLS: u32 = 5;
    /// Asks about an export.
    pub const INFO: u32 = 6;
    /// Enters transmission.
    pub const GO: u32 = 7;
    /// Asks for structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Lists metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Asks for 64-bit headers.
    pub const EXTENDED_HEADERS: u32 = 11;
}

pub(crate) mod rep {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERROR: u32 = 1 << 31;
    pub(crate) const ERR_UNSUP: u32 = ERROR + 1;
    pub(crate) const ERR_POLICY: u32 = ERROR + 2;
    pub(crate) const ERR_INVALID: u32 = ERROR + 3;
    pub(crate) const ERR_TLS_REQD: u32 = ERROR + 5;
    pub(crate) const ERR_UNKNOWN: u32 = ERROR + 6;
    pub(crate) const ERR_TOO_BIG: u32 = ERROR + 9;
    pub(crate) const ERR_EXT_HEADER_REQD: u32 = ERROR + 10;
}

pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Commands of a request.
pub mod command {
    /// Reads.
    pub const READ: u16 = 0;
    /// Writes.
    pub const WRITE: u16 = 1;
    /// Ends the session; has no reply.
    pub const DISC: u16 = 2;
    /// Makes durable what was replied to.
    pub const FLUSH: u16 = 3;
    /// Gives a range up.
    pub const TRIM: u16 = 4;
    /// Hints that a range will be read.
    pub const CACHE: u16 = 5;
    /// Zeroes a range.
    pub const WRITE_ZEROES: u16 = 6;
    /// Asks where data is.
    pub const BLOCK_STATUS: u16 = 7;
}

pub(crate) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXT: u16 = 6;
    pub(crate) const ERROR_BIT: u16 = 1 << 15;
    pub(crate) const ERROR: u16 = ERROR_BIT + 1;
}

/// The metadata context that says where data is.
pub(crate) const BASE_ALLOCATION: &str = "base:allocation";
/// The id that this server gives it.
pub(crate) const BASE_ALLOCATION_ID: u32 = 1;

bitflags::bitflags! {
    /// What an export can do, as the handshake tells.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TransmissionFlags: u16 {
        /// Always set.
        const HAS_FLAGS = 1 << 0;
        /// Takes no changes.
        const READ_ONLY = 1 << 1;
        /// `FLUSH`.
        const SEND_FLUSH = 1 << 2;
        /// The FUA flag, on every command.
        const SEND_FUA = 1 << 3;
        /// Distance between offsets costs time.
        const ROTATIONAL = 1 << 4;
        /// `TRIM`.
        const SEND_TRIM = 1 << 5;
        /// `WRITE_ZEROES`.
        const SEND_WRITE_ZEROES = 1 << 6;
        /// The DF flag of `READ`.
        const SEND_DF = 1 << 7;
        /// A flush on one connection covers the writes of all.
        const CAN_MULTI_CONN = 1 << 8;
        /// Experimental, never offered.
        const SEND_RESIZE = 1 << 9;
        /// `CACHE`.
        const SEND_CACHE = 1 << 10;
        /// The `FAST_ZERO` flag.
        const SEND_FAST_ZERO = 1 << 11;
        /// `BLOCK_STATUS` that names its contexts.
        const BLOCK_STATUS_PAYLOAD = 1 << 12;
    }
}

bitflags::bitflags! {
    /// Flags of one request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CommandFlags: u16 {
        /// Durable before the reply.
        const FUA = 1 << 0;
        /// `WRITE_ZEROES`: keep the range allocated.
        const NO_HOLE = 1 << 1;
        /// `READ`: one chunk of data.
        const DF = 1 << 2;
        /// `BLOCK_STATUS`: one extent.
        const REQ_ONE = 1 << 3;
        /// `WRITE_ZEROES`: fail unless quick.
        const FAST_ZERO = 1 << 4;
        /// Extended headers: a payload of the given length follows.
        const PAYLOAD_LEN = 1 << 5;
    }
}

bitflags::bitflags! {
    /// State of an extent in the context `base:allocation`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StatusFlags: u32 {
        /// Not allocated.
        const HOLE = 1 << 0;
        /// Reads as zeros.
        const ZERO = 1 << 1;
    }
}
