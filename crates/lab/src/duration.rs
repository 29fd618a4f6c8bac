//! Times as people write them: `500ms`, `30s`, `2m`.

use std::time::Duration;

/// Reads a time with its unit: ns, us, ms, s, m or h, with or without decimals.
///
/// # Errors
/// A sentence that names the text and what would be right. A bare number is refused, since fio, TOML
/// files and people disagree about its unit.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// assert_eq!(cairn_lab::parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
/// assert!(cairn_lab::parse_duration("30").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let nanos = match unit.trim() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "" => {
            return Err(format!(
                "`{text}` has no unit; write for example `{text}s` or `{text}ms`"
            ));
        }
        other => {
            return Err(format!(
                "`{other}` is no unit of time in `{text}`; units are ns us ms s m h"
            ));
        }
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is no time; write for example `30s` or `500ms`"))?;
    let nanos = value * nanos;
    // Ten years: far above any run, far below what Duration holds.
    if nanos > 3.2e17 {
        return Err(format!("`{text}` is longer than ten years"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, as digits and dots only parse to that, and below 3.2e17"
    )]
    Ok(Duration::from_nanos(nanos.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_unit() {
        for (text, nanos) in [
            ("7ns", 7),
            ("50us", 50_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            (" 2m ", 120_000_000_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn refuses_with_a_reason() {
        assert!(parse_duration("30").unwrap_err().contains("no unit"));
        assert!(parse_duration("3x").unwrap_err().contains("`x`"));
        assert!(parse_duration("s").unwrap_err().contains("no time"));
        assert!(parse_duration("1.2.3s").unwrap_err().contains("no time"));
        assert!(
            parse_duration("9999999h")
                .unwrap_err()
                .contains("ten years")
        );
        assert!(parse_duration("-1s").is_err());
    }
}
