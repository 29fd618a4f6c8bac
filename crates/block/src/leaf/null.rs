//! `null`: drops writes.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::spec::units::print_size;
use crate::{
    BlockDevice, Caps, DeviceInfo, Extent, Node, Op, Param, ParamKind, Registry, ReqFlags, Result,
    Shape, check,
};

/// What reads of a [`Null`] give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NullRead {
    /// Zeros.
    #[default]
    Zeros,
    /// Whatever the reader's buffer held: for the overhead of an engine alone, never for export.
    Keep,
}

/// A device that drops what is written and reads as zeros, or leaves the reader's buffer alone.
#[derive(Debug, Clone)]
pub struct Null {
    info: DeviceInfo,
    read: NullRead,
    id: Option<Box<str>>,
}

impl Null {
    /// A device of `len` bytes that reads as zeros.
    pub const fn new(len: u64) -> Self {
        Self {
            info: DeviceInfo::new(len),
            read: NullRead::Zeros,
            id: None,
        }
    }

    /// With reads of this kind.
    #[must_use]
    pub const fn reading(mut self, read: NullRead) -> Self {
        self.read = read;
        self
    }

    crate::layer::with_id!();
}

impl BlockDevice for Null {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        let always =
            Caps::WRITE | Caps::FLUSH | Caps::FUA_NATIVE | Caps::DISCARD | Caps::MULTI_CONN;
        match self.read {
            NullRead::Zeros => {
                always | Caps::DISCARD_ZEROES | Caps::ZERO | Caps::FAST_ZERO | Caps::EXTENTS
            }
            NullRead::Keep => always,
        }
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        check::request(&self.info, Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, flags)?;
        if self.read == NullRead::Zeros {
            for buf in bufs {
                buf.fill(0);
            }
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info, Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        check::range(&self.info, Op::Discard, &range)?;
        check::flags(self.caps(), Op::Discard, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::range(&self.info, Op::WriteZeroes, &range)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        if len > 0 {
            // One extent: there is nothing to stop.
            let _ = each(match self.read {
                NullRead::Zeros => Extent::hole(len),
                NullRead::Keep => Extent::data(len),
            });
        }
        Ok(())
    }

    fn describe(&self) -> Node {
        let node = Node::new("null").arg("size", print_size(self.info.len));
        match self.read {
            NullRead::Zeros => node,
            NullRead::Keep => node.arg("read", "keep"),
        }
        .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[
    Param::new("size", ParamKind::Size, "bytes it seems to hold")
        .required()
        .positional(),
    Param::new(
        "read",
        ParamKind::Choice(&["zeros", "keep"]),
        "reads give zeros, or keep the reader's buffer as it was",
    )
    .or("zeros"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register("null", "drops writes", Shape::Leaf, PARAMS, |site| {
        let read = match site.args().text("read") {
            Some("keep") => NullRead::Keep,
            _ => NullRead::Zeros,
        };
        Ok(Arc::new(
            Null::new(super::size(site)?)
                .reading(read)
                .with_id(site.args().id()),
        ))
    });
}
