//! CRC32C as the format uses it: any start value, no inversion at the end.

/// Start value of every chain.
pub(crate) const START: u32 = !0;

/// Continues a checksum over `bytes`.
#[inline]
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    // The crate inverts before and after; the format does neither.
    !crc32c::crc32c_append(!seed, bytes)
}

/// The polynomial, its highest power in the lowest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// Bytes that may follow a change: a block but for its tail.
const MOST_AFTER: usize = 4084;
/// What a checksum is multiplied by when so many bytes of zero follow.
static POWERS: [u32; MOST_AFTER + 1] = powers();

#[expect(
    clippy::indexing_slicing,
    reason = "the last index is the last of the list; out of it would not compile"
)]
const fn powers() -> [u32; MOST_AFTER + 1] {
    let mut powers = [0; MOST_AFTER + 1];
    // 1, and then 8 powers more for each byte.
    let (mut power, mut n) = (1 << 31, 0);
    while n <= MOST_AFTER {
        powers[n] = power;
        let mut bit = 0;
        while bit < 8 {
            power = times_x(power);
            bit += 1;
        }
        n += 1;
    }
    powers
}

const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ (POLYNOMIAL & 0_u32.wrapping_sub(a & 1))
}

/// The product of two polynomials.
#[inline]
const fn times(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 32);
    while bit > 0 {
        bit -= 1;
        product ^= b & 0_u32.wrapping_sub((a >> bit) & 1);
        b = times_x(b);
    }
    product
}

/// The checksum of bytes of which `old` became `new`, with `after` bytes behind them, from the checksum before:
/// checksums of equal lengths differ by that of the difference. `None` if too many bytes follow.
#[inline]
pub(crate) fn changed(sum: u32, old: &[u8], new: &[u8], after: usize) -> Option<u32> {
    debug_assert_eq!(old.len(), new.len(), "only contents change");
    let power = POWERS.get(after)?;
    Some(sum ^ times(crc(0, old) ^ crc(0, new), *power))
}

/// The checksum after bit `bit` of a byte was turned round that has `after` bytes behind it, from the checksum
/// before. `None` if too many bytes follow.
#[inline]
pub(crate) fn flipped(sum: u32, bit: u32, after: usize) -> Option<u32> {
    // The checksum of a single bit is a power: that of the bytes behind, of the checksum's own four, and of the bits
    // behind in its byte, the lowest of which comes first.
    let mut power = *POWERS.get(after + 4)?;
    for _ in bit % 8..7 {
        power = times_x(power);
    }
    Some(sum ^ power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_changes_the_checksum_as_a_whole_new_one_would() {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..2000 {
            let mut bytes = vec![0; rng.usize(1..4100)];
            rng.fill(&mut bytes);
            let seed = rng.u32(..);
            let before = crc(seed, &bytes);
            let from = rng.usize(..bytes.len());
            let to = rng.usize(from..=bytes.len().min(from + 600));
            let old = bytes[from..to].to_vec();
            rng.fill(&mut bytes[from..to]);
            let after = bytes.len() - to;
            let found = changed(before, &old, &bytes[from..to], after);
            let right = (after <= MOST_AFTER).then(|| crc(seed, &bytes));
            assert_eq!(
                found,
                right,
                "round {round}: {from}..{to} of {}",
                bytes.len()
            );
        }
    }

    #[test]
    fn a_bit_changes_the_checksum_as_a_whole_new_one_would() {
        let mut rng = fastrand::Rng::with_seed(4);
        for round in 0..2000 {
            let mut bytes = vec![0; rng.usize(1..4200)];
            rng.fill(&mut bytes);
            let seed = rng.u32(..);
            let before = crc(seed, &bytes);
            let (at, bit) = (rng.usize(..bytes.len()), rng.u32(..8));
            bytes[at] ^= 1 << bit;
            let after = bytes.len() - at - 1;
            let right = (after + 4 <= MOST_AFTER).then(|| crc(seed, &bytes));
            assert_eq!(
                flipped(before, bit, after),
                right,
                "round {round}: bit {bit} of {at}"
            );
        }
    }

    #[test]
    fn chains_and_agrees_with_the_known_value() {
        // The check value of CRC-32C is 0xe3069283 with the final inversion.
        assert_eq!(!crc(START, b"123456789"), 0xe306_9283);
        assert_eq!(crc(crc(START, b"1234"), b"56789"), crc(START, b"123456789"));
    }
}
