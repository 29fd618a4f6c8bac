//! `verify`: a checksum for each block, kept in memory.

mod table;

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::table::Table;
use crate::crc::crc32c;
use crate::iov::{gather, scatter, us};
use crate::range_lock::RangeLocks;
use crate::spec::units::print_size;
use crate::{
    BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Error, Node, Op, Param, ParamKind,
    Registry, ReqFlags, Result, Shape, Stats, check, forward,
};

cairn_percpu::counter_group! {
    struct Counts { checked, wrong }
}

const BLOCK: u64 = 4096;

/// A checksum and how often the block was written; 0 writes: nothing is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    generation: u32,
    sum: u32,
}

impl Known {
    const fn pack(self) -> u64 {
        (self.generation as u64) << 32 | self.sum as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    const fn unpack(word: u64) -> Self {
        Self {
            generation: (word >> 32) as u32,
            sum: word as u32,
        }
    }
}

/// A layer that remembers a checksum of every block written through it, and fails a read that gives
/// other bytes, naming the first wrong block.
pub struct Verify {
    below: Device,
    info: DeviceInfo,
    block: u64,
    table: Table,
    /// Checksums and bytes change together.
    locks: RangeLocks,
    counts: Counts,
    id: Option<Box<str>>,
}

impl Verify {
    /// Over `below`, with a checksum for every 4 KiB, or for every logical block if that is larger.
    pub fn new(below: Device) -> Self {
        let block = BLOCK.max(below.info().logical_block.into());
        Self::with_block(below, block)
    }

    fn with_block(below: Device, block: u64) -> Self {
        let info = below.info();
        Self {
            below,
            info,
            block,
            table: Table::new(info.len.div_ceil(block)),
            locks: RangeLocks::new(),
            counts: Counts::new(),
            id: None,
        }
    }

    crate::layer::with_id!();

    fn known(&self, block: u64) -> Known {
        self.table.known(block).map_or(
            Known {
                generation: 0,
                sum: 0,
            },
            |word| Known::unpack(word.load(Ordering::Relaxed)),
        )
    }

    fn remember(&self, block: u64, known: Known) {
        if let Some(word) = self.table.word(block) {
            word.store(known.pack(), Ordering::Relaxed);
        }
    }

    /// The blocks around a range: where they begin, and how many bytes they hold.
    fn around(&self, off: u64, len: u64) -> (u64, u64) {
        let start = off / self.block * self.block;
        let end = (off + len).next_multiple_of(self.block).min(self.info.len);
        (start, end - start)
    }

    /// Checks whole blocks that begin at `start`.
    fn check(&self, start: u64, bytes: &[u8]) -> Result<()> {
        for (number, data) in (start / self.block..).zip(bytes.chunks(us(self.block))) {
            let known = self.known(number);
            if known.generation == 0 {
                continue;
            }
            self.counts.checked().inc();
            let sum = crc32c(data);
            if sum != known.sum {
                self.counts.wrong().inc();
                return Err(Error::io(
                    number * self.block,
                    io::Error::other(format!(
                        "block {number} holds other bytes than its write number {} left: \
                         checksum {sum:08x}, should be {:08x}",
                        known.generation, known.sum
                    )),
                ));
            }
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], off: u64, flags: ReqFlags) -> Result<()> {
        let len = bytes.len() as u64;
        let (start, whole) = self.around(off, len);
        let _alone = self.locks.own(start, whole);
        let mut all = vec![0; us(whole)];
        // The edges are read and checked, or a mistake in them would be given a new checksum.
        let head = us(off - start);
        let tail = head + bytes.len();
        if head > 0 || tail < all.len() {
            self.read_edges(start, &mut all, head, tail)?;
        }
        if let Some(part) = all.get_mut(head..tail) {
            part.copy_from_slice(bytes);
        }
        let written = self
            .below
            .write_vectored_at(&[IoSlice::new(bytes)], off, flags);
        for (number, data) in (start / self.block..).zip(all.chunks(us(self.block))) {
            let known = match &written {
                Ok(()) => Known {
                    generation: self.known(number).generation.wrapping_add(1).max(1),
                    sum: crc32c(data),
                },
                // Nobody knows how far it came.
                Err(_) => Known {
                    generation: 0,
                    sum: 0,
                },
            };
            self.remember(number, known);
        }
        written
    }

    /// Reads the first and the last block of a range where a write does not cover them.
    fn read_edges(&self, start: u64, all: &mut [u8], head: usize, tail: usize) -> Result<()> {
        let size = us(self.block);
        let last = (all.len() - 1) / size * size;
        let mut edges = Vec::new();
        if head > 0 {
            edges.push(0);
        }
        if tail < all.len() && (last > 0 || head == 0) {
            edges.push(last);
        }
        for at in edges {
            let end = (at + size).min(all.len());
            if let Some(block) = all.get_mut(at..end) {
                let off = start + at as u64;
                self.below.read_at(block, off)?;
                self.check(off, block)?;
            }
        }
        Ok(())
    }
}

impl BlockDevice for Verify {
    forward!(content below {
        discard: refuse, write_zeroes: own, extents: data, as_mapped: none
    });

    fn caps(&self) -> Caps {
        let kept = Caps::WRITE | Caps::FLUSH | Caps::FUA | Caps::MULTI_CONN | Caps::CACHE_HINT;
        let mut caps = self.below.caps() & kept;
        caps.set(Caps::ZERO, caps.contains(Caps::WRITE));
        caps
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = check::bytes_mut(bufs);
        check::request(&self.info, Op::Read, off, len)?;
        let (start, whole) = self.around(off, len);
        let _others = self.locks.share(start, whole);
        if let ([one], true) = (&mut *bufs, (start, whole) == (off, len)) {
            self.below
                .read_vectored_at(&mut [IoSliceMut::new(one)], off, flags)?;
            return self.check(start, one);
        }
        let mut all = vec![0; us(whole)];
        self.below
            .read_vectored_at(&mut [IoSliceMut::new(&mut all)], start, flags)?;
        self.check(start, &all)?;
        scatter(all.get(us(off - start)..).unwrap_or_default(), bufs);
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info, Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)?;
        match bufs {
            [] => Ok(()),
            [one] => self.write(one, off, flags),
            several => self.write(&gather(several), off, flags),
        }
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let zeros = vec![0; us(len.min(1 << 20))];
        let mut at = range.start;
        let end = range.start + len;
        while at < end {
            let n = (end - at).min(1 << 20);
            let part = zeros.get(..us(n)).unwrap_or_default();
            self.write(part, at, flags & ReqFlags::FUA)?;
            at += n;
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("checked", self.counts.checked().sum())
            .count("wrong", self.counts.wrong().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::BEYOND_WRITES, "checksums are not kept for them"),
            (Caps::ZCOPY, "mapped bytes would not be checked"),
        ]
    }

    fn describe(&self) -> Node {
        let block = (self.block != BLOCK).then(|| print_size(self.block));
        Node::new("verify")
            .opt_arg("block", block)
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[
    Param::new("block", ParamKind::Size, "bytes with one checksum").or("4k"),
    Param::new("algo", ParamKind::Choice(&["crc32c"]), "the checksum").or("crc32c"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "verify",
        "fails a read that gives other bytes than were written",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let below = site.below()?;
            let least = u64::from(below.info().logical_block).max(512);
            let layer = if args.explicit("block") {
                let block = args.number_in("block", least..=1 << 24, true)?;
                Verify::with_block(below, block.unwrap_or(BLOCK))
            } else {
                Verify::new(below)
            };
            Ok(Arc::new(layer.with_id(args.id())))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cow, Zero};

    #[test]
    fn a_byte_changed_below_is_found() {
        let below: Device = Arc::new(Cow::new(Arc::new(Zero::new(50_001))));
        let verify = Verify::new(Arc::clone(&below));
        verify.write_at(&vec![7; 20_000], 1_000).unwrap();
        verify.write_at(&[8; 10], 50_000 - 9).unwrap();
        assert!(verify.read_vec(0, 50_001).is_ok());
        below.write_at(&[6], 13_000).unwrap();
        assert!(verify.read_vec(0, 12_000).is_ok());
        let e = verify.read_vec(12_000, 5_000).unwrap_err();
        assert!(matches!(e, Error::Io { offset: 12_288, .. }), "{e}");
        assert!(e.to_string().contains("block 3"), "{e}");
        // A write of a part of the wrong block does not make it right.
        assert!(verify.write_at(&[9; 100], 12_300).is_err());
        assert!(verify.write_at(&[9; 4096], 12_288).is_ok());
        assert!(verify.read_vec(0, 50_001).is_ok());
        assert_eq!(verify.stats().get("wrong"), Some(2));
    }
}
