//! From a line to an event.

mod fields;
mod prefix;
mod status;

use core::fmt;

use crate::event::{EsEvent, Event};
use fields::Fields;

/// Why a line could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// What should have stood there.
    pub expected: &'static str,
    /// What stood there, shortened.
    pub found: String,
}

impl ParseError {
    pub(crate) fn new(expected: &'static str, found: &[u8]) -> Self {
        let cut = found.get(..60).unwrap_or(found);
        Self {
            expected,
            found: String::from_utf8_lossy(cut).into_owned(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            write!(f, "expected {}, found the end of the line", self.expected)
        } else {
            write!(f, "expected {}, found {:?}", self.expected, self.found)
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads one line, without its newline, in any of the known forms: `trace`, `trace_pipe`,
/// `perf script`, `trace-cmd report`. `None` for a line that is no event.
///
/// # Errors
/// [`ParseError`] if the line is an event of the extent status cache and its fields are not as
/// any known kernel prints them.
///
/// ```
/// use cairn_trace::{Event, Op, parse_line};
/// let line = b"  mount-25943   [001] .....  935025: ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 0";
/// let Some(Event::Es(event)) = parse_line(line)? else { panic!("an event of the cache") };
/// assert_eq!(event.op, Op::LookupEnter { ino: 8, lblk: 0 });
/// # Ok::<(), cairn_trace::ParseError>(())
/// ```
pub fn parse_line(line: &[u8]) -> Result<Option<Event<'_>>, ParseError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let trimmed = line.trim_ascii_start();
    if trimmed.is_empty() || trimmed.starts_with(b"version =") || trimmed.starts_with(b"cpus=") {
        return Ok(None);
    }
    if let Some(comment) = trimmed.strip_prefix(b"#") {
        return Ok(overwritten(comment).map(Event::Lost));
    }
    if let Some(lost) = lost(trimmed) {
        return Ok(Some(Event::Lost(lost)));
    }
    let Some(prefix) = prefix::split(line) else {
        return if fields::names_known_event(line) {
            Err(ParseError::new(
                "`comm-pid [cpu] flags time: event:`",
                trimmed,
            ))
        } else {
            Ok(Some(Event::Foreign))
        };
    };
    if matches!(prefix.name, b"tracing_mark_write" | b"print") {
        return Ok(Some(Event::Marker {
            time: prefix.time,
            text: marker_text(prefix.name, prefix.fields),
        }));
    }
    if !prefix.name.starts_with(b"ext4_es_") {
        return Ok(Some(Event::Foreign));
    }
    let mut fields = Fields::new(prefix.fields);
    match fields.event(prefix.name)? {
        None => Ok(Some(Event::Unknown(prefix.name))),
        Some((dev, op)) => Ok(Some(Event::Es(EsEvent {
            task: prefix.task,
            time: prefix.time,
            dev,
            op,
        }))),
    }
}

/// `print` events of trace-cmd name the writing function before the text.
fn marker_text<'a>(name: &[u8], text: &'a [u8]) -> &'a [u8] {
    let text = text.trim_ascii();
    if name == b"print" {
        return text
            .strip_prefix(b"tracing_mark_write:")
            .map_or(text, <[u8]>::trim_ascii_start);
    }
    text
}

/// `CPU:1 [LOST 123 EVENTS]` of `trace_pipe`, and the same without a number.
fn lost(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"CPU:")?;
    let at = rest.iter().position(|&b| b == b'[')?;
    let inner = rest.get(at..)?.strip_prefix(b"[LOST")?.trim_ascii_start();
    Some(fields::leading_number(inner).map_or(0, |(n, _)| n))
}

/// `entries-in-buffer/entries-written: A/B` with A below B: the start was overwritten.
fn overwritten(comment: &[u8]) -> Option<u64> {
    let rest = comment
        .trim_ascii_start()
        .strip_prefix(b"entries-in-buffer/entries-written:")?
        .trim_ascii_start();
    let (held, rest) = fields::leading_number(rest)?;
    let (written, _) = fields::leading_number(rest.strip_prefix(b"/")?)?;
    written.checked_sub(held).filter(|&n| n > 0)
}
