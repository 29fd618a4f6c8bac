//! Little-endian fields of byte blocks, and conversions of numbers whose range is known.
//!
//! Fields are read and written at offsets that the format fixes inside blocks whose length was checked.
//! A field outside reads as zero and is not written, so that no damage of an image can lead to a panic.

/// A file or block quantity as an index into memory. 64-bit systems lose nothing; on others a value too
/// large becomes the largest index, which no slice has.
#[inline]
pub(crate) fn us(n: impl Into<u64>) -> usize {
    usize::try_from(n.into()).unwrap_or(usize::MAX)
}

/// A number of things in memory, which fits.
#[inline]
pub(crate) fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The low 16 bits.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are what is wanted"
)]
pub(crate) const fn low16(n: u64) -> u16 {
    n as u16
}

/// The low 32 bits.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low bits are what is wanted"
)]
pub(crate) const fn low32(n: u64) -> u32 {
    n as u32
}

#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    field(bytes, at).map_or(0, u16::from_le_bytes)
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    field(bytes, at).map_or(0, u32::from_le_bytes)
}

#[inline]
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(to) = at
        .checked_add(value.len())
        .and_then(|end| bytes.get_mut(at..end))
    {
        to.copy_from_slice(value);
    }
}

#[inline]
pub(crate) fn put_u8(bytes: &mut [u8], at: usize, value: u8) {
    put(bytes, at, &[value]);
}

#[inline]
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_le_bytes());
}

#[inline]
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_le_bytes());
}

/// The part from `at` on, `len` bytes long; empty where there is none.
#[inline]
pub(crate) fn part(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    at.checked_add(len)
        .and_then(|end| bytes.get(at..end))
        .unwrap_or_default()
}

/// As [`part`], to be changed.
#[inline]
pub(crate) fn part_mut(bytes: &mut [u8], at: usize, len: usize) -> &mut [u8] {
    at.checked_add(len)
        .and_then(|end| bytes.get_mut(at..end))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_outside_are_zero_and_stay_unwritten() {
        let mut b = [1_u8, 2, 3, 4, 5];
        assert_eq!((u16_at(&b, 1), u32_at(&b, 1)), (0x0302, 0x0504_0302));
        assert_eq!((u32_at(&b, 2), u16_at(&b, usize::MAX)), (0, 0));
        put_u32(&mut b, 3, 9);
        put_u16(&mut b, 3, 0x0909);
        assert_eq!(b, [1, 2, 3, 9, 9]);
        assert!(part(&b, usize::MAX, 2).is_empty() && part_mut(&mut b, 4, 2).is_empty());
    }
}
