//! The kinds of a leaf's items, four bits each, in three words that are handled as one.

use super::node::LEAF_ITEMS;

const WORDS: usize = 3;
const BITS: usize = 64 * WORDS;

/// The lowest bit of each item.
const LOWEST: u64 = 0x1111_1111_1111_1111;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tags([u64; WORDS]);

const _: () = assert!(LEAF_ITEMS * 4 <= BITS);

impl Tags {
    pub(super) const fn new() -> Self {
        Self([0; WORDS])
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "at is below LEAF_ITEMS, so the word below WORDS"
    )]
    pub(super) fn get(&self, at: usize) -> u8 {
        (self.0[at / 16] >> (at % 16 * 4)).to_le_bytes()[0] & 0xf
    }

    /// Sets the kind of an item that has none yet.
    #[expect(
        clippy::indexing_slicing,
        reason = "at is below LEAF_ITEMS, so the word below WORDS"
    )]
    pub(super) fn set(&mut self, at: usize, tag: u8) {
        self.0[at / 16] |= u64::from(tag) << (at % 16 * 4);
    }

    /// The first `n` items alone.
    pub(super) fn first(&self, n: usize) -> Self {
        self.up(16 * WORDS - n).down(16 * WORDS - n)
    }

    /// Both together; no item has a kind in both.
    pub(super) fn with(self, other: Self) -> Self {
        let mut both = self;
        for (word, other) in both.0.iter_mut().zip(other.0) {
            *word |= other;
        }
        both
    }

    /// Every item `n` places further up.
    pub(super) fn up(&self, n: usize) -> Self {
        let [a, b, c] = self.0;
        let (words, bits) = (4 * n / 64, 4 * n % 64);
        let [a, b, c] = match words {
            0 => [a, b, c],
            1 => [0, a, b],
            2 => [0, 0, a],
            _ => return Self::new(),
        };
        if bits == 0 {
            return Self([a, b, c]);
        }
        let over = 64 - bits;
        Self([a << bits, b << bits | a >> over, c << bits | b >> over])
    }

    /// Every item `n` places further down; the lowest ones go.
    pub(super) fn down(&self, n: usize) -> Self {
        let [a, b, c] = self.0;
        let (words, bits) = (4 * n / 64, 4 * n % 64);
        let [a, b, c] = match words {
            0 => [a, b, c],
            1 => [b, c, 0],
            2 => [c, 0, 0],
            _ => return Self::new(),
        };
        if bits == 0 {
            return Self([a, b, c]);
        }
        let over = 64 - bits;
        Self([a >> bits | b << over, b >> bits | c << over, c >> bits])
    }

    /// A bit for each item of which something is known, and for those of them that memory alone
    /// holds: delayed is 3, delayed and unwritten is 5, so the lowest bit and another.
    pub(super) fn masks(&self) -> (u64, u64) {
        let mut masks = (0, 0);
        for (i, word) in self.0.into_iter().enumerate() {
            let more = word >> 1 | word >> 2 | word >> 3;
            masks.0 |= gather(word | more) << (16 * i);
            masks.1 |= gather(word & more) << (16 * i);
        }
        masks
    }

    /// How many these are.
    pub(super) fn counts(&self) -> (u8, u8) {
        let (known, kept) = self.masks();
        let ones = |mask: u64| mask.count_ones().to_le_bytes()[0];
        (ones(known), ones(kept))
    }
}

/// The lowest bits of sixteen fields side by side.
fn gather(word: u64) -> u64 {
    let pairs = word & LOWEST;
    let pairs = (pairs | pairs >> 3) & 0x0303_0303_0303_0303;
    let fours = (pairs | pairs >> 6) & 0x000f_000f_000f_000f;
    let eights = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
    (eights | eights >> 24) & 0xffff
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "few items")]
mod tests {
    use super::*;

    #[test]
    fn items_move_and_are_counted_as_in_a_plain_list() {
        let list: Vec<u8> = (0..LEAF_ITEMS)
            .map(|i| [1, 3, 0, 4, 5, 2, 3][i % 7])
            .collect();
        let mut tags = Tags::new();
        for (at, &tag) in list.iter().enumerate() {
            tags.set(at, tag);
        }
        let known = list.iter().filter(|&&t| t != 0).count();
        let kept = list.iter().filter(|&&t| t == 3 || t == 5).count();
        assert_eq!(tags.counts(), (known as u8, kept as u8));
        let bits = |of: fn(u8) -> bool| {
            let all = list.iter().enumerate();
            all.fold(0_u64, |bits, (at, &tag)| bits | u64::from(of(tag)) << at)
        };
        assert_eq!(tags.masks(), (bits(|t| t != 0), bits(|t| t == 3 || t == 5)));
        for n in 0..=48 {
            let (up, down, first) = (tags.up(n), tags.down(n), tags.first(n));
            for at in 0..LEAF_ITEMS {
                let get = |at: Option<usize>| at.and_then(|at| list.get(at)).copied().unwrap_or(0);
                assert_eq!(up.get(at), get(at.checked_sub(n)), "up {n} at {at}");
                assert_eq!(down.get(at), get(Some(at + n)), "down {n} at {at}");
                assert_eq!(
                    first.get(at),
                    get(Some(at).filter(|&at| at < n)),
                    "first {n} at {at}"
                );
            }
        }
        assert_eq!(tags.first(5).with(tags.down(5).up(5)), tags);
    }
}
