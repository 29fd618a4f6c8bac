//! The stand-in for a device that is only being planned.

use std::io::{IoSlice, IoSliceMut};

use crate::{BlockDevice, Caps, DeviceInfo, Error, Node, Op, ReqFlags, Result};

/// Limits and capabilities of a device that was not made. Every request is refused.
///
/// Constructors of leaves give it when [`Site::planning`](crate::Site::planning) says so, which is
/// how `stack explain` looks at a stack larger than memory.
#[derive(Debug, Clone)]
pub struct Planned {
    info: DeviceInfo,
    caps: Caps,
    node: Node,
}

impl Planned {
    /// The stand-in for a device with these limits, capabilities and description.
    pub const fn new(info: DeviceInfo, caps: Caps, node: Node) -> Self {
        Self { info, caps, node }
    }
}

const WHY: &str = "the device is planned only";

impl BlockDevice for Planned {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    fn read_vectored_at(&self, _: &mut [IoSliceMut<'_>], _: u64, _: ReqFlags) -> Result<()> {
        Err(Error::unsupported_because(Op::Read, WHY))
    }

    fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64, _: ReqFlags) -> Result<()> {
        Err(Error::unsupported_because(Op::Write, WHY))
    }

    fn describe(&self) -> Node {
        self.node.clone()
    }
}
