//! The short way for what nearly every request is: one buffer, inside one page that holds data.
//!
//! It is kept apart from the general way so that little is saved on the stack. While the bytes of one copy
//! are on their way to memory, the processor keeps every later store in a buffer, in order, and a page is
//! most of what that buffer holds: thirty more stores for each request, a call that saves registers here and
//! there, made a write a quarter slower. For the same reason the lines that a write will change are asked
//! for before it: these requests wait in no such order.

use std::sync::atomic::Ordering;

use crate::bitmap::PAGE;
use crate::map::Mapping;
use crate::ram::Ram;
use crate::store::us;

/// What the short way needs to know, side by side.
pub(crate) struct Quick {
    /// One less than the logical block.
    mask: u64,
    reads: bool,
    writes: bool,
}

impl Quick {
    /// For a device with this logical block: `mapped` without locks of pages, and whether it is writable.
    pub(crate) const fn new(logical_block: u32, mapped: bool, writable: bool) -> Self {
        Self {
            mask: logical_block as u64 - 1,
            reads: mapped,
            writes: mapped && writable,
        }
    }
}

/// Whether a request of `len` bytes at `off` lies in one page, holds a byte and is aligned.
#[inline]
const fn small(off: u64, len: u64, mask: u64) -> bool {
    len != 0 && len <= PAGE - off % PAGE && (off | len) & mask == 0
}

impl Ram {
    /// Reads, if that is all there is to it; `false` has changed nothing.
    #[inline]
    pub(crate) fn read_quick(&self, off: u64, to: &mut [u8]) -> bool {
        let len = to.len() as u64;
        let Some(map) = self.quick_map(self.quick.reads, off, len) else {
            return false;
        };
        if !self.bits.test(off / PAGE) {
            return false;
        }
        map.copy_out(us(off), to);
        true
    }

    /// Writes, if that is all there is to it; `false` has changed nothing.
    #[inline]
    pub(crate) fn write_quick(&self, off: u64, from: &[u8]) -> bool {
        let len = from.len() as u64;
        let Some(map) = self.quick_map(self.quick.writes, off, len) else {
            return false;
        };
        let cold = map.is_cold(us(off), from.len());
        if !cold {
            map.expect_write(us(off), from.len());
        }
        let Some(_inside) = self.stripes.enter(off) else {
            return false;
        };
        // Both once more, or for the first time, now that nobody frees or cuts the region.
        if !self.holds(off, len) || !self.bits.test(off / PAGE) {
            return false;
        }
        map.copy_in_as(cold, us(off), from);
        true
    }

    #[inline]
    fn quick_map(&self, wanted: bool, off: u64, len: u64) -> Option<&Mapping> {
        (wanted && small(off, len, self.quick.mask) && self.holds(off, len))
            .then(|| self.store.map())
            .flatten()
    }

    /// For a request of at most a page.
    #[inline]
    fn holds(&self, off: u64, len: u64) -> bool {
        self.len.load(Ordering::Relaxed).checked_sub(len) >= Some(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_is_one_page_aligned() {
        assert!(small(0, PAGE, 511));
        assert!(small(512, PAGE - 512, 511));
        assert!(!small(512, PAGE, 511));
        assert!(!small(4096, 0, 0));
        assert!(!small(1, 511, 511));
        assert!(small(PAGE - 1, 1, 0));
        assert!(!small(PAGE - 1, 2, 0));
        assert!(!small(u64::MAX, 2, 0));
        assert!(small(u64::MAX, 1, 0));
    }

    #[test]
    fn only_what_is_there_is_quick() {
        let ram = Ram::with_len(10_000).unwrap();
        let mut buf = [0; 16];
        assert!(!ram.write_quick(0, &buf), "nothing is there yet");
        ram.write_slice(0, &[1]).unwrap();
        ram.write_slice(9_999, &[1]).unwrap();
        assert!(ram.write_quick(0, &[7; 16]));
        assert!(ram.read_quick(8, &mut buf));
        assert_eq!(buf, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(ram.write_quick(9_999, &[2]));
        for off in [9_990, 10_000, 10_001, 1 << 40, u64::MAX, u64::MAX - 15] {
            assert!(!ram.write_quick(off, &buf), "{off}");
            assert!(!ram.read_quick(off, &mut buf), "{off}");
        }
        assert!(!ram.read_quick(5000, &mut buf), "a hole is not touched");
    }
}
