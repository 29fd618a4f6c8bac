//! `pattern`: every place holds its own address.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;

use crate::spec::units::print_size;
use crate::{
    BlockDevice, Caps, DeviceInfo, Error, Node, Op, Param, ParamKind, Registry, ReqFlags, Result,
    Shape, check,
};

/// A device whose aligned 8-byte words are their own offsets, big-endian. A write must match, else it
/// is an I/O error: what comes back wrong says where it came from.
#[derive(Debug, Clone)]
pub struct Pattern {
    info: DeviceInfo,
    id: Option<Box<str>>,
}

fn byte(off: u64) -> u8 {
    let [b0, b1, b2, b3, b4, b5, b6, b7] = (off & !7).to_be_bytes();
    match off & 7 {
        0 => b0,
        1 => b1,
        2 => b2,
        3 => b3,
        4 => b4,
        5 => b5,
        6 => b6,
        _ => b7,
    }
}

impl Pattern {
    /// `len` bytes of addresses.
    pub const fn new(len: u64) -> Self {
        Self {
            info: DeviceInfo::new(len),
            id: None,
        }
    }

    crate::layer::with_id!();
}

impl BlockDevice for Pattern {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        Caps::WRITE | Caps::FLUSH | Caps::FUA_NATIVE | Caps::MULTI_CONN
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        check::request(&self.info, Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, flags)?;
        for (b, at) in bufs.iter_mut().flat_map(|b| b.iter_mut()).zip(off..) {
            *b = byte(at);
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info, Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)?;
        let wrong = bufs
            .iter()
            .flat_map(|b| b.iter())
            .zip(off..)
            .find(|(b, at)| **b != byte(*at));
        match wrong {
            None => Ok(()),
            Some((b, at)) => Err(Error::io(
                at,
                io::Error::other(format!(
                    "byte {b:#04x} does not match the pattern, which has {:#04x}",
                    byte(at)
                )),
            )),
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn describe(&self) -> Node {
        Node::new("pattern")
            .arg("size", print_size(self.info.len))
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[Param::new("size", ParamKind::Size, "bytes of addresses")
    .required()
    .positional()];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "pattern",
        "every place holds its own address; writes must match",
        Shape::Leaf,
        PARAMS,
        |site| {
            Ok(Arc::new(
                Pattern::new(super::size(site)?).with_id(site.args().id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockDeviceExt;

    #[test]
    fn words_are_their_offsets() {
        let disk = Pattern::new(1 << 40);
        let off = 0x12_3456_7898;
        assert_eq!(
            disk.read_vec(off, 8).unwrap(),
            [0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0x98]
        );
        assert!(disk.write_at(&[0x12, 0x34], off + 3).is_ok());
        let e = disk.write_at(&[0x12, 0x35], off + 3).unwrap_err();
        assert!(e.to_string().contains("0x35"), "{e}");
    }
}
