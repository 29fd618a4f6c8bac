//! The checks that every device makes before it touches anything.
//!
//! They are public so that devices outside this crate refuse bad requests with the same errors.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use crate::{Caps, DeviceInfo, Error, Op, ReqFlags, Result};

/// Checks a request of `len` bytes at `off`: read-only, range, alignment, size, in this order.
/// A request of no bytes is good up to and including the end of the device.
///
/// # Errors
/// The first rule that does not hold.
#[inline]
pub fn request(info: &DeviceInfo, op: Op, off: u64, len: u64) -> Result<()> {
    let inside = off.checked_add(len).is_some_and(|end| end <= info.len);
    let mask = u64::from(info.logical_block) - 1;
    let aligned = (off | len) & mask == 0 || len == 0;
    let small = info.max_transfer == 0
        || len <= u64::from(info.max_transfer)
        || !matches!(op, Op::Read | Op::Write);
    if inside && aligned && small && !(info.read_only && op.changes()) {
        return Ok(());
    }
    Err(refuse(info, op, off, len, inside, aligned))
}

#[cold]
fn refuse(info: &DeviceInfo, op: Op, offset: u64, len: u64, inside: bool, aligned: bool) -> Error {
    if info.read_only && op.changes() {
        Error::ReadOnly { op }
    } else if !inside {
        Error::OutOfRange {
            op,
            offset,
            len,
            size: info.len,
        }
    } else if !aligned {
        Error::Misaligned {
            offset,
            len,
            need: info.logical_block,
        }
    } else {
        Error::TooLarge {
            len,
            max: info.max_transfer,
        }
    }
}

/// Checks a range and returns its length. A range that ends before it starts is empty.
///
/// # Errors
/// As [`request`].
#[inline]
pub fn range(info: &DeviceInfo, op: Op, range: &Range<u64>) -> Result<u64> {
    let len = range.end.saturating_sub(range.start);
    request(info, op, range.start, len)?;
    Ok(len)
}

/// Checks that the flags mean something for the operation and that `caps` allow them.
///
/// # Errors
/// `Unsupported` with the name of the flag.
#[inline]
pub fn flags(caps: Caps, op: Op, flags: ReqFlags) -> Result<()> {
    if flags.is_empty() || (op == Op::Read && flags == ReqFlags::FUA) {
        return Ok(());
    }
    flags_slow(caps, op, flags)
}

#[cold]
fn flags_slow(caps: Caps, op: Op, flags: ReqFlags) -> Result<()> {
    let defined = match op {
        Op::Read | Op::Write | Op::Discard => ReqFlags::FUA,
        Op::WriteZeroes => ReqFlags::all(),
        _ => ReqFlags::empty(),
    };
    let why = if !defined.contains(flags) {
        "a flag that this operation does not define"
    } else if flags.contains(ReqFlags::FUA) && !caps.intersects(Caps::FUA) && op != Op::Read {
        "FUA, as the device cannot flush"
    } else if flags.contains(ReqFlags::NO_HOLE | ReqFlags::MAY_UNMAP) {
        "NO_HOLE and MAY_UNMAP contradict each other"
    } else if flags.contains(ReqFlags::FAST) && !caps.contains(Caps::FAST_ZERO) {
        return Err(Error::not_fast());
    } else {
        return Ok(());
    };
    Err(Error::unsupported_because(op, why))
}

/// Checks that the device has what `op` needs.
///
/// # Errors
/// `Unsupported` with the operation.
#[inline]
pub fn capable(caps: Caps, op: Op) -> Result<()> {
    let need = match op {
        Op::Read | Op::Extents => Caps::empty(),
        Op::Write => Caps::WRITE,
        Op::Flush => Caps::FLUSH,
        Op::Discard => Caps::DISCARD,
        Op::WriteZeroes => Caps::ZERO,
        Op::Cache => Caps::CACHE_HINT,
        Op::Resize => Caps::RESIZE,
        Op::Snapshot => Caps::SNAPSHOT,
    };
    if caps.contains(need) {
        Ok(())
    } else {
        Err(Error::unsupported(op))
    }
}

/// Bytes in a list of buffers to write.
#[inline]
pub fn bytes(bufs: &[IoSlice<'_>]) -> u64 {
    // Slices may alias, so a sum can pass what memory holds; saturated it is out of range anyway.
    bufs.iter()
        .fold(0, |sum: u64, b| sum.saturating_add(b.len() as u64))
}

/// Bytes in a list of buffers to fill.
#[inline]
pub fn bytes_mut(bufs: &[IoSliceMut<'_>]) -> u64 {
    bufs.iter().map(|b| b.len() as u64).sum()
}

/// Checks that a device of `len` bytes can have this logical block.
///
/// # Errors
/// A sentence with the nearest sizes that would do.
pub fn size(len: u64, logical_block: u32) -> Result<(), String> {
    if !logical_block.is_power_of_two() || logical_block > crate::MAX_LOGICAL_BLOCK {
        return Err(format!(
            "a logical block of {logical_block} bytes: it must be a power of two up to {}",
            crate::MAX_LOGICAL_BLOCK
        ));
    }
    let block = u64::from(logical_block);
    if len == 0 {
        return Err(format!("size 0: the smallest is {block}"));
    }
    let rest = len % block;
    if rest == 0 {
        return Ok(());
    }
    let down = len - rest;
    let near = match (down, down.checked_add(block)) {
        (0, Some(up)) => format!("{up}"),
        (down, Some(up)) => format!("{down} or {up}"),
        (down, None) => format!("{down}"),
    };
    Err(format!(
        "size {len} is no multiple of the logical block {block}: the nearest is {near}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_at_the_edge() {
        let mut info = DeviceInfo::new(1000);
        assert!(request(&info, Op::Read, 1000, 0).is_ok());
        assert!(request(&info, Op::Read, 1001, 0).is_err());
        assert!(request(&info, Op::Read, 999, 1).is_ok());
        assert!(matches!(
            request(&info, Op::Read, u64::MAX, 2),
            Err(Error::OutOfRange { .. })
        ));
        info.len = 1024;
        info.logical_block = 512;
        assert!(matches!(
            request(&info, Op::Write, 1, 512),
            Err(Error::Misaligned { need: 512, .. })
        ));
        assert!(request(&info, Op::Write, 1, 0).is_ok());
        info.max_transfer = 512;
        assert!(matches!(
            request(&info, Op::Write, 0, 1024),
            Err(Error::TooLarge { max: 512, .. })
        ));
        assert!(request(&info, Op::Discard, 0, 1024).is_ok());
        info.read_only = true;
        assert!(matches!(
            request(&info, Op::Discard, 0, 512),
            Err(Error::ReadOnly { .. })
        ));
        assert!(request(&info, Op::Read, 0, 512).is_ok());
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    fn a_backward_range_is_empty() {
        let info = DeviceInfo::new(1000);
        assert_eq!(range(&info, Op::Read, &(500..400)).unwrap(), 0);
        assert!(range(&info, Op::Read, &(1500..400)).is_err());
    }

    #[test]
    fn flags_have_meanings() {
        let all = Caps::all();
        assert!(flags(all, Op::Read, ReqFlags::FUA).is_ok());
        assert!(flags(Caps::empty(), Op::Read, ReqFlags::FUA).is_ok());
        assert!(flags(all, Op::Read, ReqFlags::FAST).is_err());
        assert!(flags(Caps::WRITE, Op::Write, ReqFlags::FUA).is_err());
        assert!(flags(all, Op::WriteZeroes, ReqFlags::NO_HOLE | ReqFlags::FAST).is_ok());
        assert!(
            flags(
                all,
                Op::WriteZeroes,
                ReqFlags::NO_HOLE | ReqFlags::MAY_UNMAP
            )
            .is_err()
        );
        assert_eq!(
            flags(Caps::ZERO, Op::WriteZeroes, ReqFlags::FAST)
                .unwrap_err()
                .nbd(),
            95
        );
    }

    #[test]
    fn sizes_name_their_neighbours() {
        assert!(size(1_000_003, 1).is_ok());
        assert_eq!(
            size(1000, 512).unwrap_err(),
            "size 1000 is no multiple of the logical block 512: the nearest is 512 or 1024"
        );
        assert!(size(100, 512).unwrap_err().ends_with("the nearest is 512"));
        assert!(size(0, 1).unwrap_err().contains("size 0"));
        assert!(size(3, 3).unwrap_err().contains("power of two"));
    }
}
