//! Errors on the wire, and what ends a connection.

use std::fmt;

/// An error number of a reply. The wire knows these eight only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum WireError {
    /// Not permitted: the export is read-only.
    Perm = 1,
    /// I/O error.
    Io = 5,
    /// Out of memory.
    NoMem = 12,
    /// Invalid request.
    Inval = 22,
    /// No space left, or past the end.
    NoSpc = 28,
    /// Too much in one answer.
    Overflow = 75,
    /// Not supported: a fast zeroing that would be slow.
    NotSup = 95,
    /// The server stops.
    Shutdown = 108,
}

impl WireError {
    /// The number on the wire.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The error of a number; one that the protocol does not know is `Inval`, as the protocol asks.
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Perm,
            5 => Self::Io,
            12 => Self::NoMem,
            28 => Self::NoSpc,
            75 => Self::Overflow,
            95 => Self::NotSup,
            108 => Self::Shutdown,
            _ => Self::Inval,
        }
    }

    /// What it means, in a few words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Perm => "not permitted: the export is read-only",
            Self::Io => "I/O error",
            Self::NoMem => "out of memory",
            Self::Inval => "invalid request",
            Self::NoSpc => "no space left",
            Self::Overflow => "too much in one answer",
            Self::NotSup => "would not be fast",
            Self::Shutdown => "the server stops",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for WireError {}

/// What a peer did that leaves nothing to do but to end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A magic number is wrong.
    Magic {
        /// What it stands in front of.
        of: &'static str,
        /// What was found.
        found: u64,
        /// What would be right.
        want: u64,
    },
    /// Handshake flags that nobody offered.
    ClientFlags(u32),
    /// An option that is longer than is ever skipped.
    OptionTooLong {
        /// The option.
        option: u32,
        /// Its length in bytes.
        len: u32,
        /// The longest that is skipped.
        max: u32,
    },
    /// More options than one handshake may have.
    TooManyOptions(u32),
    /// `EXPORT_NAME` for an export that cannot be had, which has no error reply.
    ExportName(&'static str),
    /// A payload that is far above what was offered.
    PayloadTooLong {
        /// Its length in bytes.
        len: u64,
        /// The longest that is skipped.
        max: u64,
    },
    /// A reply that the protocol does not allow.
    Reply(&'static str),
    /// A reply to a request that is not in flight.
    Cookie(u64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { of, found, want } => {
                write!(f, "{of} begins with {found:#x} instead of {want:#x}")
            }
            Self::ClientFlags(flags) => write!(
                f,
                "handshake flags {flags:#x}: only bits 0 and 1 are defined"
            ),
            Self::OptionTooLong { option, len, max } => write!(
                f,
                "option {option} has {len} bytes of data: at most {max} are looked at"
            ),
            Self::TooManyOptions(max) => write!(f, "more than {max} options in one handshake"),
            Self::ExportName(why) => write!(f, "EXPORT_NAME cannot be answered: {why}"),
            Self::PayloadTooLong { len, max } => {
                write!(f, "a payload of {len} bytes: at most {max} are looked at")
            }
            Self::Reply(what) => write!(f, "a reply that the protocol forbids: {what}"),
            Self::Cookie(cookie) => {
                write!(f, "a reply to {cookie:#x}, which is not in flight")
            }
        }
    }
}

impl std::error::Error for Violation {}
