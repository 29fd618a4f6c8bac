//! What every device gains for free: plain reads and writes, whole-device copy and compare.

use std::io::{IoSlice, IoSliceMut};

use crate::check;
use crate::{BlockDevice, Op, ReqFlags, Result};

/// Step of whole-device operations, large enough to hide the cost of a call.
const STEP: u64 = 1 << 20;

/// Plain forms of the device's operations.
pub trait BlockDeviceExt: BlockDevice {
    /// Fills `buf` with the bytes at `off`.
    ///
    /// # Errors
    /// As [`BlockDevice::read_vectored_at`].
    #[inline]
    fn read_at(&self, buf: &mut [u8], off: u64) -> Result<()> {
        self.read_vectored_at(&mut [IoSliceMut::new(buf)], off, ReqFlags::empty())
    }

    /// Writes `buf` at `off`.
    ///
    /// # Errors
    /// As [`BlockDevice::write_vectored_at`].
    #[inline]
    fn write_at(&self, buf: &[u8], off: u64) -> Result<()> {
        self.write_vectored_at(&[IoSlice::new(buf)], off, ReqFlags::empty())
    }

    /// `len` bytes at `off` in a new vector. The range is checked before anything is allocated.
    ///
    /// # Errors
    /// As [`BlockDevice::read_vectored_at`].
    fn read_vec(&self, off: u64, len: usize) -> Result<Vec<u8>> {
        check::request(&self.info(), Op::Read, off, len as u64)?;
        let mut buf = vec![0; len];
        self.read_at(&mut buf, off)?;
        Ok(buf)
    }

    /// Copies everything this device holds to the start of `to`.
    ///
    /// # Errors
    /// The first failing read or write; `to` too small is out of range before anything is copied.
    fn copy_to(&self, to: &dyn BlockDevice) -> Result<()> {
        let len = self.info().len;
        check::request(&to.info(), Op::Resize, 0, len)?;
        each_step(len, self.info().max_transfer, |off, n| {
            let buf = self.read_vec(off, n)?;
            to.write_vectored_at(&[IoSlice::new(&buf)], off, ReqFlags::empty())?;
            Ok(true)
        })
    }

    /// The offset of the first byte that differs from `other`; the end of the shorter one when
    /// they differ in length only, `None` when they are equal.
    ///
    /// # Errors
    /// The first failing read.
    fn first_difference(&self, other: &dyn BlockDevice) -> Result<Option<u64>> {
        let (mine, theirs) = (self.info().len, other.info().len);
        let common = mine.min(theirs);
        let mut found = None;
        let mut b = Vec::new();
        each_step(common, self.info().max_transfer, |off, n| {
            let a = self.read_vec(off, n)?;
            b.resize(n, 0);
            other.read_vectored_at(&mut [IoSliceMut::new(&mut b)], off, ReqFlags::empty())?;
            found = a
                .iter()
                .zip(&b)
                .position(|(x, y)| x != y)
                .map(|i| off + i as u64);
            Ok(found.is_none())
        })?;
        Ok(found.or((mine != theirs).then_some(common)))
    }
}

impl<D: BlockDevice + ?Sized> BlockDeviceExt for D {}

fn each_step(
    len: u64,
    max_transfer: u32,
    mut step: impl FnMut(u64, usize) -> Result<bool>,
) -> Result<()> {
    let most = match max_transfer {
        0 => STEP,
        n => STEP.min(u64::from(n)),
    };
    let mut off = 0;
    while off < len {
        let n = most.min(len - off);
        // Lossless: n is at most STEP.
        if !step(off, usize::try_from(n).unwrap_or(usize::MAX))? {
            break;
        }
        off += n;
    }
    Ok(())
}
