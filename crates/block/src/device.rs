//! The device trait.

use std::any::Any;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::check;
use crate::{Caps, DeviceInfo, Error, Extent, Node, Op, ReqFlags, Result, Stats};

/// A device as stacks hold it.
pub type Device = Arc<dyn BlockDevice>;

/// A block device: byte addressed, synchronous, shared, all or error.
///
/// A request either moves every byte or fails; there are no short transfers. RAM answers in less
/// time than one hop through an executor takes, so queue depth lives in front of a device, never
/// inside it.
///
/// The rules that every implementation keeps are listed in `DESIGN.md` and tested by the
/// `contract` module (feature `contract`). What a device does not support, the default methods answer honestly.
///
/// ```
/// use cairn_block::{BlockDeviceExt, Registry};
///
/// let stack = Registry::new().open("stats/zero(1m)")?;
/// assert_eq!(stack.device().read_vec(4096, 4)?, [0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BlockDevice: Send + Sync {
    /// Size and limits, by value since they may change after a resize or an exchange.
    fn info(&self) -> DeviceInfo;

    /// What the device can do.
    fn caps(&self) -> Caps;

    /// Fills `bufs` in order with the bytes at `off`.
    ///
    /// # Errors
    /// Refuses what is out of range or misaligned; on any error the buffers' content is unspecified.
    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()>;

    /// Writes the bytes of `bufs` in order at `off`.
    ///
    /// # Errors
    /// Refuses what is out of range, misaligned or read-only; on any later error the range may be
    /// torn, and nothing outside it changed.
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()>;

    /// Makes every write that returned before this call durable, from whatever thread it came.
    ///
    /// # Errors
    /// Any failure to write out; what was written since the last good flush may be lost.
    fn flush(&self) -> Result<()> {
        Err(Error::unsupported(Op::Flush))
    }

    /// Gives the range up. It reads as zeros afterwards if the device has `DISCARD_ZEROES`.
    ///
    /// # Errors
    /// `Unsupported` without the capability, or as for writes.
    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let _ = (range, flags);
        Err(Error::unsupported(Op::Discard))
    }

    /// Makes the range read as zeros, whatever the flags.
    ///
    /// # Errors
    /// `Unsupported` without the capability, or for `FAST` where it would not be fast; or as for writes.
    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let _ = (range, flags);
        Err(Error::unsupported(Op::WriteZeroes))
    }

    /// Calls `each` with the runs of the range, ascending, exactly covering it, none empty, equal
    /// neighbours joined, until `each` breaks. The default is one run of data.
    ///
    /// # Errors
    /// Refuses what is out of range.
    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info(), Op::Extents, &range)?;
        if len > 0 {
            // One extent: there is nothing to stop.
            let _ = each(Extent::data(len));
        }
        Ok(())
    }

    /// Hints that the range will be read soon.
    ///
    /// # Errors
    /// `Unsupported` without the capability, or out of range.
    fn cache(&self, range: Range<u64>) -> Result<()> {
        let _ = range;
        Err(Error::unsupported(Op::Cache))
    }

    /// Changes the size. New bytes read as zeros.
    ///
    /// # Errors
    /// `Unsupported` without the capability, or when the size cannot be had.
    fn resize(&self, new_len: u64) -> Result<()> {
        let _ = new_len;
        Err(Error::unsupported(Op::Resize))
    }

    /// A device that keeps what this one holds now.
    ///
    /// # Errors
    /// `Unsupported` without the capability.
    fn snapshot(&self) -> Result<Device> {
        Err(Error::unsupported(Op::Snapshot))
    }

    /// Counters of this device alone, without those below.
    fn stats(&self) -> Stats {
        Stats::new()
    }

    /// The bytes without a copy, where every request may pass the device by. Layers that count,
    /// delay, limit or fail requests answer `None`.
    fn as_mapped(&self) -> Option<&dyn MappedRegion> {
        None
    }

    /// This device's own node of a spec, without what is below.
    fn describe(&self) -> Node;

    /// The devices directly below.
    fn children(&self) -> Vec<Device> {
        Vec::new()
    }

    /// Whether writes are kept back here or kept apart (write-back, copy on write), so that taking
    /// this layer out of a stack would lose or hide data.
    fn holds_data(&self) -> bool {
        self.children().iter().any(|d| d.holds_data())
    }

    /// Why a capability of the devices below ends here, as `stack explain` prints it.
    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[]
    }

    /// What of this device's limits a plan cannot tell, since it depends on bytes that were not read. The
    /// size that [`info`](Self::info) gives is then the largest possible.
    fn unknown(&self) -> Option<&'static str> {
        None
    }

    /// The concrete device, where it has controls of its own (a switch, a delay that changes live).
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A device whose bytes are in this process's memory. Safe to use from any number of threads; a
/// copy that races a write sees old or new bytes, as a read does.
pub trait MappedRegion: Send + Sync {
    /// Copies the bytes at `off` into `to`.
    ///
    /// # Errors
    /// Refuses what is out of range.
    fn copy_out(&self, off: u64, to: &mut [u8]) -> Result<()>;

    /// Copies `from` to `off`.
    ///
    /// # Errors
    /// As for a write.
    fn copy_in(&self, off: u64, from: &[u8]) -> Result<()>;

    /// Sends up to `len` bytes at `off` to a descriptor without a copy in this process, and
    /// returns how many went.
    ///
    /// # Errors
    /// What the descriptor's write says; out of range is `InvalidInput`.
    fn send_to(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize>;

    /// Receives up to `len` bytes from a descriptor to `off`, and returns how many came.
    ///
    /// # Errors
    /// What the descriptor's read says; out of range is `InvalidInput`.
    fn recv_from(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize>;
}
