//! The stand-in for a device that is only being planned.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};

use crate::{BlockDevice, Caps, Device, DeviceInfo, Error, Node, Op, ReqFlags, Result};

/// Limits and capabilities of a device that was not made. Every request is refused, but for reads where
/// there is something to read already.
///
/// Constructors of leaves give it when [`Site::planning`](crate::Site::planning) says so, which is
/// how `stack explain` looks at a stack larger than memory.
#[derive(Clone)]
pub struct Planned {
    info: DeviceInfo,
    caps: Caps,
    node: Node,
    content: Option<Device>,
}

impl Planned {
    /// The stand-in for a device with these limits, capabilities and description.
    pub const fn new(info: DeviceInfo, caps: Caps, node: Node) -> Self {
        Self {
            info,
            caps,
            node,
            content: None,
        }
    }

    /// Reads go to `content`: layers that look for a partition table, say, find what they will find.
    #[must_use]
    pub fn reading(mut self, content: Device) -> Self {
        self.content = Some(content);
        self
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned")
            .field("info", &self.info)
            .field("caps", &self.caps)
            .field("node", &self.node)
            .finish_non_exhaustive()
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

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        match &self.content {
            Some(content) => content.read_vectored_at(bufs, off, flags),
            None => Err(Error::unsupported_because(Op::Read, WHY)),
        }
    }

    fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64, _: ReqFlags) -> Result<()> {
        Err(Error::unsupported_because(Op::Write, WHY))
    }

    fn describe(&self) -> Node {
        self.node.clone()
    }
}
