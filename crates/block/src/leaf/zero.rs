//! `zero`: reads as zeros, takes no writes.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::spec::units::print_size;
use crate::{
    BlockDevice, Caps, DeviceInfo, Error, Extent, Node, Op, Param, ParamKind, Registry, ReqFlags,
    Result, Shape, check,
};

/// A read-only device of zeros: one hole.
#[derive(Debug, Clone)]
pub struct Zero {
    info: DeviceInfo,
    id: Option<Box<str>>,
}

impl Zero {
    /// `len` bytes of zeros.
    pub const fn new(len: u64) -> Self {
        let mut info = DeviceInfo::new(len);
        info.read_only = true;
        Self { info, id: None }
    }

    crate::layer::with_id!();
}

impl BlockDevice for Zero {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        Caps::FLUSH | Caps::EXTENTS | Caps::MULTI_CONN
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        check::request(&self.info, Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, flags)?;
        for buf in bufs {
            buf.fill(0);
        }
        Ok(())
    }

    fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Write })
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _: Range<u64>, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Discard })
    }

    fn write_zeroes(&self, _: Range<u64>, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly {
            op: Op::WriteZeroes,
        })
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        if len > 0 {
            // One extent: there is nothing to stop.
            let _ = each(Extent::hole(len));
        }
        Ok(())
    }

    fn resize(&self, _: u64) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Resize })
    }

    fn describe(&self) -> Node {
        Node::new("zero")
            .arg("size", print_size(self.info.len))
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[Param::new("size", ParamKind::Size, "bytes of zeros")
    .required()
    .positional()];

pub(crate) fn register(registry: &mut Registry) {
    registry.register("zero", "reads as zeros", Shape::Leaf, PARAMS, |site| {
        Ok(Arc::new(
            Zero::new(super::size(site)?).with_id(site.args().id()),
        ))
    });
}
