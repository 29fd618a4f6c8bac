//! Reflected CRCs of 32 bits, eight bytes at a time.

/// Castagnoli, as iSCSI and ext4 use it.
const CASTAGNOLI: u32 = 0x82f6_3b78;
/// IEEE 802.3, as GPT uses it.
const IEEE: u32 = 0xedb8_8320;

type Tables = [[u32; 256]; 8];

#[expect(
    clippy::indexing_slicing,
    reason = "constant tables, filled at compile time: an index out of bounds does not compile"
)]
const fn tables(polynomial: u32) -> Tables {
    let mut all = [[0; 256]; 8];
    let mut i = 0;
    let mut byte = 0_u32;
    while i < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ polynomial
            } else {
                crc >> 1
            };
            bit += 1;
        }
        all[0][i] = crc;
        i += 1;
        byte += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let crc = all[t - 1][i];
            all[t][i] = (crc >> 8) ^ all[0][(crc & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    all
}

static CASTAGNOLI_TABLES: Tables = tables(CASTAGNOLI);
static IEEE_TABLES: Tables = tables(IEEE);

#[expect(clippy::indexing_slicing, reason = "a byte indexes a table of 256")]
fn run(tables: &Tables, bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = tables;
    let mut crc = !0;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let word = u64::from_le_bytes(*eight) ^ u64::from(crc);
        let [b0, b1, b2, b3, b4, b5, b6, b7] = word.to_le_bytes();
        crc = t7[b0 as usize]
            ^ t6[b1 as usize]
            ^ t5[b2 as usize]
            ^ t4[b3 as usize]
            ^ t3[b4 as usize]
            ^ t2[b5 as usize]
            ^ t1[b6 as usize]
            ^ t0[b7 as usize];
    }
    for byte in rest {
        let [low, ..] = crc.to_le_bytes();
        crc = (crc >> 8) ^ t0[(low ^ byte) as usize];
    }
    !crc
}

/// The CRC32C (Castagnoli) of some bytes, as `verify` keeps it for each block.
///
/// ```
/// assert_eq!(cairn_block::crc32c(b"123456789"), 0xe306_9283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    run(&CASTAGNOLI_TABLES, bytes)
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    run(&IEEE_TABLES, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        // The check values of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        // RFC 3720, B.4: 32 bytes of zeros, of ones, ascending.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(b""), 0);
    }
}
