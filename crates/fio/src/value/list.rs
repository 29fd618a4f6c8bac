//! Lists: values per direction, ranges, splits, zones, names.

use super::{Reason, units};
use crate::job::{PerDir, Share, ZoneShare};

/// Up to three values by comma; what was left out keeps its value.
///
/// One value serves all directions; with two, the second also serves trims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triple<T> {
    /// For reads.
    pub read: Option<T>,
    /// For writes.
    pub write: Option<T>,
    /// For trims.
    pub trim: Option<T>,
}

impl<T: Clone> Triple<T> {
    /// Spreads one to three parsed parts over the directions, as fio does.
    fn from_parts(parts: &[Option<T>]) -> Result<Self, Reason> {
        let triple = match parts {
            [all] => Self {
                read: all.clone(),
                write: all.clone(),
                trim: all.clone(),
            },
            [read, rest] => Self {
                read: read.clone(),
                write: rest.clone(),
                trim: rest.clone(),
            },
            [read, write, trim] => Self {
                read: read.clone(),
                write: write.clone(),
                trim: trim.clone(),
            },
            _ => return Err("at most three values, for reads, writes and trims".to_owned()),
        };
        Ok(triple)
    }

    /// Writes the given values over `target`.
    pub fn store<U>(self, target: &mut PerDir<U>, convert: impl Fn(T) -> U) {
        if let Some(value) = self.read {
            target.read = convert(value);
        }
        if let Some(value) = self.write {
            target.write = convert(value);
        }
        if let Some(value) = self.trim {
            target.trim = convert(value);
        }
    }
}

fn triple<T: Clone>(
    text: &str,
    separators: &[char],
    parse: impl Fn(&str) -> Result<T, Reason>,
) -> Result<Triple<T>, Reason> {
    let parts: Vec<Option<T>> = text
        .split(|c| separators.contains(&c))
        .map(|part| {
            if part.trim().is_empty() {
                Ok(None)
            } else {
                parse(part.trim_end()).map(Some)
            }
        })
        .collect::<Result<_, _>>()?;
    if parts.iter().all(Option::is_none) {
        return Err("a value is missing".to_owned());
    }
    Triple::from_parts(&parts)
}

/// `4k`, `4k,8k`, `,8k` or `4k,8k,16k`, each within limits.
///
/// # Errors
/// What [`units::number`] refuses, and more than three parts.
pub fn sizes(text: &str, kb_base: u32, min: u64, max: u64) -> Result<Triple<u64>, Reason> {
    triple(text, &[','], |part| {
        units::number(part, kb_base, min, max).map_err(|reason| {
            if range(part, kb_base, min).is_ok() {
                "a range; for block sizes write bsrange=".to_owned() + part
            } else {
                reason
            }
        })
    })
}

/// `a-b` or `a:b`; swapped when the first is the larger.
///
/// # Errors
/// A part that is no size, or no range at all.
pub fn range(text: &str, kb_base: u32, min: u64) -> Result<(u64, u64), Reason> {
    let (low, high) = text
        .split_once(['-', ':'])
        .ok_or_else(|| "not a range; write for example 1k-4k".to_owned())?;
    let low = units::number(low.trim(), kb_base, min, u64::MAX)?;
    let high = units::number(high.trim(), kb_base, min, u64::MAX)?;
    Ok((low.min(high), low.max(high)))
}

/// Up to three ranges by `,` or `/`.
///
/// # Errors
/// What [`range`] refuses, and more than three.
pub fn ranges(text: &str, kb_base: u32, min: u64) -> Result<Triple<(u64, u64)>, Reason> {
    triple(text, &[',', '/'], |part| range(part, kb_base, min))
}

/// Fills shares left empty with what remains of 100, evenly, as fio does.
fn fill_shares(shares: &[Option<u8>], limit: usize) -> Result<Vec<u8>, Reason> {
    if shares.len() > limit {
        return Err(format!(
            "{} entries; at most {limit} are possible",
            shares.len()
        ));
    }
    let given: u32 = shares.iter().flatten().map(|p| u32::from(*p)).sum();
    if given > 100 {
        return Err(format!("the shares add up to {given}%, more than 100%"));
    }
    let open = u32::try_from(shares.iter().filter(|s| s.is_none()).count()).unwrap_or(u32::MAX);
    let left = 100 - given;
    if open == 0 && left != 0 {
        return Err(format!(
            "the shares add up to {given}%, not 100%; leave one empty to take the rest"
        ));
    }
    // The rest of the division goes to the last of the open ones, so that the sum is 100.
    let mut remaining_open = open;
    let mut remaining = left;
    let filled = shares
        .iter()
        .map(|share| {
            share.unwrap_or_else(|| {
                let part = if remaining_open <= 1 {
                    remaining
                } else {
                    left / open
                };
                remaining_open = remaining_open.saturating_sub(1);
                remaining -= part;
                u8::try_from(part).unwrap_or(100)
            })
        })
        .collect();
    Ok(filled)
}

fn percent(text: &str) -> Result<Option<u8>, Reason> {
    if text.is_empty() {
        return Ok(None);
    }
    text.strip_suffix('%')
        .unwrap_or(text)
        .parse::<u8>()
        .ok()
        .filter(|p| *p <= 100)
        .map(Some)
        .ok_or_else(|| format!("{text} is no share in percent (0 to 100)"))
}

/// `bssplit=4k/50:8k/:16k/`, one list or one for each direction by comma.
///
/// # Errors
/// Malformed entries, more than 64 of them, shares that do not add up to 100.
pub fn bssplit(text: &str, kb_base: u32) -> Result<Triple<Vec<(u64, u8)>>, Reason> {
    triple(text, &[','], |list| {
        let mut blocks = Vec::new();
        let mut shares = Vec::new();
        for entry in list.split(':') {
            let (block, share) = entry.split_once('/').unwrap_or((entry, ""));
            blocks.push(units::number(block, kb_base, 1, u64::from(u32::MAX))?);
            shares.push(percent(share)?);
        }
        let shares = fill_shares(&shares, 64)?;
        Ok(blocks.into_iter().zip(shares).collect())
    })
}

/// The zones of `zoned:60/10:30/20:10/70` (`absolute` for bytes instead of percent).
///
/// # Errors
/// Malformed zones, more than 256 of them, shares that do not add up.
pub fn zones(text: &str, kb_base: u32, absolute: bool) -> Result<Triple<Vec<ZoneShare>>, Reason> {
    triple(text, &[','], |list| {
        let mut access = Vec::new();
        let mut lengths = Vec::new();
        for entry in list.split(':') {
            let (share, length) = entry
                .split_once('/')
                .ok_or_else(|| format!("zone {entry} is not of the form share/size"))?;
            let share = percent(share)?
                .ok_or_else(|| format!("zone {entry} lacks its share of the accesses"))?;
            access.push(share);
            lengths.push(length);
        }
        let total: u32 = access.iter().map(|p| u32::from(*p)).sum();
        if total != 100 {
            return Err(format!("the zones' accesses add up to {total}%, not 100%"));
        }
        if access.len() > 256 {
            return Err(format!("{} zones; at most 256 are possible", access.len()));
        }
        let lengths: Vec<Share> = if absolute {
            lengths
                .iter()
                .map(|length| units::number(length, kb_base, 1, u64::MAX).map(Share::Bytes))
                .collect::<Result<_, _>>()?
        } else {
            let shares = lengths
                .iter()
                .map(|length| percent(length))
                .collect::<Result<Vec<_>, _>>()?;
            fill_shares(&shares, 256)?
                .into_iter()
                .map(Share::Percent)
                .collect()
        };
        Ok(access
            .into_iter()
            .zip(lengths)
            .map(|(access_percent, length)| ZoneShare {
                access_percent,
                length,
            })
            .collect())
    })
}

/// Numbers with decimals, by colon, each within limits.
///
/// # Errors
/// A part that is no number or out of range; more than `limit`.
pub fn floats(text: &str, min: f64, max: f64, limit: usize) -> Result<Vec<f64>, Reason> {
    let list = text
        .split(':')
        .map(|part| {
            let value: f64 = part
                .trim()
                .parse()
                .map_err(|_| format!("{part} is no number"))?;
            if (min..=max).contains(&value) {
                Ok(value)
            } else {
                Err(format!("{part} is out of range ({min} to {max})"))
            }
        })
        .collect::<Result<Vec<f64>, Reason>>()?;
    if list.len() > limit {
        return Err(format!(
            "{} values; at most {limit} are possible",
            list.len()
        ));
    }
    Ok(list)
}

/// `a:b` with `\:` for a colon within a name.
///
/// ```
/// use cairn_fio::value::names;
/// assert_eq!(names(r"/a:/dev/disk\:1"), ["/a", "/dev/disk:1"]);
/// ```
pub fn names(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                push(&mut list, ':');
            }
            ':' => list.push(String::new()),
            _ => push(&mut list, c),
        }
    }
    list.retain(|name| !name.is_empty());
    list
}

fn push(list: &mut [String], c: char) {
    if let Some(last) = list.last_mut() {
        last.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_fill_as_fio_does() {
        let both = |read, write, trim| Ok(Triple { read, write, trim });
        assert_eq!(
            sizes("4k", 1024, 1, u64::MAX),
            both(Some(4096), Some(4096), Some(4096))
        );
        assert_eq!(
            sizes("4k,8k", 1024, 1, u64::MAX),
            both(Some(4096), Some(8192), Some(8192))
        );
        assert_eq!(
            sizes(",8k", 1024, 1, u64::MAX),
            both(None, Some(8192), Some(8192))
        );
        assert_eq!(
            sizes("4k,,1k", 1024, 1, u64::MAX),
            both(Some(4096), None, Some(1024))
        );
        assert!(sizes("1,2,3,4", 1024, 1, u64::MAX).is_err());
        assert!(sizes(",", 1024, 1, u64::MAX).is_err());
    }

    #[test]
    fn splits_fill_their_shares() {
        let split = bssplit("4k/50:8k/:16k/", 1024).expect("well formed");
        assert_eq!(split.read, Some(vec![(4096, 50), (8192, 25), (16384, 25)]));
        let odd = bssplit("1k:2k:3k", 1024).expect("well formed");
        assert_eq!(odd.write, Some(vec![(1024, 33), (2048, 33), (3072, 34)]));
        for bad in ["foo", "4k/50:8k/60", "4k/101", "4k/50:8k/20", ""] {
            assert!(bssplit(bad, 1024).is_err(), "{bad}");
        }
    }

    #[test]
    fn zones_add_up() {
        let list = zones("60/10:30/20:10/", 1024, false).expect("well formed");
        let first = list.read.expect("one list serves all");
        assert_eq!(first.last().map(|z| z.length), Some(Share::Percent(70)));
        assert!(zones("50/5:30/15", 1024, false).is_err());
        assert!(zones("50/5m:50/", 1024, true).is_err());
    }
}
