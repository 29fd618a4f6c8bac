//! Devices that are broken in one way each, which the contract suite must tell from a sound one.
#![cfg(feature = "contract")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use cairn_block::contract::{Profile, run};
use cairn_block::{
    BlockDevice, Caps, Coalesce, Device, DeviceInfo, Error, Extent, MappedRegion, Node, Op, Param,
    ParamKind, Registry, ReqFlags, Result, Shape, check,
};

/// How a device is broken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bug {
    None,
    RefusesNothingAtTheEnd,
    DropsLongLists,
    LosesTheLastPartialPage,
    TakesMisaligned,
    WritesPastTheEndOfARequest,
    ReadsWhatWas,
    InventsBytesUnderWay,
    UnmapsOnlyWholePages,
    DiscardsOnlyWholePages,
    SwapsExtents,
    ChangesThoughReadOnly,
    ZeroesThenRefusesAsSlow,
    ShowsOldBytesAfterGrowing,
    SnapshotIsTheOrigin,
    DescribesAnother,
    MapsElsewhere,
}

/// Bytes behind a lock, able to do everything, broken in one place.
struct Mem {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// What `bytes` held before the last write.
    before: Mutex<Vec<u8>>,
    len: AtomicU64,
    block: u32,
    read_only: bool,
    bug: Bug,
}

const LEN: usize = 50_000;

impl Mem {
    fn of(bug: Bug, len: usize, block: u32) -> Self {
        Self {
            bytes: Arc::new(Mutex::new(vec![0; len])),
            before: Mutex::new(vec![0; len]),
            len: AtomicU64::new(len as u64),
            block,
            read_only: false,
            bug,
        }
    }

    fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn check(&self, op: Op, off: u64, len: u64) -> Result<()> {
        let mut info = self.info();
        if self.is(Bug::TakesMisaligned) {
            info.logical_block = 1;
        }
        if self.is(Bug::ChangesThoughReadOnly) && op != Op::Write {
            info.read_only = false;
        }
        if self.is(Bug::RefusesNothingAtTheEnd) && len == 0 && off == info.len {
            return Err(Error::OutOfRange {
                op,
                offset: off,
                len,
                size: info.len,
            });
        }
        check::request(&info, op, off, len)
    }

    fn zero(&self, r: &Range<u64>, whole: bool) {
        let (mut from, mut to) = (r.start as usize, r.end as usize);
        if whole {
            (from, to) = (from.next_multiple_of(4096), to / 4096 * 4096);
        }
        if from < to {
            self.bytes.lock().unwrap()[from..to].fill(0);
        }
    }
}

impl BlockDevice for Mem {
    fn info(&self) -> DeviceInfo {
        let mut info = DeviceInfo::new(self.len.load(Ordering::Relaxed));
        info.logical_block = self.block;
        info.read_only = self.read_only;
        info
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::FLUSH | Caps::EXTENTS | Caps::SNAPSHOT | Caps::ZCOPY;
        if !self.read_only {
            caps |= Caps::WRITE
                | Caps::FUA_NATIVE
                | Caps::DISCARD
                | Caps::DISCARD_ZEROES
                | Caps::ZERO
                | Caps::RESIZE;
        }
        caps.set(Caps::FAST_ZERO, self.is(Bug::ZeroesThenRefusesAsSlow));
        caps
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], off: u64, f: ReqFlags) -> Result<()> {
        self.check(Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, f)?;
        let bytes = if self.is(Bug::ReadsWhatWas) {
            self.before.lock().unwrap().clone()
        } else {
            self.bytes.lock().unwrap().clone()
        };
        let mut at = off as usize;
        for b in bufs {
            let n = b.len();
            b.copy_from_slice(&bytes[at..at + n]);
            at += n;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, f: ReqFlags) -> Result<()> {
        self.check(Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, f)?;
        let most = if self.is(Bug::DropsLongLists) {
            512
        } else {
            usize::MAX
        };
        let mut data: Vec<u8> = bufs
            .iter()
            .take(most)
            .flat_map(|b| b.iter().copied())
            .collect();
        let at = off as usize;
        if self.is(Bug::InventsBytesUnderWay) {
            // For a moment the range holds what nobody wrote.
            self.bytes.lock().unwrap()[at..at + data.len()].fill(0xff);
            std::thread::sleep(Duration::from_micros(20));
        }
        let mut bytes = self.bytes.lock().unwrap();
        self.before.lock().unwrap().clone_from(&bytes);
        if self.is(Bug::LosesTheLastPartialPage) && at + data.len() == bytes.len() {
            data.truncate((bytes.len() / 4096 * 4096).saturating_sub(at));
        }
        bytes[at..at + data.len()].copy_from_slice(&data);
        if self.is(Bug::WritesPastTheEndOfARequest)
            && let Some(next) = bytes.get_mut(at + data.len())
        {
            *next ^= 1;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        self.check(Op::Discard, r.start, r.end.saturating_sub(r.start))?;
        check::flags(self.caps(), Op::Discard, f)?;
        self.zero(&r, self.is(Bug::DiscardsOnlyWholePages));
        Ok(())
    }

    fn write_zeroes(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        self.check(Op::WriteZeroes, r.start, r.end.saturating_sub(r.start))?;
        if self.is(Bug::ZeroesThenRefusesAsSlow) && f == ReqFlags::FAST {
            self.zero(&(r.start..r.start + u64::from(self.block)), false);
            return Err(Error::not_fast());
        }
        check::flags(self.caps(), Op::WriteZeroes, f)?;
        let unmap = f.contains(ReqFlags::MAY_UNMAP);
        self.zero(&r, unmap && self.is(Bug::UnmapsOnlyWholePages));
        Ok(())
    }

    fn extents(
        &self,
        r: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check(Op::Extents, r.start, r.end.saturating_sub(r.start))?;
        let bytes = self.bytes.lock().unwrap().clone();
        let mut join = Coalesce::new(each);
        let end = r.end as usize;
        let mut at = r.start as usize;
        while at < end {
            let stop = ((at / 4096 + 1) * 4096).min(end);
            let zero = bytes[at..stop].iter().all(|b| *b == 0) != self.is(Bug::SwapsExtents);
            let n = (stop - at) as u64;
            if join
                .push(if zero {
                    Extent::hole(n)
                } else {
                    Extent::data(n)
                })
                .is_break()
            {
                return Ok(());
            }
            at = stop;
        }
        join.finish();
        Ok(())
    }

    fn resize(&self, new_len: u64) -> Result<()> {
        let info = self.info();
        if self.read_only {
            return Err(Error::ReadOnly { op: Op::Resize });
        }
        if !new_len.is_multiple_of(self.block.into()) {
            return Err(Error::Misaligned {
                offset: 0,
                len: new_len,
                need: self.block,
            });
        }
        let mut bytes = self.bytes.lock().unwrap();
        if new_len == 0 || new_len > bytes.len() as u64 {
            let (op, size) = (Op::Resize, info.len);
            return Err(Error::OutOfRange {
                op,
                offset: 0,
                len: new_len,
                size,
            });
        }
        if !self.is(Bug::ShowsOldBytesAfterGrowing) {
            bytes[new_len as usize..].fill(0);
        }
        self.len.store(new_len, Ordering::Relaxed);
        Ok(())
    }

    fn snapshot(&self) -> Result<Device> {
        let mut copy = Self::of(self.bug, 0, self.block);
        copy.len = AtomicU64::new(self.info().len);
        copy.bytes = if self.is(Bug::SnapshotIsTheOrigin) {
            Arc::clone(&self.bytes)
        } else {
            Arc::new(Mutex::new(self.bytes.lock().unwrap().clone()))
        };
        Ok(Arc::new(copy))
    }

    fn as_mapped(&self) -> Option<&dyn MappedRegion> {
        Some(self)
    }

    fn describe(&self) -> Node {
        let len = self.bytes.lock().unwrap().len();
        let shown = if self.is(Bug::DescribesAnother) {
            len / 2
        } else {
            len
        };
        // The bug shows once the description was built again.
        Node::new("mem").arg("size", shown)
    }
}

impl MappedRegion for Mem {
    fn copy_out(&self, off: u64, to: &mut [u8]) -> Result<()> {
        self.check(Op::Read, off, to.len() as u64)?;
        let at = off as usize;
        to.copy_from_slice(&self.bytes.lock().unwrap()[at..at + to.len()]);
        if self.is(Bug::MapsElsewhere) {
            to.rotate_left(1);
        }
        Ok(())
    }

    fn copy_in(&self, off: u64, from: &[u8]) -> Result<()> {
        self.check(Op::Write, off, from.len() as u64)?;
        let at = off as usize;
        self.bytes.lock().unwrap()[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn send_to(&self, _: BorrowedFd<'_>, _: u64, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn recv_from(&self, _: BorrowedFd<'_>, _: u64, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

const PARAMS: &[Param] = &[Param::new("size", ParamKind::Size, "bytes").positional()];

fn judged(bug: Bug, block: u32, read_only: bool) -> std::result::Result<(), String> {
    let len = LEN / block as usize * block as usize;
    let mut registry = Registry::new();
    registry.register("mem", "bytes", Shape::Leaf, PARAMS, move |site| {
        let len = site.args().number("size").unwrap_or(0) as usize;
        Ok(Arc::new(Mem::of(bug, len, block)))
    });
    let make = || -> Device {
        let mut mem = Mem::of(bug, len, block);
        mem.read_only = read_only;
        Arc::new(mem)
    };
    run(&make, &Profile::new().cases(32).registry(&registry)).map_err(|v| v.to_string())
}

#[test]
fn a_sound_device_passes() {
    for (block, read_only) in [(1, false), (512, false), (1, true), (512, true)] {
        let verdict = judged(Bug::None, block, read_only);
        assert_eq!(verdict, Ok(()), "block {block}, read-only {read_only}");
    }
}

#[test]
fn each_rule_has_a_device_that_breaks_it() {
    for (bug, block, read_only, rules) in [
        (Bug::RefusesNothingAtTheEnd, 1, false, &["C2"][..]),
        (Bug::DropsLongLists, 1, false, &["C3"]),
        (Bug::LosesTheLastPartialPage, 1, false, &["C6", "C7"]),
        (Bug::TakesMisaligned, 512, false, &["C5"]),
        (Bug::WritesPastTheEndOfARequest, 1, false, &["C6", "C7"]),
        (Bug::ReadsWhatWas, 1, false, &["C3", "C6", "C7"]),
        (Bug::InventsBytesUnderWay, 1, false, &["C8"]),
        (
            Bug::UnmapsOnlyWholePages,
            1,
            false,
            &["C6", "C7", "C10", "C13"],
        ),
        (
            Bug::DiscardsOnlyWholePages,
            1,
            false,
            &["C6", "C7", "C11", "C13"],
        ),
        (Bug::SwapsExtents, 1, false, &["C13"]),
        (Bug::ChangesThoughReadOnly, 1, true, &["C15", "C16"]),
        (Bug::ZeroesThenRefusesAsSlow, 1, false, &["C10"]),
        (Bug::ShowsOldBytesAfterGrowing, 1, false, &["C17"]),
        (Bug::SnapshotIsTheOrigin, 1, false, &["C18"]),
        (Bug::DescribesAnother, 1, false, &["C19"]),
        (Bug::MapsElsewhere, 1, false, &["C20"]),
    ] {
        let verdict = judged(bug, block, read_only);
        let caught = verdict
            .as_ref()
            .is_err_and(|v| rules.iter().any(|r| v.starts_with(&format!("{r}:"))));
        assert!(caught, "{bug:?} should break one of {rules:?}: {verdict:?}");
    }
}

const PAGE: usize = 4096;

/// Pages with a bit each; a clear bit reads as zeros. A write looks at the bits, copies, and sets those
/// that were clear; a discard zeroes a page, frees it and clears its bit. Only with the lock can a page not be
/// freed between the look and the copy, which would leave the copied bytes behind a clear bit.
struct Pages {
    bytes: Vec<Mutex<Vec<u8>>>,
    bits: Vec<AtomicBool>,
    lock: Option<RwLock<()>>,
    discards: AtomicU64,
}

impl Pages {
    fn make(locked: bool) -> Device {
        let n = LEN.div_ceil(PAGE);
        Arc::new(Self {
            bytes: (0..n).map(|_| Mutex::new(vec![0; PAGE])).collect(),
            bits: (0..n).map(|_| AtomicBool::new(false)).collect(),
            lock: locked.then(|| RwLock::new(())),
            discards: AtomicU64::new(0),
        })
    }

    fn parts(off: u64, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (mut at, end) = (off as usize, off as usize + len);
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (page, from) = (at / PAGE, at % PAGE);
                let to = PAGE.min(from + end - at);
                at += to - from;
                (page, from..to)
            })
        })
    }

    /// A writer that is about to copy sleeps until a discard has come by, as one would that lost its
    /// processor here.
    fn look_away(&self, seen: u64) {
        let until = Instant::now() + Duration::from_millis(5);
        while self.discards.load(Ordering::Acquire) < seen + 3 && Instant::now() < until {
            std::thread::yield_now();
        }
    }
}

impl BlockDevice for Pages {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new(LEN as u64)
    }

    fn caps(&self) -> Caps {
        Caps::WRITE | Caps::DISCARD | Caps::DISCARD_ZEROES
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], off: u64, f: ReqFlags) -> Result<()> {
        check::request(&self.info(), Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, f)?;
        let mut at = off;
        for b in bufs {
            let mut rest: &mut [u8] = b;
            for (page, part) in Self::parts(at, rest.len()) {
                let (now, later) = rest.split_at_mut(part.len());
                if self.bits[page].load(Ordering::Acquire) {
                    now.copy_from_slice(&self.bytes[page].lock().unwrap()[part]);
                } else {
                    now.fill(0);
                }
                rest = later;
            }
            at += b.len() as u64;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, f: ReqFlags) -> Result<()> {
        check::request(&self.info(), Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, f)?;
        let mut at = off;
        for b in bufs {
            let _shared = self.lock.as_ref().map(|l| l.read().unwrap());
            let seen = self.discards.load(Ordering::Acquire);
            let was: Vec<bool> = Self::parts(at, b.len())
                .map(|(p, _)| self.bits[p].load(Ordering::Acquire))
                .collect();
            if self.lock.is_none() && b.len() > PAGE {
                self.look_away(seen);
            }
            let mut rest: &[u8] = b;
            for ((page, part), was) in Self::parts(at, b.len()).zip(was) {
                let (now, later) = rest.split_at(part.len());
                self.bytes[page].lock().unwrap()[part].copy_from_slice(now);
                if !was {
                    self.bits[page].store(true, Ordering::Release);
                }
                rest = later;
            }
            at += b.len() as u64;
        }
        Ok(())
    }

    fn discard(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        let len = check::range(&self.info(), Op::Discard, &r)?;
        check::flags(self.caps(), Op::Discard, f)?;
        let _alone = self.lock.as_ref().map(|l| l.write().unwrap());
        for (page, part) in Self::parts(r.start, len as usize) {
            let whole = part.len() == PAGE;
            self.bytes[page].lock().unwrap()[part].fill(0);
            if whole {
                self.bits[page].store(false, Ordering::Release);
            }
        }
        self.discards.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn describe(&self) -> Node {
        Node::new("pages")
    }
}

#[test]
fn a_page_that_is_freed_under_a_writer_is_seen() {
    run(&|| Pages::make(true), &Profile::new().cases(16)).unwrap();
    let v = run(&|| Pages::make(false), &Profile::new().cases(16)).unwrap_err();
    assert_eq!(v.rule, "C14", "{v}");
}
