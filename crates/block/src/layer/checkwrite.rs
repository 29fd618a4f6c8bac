//! `checkwrite`: a write must equal what is there.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use crate::iov::us;
use crate::{
    BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Error, Node, Op, Registry, ReqFlags,
    Result, Shape, check, forward,
};

/// A layer that writes nothing and fails every write that would change a byte. For copying a second
/// time and finding the first place where a copy went wrong.
pub struct CheckWrite {
    below: Device,
    id: Option<Box<str>>,
}

impl CheckWrite {
    /// Over `below`.
    pub fn new(below: Device) -> Self {
        Self { below, id: None }
    }

    crate::layer::with_id!();

    fn compare(&self, want: &[u8], off: u64) -> Result<()> {
        let have = self.below.read_vec(off, want.len())?;
        match have.iter().zip(want).zip(off..).find(|((h, w), _)| h != w) {
            None => Ok(()),
            Some(((have, want), at)) => Err(Error::io(
                at,
                io::Error::other(format!("{want:#04x} was written where {have:#04x} is")),
            )),
        }
    }
}

const KEPT: Caps = Caps::FLUSH
    .union(Caps::EXTENTS)
    .union(Caps::CACHE_HINT)
    .union(Caps::SNAPSHOT)
    .union(Caps::MULTI_CONN);

impl BlockDevice for CheckWrite {
    forward!(below: read flush extents cache snapshot children);

    fn info(&self) -> DeviceInfo {
        let mut info = self.below.info();
        info.read_only = false;
        info
    }

    fn caps(&self) -> Caps {
        // What equals is as durable as what it equals.
        (self.below.caps() & KEPT) | Caps::WRITE | Caps::ZERO | Caps::FUA_NATIVE
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info(), Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)?;
        self.compare(&crate::iov::gather(bufs), off)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info(), Op::WriteZeroes, &range)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let mut at = range.start;
        let end = range.start + len;
        while at < end {
            let n = (end - at).min(1 << 20);
            self.compare(&vec![0; us(n)], at)?;
            at += n;
        }
        Ok(())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::RESHAPING, "nothing is changed"),
            (Caps::ZCOPY, "writes through a mapping would not be checked"),
        ]
    }

    fn describe(&self) -> Node {
        Node::new("checkwrite").with_id(self.id.as_deref())
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "checkwrite",
        "fails a write that would change a byte",
        Shape::Layer,
        &[],
        |site| {
            Ok(Arc::new(
                CheckWrite::new(site.below()?).with_id(site.args().id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    #[test]
    fn only_what_is_there_may_be_written() {
        let below: Device = Arc::new(Pattern::new(1 << 16));
        let layer = CheckWrite::new(Arc::clone(&below));
        let mut bytes = below.read_vec(1000, 3000).unwrap();
        assert!(layer.write_at(&bytes, 1000).is_ok());
        bytes[2500] ^= 1;
        let e = layer.write_at(&bytes, 1000).unwrap_err();
        assert!(matches!(e, Error::Io { offset: 3500, .. }), "{e}");
    }
}
