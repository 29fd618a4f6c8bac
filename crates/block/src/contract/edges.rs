//! C1 to C5, C15, C16: what a single request may be, and what must be refused.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use super::{Outcome, Profile, ensure, extents, low};
use crate::{BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Error, Op, ReqFlags, Result};

pub(super) fn run(make: &dyn Fn() -> Device, profile: &Profile<'_>) -> Outcome {
    let device = make();
    let info = device.info();
    limits(&info)?;
    outside(&*device, &info, profile)?;
    empty(&*device, &info, profile)?;
    misaligned(&*device, &info, profile)?;
    lists(&*device, &info, profile)?;
    capabilities(&*make(), profile)?;
    flags(&*make(), profile)?;
    zeroing(&*make(), profile)?;
    if info.read_only {
        refuses_changes(&*make())?;
    }
    Ok(())
}

/// Runs each ranged operation once.
fn each_op(device: &dyn BlockDevice, off: u64, len: u64) -> Vec<(Op, Result<()>)> {
    let buf = usize::try_from(len.min(1 << 20)).unwrap_or(0);
    let mut bytes = vec![0; buf];
    let range = off..off.saturating_add(len);
    let none = ReqFlags::empty();
    vec![
        (
            Op::Read,
            device.read_vectored_at(&mut [IoSliceMut::new(&mut bytes)], off, none),
        ),
        (
            Op::Write,
            device.write_vectored_at(&[IoSlice::new(&bytes)], off, none),
        ),
        (Op::Discard, device.discard(range.clone(), none)),
        (Op::WriteZeroes, device.write_zeroes(range.clone(), none)),
        (
            Op::Extents,
            device.extents(range.clone(), &mut |_| std::ops::ControlFlow::Continue(())),
        ),
        (Op::Cache, device.cache(range)),
    ]
}

fn limits(info: &DeviceInfo) -> Outcome {
    let lb = info.logical_block;
    ensure!(
        "C5",
        lb.is_power_of_two() && lb <= crate::MAX_LOGICAL_BLOCK,
        "a logical block of {lb}"
    );
    ensure!(
        "C5",
        info.len.is_multiple_of(lb.into()),
        "{} bytes in blocks of {lb}",
        info.len
    );
    Ok(())
}

/// Whether a refusal is the right one for a request past the end.
fn refused(op: Op, e: &Error, info: &DeviceInfo, caps: Caps) -> bool {
    match e {
        Error::OutOfRange { .. } => true,
        Error::ReadOnly { .. } => info.read_only && op.changes(),
        Error::Unsupported { .. } => crate::check::capable(caps, op).is_err(),
        _ => false,
    }
}

fn outside(device: &dyn BlockDevice, info: &DeviceInfo, profile: &Profile<'_>) -> Outcome {
    let lb = u64::from(info.logical_block);
    let caps = device.caps();
    let far = [
        (info.len, lb),
        (info.len - lb, 2 * lb),
        (info.len + lb, lb),
        (u64::MAX - (lb - 1), lb),
        (u64::MAX / lb * lb, lb),
        (1 << 63, lb),
        (info.len + lb, 0),
        (u64::MAX, 0),
    ];
    for (off, len) in far {
        for (op, result) in each_op(device, off, len) {
            ensure!(
                "C1",
                result
                    .as_ref()
                    .is_err_and(|e| refused(op, e, info, caps) || profile.excuses(e)),
                "{op} of {len} bytes at {off} of {}: {result:?}, should be OutOfRange",
                info.len
            );
        }
    }
    Ok(())
}

fn empty(device: &dyn BlockDevice, info: &DeviceInfo, profile: &Profile<'_>) -> Outcome {
    let caps = device.caps();
    for off in [0, 1.min(info.len), info.len / 2, info.len] {
        for (op, result) in each_op(device, off, 0) {
            let fine = match &result {
                Ok(()) => true,
                Err(Error::ReadOnly { .. }) => info.read_only && op.changes(),
                Err(Error::Unsupported { .. }) => crate::check::capable(caps, op).is_err(),
                Err(e) => profile.excuses(e),
            };
            ensure!("C2", fine, "{op} of no bytes at {off}: {result:?}");
        }
    }
    Ok(())
}

fn misaligned(device: &dyn BlockDevice, info: &DeviceInfo, profile: &Profile<'_>) -> Outcome {
    let lb = u64::from(info.logical_block);
    if lb == 1 {
        return Ok(());
    }
    let caps = device.caps();
    for (off, len) in [(1, lb), (0, 1), (lb - 1, 1), (lb, lb + 1)] {
        if off + len > info.len {
            continue;
        }
        for (op, result) in each_op(device, off, len) {
            let fine = match &result {
                Err(Error::Misaligned { need, .. }) => *need == info.logical_block,
                Err(Error::OutOfRange { .. }) => false,
                Err(e) => refused(op, e, info, caps) || profile.excuses(e),
                // These are hints or questions: a device may round.
                Ok(()) => matches!(op, Op::Extents | Op::Cache),
            };
            ensure!(
                "C5",
                fine,
                "{op} of {len} bytes at {off} with blocks of {lb}: {result:?}"
            );
        }
    }
    Ok(())
}

/// A list of 1024 buffers with empty ones among them moves the same bytes as one buffer.
fn lists(device: &dyn BlockDevice, info: &DeviceInfo, profile: &Profile<'_>) -> Outcome {
    let none = ReqFlags::empty();
    for count in [0, 1, 3, 1024_usize] {
        let most = usize::try_from(info.len).unwrap_or(usize::MAX).min(4096);
        let lb = info.logical_block as usize;
        let total = if count == 0 {
            0
        } else {
            (most / lb).max(1) * lb
        };
        let whole: Vec<u8> = (0..total).map(|i| low((i * 7 + count) as u64)).collect();
        let mut left: &[u8] = &whole;
        let mut list = Vec::new();
        for i in 0..count {
            let take = match i {
                _ if i + 1 == count => left.len(),
                _ if i % 3 == 1 => 0,
                _ => left.len().min(1 + i % 5),
            };
            let (a, b) = left.split_at(take);
            list.push(IoSlice::new(a));
            left = b;
        }
        let mut out = whole.clone();
        if device.caps().contains(Caps::WRITE) {
            let wrote = device.write_vectored_at(&list, 0, none);
            if wrote.as_ref().is_err_and(|e| profile.excuses(e)) {
                continue;
            }
            ensure!("C3", wrote.is_ok(), "a write of {count} buffers: {wrote:?}");
        }
        let mut rest: &mut [u8] = &mut out;
        let mut targets = Vec::new();
        for b in &list {
            let (a, c) = rest.split_at_mut(b.len());
            targets.push(IoSliceMut::new(a));
            rest = c;
        }
        let read = device.read_vectored_at(&mut targets, 0, none);
        if read.as_ref().is_err_and(|e| profile.excuses(e)) {
            continue;
        }
        ensure!("C3", read.is_ok(), "a read of {count} buffers: {read:?}");
        let same = !device.caps().contains(Caps::WRITE) || profile.lossy || out == whole;
        ensure!("C3", same, "{count} buffers came back with other bytes");
    }
    Ok(())
}

fn some_range(info: &DeviceInfo) -> Range<u64> {
    let lb = u64::from(info.logical_block);
    0..(info.len / 2 / lb).max(1) * lb
}

fn capabilities(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let info = device.info();
    let caps = device.caps();
    let range = some_range(&info);
    let mut results = each_op(device, range.start, (range.end - range.start).min(1 << 20));
    results.push((Op::Flush, device.flush()));
    results.push((Op::Snapshot, device.snapshot().map(|_| ())));
    results.push((Op::Resize, device.resize(info.len)));
    for (op, result) in results {
        let able = crate::check::capable(caps, op).is_ok();
        let fine = match &result {
            Ok(()) => able,
            Err(Error::Unsupported { .. }) => !able,
            Err(Error::ReadOnly { .. }) => info.read_only && op.changes(),
            Err(e) => able && profile.excuses(e),
        };
        ensure!("C16", fine, "{op} with {caps}: {result:?}");
    }
    ensure!(
        "C16",
        !(info.read_only && caps.contains(Caps::WRITE)),
        "read-only, with {caps}"
    );
    if !caps.contains(Caps::EXTENTS) {
        let all = extents(device, 0, info.len)?;
        let data = all.len() == 1 && all.iter().all(|(_, e)| !e.hole && !e.zero);
        ensure!("C16", data, "without EXTENTS: {all:?}, not one of data");
    }
    Ok(())
}

fn flags(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let info = device.info();
    if info.read_only {
        return Ok(());
    }
    let caps = device.caps();
    let range = some_range(&info);
    let lb = info.logical_block as usize;
    let mut block = vec![0; lb];
    let fua = caps.intersects(Caps::FUA);
    let reads = [(ReqFlags::FUA, true), (ReqFlags::FAST, false)];
    for (flag, works) in reads {
        let result = device.read_vectored_at(&mut [IoSliceMut::new(&mut block)], 0, flag);
        judge(profile, "read", flag, works, &result)?;
    }
    if caps.contains(Caps::WRITE) {
        for (flag, works) in [(ReqFlags::FUA, fua), (ReqFlags::NO_HOLE, false)] {
            let result = device.write_vectored_at(&[IoSlice::new(&block)], 0, flag);
            judge(profile, "write", flag, works, &result)?;
        }
    }
    if caps.contains(Caps::DISCARD) {
        for (flag, works) in [(ReqFlags::FUA, fua), (ReqFlags::MAY_UNMAP, false)] {
            let result = device.discard(range.clone(), flag);
            judge(profile, "discard", flag, works, &result)?;
        }
    }
    if caps.contains(Caps::ZERO) {
        let both = ReqFlags::NO_HOLE | ReqFlags::MAY_UNMAP;
        for (flag, works) in [
            (ReqFlags::FUA, fua),
            (ReqFlags::NO_HOLE, true),
            (ReqFlags::MAY_UNMAP, true),
            (both, false),
        ] {
            let result = device.write_zeroes(range.clone(), flag);
            judge(profile, "write_zeroes", flag, works, &result)?;
        }
        if !caps.contains(Caps::FAST_ZERO) && caps.contains(Caps::WRITE) {
            block.fill(9);
            let wrote = device.write_at(&block, 0).is_ok();
            let fast = device.write_zeroes(0..lb as u64, ReqFlags::FAST);
            let kept = device.read_vec(0, lb).is_ok_and(|b| b == block);
            ensure!(
                "C16",
                matches!(
                    &fast,
                    Err(Error::Unsupported {
                        fast_zero: true,
                        ..
                    })
                ) || fast.as_ref().is_err_and(|e| profile.excuses(e)),
                "a FAST zeroing without FAST_ZERO: {fast:?}"
            );
            ensure!(
                "C16",
                !wrote || kept || profile.lossy || profile.errors,
                "a FAST zeroing that was refused changed bytes"
            );
        }
    }
    Ok(())
}

/// Every way to make a range zero, over a range that begins and ends inside of pages.
fn zeroing(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let info = device.info();
    let caps = device.caps();
    let lb = u64::from(info.logical_block);
    let len = info.len.min(20_000.max(6 * lb)) / lb * lb;
    let n = usize::try_from(len).unwrap_or(0);
    if profile.lossy || profile.errors || !caps.contains(Caps::WRITE) || len < 4 * lb {
        return Ok(());
    }
    let inside = lb..len - lb;
    let full = vec![0xd7; n];
    for flags in [
        None,
        Some(ReqFlags::empty()),
        Some(ReqFlags::NO_HOLE),
        Some(ReqFlags::MAY_UNMAP),
        Some(ReqFlags::FAST),
    ] {
        let able = match flags {
            None => caps.contains(Caps::DISCARD | Caps::DISCARD_ZEROES),
            Some(ReqFlags::FAST) => caps.contains(Caps::ZERO | Caps::FAST_ZERO),
            Some(_) => caps.contains(Caps::ZERO),
        };
        if !able {
            continue;
        }
        let filled = device.write_at(&full, 0);
        ensure!("C6", filled.is_ok(), "a write of {len} bytes: {filled:?}");
        let there = device.read_vec(0, n).is_ok_and(|now| now == full);
        ensure!(
            "C6",
            there,
            "{len} bytes came back as others than were written"
        );
        let result = match flags {
            None => device.discard(inside.clone(), ReqFlags::empty()),
            Some(flags) => device.write_zeroes(inside.clone(), flags),
        };
        let now = device.read_vec(0, n).unwrap_or_default();
        // Refused for not being fast, it may have changed nothing.
        let want = if result.is_ok() { 0 } else { 0xd7 };
        ensure!(
            "C10",
            result.is_ok() || flags == Some(ReqFlags::FAST),
            "zeroing with {flags:?}: {result:?}"
        );
        let wrong = now.iter().enumerate().position(|(i, byte)| {
            let zeroed = inside.contains(&(i as u64));
            *byte != if zeroed { want } else { 0xd7 }
        });
        let rule_holds = wrong.is_none() && now.len() == n;
        if flags.is_none() {
            ensure!(
                "C11",
                rule_holds,
                "after a discard of {inside:?} of {len} written bytes, byte {wrong:?} is not what it should be"
            );
        } else {
            ensure!(
                "C10",
                rule_holds,
                "after zeroing {inside:?} of {len} written bytes with {flags:?}, byte {wrong:?} is not what it should be"
            );
        }
    }
    Ok(())
}

fn judge(
    profile: &Profile<'_>,
    op: &str,
    flag: ReqFlags,
    works: bool,
    result: &Result<()>,
) -> Outcome {
    let fine = match result {
        Ok(()) => works,
        Err(Error::Unsupported { .. }) => !works,
        Err(e) => profile.excuses(e),
    };
    ensure!("C16", fine, "{op} with {flag:?}: {result:?}");
    Ok(())
}

fn refuses_changes(device: &dyn BlockDevice) -> Outcome {
    let info = device.info();
    let len = usize::try_from(info.len).unwrap_or(usize::MAX);
    let before = device.read_vec(0, len).ok();
    let lb = u64::from(info.logical_block);
    let mut results = each_op(device, 0, lb);
    results.push((Op::Resize, device.resize(info.len)));
    for (op, result) in results.into_iter().filter(|(op, _)| op.changes()) {
        // What a layer never passes on may also be called unsupported; a write may not.
        let fine = match &result {
            Err(Error::ReadOnly { .. }) => true,
            Err(Error::Unsupported { .. }) => op != Op::Write,
            _ => false,
        };
        ensure!("C15", fine, "{op} of a read-only device: {result:?}");
    }
    let same = before.is_none() || device.read_vec(0, len).ok() == before;
    ensure!("C15", same, "a refused change changed bytes");
    Ok(())
}
