//! `mirror`: several devices with the same bytes.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::iov::{scatter, us};
use crate::range_lock::RangeLocks;
use crate::{
    BlockDevice, Caps, Device, DeviceInfo, Error, Extent, Node, Op, Param, ParamKind, Registry,
    ReqFlags, Result, Shape, Stats, check,
};

cairn_percpu::counter_group! {
    struct Counts { failed_over, differed }
}

/// Which of the devices a [`Mirror`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MirrorRead {
    /// The first that can be read.
    #[default]
    First,
    /// In turn.
    RoundRobin,
    /// All of them, compared: what most of them say counts, and without a majority it is an error.
    Verify,
}

/// A layer over several devices that all hold the same bytes. Every write goes to all of them.
pub struct Mirror {
    children: Vec<Device>,
    info: DeviceInfo,
    read: MirrorRead,
    /// Two writes that overlap must reach all devices in one order, or these would differ for ever.
    locks: RangeLocks,
    turn: AtomicUsize,
    counts: Counts,
    id: Option<Box<str>>,
}

impl Mirror {
    /// Over devices that hold the same bytes, or whose content does not matter. The size is that of the
    /// smallest.
    pub fn new(children: Vec<Device>, read: MirrorRead) -> Self {
        let infos: Vec<DeviceInfo> = children.iter().map(|c| c.info()).collect();
        let mut info = DeviceInfo::over(&infos);
        info.len -= info.len % u64::from(info.logical_block);
        Self {
            children,
            info,
            read,
            locks: RangeLocks::new(),
            turn: AtomicUsize::new(0),
            counts: Counts::new(),
            id: None,
        }
    }

    crate::layer::with_id!();

    /// Does the same on all; the first failure is the answer, but the others are tried all the same.
    fn on_all(&self, request: impl Fn(&Device) -> Result<()>) -> Result<()> {
        self.children.iter().map(request).fold(Ok(()), Result::and)
    }

    fn read_one(&self, bufs: &mut [IoSliceMut<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let n = self.children.len();
        let first = match self.read {
            MirrorRead::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed) % n.max(1),
            _ => 0,
        };
        let mut result = Err(Error::Poisoned {
            why: "a mirror of no devices",
        });
        for child in self.children.iter().cycle().skip(first).take(n) {
            result = child.read_vectored_at(bufs, off, flags);
            match &result {
                Err(Error::Io { .. } | Error::Injected { .. } | Error::Poisoned { .. }) => {
                    self.counts.failed_over().inc();
                }
                _ => break,
            }
        }
        result
    }

    fn read_all(&self, bufs: &mut [IoSliceMut<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = us(check::bytes_mut(bufs));
        let mut copies: Vec<Vec<u8>> = Vec::new();
        let mut failure = None;
        for child in &self.children {
            let mut copy = vec![0; len];
            match child.read_vectored_at(&mut [IoSliceMut::new(&mut copy)], off, flags) {
                Ok(()) => copies.push(copy),
                Err(e) => {
                    self.counts.failed_over().inc();
                    failure = Some(e);
                }
            }
        }
        let votes = |copy: &Vec<u8>| copies.iter().filter(|c| *c == copy).count();
        let best = copies.iter().max_by_key(|c| votes(c));
        let Some(best) = best else {
            return Err(failure.unwrap_or(Error::Poisoned {
                why: "a mirror of no devices",
            }));
        };
        let agree = votes(best);
        if agree < copies.len() {
            self.counts.differed().inc();
            if agree * 2 <= self.children.len() {
                let other = copies.iter().find(|c| *c != best);
                let at = other
                    .and_then(|o| o.iter().zip(best).position(|(a, b)| a != b))
                    .unwrap_or(0);
                let wrong = off + at as u64;
                return Err(Error::io(
                    wrong,
                    io::Error::other("the copies differ here, and none has a majority"),
                ));
            }
        }
        scatter(best, bufs);
        Ok(())
    }
}

impl BlockDevice for Mirror {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        let each: Vec<Caps> = self.children.iter().map(|c| c.caps()).collect();
        let mut caps =
            Caps::over(&each) - (Caps::RESIZE | Caps::SNAPSHOT | Caps::ZCOPY | Caps::FAST_ZERO);
        if !caps.contains(Caps::DISCARD_ZEROES) {
            // Each would be left with bytes of its own.
            caps -= Caps::DISCARD;
        }
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
        if self.read == MirrorRead::Verify {
            // A write that is under way has reached some and not others.
            let _still = self.locks.share(off, len);
            self.read_all(bufs, off, flags)
        } else {
            self.read_one(bufs, off, flags)
        }
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.info, Op::Write, off, len)?;
        check::flags(self.caps(), Op::Write, flags)?;
        let _alone = self.locks.own(off, len);
        self.on_all(|c| c.write_vectored_at(bufs, off, flags))
    }

    fn flush(&self) -> Result<()> {
        check::capable(self.caps(), Op::Flush)?;
        self.on_all(|c| c.flush())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::Discard, &range)?;
        check::capable(self.caps(), Op::Discard)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        let _alone = self.locks.own(range.start, len);
        self.on_all(|c| c.discard(range.clone(), flags))
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let _alone = self.locks.own(range.start, len);
        self.on_all(|c| c.write_zeroes(range.clone(), flags))
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        match self.children.first() {
            Some(first) if self.caps().contains(Caps::EXTENTS) => first.extents(range, each),
            _ if len > 0 => {
                // One extent: there is nothing to stop.
                let _ = each(Extent::data(len));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        check::capable(self.caps(), Op::Cache)?;
        self.on_all(|c| c.cache(range.clone()))
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("failed_over", self.counts.failed_over().sum())
            .count("differed", self.counts.differed().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::FAST_ZERO, "one copy may be fast where another is not"),
            (Caps::RESIZE, "the copies would have to change together"),
            (Caps::SNAPSHOT, "the copies cannot be frozen at one moment"),
            (
                Caps::ZCOPY,
                "a write through a mapping would reach one copy only",
            ),
            (
                Caps::DISCARD,
                "without zeros behind it the copies would differ",
            ),
        ]
    }

    fn describe(&self) -> Node {
        let read = match self.read {
            MirrorRead::First => None,
            MirrorRead::RoundRobin => Some("rr"),
            MirrorRead::Verify => Some("verify"),
        };
        Node::new("mirror")
            .opt_arg("read", read)
            .with_id(self.id.as_deref())
    }

    fn children(&self) -> Vec<Device> {
        self.children.clone()
    }
}

const PARAMS: &[Param] = &[Param::new(
    "read",
    ParamKind::Choice(&["first", "rr", "verify"]),
    "which copy is read; verify compares all",
)
.or("first")];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "mirror",
        "several devices with the same bytes",
        Shape::Branch { least: 1 },
        PARAMS,
        |site| {
            let read = match site.args().text("read") {
                Some("rr") => MirrorRead::RoundRobin,
                Some("verify") => MirrorRead::Verify,
                _ => MirrorRead::First,
            };
            Ok(Arc::new(
                Mirror::new(site.branches().to_vec(), read).with_id(site.args().id()),
            ))
        },
    );
}
