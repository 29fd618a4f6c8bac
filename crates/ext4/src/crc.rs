//! CRC32C as the format uses it: any start value, no inversion at the end.

/// Start value of every chain.
pub(crate) const START: u32 = !0;

/// Continues a checksum over `bytes`.
#[inline]
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    // The crate inverts before and after; the format does neither.
    !crc32c::crc32c_append(!seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_agrees_with_the_known_value() {
        // The check value of CRC-32C is 0xe3069283 with the final inversion.
        assert_eq!(!crc(START, b"123456789"), 0xe306_9283);
        assert_eq!(crc(crc(START, b"1234"), b"56789"), crc(START, b"123456789"));
    }
}
