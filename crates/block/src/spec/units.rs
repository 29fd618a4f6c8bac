//! Sizes, times, rates and shares as specs write them.
//!
//! Sizes are always binary: `4g`, `4GiB` and `4GB` are the same number of bytes (job files have
//! rules of their own). Operations a second are decimal: `100k` is 100000. Times need a unit.

use std::fmt::Write as _;
use std::time::Duration;

const SIZES: [(char, u32); 6] = [
    ('e', 60),
    ('p', 50),
    ('t', 40),
    ('g', 30),
    ('m', 20),
    ('k', 10),
];

const TIMES: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Bytes: plain, or with k m g t p e, with or without `iB` or `B`, in any case.
///
/// # Errors
/// A sentence that says what a size looks like.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = split(text);
    let lower = unit.to_ascii_lowercase();
    let shift = match lower.as_str() {
        "" | "b" => Some(0),
        u => SIZES.iter().find_map(|(letter, shift)| {
            let rest = u.strip_prefix(*letter)?;
            matches!(rest, "" | "b" | "ib").then_some(*shift)
        }),
    };
    let (Some(shift), false) = (shift, digits.is_empty()) else {
        return Err(format!(
            "`{text}` is no size: a whole number of bytes, or with k m g t p e (4k = 4KiB = 4096)"
        ));
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{text}` is too large: sizes end at {}", u64::MAX))
}

/// A size in the largest exact unit.
pub fn print_size(bytes: u64) -> String {
    SIZES
        .iter()
        .find(|(_, shift)| bytes != 0 && bytes.trailing_zeros() >= *shift)
        .map_or_else(
            || bytes.to_string(),
            |(letter, shift)| format!("{}{letter}", bytes >> shift),
        )
}

/// A size as people read it: `4 GiB`, `1000003 B`.
pub fn human_size(bytes: u64) -> String {
    match print_size(bytes) {
        plain if plain.ends_with(|c: char| c.is_ascii_digit()) => format!("{plain} B"),
        mut exact => {
            let letter = exact.pop().unwrap_or_default().to_ascii_uppercase();
            format!("{exact} {letter}iB")
        }
    }
}

/// A time with a unit: ns us ms s m h; `0` needs none.
///
/// # Errors
/// A sentence that says what a time looks like.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = split(text);
    let wrong = || format!("`{text}` is no time: a whole number with ns us ms s m or h (50us)");
    if digits == "0" && unit.is_empty() {
        return Ok(Duration::ZERO);
    }
    let scale = TIMES
        .iter()
        .find_map(|(u, scale)| (*u == unit).then_some(*scale))
        .ok_or_else(wrong)?;
    if digits.is_empty() {
        return Err(wrong());
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
        .map(Duration::from_nanos)
        .ok_or_else(|| {
            format!(
                "`{text}` is too long: times end at {}s",
                u64::MAX / 1_000_000_000
            )
        })
}

/// A time in the largest exact unit, whole nanoseconds.
pub fn print_time(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    TIMES
        .iter()
        .find(|(_, scale)| ns != 0 && ns.is_multiple_of(*scale))
        .map_or_else(
            || "0".to_owned(),
            |(unit, scale)| format!("{}{unit}", ns / scale),
        )
}

/// Operations a second: plain, or with a decimal k m g.
///
/// # Errors
/// A sentence that says what a rate looks like.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, unit) = split(text);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => 0,
    };
    if scale == 0 || digits.is_empty() {
        return Err(format!(
            "`{text}` is no number: whole, or with k m g (100k = 100000)"
        ));
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
        .ok_or_else(|| format!("`{text}` is too large: numbers end at {}", u64::MAX))
}

/// A number in the largest exact decimal unit.
pub fn print_count(n: u64) -> String {
    [(1_000_000_000, 'g'), (1_000_000, 'm'), (1_000, 'k')]
        .iter()
        .find(|(scale, _)| n != 0 && n.is_multiple_of(*scale))
        .map_or_else(
            || n.to_string(),
            |(scale, unit)| format!("{}{unit}", n / scale),
        )
}

/// A share from 0 to 1: `0.01` or `1%`.
///
/// # Errors
/// A sentence that says what a share looks like.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(n) => (n, 100.0),
        None => (text, 1.0),
    };
    let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number
        .parse::<f64>()
        .ok()
        .filter(|_| plain)
        .map(|n| n / scale)
        .filter(|n| (0.0..=1.0).contains(n))
        .ok_or_else(|| format!("`{text}` is no share: from 0 to 1, or 0% to 100%"))
}

/// A share in its shortest exact form.
pub fn print_share(share: f64) -> String {
    share.to_string()
}

/// A range of bytes `from-to`, the end not included; `from-` goes on to the end of everything.
///
/// # Errors
/// A sentence that says what a range looks like.
pub fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("`{text}` is no range: FROM-TO in sizes, TO not included (1m-2m, 4g-)");
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let from = parse_size(from).map_err(|_| wrong())?;
    let to = match to {
        "" => u64::MAX,
        to => parse_size(to).map_err(|_| wrong())?,
    };
    if from >= to {
        return Err(format!(
            "`{text}` is an empty range: the end must lie behind the start"
        ));
    }
    Ok((from, to))
}

/// A range of bytes.
pub fn print_range((from, to): (u64, u64)) -> String {
    let mut out = print_size(from);
    out.push('-');
    if to != u64::MAX {
        // Writing to a string cannot fail.
        let _ = write!(out, "{}", print_size(to));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, n) in [
            ("0", 0),
            ("1000003", 1_000_003),
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4kb", 4096),
            ("4g", 4 << 30),
            ("15e", 15 << 60),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Ok(n), "{text}");
        }
        for text in [
            "",
            "k",
            "4x",
            "-1",
            "1.5g",
            "4 k",
            "4kib2",
            "16e",
            "99999999999999999999",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(print_size(4 << 30), "4g");
        assert_eq!(print_size(0), "0");
        assert_eq!(print_size(1536), "1536");
        assert_eq!(human_size(4 << 30), "4 GiB");
        assert_eq!(human_size(17), "17 B");
    }

    #[test]
    fn times() {
        assert_eq!(parse_time("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(parse_time("0"), Ok(Duration::ZERO));
        assert_eq!(parse_time("2m"), Ok(Duration::from_mins(2)));
        for text in ["", "5", "us", "5 us", "5d", "1.5s", "9999999999999999h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(print_time(Duration::from_micros(1500)), "1500us");
        assert_eq!(print_time(Duration::from_mins(2)), "2m");
    }

    #[test]
    fn the_rest() {
        assert_eq!(parse_count("100k"), Ok(100_000));
        assert!(parse_count("100q").is_err());
        assert_eq!(print_count(100_000), "100k");
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert_eq!(parse_share("1"), Ok(1.0));
        for text in ["", "2", "-0.1", "101%", "nan", "1e-3"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        assert_eq!(parse_range("1m-2m"), Ok((1 << 20, 2 << 20)));
        assert_eq!(parse_range("4g-"), Ok((4 << 30, u64::MAX)));
        assert_eq!(print_range((4096, u64::MAX)), "4k-");
        assert!(parse_range("2m-1m").is_err());
        assert!(parse_range("2m").is_err());
    }
}
