//! Numbers as the screen shows them: few digits, always a unit, widths that do not jump.

use std::time::Duration;

use cairn_lab::{Effect, Unit};
use ratatui::text::Span;

/// Saturating width of something counted in cells.
pub(crate) fn fit(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// A finite, non-negative number as a count of cells; anything else is 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded and clamped to the range of u16 in the same expression"
)]
pub(crate) fn cells(x: f64) -> u16 {
    if x.is_finite() {
        x.round().clamp(0.0, f64::from(u16::MAX)) as u16
    } else {
        0
    }
}

/// A value with `digits` significant digits and an SI prefix: `201 k`, `4.10 M`, `812 `.
///
/// The result ends where the unit follows, so `si(v, 3) + "IOPS"` reads well.
///
/// ```
/// use cairn_tui::tui::format::si;
/// assert_eq!(si(201_400.0, 4), "201.4 k");
/// assert_eq!(si(812.0, 3), "812 ");
/// assert_eq!(si(0.0, 3), "0 ");
/// ```
pub fn si(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "- ".to_owned();
    }
    let mut scaled = value.abs();
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P"] {
        // 999.95 would print as 1000.0: go on to the next prefix a little early.
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        prefix = next;
    }
    let sign = if value < 0.0 && scaled > 0.0 { "-" } else { "" };
    let text = significant(scaled, digits, prefix.is_empty());
    format!("{sign}{text} {prefix}")
}

/// `digits` significant digits; a plain whole number loses its decimals.
fn significant(value: f64, digits: usize, plain: bool) -> String {
    if plain && (value - value.round()).abs() < 1e-9 {
        return format!("{value:.0}");
    }
    let before = if value >= 99.95 {
        3
    } else if value >= 9.995 {
        2
    } else {
        1
    };
    format!("{value:.*}", digits.saturating_sub(before))
}

/// A rate of operations: `201.4 kIOPS`, `190.6 kop/s`.
pub fn rate(per_s: f64, unit: Unit) -> String {
    let unit = match unit {
        Unit::Io => "IOPS",
        Unit::Op => "op/s",
    };
    format!("{}{unit}", si(per_s, 4))
}

/// A rate of anything: `201 k/s`.
pub fn per_s(value: f64) -> String {
    format!("{}/s", si(value, 3))
}

/// A rate of bytes: `825 MB/s`.
pub fn bytes_per_s(value: f64) -> String {
    format!("{}B/s", si(value, 3))
}

/// A size in binary units: `5 GiB`, `11.4 MiB`.
///
/// ```
/// use cairn_tui::tui::format::size;
/// assert_eq!(size(5 << 30), "5 GiB");
/// assert_eq!(size(512), "512 B");
/// ```
pub fn size(bytes: u64) -> String {
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    if (scaled - scaled.round()).abs() < 1e-9 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{} {unit}", significant(scaled, 3, false))
    }
}

/// A whole number in groups of three: `54 912 384`.
///
/// ```
/// use cairn_tui::tui::format::grouped;
/// assert_eq!(grouped(54_912_384), "54 912 384");
/// assert_eq!(grouped(-1_016), "-1 016");
/// ```
pub fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if n < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// As [`grouped`], for counts.
pub fn count(n: u64) -> String {
    grouped(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A time with its unit in at most six characters: `850ns`, `41.0us`, `118us`, `1.10ms`, `2.50s`.
///
/// ```
/// use cairn_tui::tui::format::time;
/// assert_eq!(time(850), "850ns");
/// assert_eq!(time(118_000), "118us");
/// assert_eq!(time(1_100_000), "1.10ms");
/// ```
pub fn time(ns: u64) -> String {
    let (text, unit) = scaled(ns, 3);
    format!("{text}{unit}")
}

/// As [`time`] in two digits, at most five characters: `41us`, `1.1ms`.
pub fn rough_time(ns: u64) -> String {
    let (text, unit) = scaled(ns, 2);
    format!("{text}{unit}")
}

/// As [`time`], with a blank before the unit, and `-` where nothing was measured.
pub fn time_of(n: u64, ns: u64) -> String {
    if n == 0 {
        return "-".to_owned();
    }
    let (text, unit) = scaled(ns, 3);
    format!("{text} {unit}")
}

/// So many digits, and the unit that they count.
fn scaled(ns: u64, digits: usize) -> (String, &'static str) {
    let mut value = ns as f64;
    if ns < 1000 {
        return (format!("{value:.0}"), "ns");
    }
    let mut unit = "ns";
    for next in ["us", "ms", "s"] {
        // 999.95 would print as 1000: go on to the next unit a little early.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    (significant(value, digits, false), unit)
}

/// A short time span with a unit of its own: `0.90 ms`.
pub fn span(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1000.0;
    if ms >= 999.5 {
        format!("{:.1} s", ms / 1000.0)
    } else {
        format!("{} ms", significant(ms, 3, false))
    }
}

/// A longer time in words: `6.5 s`, `4 min 05 s`, `1 h 05 min`.
pub fn words(d: Duration) -> String {
    let s = d.as_secs();
    match s {
        0..60 => format!("{:.1} s", d.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

/// Time of a run: `00:02:30`.
pub fn clock(d: Duration) -> String {
    let s = d.as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Time of an event: `02:30.4`, with hours once there are any.
pub fn stamp(d: Duration) -> String {
    let s = d.as_secs();
    let tenth = d.subsec_millis() / 100;
    if s < 3600 {
        format!("{:02}:{:02}.{tenth}", s / 60, s % 60)
    } else {
        format!("{}:{:02}:{:02}.{tenth}", s / 3600, s / 60 % 60, s % 60)
    }
}

/// A share of a whole, `-` where the whole is nothing: `93.1 %`.
pub fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 {
        format!("{:.1} %", part / whole * 100.0)
    } else {
        "- %".to_owned()
    }
}

/// A relative difference: `+9.4 %`; a second digit where the first would say little.
pub fn change(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent.abs() < 0.995 {
        format!("{percent:+.2} %")
    } else {
        format!("{percent:+.1} %")
    }
}

/// `  95 % CI [+8.2, +10.6]`, in per cent.
pub fn interval(effect: Effect) -> String {
    let [lo, hi] = [effect.lo, effect.hi].map(|x| {
        let text = change(x);
        text.trim_end_matches(" %").to_owned()
    });
    format!("  95 % CI [{lo}, {hi}]")
}

/// Letter of an arm: `A`, `B`, ...
pub fn arm_letter(arm: usize) -> char {
    u8::try_from(arm)
        .ok()
        .filter(|arm| *arm < 26)
        .map_or('?', |arm| char::from(b'A' + arm))
}

/// `text` without control characters, cut to `width` cells.
pub fn cut(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len().min(width));
    let mut used = 0;
    for c in text.chars().filter(|c| !c.is_control()) {
        let w = if c.is_ascii() {
            1
        } else {
            Span::raw(c.to_string()).width()
        };
        if used + w > width {
            break;
        }
        used += w;
        out.push(c);
    }
    out
}

/// `text` as far as it fits into `width` cells; what was cut ends in `mark`, after a whole word where that
/// leaves half of it, and never within a number.
pub fn shorten(text: &str, width: usize, mark: &str) -> String {
    let whole = cut(text, usize::MAX);
    if Span::raw(whole.as_str()).width() <= width {
        return whole;
    }
    let head = cut(&whole, width.saturating_sub(mark.chars().count()));
    let number = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
    let next = whole.get(head.len()..).and_then(|rest| rest.chars().next());
    let head = if next.is_some_and(|c| c == ' ') {
        head.as_str()
    } else if let Some(at) = head.rfind(' ').filter(|at| *at >= head.len() / 2) {
        head.get(..at).unwrap_or_default()
    } else if next.is_some_and(number) {
        head.trim_end_matches(number)
    } else {
        head.as_str()
    };
    cut(&format!("{}{mark}", head.trim_end()), width)
}

/// The words of `text` in rows of at most `width` cells; a longer word has a row of its own.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in text.split_whitespace() {
        if !row.is_empty() && row.len() + 1 + word.len() > width {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn si_keeps_its_digits_over_prefixes() {
        for (value, digits, text) in [
            (0.5, 3, "0.50 "),
            (12.34, 3, "12.3 "),
            (999.0, 3, "999 "),
            (999.6, 3, "1.00 k"),
            (38_040.0, 3, "38.0 k"),
            (825e6, 3, "825 M"),
            (1.31e12, 3, "1.31 T"),
            (-9_400.0, 3, "-9.40 k"),
            (f64::NAN, 3, "- "),
        ] {
            assert_eq!(si(value, digits), text, "{value}");
        }
    }

    #[test]
    fn latency_fits_six_characters() {
        for ns in [
            0,
            1,
            999,
            9_999,
            99_950,
            999_499,
            999_500,
            35_000_000,
            999_499_999,
            u64::from(u32::MAX) * 20,
        ] {
            assert!(time(ns).len() <= 6, "{ns}: {}", time(ns));
            assert!(rough_time(ns).len() <= 5, "{ns}: {}", rough_time(ns));
        }
    }

    #[test]
    fn foreign_text_loses_control_characters_and_excess_width() {
        assert_eq!(cut("a\u{1b}[31mb", 20), "a[31mb");
        assert_eq!(cut("\u{4f60}\u{597d}x", 3), "\u{4f60}");
    }

    #[test]
    fn what_is_cut_says_so_and_shows_no_wrong_number() {
        for (text, width, shown) in [
            ("two words", 9, "two words"),
            ("two words", 8, "two.."),
            ("slot of each needed", 15, "slot of each.."),
            ("unbreakable", 6, "unbr.."),
            ("allocated 128.0 MiB", 13, "allocated.."),
            ("x123456", 5, "x.."),
            ("ab", 1, "."),
            ("ab", 0, ""),
        ] {
            assert_eq!(shorten(text, width, ".."), shown, "{text} in {width}");
        }
    }

    #[test]
    fn odd_numbers_become_no_cells() {
        assert_eq!(cells(f64::NAN), 0);
        assert_eq!(cells(-3.0), 0);
        assert_eq!(cells(1e9), u16::MAX);
    }
}
