//! Numbers with units.

use std::time::Duration;

use super::{Reason, arith};
use crate::job::Amount;

/// Bytes a size suffix stands for, or `None` for a suffix that is none.
///
/// Measured on fio 3.33: with base 1024 `k`, `kb` and `ki` are 1024 and only `kib` is 1000; with base
/// 1000 it is the other way round.
fn size_factor(suffix: &str, kb_base: u32) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    let mut chars = lower.chars();
    let exponent = match chars.next() {
        None => return Some(1),
        Some('b') if lower.len() == 1 => return Some(1),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    let swapped = match chars.as_str() {
        "" | "b" | "i" => false,
        "ib" => true,
        _ => return None,
    };
    let base: u64 = if (kb_base == 1000) == swapped {
        1024
    } else {
        1000
    };
    Some(base.pow(exponent))
}

/// Splits digits from what follows; `0x` digits are hexadecimal.
fn split_digits(text: &str) -> Result<(u64, &str, bool), Reason> {
    let body = text.strip_prefix('+').unwrap_or(text);
    let (digits, radix, rest) =
        if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
            let end = hex
                .find(|c: char| !c.is_ascii_hexdigit())
                .unwrap_or(hex.len());
            let (digits, rest) = hex.split_at(end);
            (digits, 16, rest)
        } else {
            let end = body
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(body.len());
            let (digits, rest) = body.split_at(end);
            (digits, 10, rest)
        };
    if digits.is_empty() {
        return Err("not a number; write for example 4096, 4k or 0x1000".to_owned());
    }
    let value =
        u64::from_str_radix(digits, radix).map_err(|_| "the number is too large".to_owned())?;
    Ok((value, rest, radix == 16))
}

fn digits_with_rest(text: &str) -> Result<(u64, &str), Reason> {
    let trimmed = text.trim_start();
    let (value, rest, hex) = split_digits(trimmed)?;
    if trimmed.len() < text.len() && !rest.is_empty() {
        return Err(format!(
            "fio reads no unit behind a leading blank; write {trimmed} directly behind the ="
        ));
    }
    if rest.starts_with('.') {
        return Err(
            "decimals are not read (fio would cut them off); use a smaller unit".to_owned(),
        );
    }
    if hex && !rest.is_empty() {
        return Err("a hexadecimal number takes no suffix (fio would ignore it)".to_owned());
    }
    Ok((value, rest))
}

/// A number of bytes: decimal or `0x` hexadecimal, with `k m g t p` and an optional `b`, `i` or `ib`, or
/// an expression in parentheses.
///
/// ```
/// use cairn_fio::value::size;
/// assert_eq!(size("4k", 1024), Ok(4096));
/// assert_eq!(size("4kib", 1024), Ok(4000));
/// assert_eq!(size("4kib", 1000), Ok(4096));
/// assert!(size("1.5m", 1024).is_err());
/// ```
///
/// # Errors
/// Anything else, and what does not fit in 63 bits.
pub fn size(text: &str, kb_base: u32) -> Result<u64, Reason> {
    if text.starts_with('(') {
        return arith::evaluate(text, Some(kb_base));
    }
    let (value, rest) = digits_with_rest(text)?;
    let factor = size_factor(rest, kb_base).ok_or_else(|| {
        format!("unknown unit {rest}; a size takes k, m, g, t or p (4k is {kb_base} x 4)")
    })?;
    value
        .checked_mul(factor)
        .filter(|n| i64::try_from(*n).is_ok())
        .ok_or_else(|| "the number is too large; the limit is 2^63 - 1".to_owned())
}

/// A plain number as fio reads it, which may carry the suffixes of a size, within limits.
///
/// # Errors
/// What [`size`] refuses, and numbers outside `min..=max`.
pub fn number(text: &str, kb_base: u32, min: u64, max: u64) -> Result<u64, Reason> {
    let value = size(text, kb_base)?;
    if value < min {
        return Err(format!("too small; at least {min} is needed"));
    }
    if value > max {
        return Err(format!("too large; at most {max} is possible"));
    }
    Ok(value)
}

/// A size, or a share of the file with `%`.
///
/// # Errors
/// What [`size`] refuses, shares above 100, and `z` (zones).
pub fn amount(text: &str, kb_base: u32) -> Result<Amount, Reason> {
    if let Some(digits) = text.strip_suffix('%') {
        let percent: u8 = digits
            .parse()
            .map_err(|_| "not a share in percent; write for example 50%".to_owned())?;
        if percent > 100 {
            return Err("more than 100%".to_owned());
        }
        return Ok(Amount::Percent(percent));
    }
    if text.ends_with(['z', 'Z']) {
        return Err("zones need zonemode=zbd, which is not supported; give bytes".to_owned());
    }
    size(text, kb_base).map(Amount::Bytes)
}

/// What a time without a unit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    /// Seconds, as for `runtime`.
    Seconds,
    /// Microseconds, as for `thinktime`.
    Micros,
    /// Milliseconds, as for `--eta-interval`.
    Millis,
}

/// A time: a number with `us`, `usec`, `ms`, `msec`, `s`, `m`, `h` or `d`.
///
/// ```
/// use cairn_fio::value::{Bare, duration};
/// use std::time::Duration;
/// assert_eq!(duration("2m", Bare::Seconds), Ok(Duration::from_secs(120)));
/// assert!(duration("10sec", Bare::Seconds).is_err());
/// ```
///
/// # Errors
/// Other units (fio takes `10sec` for about nothing), and what does not fit.
pub fn duration(text: &str, bare: Bare) -> Result<Duration, Reason> {
    if !text.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return Err("not a time; write for example 10, 500ms or 2m".to_owned());
    }
    let (value, rest) = digits_with_rest(text)?;
    let micros: u64 = match rest.to_ascii_lowercase().as_str() {
        "" => match bare {
            Bare::Seconds => 1_000_000,
            Bare::Millis => 1000,
            Bare::Micros => 1,
        },
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        "sec" => {
            return Err(format!(
                "unknown unit sec (fio would read about 0); write {value}s"
            ));
        }
        _ => {
            return Err(format!(
                "unknown unit {rest}; a time takes us, ms, s, m, h or d"
            ));
        }
    };
    value
        .checked_mul(micros)
        .filter(|n| i64::try_from(*n).is_ok())
        .map(Duration::from_micros)
        .ok_or_else(|| "the time is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_as_measured_on_fio() {
        // value, with kb_base 1024, with kb_base 1000: what fio 3.33 reports as its block size.
        for (text, binary, decimal) in [
            ("4k", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4ki", 4096, 4000),
            ("4kib", 4000, 4096),
            ("4KiB", 4000, 4096),
            ("4M", 4 << 20, 4_000_000),
            ("4mi", 4 << 20, 4_000_000),
            ("4MiB", 4_000_000, 4 << 20),
            ("4b", 4, 4),
            ("0x10", 16, 16),
            ("010", 10, 10),
            ("+4k", 4096, 4000),
        ] {
            assert_eq!(size(text, 1024), Ok(binary), "{text}");
            assert_eq!(size(text, 1000), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn what_fio_would_misread_is_refused() {
        for text in [
            "1.5m", "4kfoo", "0x10k", "4q", "4i", "10e3", "4 k", " 4k", "-1", "", "k", "0x",
            "5*4k", "9000p",
        ] {
            assert!(size(text, 1024).is_err(), "{text}");
        }
        for text in ["10sec", "1.5", "2foo", "", "s", "0x1s", "99999999999999d"] {
            assert!(duration(text, Bare::Seconds).is_err(), "{text}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(amount("50%", 1024), Ok(Amount::Percent(50)));
        assert_eq!(Amount::Percent(50).of(u64::MAX), u64::MAX / 2);
        assert!(amount("150%", 1024).is_err());
        assert!(amount("4z", 1024).is_err());
    }
}
