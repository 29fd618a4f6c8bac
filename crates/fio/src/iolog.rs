//! fio's own I/O logs (`read_iolog`, `write_iolog`), versions 2 and 3.
//!
//! ```text
//! fio version 2 iolog            fio version 3 iolog
//! /dev/a add                     0 /dev/a add
//! /dev/a open                    0 /dev/a open
//! /dev/a write 4096 8192         120 /dev/a write 4096 8192        the time in us since the start
//! wait 100                       -                                 us to wait
//! /dev/a close                   250 /dev/a close
//! ```

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::time::Duration;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IologOp {
    /// The file is used from here on.
    Add,
    /// It is opened.
    Open,
    /// It is closed.
    Close,
    /// Bytes are read.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Bytes are written.
    Write {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Bytes are discarded.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Data and metadata are flushed.
    Sync,
    /// Data are flushed.
    DataSync,
}

/// One line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IologEvent {
    /// Time since the start of the log: waits added up (version 2), or as written (version 3).
    pub at: Duration,
    /// Index into [`Iolog::files`].
    pub file: usize,
    /// What is done.
    pub op: IologOp,
}

/// A log that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iolog {
    /// 2 or 3.
    pub version: u8,
    /// The files, in the order in which they came up.
    pub files: Vec<String>,
    /// The events in order.
    pub events: Vec<IologEvent>,
    /// Lines that a lenient reading left out.
    pub skipped: u64,
}

/// Why a log was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IologError {
    /// The first line is not that of an iolog.
    Header {
        /// As written.
        line: String,
    },
    /// A line that cannot be read.
    Line {
        /// Its number, from 1.
        number: usize,
        /// As written.
        line: String,
        /// What was wrong.
        reason: &'static str,
    },
}

impl fmt::Display for IologError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { line } => write!(
                f,
                "line 1: {line:?} is no iolog; it must be \"fio version 2 iolog\" or \"fio version 3 iolog\""
            ),
            Self::Line {
                number,
                line,
                reason,
            } => write!(f, "line {number}: {line:?}: {reason}"),
        }
    }
}

impl std::error::Error for IologError {}

impl Iolog {
    /// Reads a log; with `lenient`, lines that cannot be read are counted instead of refused.
    ///
    /// ```
    /// use cairn_fio::iolog::{Iolog, IologOp};
    /// let log = Iolog::parse("fio version 2 iolog\n/dev/a add\nwait 100\n/dev/a read 0 4096\n", false)?;
    /// assert_eq!(log.events[1].op, IologOp::Read { offset: 0, len: 4096 });
    /// assert_eq!(log.events[1].at.as_micros(), 100);
    /// # Ok::<(), cairn_fio::iolog::IologError>(())
    /// ```
    ///
    /// # Errors
    /// A first line that is no header, and any line that cannot be read.
    pub fn parse(text: &str, lenient: bool) -> Result<Self, IologError> {
        let mut lines = text.lines().map(str::trim_end);
        let header = lines.next().unwrap_or("");
        let version = match header {
            "fio version 2 iolog" => 2,
            "fio version 3 iolog" => 3,
            _ => {
                let line = header.chars().take(80).collect();
                return Err(IologError::Header { line });
            }
        };
        let mut log = Self {
            version,
            files: Vec::new(),
            events: Vec::new(),
            skipped: 0,
        };
        let mut known = HashMap::new();
        let mut clock = Duration::ZERO;
        for (index, line) in lines.enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match event(line, version, &mut clock) {
                Ok(None) => {}
                Ok(Some((name, op))) => {
                    let file = *known.entry(name).or_insert_with(|| {
                        log.files.push(name.to_owned());
                        log.files.len() - 1
                    });
                    log.events.push(IologEvent {
                        at: clock,
                        file,
                        op,
                    });
                }
                Err(_) if lenient => log.skipped += 1,
                Err(reason) => {
                    return Err(IologError::Line {
                        number: index + 2,
                        line: line.chars().take(200).collect(),
                        reason,
                    });
                }
            }
        }
        Ok(log)
    }

    /// The log as text, in its own version.
    pub fn to_text(&self) -> String {
        let mut text = format!("fio version {} iolog\n", self.version);
        let mut clock = Duration::ZERO;
        for event in &self.events {
            let name = self.files.get(event.file).map_or("?", String::as_str);
            if self.version == 3 {
                let _ = write!(text, "{} ", event.at.as_micros());
            } else if let Some(wait) = event.at.checked_sub(clock).filter(|wait| !wait.is_zero()) {
                let _ = writeln!(text, "wait {}", wait.as_micros());
            }
            clock = event.at;
            let _ = writeln!(text, "{name} {}", event.op);
        }
        text
    }
}

impl fmt::Display for IologOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add => f.write_str("add"),
            Self::Open => f.write_str("open"),
            Self::Close => f.write_str("close"),
            Self::Read { offset, len } => write!(f, "read {offset} {len}"),
            Self::Write { offset, len } => write!(f, "write {offset} {len}"),
            Self::Trim { offset, len } => write!(f, "trim {offset} {len}"),
            Self::Sync => f.write_str("sync"),
            Self::DataSync => f.write_str("datasync"),
        }
    }
}

fn event<'l>(
    line: &'l str,
    version: u8,
    clock: &mut Duration,
) -> Result<Option<(&'l str, IologOp)>, &'static str> {
    let mut words = line.split_whitespace();
    let mut next = |missing: &'static str| words.next().ok_or(missing);
    let number = |word: &str| word.parse::<u64>().map_err(|_| "a number is expected");
    let mut name = next("the line is empty")?;
    if version == 3 {
        let at = Duration::from_micros(number(name)?);
        if at < *clock {
            return Err("the time runs backwards");
        }
        *clock = at;
        name = next("the file is missing")?;
    } else if name == "wait" {
        let wait = Duration::from_micros(number(next("the time to wait is missing")?)?);
        *clock = clock.checked_add(wait).ok_or("the time is too long")?;
        return Ok(None);
    }
    let action =
        next("the action is missing; add, open, close, read, write, trim, sync or datasync")?;
    let mut span = || -> Result<(u64, u64), &'static str> {
        let offset = number(next("the offset is missing")?)?;
        let len = number(next("the length is missing")?)?;
        offset
            .checked_add(len)
            .ok_or("offset and length are too large")?;
        Ok((offset, len))
    };
    let op = match action {
        "add" => IologOp::Add,
        "open" => IologOp::Open,
        "close" => IologOp::Close,
        "read" => span().map(|(offset, len)| IologOp::Read { offset, len })?,
        "write" => span().map(|(offset, len)| IologOp::Write { offset, len })?,
        "trim" => span().map(|(offset, len)| IologOp::Trim { offset, len })?,
        // fio writes an offset and a length behind these too, which say nothing.
        "sync" => IologOp::Sync,
        "datasync" => IologOp::DataSync,
        _ => return Err("unknown action; add, open, close, read, write, trim, sync or datasync"),
    };
    Ok(Some((name, op)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_read_and_print_the_same() {
        let two = "fio version 2 iolog\n/a add\n/a open\n/a write 0 4096\nwait 50\n/b trim 4096 512\n/a sync\nwait 1\n/a close\n";
        let log = Iolog::parse(two, false).expect("well formed");
        assert_eq!(log.files, ["/a", "/b"]);
        assert_eq!(log.events.last().map(|e| e.at.as_micros()), Some(51));
        assert_eq!(log.to_text(), two);
        let three = "fio version 3 iolog\n0 /a add\n7 /a read 0 1\n9 /a datasync\n";
        let log = Iolog::parse(three, false).expect("well formed");
        assert_eq!(log.to_text(), three);
    }

    #[test]
    fn bad_lines_are_refused_or_counted() {
        for line in [
            "/a",
            "/a fly",
            "/a read 1",
            "/a read x 1",
            "wait",
            "wait x",
            "/a read 18446744073709551615 1",
        ] {
            let text = format!("fio version 2 iolog\n/a add\n{line}\n/a close\n");
            let error = Iolog::parse(&text, false).expect_err(line);
            assert!(error.to_string().starts_with("line 3: "), "{error}");
            let log = Iolog::parse(&text, true).expect("lenient");
            assert_eq!((log.skipped, log.events.len()), (1, 2), "{line}");
        }
        assert!(Iolog::parse("", false).is_err());
        assert!(Iolog::parse("fio version 3 iolog\n5 /a add\n4 /a open\n", false).is_err());
    }
}
