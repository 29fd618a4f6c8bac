//! Patterns for buffers and verification.

use super::Reason;
use crate::job::{Pattern, PatternPart};

/// Longest pattern fio takes, in bytes.
const LIMIT: usize = 512;

/// A pattern: `0x` hexadecimal, decimal, `"text"`, `'file'`, `%o` (offset of the block), joined.
///
/// Hexadecimal bytes are taken in the order written, a decimal number least byte first, as fio lays them
/// out. An odd number of hexadecimal digits gets a leading zero.
///
/// ```
/// use cairn_fio::job::PatternPart;
/// use cairn_fio::value::pattern;
/// let p = pattern("0xdeadface\"ab\"%o")?;
/// assert_eq!(p.parts[0], PatternPart::Bytes(vec![0xde, 0xad, 0xfa, 0xce, b'a', b'b']));
/// assert_eq!(p.parts[1], PatternPart::Offset);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Anything else, an empty pattern, and one beyond 512 bytes.
pub fn pattern(text: &str) -> Result<Pattern, Reason> {
    let mut parts = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("%o") {
            flush(&mut parts, &mut bytes);
            parts.push(PatternPart::Offset);
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('"') {
            let (body, tail) = tail
                .split_once('"')
                .ok_or_else(|| "the closing \" is missing".to_owned())?;
            bytes.extend_from_slice(body.as_bytes());
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('\'') {
            let (body, tail) = tail
                .split_once('\'')
                .ok_or_else(|| "the closing ' is missing".to_owned())?;
            flush(&mut parts, &mut bytes);
            parts.push(PatternPart::File(body.to_owned()));
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            rest = hexadecimal(tail, &mut bytes)?;
        } else {
            rest = decimal(rest, &mut bytes)?;
        }
    }
    flush(&mut parts, &mut bytes);
    let len: usize = parts
        .iter()
        .map(|part| match part {
            PatternPart::Bytes(b) => b.len(),
            PatternPart::Offset => 8,
            PatternPart::File(_) => 0,
        })
        .sum();
    if parts.is_empty() {
        return Err(
            "the pattern is empty; write 0x hex, a number, \"text\", 'file' or %o".to_owned(),
        );
    }
    if len > LIMIT {
        return Err(format!(
            "the pattern has {len} bytes; at most {LIMIT} are possible"
        ));
    }
    Ok(Pattern { parts })
}

fn flush(parts: &mut Vec<PatternPart>, bytes: &mut Vec<u8>) {
    if !bytes.is_empty() {
        parts.push(PatternPart::Bytes(std::mem::take(bytes)));
    }
}

fn hexadecimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, Reason> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err("hexadecimal digits are missing behind 0x".to_owned());
    }
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    let mut nibbles = padded.chars().filter_map(|c| c.to_digit(16));
    while let (Some(high), Some(low)) = (nibbles.next(), nibbles.next()) {
        bytes.push(u8::try_from(high << 4 | low).unwrap_or(0));
    }
    Ok(rest)
}

fn decimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, Reason> {
    let sign = usize::from(text.starts_with('-'));
    let end = text
        .char_indices()
        .find(|(i, c)| *i >= sign && !c.is_ascii_digit())
        .map_or(text.len(), |(i, _)| i);
    let (digits, rest) = text.split_at(end);
    let number: i64 = digits.parse().map_err(|_| {
        format!("cannot read {text}; write 0x hex, a number, \"text\", 'file' or %o")
    })?;
    let all = number.to_le_bytes();
    let filler: u8 = if number < 0 { 0xff } else { 0 };
    let used = all.iter().rposition(|b| *b != filler).map_or(1, |i| i + 1);
    bytes.extend(all.iter().take(used));
    Ok(rest)
}
