//! `blocksize`: smaller blocks than the device below has, by reading around them.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::iov::{gather, scatter, us};
use crate::range_lock::RangeLocks;
use crate::spec::units::print_size;
use crate::{
    BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Error, Extent, Node, Op, Param,
    ParamKind, Registry, ReqFlags, Result, Shape, check, forward,
};

/// A layer that takes requests smaller than the blocks below: it reads the blocks that are touched in
/// part, changes them, and writes them back.
pub struct BlockSize {
    below: Device,
    /// What is offered.
    logical: u32,
    /// What the device below needs.
    need: u64,
    locks: RangeLocks,
    id: Option<Box<str>>,
}

impl BlockSize {
    /// Over `below`, offering a logical block of `logical` bytes, or the device's own if that is
    /// smaller.
    pub fn new(below: Device, logical: u32) -> Self {
        let need = below.info().logical_block;
        Self {
            below,
            logical: logical.min(need),
            need: need.into(),
            locks: RangeLocks::new(),
            id: None,
        }
    }

    crate::layer::with_id!();

    const fn down(&self, off: u64) -> u64 {
        off / self.need * self.need
    }

    const fn up(&self, off: u64) -> u64 {
        off.div_ceil(self.need) * self.need
    }

    const fn aligned(&self, off: u64, len: u64) -> bool {
        (off | len) & (self.need - 1) == 0
    }

    /// Changes a range that does not begin and end at blocks.
    fn patch(&self, off: u64, bytes: &[u8], flags: ReqFlags) -> Result<()> {
        let (start, end) = (self.down(off), self.up(off + bytes.len() as u64));
        let _alone = self.locks.own(start, end - start);
        let mut around = self.below.read_vec(start, us(end - start))?;
        let skip = us(off - start);
        if let Some(part) = around.get_mut(skip..skip + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        self.below
            .write_vectored_at(&[IoSlice::new(&around)], start, flags)
    }

    /// Runs `whole` on the blocks inside a range, and writes zeros to the parts of blocks at its edges.
    fn clear(
        &self,
        off: u64,
        len: u64,
        flags: ReqFlags,
        whole: impl FnOnce(Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let end = off + len;
        let (first, last) = (self.up(off), self.down(end));
        if first >= last {
            return self.patch(off, &vec![0; us(len)], flags);
        }
        if off < first {
            self.patch(off, &vec![0; us(first - off)], flags)?;
        }
        {
            let _alone = self.locks.own(first, last - first);
            whole(first..last)?;
        }
        if last < end {
            self.patch(last, &vec![0; us(end - last)], flags)?;
        }
        Ok(())
    }

    /// FUA and nothing else, for the writes at the edges.
    fn only_fua(flags: ReqFlags) -> ReqFlags {
        flags & ReqFlags::FUA
    }
}

impl BlockDevice for BlockSize {
    forward!(below: flush children);

    fn info(&self) -> DeviceInfo {
        let mut info = self.below.info();
        info.physical_block = info.physical_block.max(info.logical_block);
        info.logical_block = self.logical;
        info
    }

    fn caps(&self) -> Caps {
        self.below.caps() - (Caps::FAST_ZERO | Caps::RESIZE | Caps::ZCOPY)
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = check::bytes_mut(bufs);
        check::request(&self.info(), Op::Read, off, len)?;
        if self.aligned(off, len) || len == 0 {
            return self.below.read_vectored_at(bufs, off, flags);
        }
        check::flags(self.caps(), Op::Read, flags)?;
        let (start, end) = (self.down(off), self.up(off + len));
        let around = self.below.read_vec(start, us(end - start))?;
        scatter(around.get(us(off - start)..).unwrap_or_default(), bufs);
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.info(), Op::Write, off, len)?;
        check::flags(self.caps(), Op::Write, flags)?;
        if self.aligned(off, len) || len == 0 {
            let _others = self.locks.share(off, len);
            return self.below.write_vectored_at(bufs, off, flags);
        }
        self.patch(off, &gather(bufs), flags)
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info(), Op::Discard, &range)?;
        check::capable(self.caps(), Op::Discard)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        if len == 0 {
            return Ok(());
        }
        if !self.caps().contains(Caps::DISCARD_ZEROES) {
            // Nothing is promised of the edges, so they may stay as they are.
            let (first, last) = (self.up(range.start), self.down(range.end));
            return if first < last {
                let _alone = self.locks.own(first, last - first);
                self.below.discard(first..last, flags)
            } else {
                Ok(())
            };
        }
        self.clear(range.start, len, Self::only_fua(flags), |whole| {
            self.below.discard(whole, flags)
        })
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info(), Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        if len == 0 {
            return Ok(());
        }
        self.clear(range.start, len, Self::only_fua(flags), |whole| {
            self.below.write_zeroes(whole, flags)
        })
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info(), Op::Extents, &range)?;
        if len == 0 {
            return Ok(());
        }
        // The runs of whole blocks, cut to the range.
        let mut at = self.down(range.start);
        let end = range.start + len;
        self.below.extents(at..self.up(end), &mut |mut e| {
            let from = at.max(range.start);
            at += e.len;
            e.len = at.min(end) - from;
            each(e)
        })
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        check::range(&self.info(), Op::Cache, &range)?;
        self.below
            .cache(self.down(range.start)..self.up(range.end.max(range.start)))
    }

    fn resize(&self, _: u64) -> Result<()> {
        Err(Error::unsupported(Op::Resize))
    }

    fn snapshot(&self) -> Result<Device> {
        Ok(Arc::new(Self::new(self.below.snapshot()?, self.logical)))
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (
                Caps::FAST_ZERO,
                "the edges of a range are read and written back",
            ),
            (Caps::RESIZE, "sizes would have to be whole blocks below"),
            (Caps::ZCOPY, "requests are changed on their way"),
        ]
    }

    fn describe(&self) -> Node {
        let logical = (self.logical != 1).then(|| print_size(self.logical.into()));
        Node::new("blocksize")
            .opt_arg("block", logical)
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[
    Param::new("block", ParamKind::Size, "logical block to offer")
        .or("1")
        .positional(),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "blocksize",
        "takes requests smaller than the blocks below",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let most = u64::from(crate::MAX_LOGICAL_BLOCK);
            let block = args.number_in("block", 1..=most, true)?.unwrap_or(1);
            let block = u32::try_from(block).unwrap_or(1);
            Ok(Arc::new(
                BlockSize::new(site.below()?, block).with_id(args.id()),
            ))
        },
    );
}
