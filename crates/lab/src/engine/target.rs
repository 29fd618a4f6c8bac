//! What a job reads and writes.

use std::io::IoSlice;
use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Caps, Device, Error, Op, ReqFlags, Result};
use cairn_fio::job::IoEngine;

use super::names::Name;
use crate::files::AnyFile;

/// What stands behind one file name of a job.
#[derive(Clone)]
pub(crate) enum Target {
    /// A file.
    File(Arc<AnyFile>),
    /// A window of the device itself.
    Window(Window),
    /// A file whose space is changed instead of its data.
    Space(Arc<AnyFile>, SpaceOp),
    /// A name, with operations instead of I/Os.
    Name(Arc<Name>),
    /// Nothing at all: the cost of the engine.
    Null,
}

/// What an engine does to the space of a file in the place of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpaceOp {
    /// `falloc`: a write allocates its blocks and lets the file grow, a read allocates and keeps the size, a trim
    /// makes a hole.
    Allocate,
    /// `ftruncate`: a write sets the size to its offset.
    Truncate,
}

impl SpaceOp {
    /// What an engine does to space, if it is one of those that do.
    pub(crate) const fn of(engine: IoEngine) -> Option<Self> {
        match engine {
            IoEngine::Falloc => Some(Self::Allocate),
            IoEngine::Ftruncate => Some(Self::Truncate),
            _ => None,
        }
    }

    fn run(self, file: &AnyFile, op: Op, offset: u64, len: u64) -> Result<()> {
        match (self, op) {
            (Self::Allocate, Op::Discard) => file.punch(offset, len),
            (Self::Allocate, op) => file.allocate(offset, len, op == Op::Read),
            (Self::Truncate, Op::Write) => file.truncate(offset),
            // As fio says of anything but a write.
            (Self::Truncate, _) => {
                Err(Error::io(offset, std::io::Error::from_raw_os_error(EINVAL)))
            }
        }
    }
}

/// Errno of an I/O that an engine has no operation for.
const EINVAL: i32 = 22;

/// Part of a device.
#[derive(Clone)]
pub(crate) struct Window {
    device: Device,
    start: u64,
    len: u64,
    /// Largest request the device takes.
    max_transfer: u64,
    fua: bool,
}

impl Window {
    pub(crate) fn new(device: Device, start: u64, len: u64) -> Self {
        Self {
            max_transfer: match device.info().max_transfer {
                0 => u64::MAX,
                n => u64::from(n),
            },
            fua: device.caps().intersects(Caps::FUA),
            device,
            start,
            len,
        }
    }

    fn place(&self, op: Op, offset: u64, len: u64) -> Result<u64> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.start + offset),
            _ => Err(Error::OutOfRange {
                op,
                offset,
                len,
                size: self.len,
            }),
        }
    }

    fn step(&self, len: usize) -> usize {
        usize::try_from(self.max_transfer)
            .unwrap_or(usize::MAX)
            .min(len)
            .max(1)
    }
}

impl Target {
    #[inline]
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self {
            Self::File(file) => file.read(offset, buf),
            Self::Space(file, space) => space.run(file, Op::Read, offset, buf.len() as u64),
            Self::Window(w) => {
                let mut at = w.place(Op::Read, offset, buf.len() as u64)?;
                for part in buf.chunks_mut(w.step(buf.len())) {
                    w.device.read_at(part, at)?;
                    at += part.len() as u64;
                }
                Ok(())
            }
            Self::Name(_) | Self::Null => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn write(&self, offset: u64, buf: &[u8], durable: bool) -> Result<()> {
        match self {
            Self::File(file) => file.write(offset, buf, durable),
            Self::Space(file, space) => space.run(file, Op::Write, offset, buf.len() as u64),
            Self::Window(w) => {
                let mut at = w.place(Op::Write, offset, buf.len() as u64)?;
                let flags = if durable && w.fua {
                    ReqFlags::FUA
                } else {
                    ReqFlags::empty()
                };
                for part in buf.chunks(w.step(buf.len())) {
                    w.device
                        .write_vectored_at(&[IoSlice::new(part)], at, flags)?;
                    at += part.len() as u64;
                }
                if durable && !w.fua {
                    w.device.flush()?;
                }
                Ok(())
            }
            Self::Name(_) | Self::Null => Ok(()),
        }
    }

    pub(crate) fn trim(&self, offset: u64, len: u64) -> Result<()> {
        match self {
            Self::Space(file, space) => space.run(file, Op::Discard, offset, len),
            Self::File(_) => Err(Error::unsupported_because(
                Op::Discard,
                "files take no trims here; run the job with --on device",
            )),
            Self::Window(w) => {
                let at = w.place(Op::Discard, offset, len)?;
                w.device.discard(at..at + len, ReqFlags::empty())
            }
            Self::Name(_) | Self::Null => Ok(()),
        }
    }

    pub(crate) fn flush(&self) -> Result<()> {
        match self {
            Self::File(file) | Self::Space(file, _) => file.flush(),
            Self::Window(w) => w.device.flush(),
            Self::Name(_) | Self::Null => Ok(()),
        }
    }

    /// Empties a file, as if it were removed and made again; a device stays as it is.
    pub(crate) fn anew(&self) -> Result<()> {
        match self {
            Self::File(file) | Self::Space(file, _) => file.anew(),
            Self::Window(_) | Self::Name(_) | Self::Null => Ok(()),
        }
    }
}
