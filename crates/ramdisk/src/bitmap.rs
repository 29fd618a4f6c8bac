//! One bit per page, set and read by any thread.
//!
//! # Ordering
//! A set is `Release` and a test is `Acquire`: who sees the bit sees the bytes that were copied
//! before it was set. Setting looks first, so a page that is written again and again does not take
//! the bitmap's line away from the other threads; that is sound because a bit is set again under the
//! same range lock that clearing it needs, so no clear can come between look and return.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in a page of the bitmap.
pub(crate) const PAGE: u64 = 4096;

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
    pub(crate) fn new(pages: u64) -> Self {
        let n = usize::try_from(pages.div_ceil(WORD)).unwrap_or(usize::MAX);
        Self {
            words: atomic(vec![0; n].into_boxed_slice()),
        }
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

/// The same words, atomic. `vec![0; n]` is zeroed lazily by the system, a list of atomics is not.
fn atomic(words: Box<[u64]>) -> Box<[AtomicU64]> {
    const {
        assert!(size_of::<u64>() == size_of::<AtomicU64>());
        assert!(align_of::<u64>() == align_of::<AtomicU64>());
    }
    let raw = Box::into_raw(words) as *mut [AtomicU64];
    // SAFETY: the box was just given up and is taken over once; u64 and AtomicU64 have the same
    // representation, and the same size and alignment as the assertion above proves.
    unsafe { Box::from_raw(raw) }
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
            let map = Bitmap::new(300);
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
                    map.count_clear_in_both(&Bitmap::new(300), first, end),
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
}
