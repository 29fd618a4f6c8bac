//! Numbers the way fio shortens them, and times in words.

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nothing named.
    None,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Bits per second; the number is in bytes.
    BitsPerSecond,
}

impl Unit {
    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => "B",
            Self::BytesPerSecond => "B/s",
            Self::BitsPerSecond => "bit/s",
        }
    }
}

/// Shortens a number to `digits` characters before its prefix, by 1024 (`binary`) or 1000.
///
/// ```
/// use cairn_fio::output::{Unit, shorten};
/// assert_eq!(shorten(62_000, 4, false, Unit::None), "62.0k");
/// assert_eq!(shorten(430_964_736, 4, true, Unit::BytesPerSecond), "411MiB/s");
/// assert_eq!(shorten(19_422_123, 6, false, Unit::None), "19422k");
/// ```
pub fn shorten(number: u64, digits: u32, binary: bool, unit: Unit) -> String {
    const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (step, names) = if binary {
        (1024, BINARY)
    } else {
        (1000, DECIMAL)
    };
    let digits = digits as usize;
    let mut whole = if unit == Unit::BitsPerSecond {
        number.saturating_mul(8)
    } else {
        number
    };
    let mut rest = None;
    let mut prefixes = names.iter();
    let mut prefix = prefixes.next().copied().unwrap_or("");
    while length(whole) > digits {
        let Some(next) = prefixes.next() else { break };
        prefix = next;
        rest = Some(whole % step);
        whole /= step;
    }
    let suffix = unit.suffix();
    let Some(rest) = rest else {
        return format!("{whole}{prefix}{suffix}");
    };
    // One place goes to the point; where no digit fits behind it, the rest rounds.
    let room = digits.saturating_sub(length(whole) + 1);
    if room == 0 {
        let rounded = whole + u64::from(rest >= step / 2);
        return format!("{rounded}{prefix}{suffix}");
    }
    let fraction = format!("{:.room$}", rest as f64 / step as f64);
    let (carry, decimals) = fraction.split_once('.').unwrap_or(("0", "0"));
    let whole = whole + u64::from(carry == "1");
    format!("{whole}.{decimals}{prefix}{suffix}")
}

fn length(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |n| n as usize + 1)
}

/// Seconds since 1970 in the form of C's `ctime`, without the new line.
///
/// ```
/// assert_eq!(cairn_fio::output::time_in_words(1_796_044_895, 0), "Mon Nov 30 13:21:35 2026");
/// ```
pub fn time_in_words(unix_s: u64, utc_offset_s: i32) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let local = unix_s.saturating_add_signed(i64::from(utc_offset_s));
    let (days, second) = (local / 86_400, local % 86_400);
    // Civil date from a day count, with years that start in March (Howard Hinnant's algorithm).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    let name = |list: &[&'static str], index: u64| {
        usize::try_from(index)
            .ok()
            .and_then(|i| list.get(i).copied())
            .unwrap_or("?")
    };
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        name(&DAYS, days % 7),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_fio_prints_them() {
        // Taken from runs of fio 3.33.
        let rate = Unit::BytesPerSecond;
        for (number, digits, binary, unit, text) in [
            (994_000, 4, false, Unit::None, "994k"),
            (2_048_000, 4, false, Unit::None, "2048k"),
            (250, 4, false, Unit::None, "250"),
            (8_388_608_000, 4, true, rate, "8000MiB/s"),
            (8_388_608_000, 4, false, rate, "8389MB/s"),
            (14_022_263, 4, true, rate, "13.4MiB/s"),
            (14_083_268, 4, false, rate, "14.1MB/s"),
            (26_361_856, 4, true, Unit::Bytes, "25.1MiB"),
            (10_481_565, 4, true, Unit::Bytes, "10.00MiB"),
            (10_485_000, 4, false, Unit::Bytes, "10.5MB"),
            (9_999_999, 4, false, Unit::Bytes, "10000kB"),
            (999_960, 4, true, Unit::Bytes, "977KiB"),
            (5_186_045, 6, false, Unit::None, "5186.0k"),
            (10_997_400, 6, false, Unit::None, "10997k"),
            (1_000_375, 6, false, Unit::BitsPerSecond, "8003.0kbit/s"),
            (1_000_375, 6, true, Unit::BitsPerSecond, "7815.4Kibit/s"),
            (0, 4, true, Unit::Bytes, "0B"),
        ] {
            assert_eq!(shorten(number, digits, binary, unit), text, "{number}");
        }
        assert_eq!(shorten(u64::MAX, 1, true, Unit::Bytes), "16EiB");
    }

    #[test]
    fn times() {
        assert_eq!(time_in_words(0, 0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time_in_words(951_782_400, 3600), "Tue Feb 29 01:00:00 2000");
    }
}
