//! One bit per page, set and read by any thread.
//!
//! # Ordering
//! A set is `Release` and a test is `Acquire`: who sees the bit sees the bytes that were copied
//! before it was set. Setting looks first, so a page that is written again and again does not take
//! the bitmap's line away from the other threads; that is sound because a bit is set again under the
//! same range lock that clearing it needs, so no clear can come between look and return.

use std::alloc::{Layout, alloc_zeroed};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in a page of the bitmap.
pub(crate) const PAGE: u64 = 4096;
/// The same, as the size of an array.
pub(crate) const PAGE_BYTES: usize = 4096;

const WORD: u64 = 64;

pub(crate) struct Bitmap {
    words: Box<[AtomicU64]>,
}

const fn word(page: u64) -> usize {
    (page / WORD) as usize
}

/// Bits of the word of `page` from it up to `end`, and the first page behind them.
const fn mask(page: u64, end: u64) -> (u64, u64) {
    let first = page % WORD;
    let next = (page - first) + WORD;
    let stop = if end < next { end } else { next };
    let n = stop - page;
    let ones = if n == WORD { u64::MAX } else { (1 << n) - 1 };
    (ones << first, stop)
}

impl Bitmap {
    /// All clear, for `pages` pages. Memory is taken from the system as it is touched.
    ///
    /// # Errors
    /// `OutOfMemory`, also where a list would end the process.
    pub(crate) fn new(pages: u64) -> io::Result<Self> {
        Ok(Self {
            words: zeroed(pages.div_ceil(WORD))?,
        })
    }

    fn at(&self, page: u64) -> &AtomicU64 {
        // A page past the end is a page of no device; every caller has checked its range.
        self.words
            .get(word(page))
            .expect("the range was checked against the device")
    }

    #[inline]
    pub(crate) fn test(&self, page: u64) -> bool {
        self.at(page).load(Ordering::Acquire) >> (page % WORD) & 1 == 1
    }

    /// Sets a bit and tells whether it was clear.
    #[inline]
    pub(crate) fn set(&self, page: u64) -> bool {
        let bit = 1 << (page % WORD);
        let word = self.at(page);
        if word.load(Ordering::Relaxed) & bit != 0 {
            return false;
        }
        word.fetch_or(bit, Ordering::Release) & bit == 0
    }

    /// Clears the bits of `first..end` and tells how many were set.
    pub(crate) fn clear(&self, first: u64, end: u64) -> u64 {
        self.sum(first, end, |word, mask| {
            if word.load(Ordering::Relaxed) & mask == 0 {
                0
            } else {
                word.fetch_and(!mask, Ordering::AcqRel) & mask
            }
        })
    }

    /// Sets the bits of `first..end` and tells how many were clear.
    pub(crate) fn set_all(&self, first: u64, end: u64) -> u64 {
        self.sum(first, end, |word, mask| {
            !word.fetch_or(mask, Ordering::Release) & mask
        })
    }

    /// Bits set in `first..end`.
    pub(crate) fn count(&self, first: u64, end: u64) -> u64 {
        self.sum(first, end, |word, mask| word.load(Ordering::Acquire) & mask)
    }

    /// Bits clear in both maps in `first..end`.
    pub(crate) fn count_clear_in_both(&self, other: &Self, first: u64, end: u64) -> u64 {
        let mut page = first;
        let mut total = 0;
        while page < end {
            let (mask, next) = mask(page, end);
            let any =
                self.at(page).load(Ordering::Acquire) | other.at(page).load(Ordering::Acquire);
            total += u64::from((!any & mask).count_ones());
            page = next;
        }
        total
    }

    fn sum(&self, first: u64, end: u64, bits: impl Fn(&AtomicU64, u64) -> u64) -> u64 {
        let mut page = first;
        let mut total = 0;
        while page < end {
            let (mask, next) = mask(page, end);
            total += u64::from(bits(self.at(page), mask).count_ones());
            page = next;
        }
        total
    }

    /// The state of `first`, and the first page up to `end` that has the other.
    pub(crate) fn run(&self, first: u64, end: u64) -> (bool, u64) {
        let set = self.test(first);
        let mut page = first;
        while page < end {
            let (mask, next) = mask(page, end);
            let bits = self.at(page).load(Ordering::Acquire);
            let other = if set { !bits } else { bits } & mask;
            if other != 0 {
                let start = page - page % WORD;
                return (set, start + u64::from(other.trailing_zeros()));
            }
            page = next;
        }
        (set, end)
    }
}

/// Words that are zero. The system zeroes such memory as it is touched, so a long list costs nothing
/// until it is used; `collect` would touch all of it, and end the process where there is not enough.
pub(crate) fn zeroed(n: u64) -> io::Result<Box<[AtomicU64]>> {
    let none = || io::Error::from(io::ErrorKind::OutOfMemory);
    // At least one word: there is no memory of no size.
    let n = usize::try_from(n.max(1)).map_err(|_| none())?;
    let layout = Layout::array::<AtomicU64>(n).map_err(|_| none())?;
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the layout asked for the alignment of a word"
    )]
    // SAFETY: the layout is that of at least one word, so it is not empty.
    let words = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if words.is_null() {
        return Err(none());
    }
    let words = ptr::slice_from_raw_parts_mut(words, n);
    // SAFETY: the memory comes from the global allocator with the layout of this very slice, belongs to
    // nobody else, and all-zero bytes are a valid AtomicU64.
    Ok(unsafe { Box::from_raw(words) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ones(bits: &[bool]) -> u64 {
        bits.iter().filter(|x| **x).count() as u64
    }

    proptest! {
        #[test]
        fn like_a_list_of_bools(ops in prop::collection::vec((0_u8..3, 0_usize..300, 0_usize..300), 1..60)) {
            let map = Bitmap::new(300).unwrap();
            let mut model = vec![false; 300];
            for (op, a, b) in ops {
                let (a, b) = (a.min(b), a.max(b));
                let (first, end) = (a as u64, b as u64);
                let set = ones(&model[a..b]);
                match op {
                    0 => {
                        prop_assert_eq!(map.clear(first, end), set);
                        model[a..b].fill(false);
                    }
                    1 => {
                        prop_assert_eq!(map.set_all(first, end), end - first - set);
                        model[a..b].fill(true);
                    }
                    _ => {
                        prop_assert_eq!(map.set(first), !model[a]);
                        model[a] = true;
                    }
                }
                prop_assert_eq!(map.count(first, end), ones(&model[a..b]));
                prop_assert_eq!(
                    map.count_clear_in_both(&Bitmap::new(300).unwrap(), first, end),
                    end - first - map.count(first, end)
                );
                let mut at = 0;
                while at < 300 {
                    let (set, next) = map.run(at as u64, 300);
                    let next = usize::try_from(next).unwrap();
                    prop_assert!(next > at);
                    prop_assert!(model[at..next].iter().all(|x| *x == set));
                    prop_assert!(next == 300 || model[next] != set);
                    at = next;
                }
            }
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        for pages in [u64::MAX, 1 << 60, 1 << 50] {
            let e = Bitmap::new(pages).err().unwrap();
            assert_eq!(e.kind(), io::ErrorKind::OutOfMemory);
        }
        assert!(!Bitmap::new(0).unwrap().test(0));
    }
}
