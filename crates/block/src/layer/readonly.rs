//! `readonly`: takes no changes.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use crate::{
    BlockDevice, Caps, Device, DeviceInfo, Error, Node, Op, Registry, ReqFlags, Result, Shape,
    forward,
};

/// A layer that refuses every change.
pub struct ReadOnly {
    below: Device,
    id: Option<Box<str>>,
}

/// What changes, or would let a change pass by.
const CHANGES: Caps = Caps::WRITE
    .union(Caps::FUA)
    .union(Caps::DISCARD)
    .union(Caps::DISCARD_ZEROES)
    .union(Caps::ZERO)
    .union(Caps::FAST_ZERO)
    .union(Caps::RESIZE)
    .union(Caps::COPY);

impl ReadOnly {
    /// Over `below`.
    pub fn new(below: Device) -> Self {
        Self { below, id: None }
    }

    crate::layer::with_id!();
}

impl BlockDevice for ReadOnly {
    forward!(below: read flush extents cache snapshot children);

    fn info(&self) -> DeviceInfo {
        let mut info = self.below.info();
        info.read_only = true;
        info
    }

    fn caps(&self) -> Caps {
        self.below.caps() - CHANGES - Caps::ZCOPY
    }

    fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Write })
    }

    fn discard(&self, _: Range<u64>, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Discard })
    }

    fn write_zeroes(&self, _: Range<u64>, _: ReqFlags) -> Result<()> {
        Err(Error::ReadOnly {
            op: Op::WriteZeroes,
        })
    }

    fn resize(&self, _: u64) -> Result<()> {
        Err(Error::ReadOnly { op: Op::Resize })
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (CHANGES, "no changes are taken"),
            (Caps::ZCOPY, "the mapping could be written to"),
        ]
    }

    fn describe(&self) -> Node {
        Node::new("readonly").with_id(self.id.as_deref())
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "readonly",
        "refuses every change",
        Shape::Layer,
        &[],
        |site| {
            Ok(Arc::new(
                ReadOnly::new(site.below()?).with_id(site.args().id()),
            ))
        },
    );
}
