//! Why a request was refused or failed, with a total mapping to errno and to NBD.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

/// Shorthand for the result of a device operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Operations of a device, as errors, rules and statistics name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// `read_vectored_at`
    Read,
    /// `write_vectored_at`
    Write,
    /// `flush`
    Flush,
    /// `discard`
    Discard,
    /// `write_zeroes`
    WriteZeroes,
    /// `extents`
    Extents,
    /// `cache`
    Cache,
    /// `resize`
    Resize,
    /// `snapshot`
    Snapshot,
}

impl Op {
    /// Every operation, in the order of the trait.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::WriteZeroes,
        Self::Extents,
        Self::Cache,
        Self::Resize,
        Self::Snapshot,
    ];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write_zeroes",
            Self::Extents => "extents",
            Self::Cache => "cache",
            Self::Resize => "resize",
            Self::Snapshot => "snapshot",
        }
    }

    /// Whether the operation changes what the device holds.
    pub const fn changes(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Discard | Self::WriteZeroes | Self::Resize
        )
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a request was refused or failed.
///
/// [`errno`](Error::errno) and [`nbd`](Error::nbd) are total: every variant has a number.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The range ends past the device, or `offset + len` overflows.
    OutOfRange {
        /// What was asked.
        op: Op,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Size of the device.
        size: u64,
    },
    /// Offset or length is no multiple of the logical block.
    Misaligned {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// What both must be a multiple of.
        need: u32,
    },
    /// The request is larger than the device's largest transfer.
    TooLarge {
        /// Bytes asked for.
        len: u64,
        /// Largest request in bytes.
        max: u32,
    },
    /// The device takes no changes.
    ReadOnly {
        /// What was asked.
        op: Op,
    },
    /// No space is left for a write.
    NoSpace {
        /// First byte of the request.
        offset: u64,
        /// Bytes that may be allocated in all.
        limit: u64,
    },
    /// The device does not do this.
    Unsupported {
        /// What was asked.
        op: Op,
        /// The flag, value or reason that made it so, empty when the operation itself is missing.
        what: &'static str,
        /// Whether a `FAST` zeroing was refused, which NBD tells apart.
        fast_zero: bool,
    },
    /// The medium or the system below failed.
    Io {
        /// First byte of the request.
        offset: u64,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A previous failure left the state unknown.
    Poisoned {
        /// What failed before.
        why: &'static str,
    },
    /// The device is going away.
    Shutdown,
    /// A fault that a rule asked for.
    Injected {
        /// The rule that fired.
        rule: Arc<str>,
        /// The errno it asked for.
        errno: i32,
        /// Whether the rule fires once only.
        once: bool,
    },
}

impl Error {
    /// An operation that the device lacks.
    pub const fn unsupported(op: Op) -> Self {
        Self::Unsupported {
            op,
            what: "",
            fast_zero: false,
        }
    }

    /// An operation refused for what it asked in particular.
    pub const fn unsupported_because(op: Op, what: &'static str) -> Self {
        Self::Unsupported {
            op,
            what,
            fast_zero: false,
        }
    }

    /// A `FAST` zeroing that would not be fast. Nothing was changed.
    pub const fn not_fast() -> Self {
        Self::Unsupported {
            op: Op::WriteZeroes,
            what: "it would not be fast here",
            fast_zero: true,
        }
    }

    /// A failure of the system below at `offset`.
    pub fn io(offset: u64, source: io::Error) -> Self {
        Self::Io {
            offset,
            source: Arc::new(source),
        }
    }

    /// The errno a kernel would answer.
    ///
    /// ```
    /// use cairn_block::{Error, Op};
    ///
    /// let e = Error::OutOfRange { op: Op::Write, offset: 8192, len: 1, size: 4096 };
    /// assert_eq!(e.errno(), 28); // ENOSPC
    /// ```
    pub fn errno(&self) -> i32 {
        match self {
            Self::OutOfRange {
                op: Op::Write | Op::WriteZeroes,
                ..
            }
            | Self::NoSpace { .. } => Errno::NOSPC.raw_os_error(),
            Self::OutOfRange { .. } | Self::Misaligned { .. } | Self::TooLarge { .. } => {
                Errno::INVAL.raw_os_error()
            }
            Self::ReadOnly { .. } => Errno::ROFS.raw_os_error(),
            Self::Unsupported { .. } => Errno::OPNOTSUPP.raw_os_error(),
            Self::Io { source, .. } => source
                .raw_os_error()
                .unwrap_or_else(|| Errno::IO.raw_os_error()),
            Self::Poisoned { .. } => Errno::IO.raw_os_error(),
            Self::Shutdown => Errno::SHUTDOWN.raw_os_error(),
            Self::Injected { errno, .. } => *errno,
        }
    }

    /// The error number on an NBD wire, which knows eight only.
    pub fn nbd(&self) -> u32 {
        match self {
            Self::OutOfRange {
                op: Op::Write | Op::WriteZeroes,
                ..
            }
            | Self::NoSpace { .. } => 28,
            Self::OutOfRange { .. }
            | Self::Misaligned { .. }
            | Self::TooLarge { .. }
            | Self::Unsupported {
                fast_zero: false, ..
            } => 22,
            Self::Unsupported {
                fast_zero: true, ..
            } => 95,
            Self::ReadOnly { .. } => 1,
            Self::Io { .. } | Self::Injected { .. } => nbd_of_errno(self.errno()),
            Self::Poisoned { .. } => 5,
            Self::Shutdown => 108,
        }
    }
}

fn nbd_of_errno(errno: i32) -> u32 {
    match Errno::from_raw_os_error(errno) {
        Errno::PERM | Errno::ACCESS | Errno::ROFS => 1,
        Errno::NOMEM => 12,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => 28,
        _ => 5,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange {
                op,
                offset,
                len,
                size,
            } => write!(
                f,
                "{op} of {len} bytes at {offset} ends past the device ({size} bytes)"
            ),
            Self::Misaligned { offset, len, need } => write!(
                f,
                "{len} bytes at {offset}: both must be a multiple of {need}"
            ),
            Self::TooLarge { len, max } => {
                write!(
                    f,
                    "{len} bytes in one request: the device takes at most {max}"
                )
            }
            Self::ReadOnly { op } => write!(f, "{op} refused: the device is read-only"),
            Self::NoSpace { offset, limit } => write!(
                f,
                "no space for the write at {offset}: the limit of {limit} bytes is reached"
            ),
            Self::Unsupported { op, what: "", .. } => {
                write!(f, "{op} is not supported by this device")
            }
            Self::Unsupported { op, what, .. } => write!(f, "{op} is not supported: {what}"),
            Self::Io { offset, source } => write!(f, "I/O error at {offset}: {source}"),
            Self::Poisoned { why } => write!(f, "the state is unknown since {why}"),
            Self::Shutdown => f.write_str("the device is shutting down"),
            Self::Injected { rule, errno, .. } => write!(
                f,
                "fault injected by {rule}: {}",
                io::Error::from_raw_os_error(*errno)
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        Self::from_raw_os_error(e.errno())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_err(errno: Errno) -> Error {
        Error::io(0, io::Error::from_raw_os_error(errno.raw_os_error()))
    }

    #[test]
    fn every_variant_has_both_numbers() {
        let range = |op| Error::OutOfRange {
            op,
            offset: 0,
            len: 1,
            size: 0,
        };
        let injected = |errno: Errno| Error::Injected {
            rule: "r".into(),
            errno: errno.raw_os_error(),
            once: false,
        };
        let table = [
            (range(Op::Read), Errno::INVAL, 22),
            (range(Op::Discard), Errno::INVAL, 22),
            (range(Op::Write), Errno::NOSPC, 28),
            (range(Op::WriteZeroes), Errno::NOSPC, 28),
            (
                Error::Misaligned {
                    offset: 1,
                    len: 1,
                    need: 512,
                },
                Errno::INVAL,
                22,
            ),
            (Error::TooLarge { len: 2, max: 1 }, Errno::INVAL, 22),
            (Error::ReadOnly { op: Op::Write }, Errno::ROFS, 1),
            (
                Error::NoSpace {
                    offset: 0,
                    limit: 1,
                },
                Errno::NOSPC,
                28,
            ),
            (Error::not_fast(), Errno::OPNOTSUPP, 95),
            (Error::unsupported(Op::Discard), Errno::OPNOTSUPP, 22),
            (io_err(Errno::PERM), Errno::PERM, 1),
            (io_err(Errno::ACCESS), Errno::ACCESS, 1),
            (io_err(Errno::NOMEM), Errno::NOMEM, 12),
            (io_err(Errno::DQUOT), Errno::DQUOT, 28),
            (io_err(Errno::FBIG), Errno::FBIG, 28),
            (io_err(Errno::NODEV), Errno::NODEV, 5),
            (Error::io(0, io::Error::other("x")), Errno::IO, 5),
            (Error::Poisoned { why: "x" }, Errno::IO, 5),
            (Error::Shutdown, Errno::SHUTDOWN, 108),
            (injected(Errno::ROFS), Errno::ROFS, 1),
            (injected(Errno::IO), Errno::IO, 5),
        ];
        for (e, errno, nbd) in table {
            assert_eq!(e.errno(), errno.raw_os_error(), "{e}");
            assert_eq!(e.nbd(), nbd, "{e}");
            assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn errors_stay_small() {
        assert!(size_of::<Error>() <= 40, "{}", size_of::<Error>());
    }
}
