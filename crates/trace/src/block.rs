//! Traces of block devices: what was asked of which volume, where and when. They have nothing to do with extents;
//! whoever replays them does the I/O.
//!
//! | format | line |
//! |---|---|
//! | text of blkparse | `8,0 1 42 0.000123 1234 D WS 223490 + 8 [fio]`: device, CPU, number, seconds, process, action, kind, sector, sectors |
//! | Microsoft Research Cambridge | `128166372003061629,usr,0,Read,7014609920,24576,41286`: ticks of 100 ns, host, disk, kind, offset, bytes, response time |

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Bytes of a sector in block traces, whatever the device's own are.
const SECTOR: u64 = 512;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockOp {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Discard,
    /// A flush of the device's cache; offset and length say nothing.
    Flush,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEvent {
    /// Time since the first event.
    pub at: Duration,
    /// Index into [`BlockTrace::volumes`].
    pub volume: usize,
    /// What was asked for.
    pub op: BlockOp,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A trace that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockTrace {
    /// Names of the volumes, in the order in which they came up: `8,0`, or `usr.0`.
    pub volumes: Vec<String>,
    /// The requests in the order of the trace.
    pub events: Vec<BlockEvent>,
    /// Lines that a lenient reading left out.
    pub skipped: u64,
}

/// A line that is none of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockTraceError {
    /// Its number, from 1.
    pub number: usize,
    /// As written, cut at 200 characters.
    pub line: String,
    /// What is wrong.
    pub reason: &'static str,
}

impl fmt::Display for BlockTraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {:?}: {}", self.number, self.line, self.reason)
    }
}

impl Error for BlockTraceError {}

/// Collects events while lines are read.
#[derive(Default)]
struct Reader<'t> {
    trace: BlockTrace,
    known: HashMap<&'t str, usize>,
}

impl<'t> Reader<'t> {
    fn volume(&mut self, key: &'t str, name: impl FnOnce() -> String) -> usize {
        let volumes = &mut self.trace.volumes;
        *self.known.entry(key).or_insert_with(|| {
            volumes.push(name());
            volumes.len() - 1
        })
    }

    fn event(&mut self, volume: usize, (at, op, offset, len): Request) {
        self.trace.events.push(BlockEvent {
            at,
            volume,
            op,
            offset,
            len,
        });
    }

    fn fail(
        &mut self,
        number: usize,
        line: &str,
        lenient: bool,
        reason: &'static str,
    ) -> Result<(), BlockTraceError> {
        if lenient {
            self.trace.skipped += 1;
            return Ok(());
        }
        Err(BlockTraceError {
            number,
            line: line.chars().take(200).collect(),
            reason,
        })
    }

    /// Times count from the first event; a clock that ran backwards between CPUs stands still instead.
    fn finish(mut self) -> BlockTrace {
        let first = self
            .trace
            .events
            .iter()
            .map(|e| e.at)
            .min()
            .unwrap_or_default();
        let mut last = Duration::ZERO;
        for event in &mut self.trace.events {
            event.at = event.at.saturating_sub(first).max(last);
            last = event.at;
        }
        self.trace
    }
}

/// Reads the text that `blkparse` prints. Requests are taken where they were issued to the device (action D); a
/// trace without such lines is taken where they were queued (Q). The summary at its end is left out.
///
/// # Errors
/// [`BlockTraceError`] for the first line that is none, unless `lenient`; it is counted then.
///
/// # Examples
/// ```
/// use cairn_trace::block::{BlockOp, parse_blkparse};
///
/// let text = "  8,0    1        1     0.000000000  1234  D   W 2048 + 8 [fio]\n";
/// let trace = parse_blkparse(text, false)?;
/// assert_eq!((trace.events[0].op, trace.events[0].offset, trace.events[0].len), (BlockOp::Write, 1 << 20, 4096));
/// # Ok::<(), cairn_trace::block::BlockTraceError>(())
/// ```
pub fn parse_blkparse(text: &str, lenient: bool) -> Result<BlockTrace, BlockTraceError> {
    let issued = text
        .lines()
        .any(|line| line.split_whitespace().nth(5) == Some("D"));
    let wanted = if issued { "D" } else { "Q" };
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(device) = words.next() else {
            continue;
        };
        if device.starts_with("CPU") || device == "Total" {
            break;
        }
        match blkparse(words, wanted) {
            Ok(None) => {}
            Ok(Some(request)) => {
                let volume = reader.volume(device, || device.to_owned());
                reader.event(volume, request);
            }
            Err(reason) => reader.fail(index + 1, line, lenient, reason)?,
        }
    }
    Ok(reader.finish())
}

type Request = (Duration, BlockOp, u64, u64);

fn blkparse<'t>(
    mut words: impl Iterator<Item = &'t str>,
    wanted: &str,
) -> Result<Option<Request>, &'static str> {
    // CPU and number of the event say nothing here.
    let time = words.nth(2).ok_or("the time is missing")?;
    let action = words.nth(1).ok_or("the action is missing")?;
    if action != wanted {
        return Ok(None);
    }
    let kind = words.next().ok_or("the kind is missing, such as R or WS")?;
    let at = seconds(time).ok_or("the time is no number of seconds")?;
    let op = match kind.chars().next() {
        Some('R') => BlockOp::Read,
        Some('W') => BlockOp::Write,
        Some('D') => BlockOp::Discard,
        // A flush before a write comes as FW; the write is what has a place.
        Some('F') if kind.chars().nth(1) == Some('W') => BlockOp::Write,
        Some('F') => BlockOp::Flush,
        _ => return Ok(None),
    };
    let place = words.next();
    if place.is_none_or(|p| p.starts_with('[')) {
        return Ok(Some((at, BlockOp::Flush, 0, 0)));
    }
    let number = |word: Option<&str>| word.and_then(|w| w.parse::<u64>().ok());
    let sector = number(place).ok_or("the sector is no number")?;
    if words.next() != Some("+") {
        return Err("a + is expected behind the sector");
    }
    let sectors = number(words.next()).ok_or("the number of sectors is missing")?;
    let (offset, len) = sector
        .checked_mul(SECTOR)
        .zip(sectors.checked_mul(SECTOR))
        .filter(|(offset, len)| offset.checked_add(*len).is_some())
        .ok_or("the place is too large")?;
    let op = if len == 0 { BlockOp::Flush } else { op };
    Ok(Some((at, op, offset, len)))
}

/// Seconds with up to nine decimals, without the rounding of a float.
fn seconds(word: &str) -> Option<Duration> {
    let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
    if part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: u32 = format!("{part:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanos))
}

/// Reads a trace of Microsoft Research Cambridge. A volume is a host and a disk: `usr.0`.
///
/// # Errors
/// [`BlockTraceError`] for the first line that is none, unless `lenient`; it is counted then.
///
/// # Examples
/// ```
/// let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n";
/// let trace = cairn_trace::block::parse_msr(text, false)?;
/// assert_eq!(trace.volumes, ["usr.0"]);
/// assert_eq!(trace.events[0].len, 24576);
/// # Ok::<(), cairn_trace::block::BlockTraceError>(())
/// ```
pub fn parse_msr(text: &str, lenient: bool) -> Result<BlockTrace, BlockTraceError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match msr(line) {
            Ok((key, request)) => {
                let volume = reader.volume(key, || key.replacen(',', ".", 1));
                reader.event(volume, request);
            }
            Err(reason) => reader.fail(index + 1, line, lenient, reason)?,
        }
    }
    Ok(reader.finish())
}

/// Host and disk as they are written, and the request.
fn msr(line: &str) -> Result<(&str, Request), &'static str> {
    let (ticks, rest) = line
        .split_once(',')
        .ok_or("seven fields with commas between them are expected")?;
    let ticks: u64 = ticks
        .trim()
        .parse()
        .map_err(|_| "the time is no number of ticks of 100 ns")?;
    let comma = rest
        .match_indices(',')
        .nth(1)
        .map(|(at, _)| at)
        .ok_or("host and disk are missing")?;
    let (volume, rest) = rest.split_at(comma);
    let mut fields = rest.trim_start_matches(',').split(',').map(str::trim);
    let op = match fields.next() {
        Some(kind) if kind.eq_ignore_ascii_case("read") => BlockOp::Read,
        Some(kind) if kind.eq_ignore_ascii_case("write") => BlockOp::Write,
        _ => return Err("the kind is neither Read nor Write"),
    };
    let mut number = |missing| {
        fields
            .next()
            .and_then(|f| f.parse::<u64>().ok())
            .ok_or(missing)
    };
    let offset = number("the offset is no number of bytes")?;
    let len = number("the size is no number of bytes")?;
    if offset.checked_add(len).is_none() {
        return Err("the place is too large");
    }
    let at =
        Duration::from_secs(ticks / 10_000_000) + Duration::from_nanos(ticks % 10_000_000 * 100);
    Ok((volume, (at, op, offset, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLKPARSE: &str = "\
  8,16   0        1     0.000001000  4510  Q  WS 2048 + 8 [fio]
  8,16   0        2     0.000002500  4510  D  WS 2048 + 8 [fio]
  8,16   0        3     0.000350000     0  C  WS 2048 + 8 [0]
  8,16   1        4     0.100002500  4511  D   R 4096 + 256 [fio]
  8,16   1        5     0.100002600  4511  m   N cfq4511 some words
  8,32   1        6     0.100002700  4511  D   D 0 + 16 [fio]
  8,16   1        7     0.200000000  4511  D  FN [fio]
CPU0 (8,16):
 Reads Queued:           1,      128KiB
";

    #[test]
    fn issued_requests_of_blkparse() {
        let trace = parse_blkparse(BLKPARSE, false).unwrap();
        assert_eq!(trace.volumes, ["8,16", "8,32"]);
        let got: Vec<_> = trace
            .events
            .iter()
            .map(|e| {
                (
                    u64::try_from(e.at.as_nanos()).unwrap(),
                    e.volume,
                    e.op,
                    e.offset,
                    e.len,
                )
            })
            .collect();
        assert_eq!(
            got,
            [
                (0, 0, BlockOp::Write, 1 << 20, 4096),
                (100_000_000, 0, BlockOp::Read, 2 << 20, 131_072),
                (100_000_200, 1, BlockOp::Discard, 0, 8192),
                (199_997_500, 0, BlockOp::Flush, 0, 0),
            ]
        );
        let queued = BLKPARSE.lines().next().unwrap();
        assert_eq!(parse_blkparse(queued, false).unwrap().events.len(), 1);
    }

    #[test]
    fn requests_of_cambridge() {
        let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372013061629,usr,1,Write,0,512,5\n";
        let trace = parse_msr(text, false).unwrap();
        assert_eq!(trace.volumes, ["usr.0", "usr.1"]);
        assert_eq!(trace.events[1].at, Duration::from_secs(1));
        assert_eq!(
            (trace.events[0].offset, trace.events[0].op),
            (7_014_609_920, BlockOp::Read)
        );
    }

    #[test]
    fn bad_lines_are_named_or_counted() {
        for line in [
            "8,0 0 1 x 1 D W 1 + 8 [f]",
            "8,0 0 1 0.1 1 D W q + 8",
            "8,0 0 1 0.1 1 D W 1 - 8",
            "8,0 0",
        ] {
            let text = format!("8,0 0 1 0.0 1 D W 1 + 8 [f]\n{line}\n");
            let error = parse_blkparse(&text, false).unwrap_err();
            assert_eq!(error.number, 2, "{error}");
            assert_eq!(parse_blkparse(&text, true).unwrap().skipped, 1);
        }
        for line in [
            "1,a,0,Trim,0,1,1",
            "1,a",
            "x,a,0,Read,0,1,1",
            "1,a,0,Read,18446744073709551615,1,1",
        ] {
            let error = parse_msr(line, false).unwrap_err();
            assert!(error.to_string().starts_with("line 1: "), "{error}");
            assert_eq!(parse_msr(line, true).unwrap().skipped, 1);
        }
    }
}
