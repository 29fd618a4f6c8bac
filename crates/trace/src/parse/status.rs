//! Status letters, as any kernel printed them.

use super::ParseError;
use cairn_extents::Status;

const WRITTEN: u32 = 1;
const UNWRITTEN: u32 = 2;
const DELAYED: u32 = 4;
const HOLE: u32 = 8;
const REFERENCED: u32 = 0x10;

/// Flag bits of `WR`, `W0x10`, `0x11` or nothing.
pub(super) fn bits(text: &[u8]) -> Result<u32, ParseError> {
    let mut bits = 0;
    let mut rest = text;
    while let Some((&letter, tail)) = rest.split_first() {
        bits |= match letter {
            b'W' => WRITTEN,
            b'U' => UNWRITTEN,
            b'D' => DELAYED,
            b'H' => HOLE,
            b'R' => REFERENCED,
            _ => break,
        };
        rest = tail;
    }
    if !rest.is_empty() {
        let residue = rest.strip_prefix(b"0x").unwrap_or(rest);
        bits |= core::str::from_utf8(residue)
            .ok()
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .filter(|&b| b <= 0x1f)
            .ok_or_else(|| ParseError::new("status letters W, U, D, H, R or their bits", text))?;
    }
    Ok(bits)
}

/// The status with physical block `p`, and the referenced mark.
pub(super) fn status(text: &[u8], p: u64) -> Result<(Status, bool), ParseError> {
    let bits = bits(text)?;
    let status = match bits & !REFERENCED {
        WRITTEN => Status::Written(p),
        UNWRITTEN => Status::Unwritten(p),
        DELAYED => Status::Delayed,
        HOLE => Status::Hole,
        b if b == UNWRITTEN | DELAYED => Status::DelayedUnwritten(p),
        _ => {
            return Err(ParseError::new(
                "exactly one of the statuses W, U, D, H, or UD",
                text,
            ));
        }
    };
    Ok((status, bits & REFERENCED != 0))
}
