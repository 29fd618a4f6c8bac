//! The checks that a verified block may carry.

use std::fmt::Write as _;

use cairn_fio::job::VerifyKind;
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

const CRC7: crc::Crc<u8> = crc::Crc::<u8>::new(&crc::CRC_7_MMC);
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);
const CRC32: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
const CRC32C: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
const CRC64: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_XZ);

/// Longest digest.
pub(crate) const LONGEST: usize = 64;

/// A digest and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Digest {
    fn new(from: &[u8]) -> Self {
        let mut bytes = [0; LONGEST];
        let len = from.len().min(LONGEST);
        for (to, from) in bytes.iter_mut().zip(from) {
            *to = *from;
        }
        Self { bytes, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Bytes that the digest of a kind takes.
pub(crate) fn len(kind: VerifyKind) -> usize {
    match kind {
        VerifyKind::Crc7 => 1,
        VerifyKind::Crc16 => 2,
        VerifyKind::Crc32 | VerifyKind::Crc32c | VerifyKind::Crc32cIntel | VerifyKind::Xxhash => 4,
        VerifyKind::Crc64 => 8,
        VerifyKind::Md5 => 16,
        VerifyKind::Sha1 => 20,
        VerifyKind::Sha3_224 => 28,
        VerifyKind::Sha256 | VerifyKind::Sha3_256 => 32,
        VerifyKind::Sha3_384 => 48,
        VerifyKind::Sha512 | VerifyKind::Sha3_512 => 64,
        VerifyKind::None | VerifyKind::Meta | VerifyKind::Pattern | VerifyKind::Null => 0,
    }
}

/// The digest of some bytes; empty for kinds that have none.
pub(crate) fn of(kind: VerifyKind, data: &[u8]) -> Digest {
    fn hash<H: sha2::Digest>(data: &[u8]) -> Digest {
        Digest::new(&H::digest(data))
    }
    match kind {
        VerifyKind::Crc7 => Digest::new(&[CRC7.checksum(data)]),
        VerifyKind::Crc16 => Digest::new(&CRC16.checksum(data).to_ne_bytes()),
        VerifyKind::Crc32 => Digest::new(&CRC32.checksum(data).to_ne_bytes()),
        VerifyKind::Crc32c | VerifyKind::Crc32cIntel => {
            Digest::new(&CRC32C.checksum(data).to_ne_bytes())
        }
        VerifyKind::Crc64 => Digest::new(&CRC64.checksum(data).to_ne_bytes()),
        VerifyKind::Xxhash => Digest::new(&xxh32(data, 1).to_ne_bytes()),
        VerifyKind::Md5 => hash::<Md5>(data),
        VerifyKind::Sha1 => hash::<Sha1>(data),
        VerifyKind::Sha256 => hash::<Sha256>(data),
        VerifyKind::Sha512 => hash::<Sha512>(data),
        VerifyKind::Sha3_224 => hash::<Sha3_224>(data),
        VerifyKind::Sha3_256 => hash::<Sha3_256>(data),
        VerifyKind::Sha3_384 => hash::<Sha3_384>(data),
        VerifyKind::Sha3_512 => hash::<Sha3_512>(data),
        VerifyKind::None | VerifyKind::Meta | VerifyKind::Pattern | VerifyKind::Null => {
            Digest::new(&[])
        }
    }
}

/// The checksum over a header.
pub(crate) fn header(data: &[u8]) -> u32 {
    CRC32C.checksum(data)
}

/// Bytes as people read them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// xxHash of 32 bits, from its published description.
fn xxh32(data: &[u8], seed: u32) -> u32 {
    const P1: u32 = 0x9e37_79b1;
    const P2: u32 = 0x85eb_ca77;
    const P3: u32 = 0xc2b2_ae3d;
    const P4: u32 = 0x27d4_eb2f;
    const P5: u32 = 0x1656_67b1;
    let word = |bytes: &[u8]| {
        bytes
            .first_chunk::<4>()
            .map_or(0, |b| u32::from_le_bytes(*b))
    };
    let mut stripes = data.chunks_exact(16);
    let mut hash = if data.len() >= 16 {
        let mut lanes = [
            seed.wrapping_add(P1).wrapping_add(P2),
            seed.wrapping_add(P2),
            seed,
            seed.wrapping_sub(P1),
        ];
        for stripe in &mut stripes {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.chunks_exact(4)) {
                *lane = lane
                    .wrapping_add(word(bytes).wrapping_mul(P2))
                    .rotate_left(13)
                    .wrapping_mul(P1);
            }
        }
        let turns = [1, 7, 12, 18];
        lanes.iter().zip(turns).fold(0_u32, |sum, (lane, by)| {
            sum.wrapping_add(lane.rotate_left(by))
        })
    } else {
        seed.wrapping_add(P5)
    };
    // The length counts modulo 2^32.
    #[expect(clippy::cast_possible_truncation, reason = "by the definition")]
    let length = data.len() as u32;
    hash = hash.wrapping_add(length);
    let mut words = stripes.remainder().chunks_exact(4);
    for bytes in &mut words {
        hash = hash
            .wrapping_add(word(bytes).wrapping_mul(P3))
            .rotate_left(17)
            .wrapping_mul(P4);
    }
    for byte in words.remainder() {
        hash = hash
            .wrapping_add(u32::from(*byte).wrapping_mul(P5))
            .rotate_left(11)
            .wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(P3);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(xxh32(b"", 0), 0x02cc_5d05);
        assert_eq!(xxh32(b"abc", 0), 0x32d1_53ff);
        let digits = b"123456789";
        let hex = |kind| {
            let digest = of(kind, digits);
            assert_eq!(digest.bytes().len(), len(kind));
            super::hex(digest.bytes())
        };
        assert_eq!(hex(VerifyKind::Md5), "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(
            hex(VerifyKind::Sha1),
            "f7c3bc1d808e04732adf679965ccc34ca7ae3441"
        );
        assert_eq!(hex(VerifyKind::Crc7), "75");
        assert!(hex(VerifyKind::Sha256).starts_with("15e2b0d3c33891eb"));
        assert_eq!(
            of(VerifyKind::Crc32, digits).bytes(),
            0xcbf4_3926_u32.to_ne_bytes()
        );
        assert_eq!(
            of(VerifyKind::Crc32c, digits).bytes(),
            0xe306_9283_u32.to_ne_bytes()
        );
        assert_eq!(
            of(VerifyKind::Crc16, digits).bytes(),
            0xbb3d_u16.to_ne_bytes()
        );
        assert_eq!(
            of(VerifyKind::Crc64, digits).bytes(),
            0x995d_c9bb_df19_39fa_u64.to_ne_bytes()
        );
        for word in VerifyKind::WORDS {
            let kind = VerifyKind::from_word(word).unwrap();
            assert_eq!(of(kind, digits).bytes().len(), len(kind), "{word}");
        }
    }
}
