//! What a job reads and writes.

use std::io::IoSlice;
use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Caps, Device, Error, Op, ReqFlags, Result};

use super::names::Name;
use crate::files::AnyFile;

/// What stands behind one file name of a job.
#[derive(Clone)]
pub(crate) enum Target {
    /// A file.
    File(Arc<AnyFile>),
    /// A window of the device itself.
    Window(Window),
    /// A name, with operations instead of I/Os.
    Name(Arc<Name>),
    /// Nothing at all: the cost of the engine.
    Null,
}

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
            Self::File(file) => file.flush(),
            Self::Window(w) => w.device.flush(),
            Self::Name(_) | Self::Null => Ok(()),
        }
    }
}
