//! Bits of bitmaps, found a word at a time.

use crate::num::{u8_at, us};

/// Whether a bit is set; bits outside are.
pub(crate) fn test(bytes: &[u8], bit: u32) -> bool {
    bytes
        .get(us(bit / 8))
        .is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
}

/// Sets a bit.
pub(crate) fn set(bytes: &mut [u8], bit: u32) {
    if let Some(byte) = bytes.get_mut(us(bit / 8)) {
        *byte |= 1 << (bit % 8);
    }
}

/// Clears a bit.
pub(crate) fn clear(bytes: &mut [u8], bit: u32) {
    if let Some(byte) = bytes.get_mut(us(bit / 8)) {
        *byte &= !(1 << (bit % 8));
    }
}

/// Sets the bits of a range.
pub(crate) fn set_range(bytes: &mut [u8], from: u32, to: u32) {
    each_byte(from, to, |at, mask| {
        if let Some(byte) = bytes.get_mut(at) {
            *byte |= mask;
        }
    });
}

/// Clears the bits of a range.
pub(crate) fn clear_range(bytes: &mut [u8], from: u32, to: u32) {
    each_byte(from, to, |at, mask| {
        if let Some(byte) = bytes.get_mut(at) {
            *byte &= !mask;
        }
    });
}

fn each_byte(from: u32, to: u32, mut each: impl FnMut(usize, u8)) {
    let mut bit = from;
    while bit < to {
        let end = to.min((bit | 7) + 1);
        // At most eight bits, shifted to their place in the byte.
        let mask = (0xff_u32 >> (8 - (end - bit)) << (bit % 8)).to_le_bytes();
        each(us(bit / 8), u8_at(&mask, 0));
        bit = end;
    }
}

fn word(bytes: &[u8], index: u32) -> u64 {
    let at = us(index) * 8;
    if let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        return u64::from_le_bytes(*chunk);
    }
    // The end of a bitmap that is no multiple of eight bytes: what is missing counts as set.
    let mut last = [0xff; 8];
    for (to, from) in last.iter_mut().zip(bytes.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_le_bytes(last)
}

/// First bit from `from` on, below `end`, that is clear.
pub(crate) fn next_clear(bytes: &[u8], from: u32, end: u32) -> Option<u32> {
    next(bytes, from, end, |w| !w)
}

/// First bit from `from` on, below `end`, that is set.
pub(crate) fn next_set(bytes: &[u8], from: u32, end: u32) -> Option<u32> {
    next(bytes, from, end, |w| w)
}

fn next(bytes: &[u8], from: u32, end: u32, wanted: impl Fn(u64) -> u64) -> Option<u32> {
    if from >= end {
        return None;
    }
    let mut index = from / 64;
    let mut bits = wanted(word(bytes, index)) & (u64::MAX << (from % 64));
    loop {
        if bits != 0 {
            let bit = index * 64 + bits.trailing_zeros();
            return (bit < end).then_some(bit);
        }
        index += 1;
        if index * 64 >= end {
            return None;
        }
        bits = wanted(word(bytes, index));
    }
}

/// Number of clear bits below `end`.
pub(crate) fn count_clear(bytes: &[u8], end: u32) -> u32 {
    let mut clear = 0;
    let mut index = 0;
    while index * 64 < end {
        let left = end - index * 64;
        let mask = if left >= 64 {
            u64::MAX
        } else {
            (1 << left) - 1
        };
        clear += (!word(bytes, index) & mask).count_ones();
        index += 1;
    }
    clear
}

/// The clear run to take: the first of at least `want` bits from `goal` on, then from the start; if there
/// is none, the longest. Start and length, at most `want`.
pub(crate) fn find_run(bytes: &[u8], goal: u32, end: u32, want: u32) -> Option<(u32, u32)> {
    let mut best: Option<(u32, u32)> = None;
    for (mut at, to) in [(goal.min(end), end), (0, goal.min(end))] {
        while let Some(start) = next_clear(bytes, at, to) {
            let stop = next_set(bytes, start, end.min(start.saturating_add(want)))
                .unwrap_or(end.min(start.saturating_add(want)));
            let len = stop - start;
            if len >= want {
                return Some((start, want));
            }
            if best.is_none_or(|(_, most)| len > most) {
                best = Some((start, len));
            }
            at = stop;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_bit_by_bit(bytes in proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 1..40),
                         from in 0_u32..330, end in 0_u32..330, want in 1_u32..40) {
            let end = end.min(low(bytes.len() * 8));
            let slow = |set: bool| (from..end).find(|b| test(&bytes, *b) == set);
            prop_assert_eq!(next_clear(&bytes, from, end), slow(false));
            prop_assert_eq!(next_set(&bytes, from, end), slow(true));
            prop_assert_eq!(count_clear(&bytes, end) as usize, (0..end).filter(|b| !test(&bytes, *b)).count());
            let mut changed = bytes.clone();
            if from <= end {
                set_range(&mut changed, from, end);
                for bit in 0..low(bytes.len() * 8) {
                    prop_assert_eq!(test(&changed, bit), test(&bytes, bit) || (from..end).contains(&bit));
                }
                clear_range(&mut changed, from, end);
                for bit in from..end {
                    prop_assert!(!test(&changed, bit));
                }
            }
            if let Some((start, len)) = find_run(&bytes, from, end, want) {
                prop_assert!(len >= 1 && len <= want && start + len <= end);
                prop_assert!((start..start + len).all(|b| !test(&bytes, b)));
            } else {
                prop_assert_eq!(count_clear(&bytes, end), 0);
            }
        }
    }

    fn low(n: usize) -> u32 {
        u32::try_from(n).unwrap()
    }
}
