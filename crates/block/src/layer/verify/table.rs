//! A word for every block of a device, in memory that is taken as blocks are written.
//!
//! Three steps of 4096 lead to the words, so that a layer over a device of 16 EiB, which some can only
//! pretend to be, costs some megabytes until it is used.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::iov::us;

const BITS: u32 = 12;
const FAN: u64 = 1 << BITS;

type Words = OnceLock<Box<[AtomicU64]>>;
type Middle = OnceLock<Box<[Words]>>;
type Top = OnceLock<Box<[Middle]>>;

/// Words that are 0 until somebody asks to change them.
pub(super) struct Table {
    tops: Box<[Top]>,
}

/// Which entry of a step a block is under, counted from the words up.
fn step(block: u64, up: u32) -> usize {
    us(block >> (BITS * up) & (FAN - 1))
}

fn fan<T: Default>() -> Box<[T]> {
    (0..FAN).map(|_| T::default()).collect()
}

impl Table {
    pub(super) fn new(blocks: u64) -> Self {
        let tops = blocks.div_ceil(FAN * FAN * FAN);
        Self {
            tops: (0..tops).map(|_| Top::default()).collect(),
        }
    }

    /// The word, if any near it was ever asked for by [`word`](Self::word).
    pub(super) fn known(&self, block: u64) -> Option<&AtomicU64> {
        let top = self.tops.get(us(block >> (3 * BITS)))?.get()?;
        let middle = top.get(step(block, 2))?.get()?;
        let words = middle.get(step(block, 1))?.get()?;
        words.get(step(block, 0))
    }

    /// The word, to be changed; none for a block past the end.
    pub(super) fn word(&self, block: u64) -> Option<&AtomicU64> {
        let top = self.tops.get(us(block >> (3 * BITS)))?.get_or_init(fan);
        let middle = top.get(step(block, 2))?.get_or_init(fan);
        let words = middle.get(step(block, 1))?.get_or_init(fan);
        words.get(step(block, 0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn every_block_has_its_own_word() {
        let blocks = [
            0,
            1,
            4095,
            4096,
            1 << 24,
            (1 << 36) - 1,
            1 << 36,
            (1 << 55) - 1,
        ];
        let table = Table::new(1 << 55);
        for b in blocks {
            table.word(b).unwrap().store(b + 1, Ordering::Relaxed);
        }
        for b in blocks {
            let word = table.known(b).unwrap();
            assert_eq!(word.load(Ordering::Relaxed), b + 1);
        }
        assert!(table.known(1 << 30).is_none());
        assert!(table.word(1 << 55).is_none());
        assert!(Table::new(0).word(0).is_none());
    }
}
