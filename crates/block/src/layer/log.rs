//! `log`: one line for each request.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, IoSlice, IoSliceMut, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::{
    BlockDevice, BuildError, Caps, Device, Extent, Node, Op, Param, ParamKind, Registry, ReqFlags,
    Result, Shape, Site, Stats, check, forward,
};

cairn_percpu::counter_group! {
    struct Counts { lines, lost }
}

/// Forms of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LogFormat {
    /// `SECONDS op offset+length latency result`.
    #[default]
    Text,
    /// fio's iolog, version 3: times in microseconds, replayable.
    Iolog3,
    /// Like blkparse's issue and completion lines, in sectors of 512 bytes.
    Blk,
}

impl LogFormat {
    const NAMES: &'static [&'static str] = &["text", "iolog3", "blk"];

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Iolog3 => "iolog3",
            Self::Blk => "blk",
        }
    }
}

/// A layer that writes a line for each request. A line that cannot be written is counted; it fails no
/// request.
pub struct Log {
    below: Device,
    out: Mutex<BufWriter<Box<dyn Write + Send>>>,
    format: LogFormat,
    path: PathBuf,
    start: Instant,
    counts: Counts,
    id: Option<Box<str>>,
}

/// Name that iologs use for the device.
const DEVICE: &str = "cairn";

impl Log {
    /// Over `below`, to a file that is made new.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn to_file(below: Device, path: &Path, format: LogFormat) -> io::Result<Self> {
        let file = File::create(path)?;
        let mut log = Self::to_writer(below, Box::new(file), format);
        path.clone_into(&mut log.path);
        Ok(log)
    }

    /// Over `below`, to a writer.
    pub fn to_writer(below: Device, out: Box<dyn Write + Send>, format: LogFormat) -> Self {
        let log = Self {
            below,
            out: Mutex::new(BufWriter::new(out)),
            format,
            path: PathBuf::new(),
            start: Instant::now(),
            counts: Counts::new(),
            id: None,
        };
        if format == LogFormat::Iolog3 {
            log.line(format_args!(
                "fio version 3 iolog\n0 {DEVICE} add\n0 {DEVICE} open\n"
            ));
        }
        log
    }

    crate::layer::with_id!();

    fn line(&self, text: Arguments<'_>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        match out.write_fmt(text) {
            Ok(()) => self.counts.lines().inc(),
            Err(_) => self.counts.lost().inc(),
        }
    }

    fn around<R>(
        &self,
        op: Op,
        off: u64,
        len: u64,
        request: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let begun = self.start.elapsed();
        let result = request();
        let ended = self.start.elapsed();
        let took = ended.saturating_sub(begun);
        match self.format {
            LogFormat::Text => {
                let how: &dyn std::fmt::Display = match &result {
                    Ok(_) => &"ok",
                    Err(e) => e,
                };
                self.line(format_args!(
                    "{}.{:06} {op} {off}+{len} {}us {how}\n",
                    begun.as_secs(),
                    begun.subsec_micros(),
                    took.as_micros()
                ));
            }
            // What failed would fail the replay too.
            LogFormat::Iolog3 if result.is_err() => {}
            LogFormat::Iolog3 => self.iolog(op, off, len, begun.as_micros()),
            LogFormat::Blk => {
                let kind = match op {
                    Op::Read => "R",
                    Op::Write => "W",
                    Op::Flush => "F",
                    Op::Discard => "D",
                    Op::WriteZeroes => "WZ",
                    _ => return result,
                };
                for (when, action) in [(begun, "D"), (ended, "C")] {
                    self.line(format_args!(
                        "  0,0    0        1 {:5}.{:09}     0  {action}   {kind} {} + {} [{DEVICE}]\n",
                        when.as_secs(),
                        when.subsec_nanos(),
                        off / 512,
                        len.div_ceil(512)
                    ));
                }
            }
        }
        result
    }

    fn iolog(&self, op: Op, off: u64, len: u64, us: u128) {
        let action = match op {
            Op::Read => "read",
            Op::Write | Op::WriteZeroes => "write",
            Op::Discard => "trim",
            Op::Flush => {
                return self.line(format_args!("{us} {DEVICE} datasync\n"));
            }
            _ => return,
        };
        // Lengths are 32 bits there, so a longer request becomes several.
        let mut at = off;
        let mut left = len;
        while left > 0 {
            let n = left.min(u64::from(u32::MAX) / 4096 * 4096);
            self.line(format_args!("{us} {DEVICE} {action} {at} {n}\n"));
            at += n;
            left -= n;
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn sync(&self) -> io::Result<()> {
        self.out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.format == LogFormat::Iolog3 {
            let us = self.start.elapsed().as_micros();
            self.line(format_args!("{us} {DEVICE} close\n"));
        }
        // Nobody is left to hear of an error; sync() is the way to learn of it.
        let _ = self.sync();
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl BlockDevice for Log {
    forward!(below: info children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let bytes = check::bytes_mut(bufs);
        self.around(Op::Read, off, bytes, || {
            self.below.read_vectored_at(bufs, off, flags)
        })
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.around(Op::Write, off, check::bytes(bufs), || {
            self.below.write_vectored_at(bufs, off, flags)
        })
    }

    fn flush(&self) -> Result<()> {
        self.around(Op::Flush, 0, 0, || self.below.flush())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.around(Op::Discard, range.start, len(&range), || {
            self.below.discard(range.clone(), flags)
        })
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.around(Op::WriteZeroes, range.start, len(&range), || {
            self.below.write_zeroes(range.clone(), flags)
        })
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.around(Op::Extents, range.start, len(&range), || {
            self.below.extents(range.clone(), each)
        })
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.around(Op::Cache, range.start, len(&range), || {
            self.below.cache(range.clone())
        })
    }

    fn resize(&self, new_len: u64) -> Result<()> {
        self.around(Op::Resize, 0, new_len, || self.below.resize(new_len))
    }

    fn snapshot(&self) -> Result<Device> {
        self.around(Op::Snapshot, 0, 0, || self.below.snapshot())
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("lines", self.counts.lines().sum())
            .count("lost_lines", self.counts.lost().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        ENDS
    }

    fn describe(&self) -> Node {
        describe(&self.path, self.format, self.id.as_deref())
    }
}

fn describe(path: &Path, format: LogFormat, id: Option<&str>) -> Node {
    let other = (format != LogFormat::Text).then(|| format.name());
    Node::new("log")
        .arg("path", path.display())
        .opt_arg("format", other)
        .with_id(id)
}

const PARAMS: &[Param] = &[
    Param::new("path", ParamKind::Text, "the file, made new")
        .required()
        .positional(),
    Param::new(
        "format",
        ParamKind::Choice(LogFormat::NAMES),
        "form of a line",
    )
    .or("text"),
];

const ENDS: &[(Caps, &str)] = &[(Caps::ZCOPY, "mapped bytes would not be logged")];

/// The log of a plan: it is described, but no file is made.
struct PlannedLog {
    below: Device,
    node: Node,
}

impl BlockDevice for PlannedLog {
    forward!(below: info read write flush discard write_zeroes extents cache resize snapshot
        children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        ENDS
    }

    fn describe(&self) -> Node {
        self.node.clone()
    }
}

fn build(site: &Site<'_>) -> std::result::Result<Device, BuildError> {
    let args = site.args();
    let path = Path::new(args.text("path").unwrap_or_default());
    site.may_open(path.display())?;
    let format = match args.text("format") {
        Some("iolog3") => LogFormat::Iolog3,
        Some("blk") => LogFormat::Blk,
        _ => LogFormat::Text,
    };
    let below = site.below()?;
    if site.planning() {
        return Ok(Arc::new(PlannedLog {
            below,
            node: describe(path, format, args.id()),
        }));
    }
    let log = Log::to_file(below, path, format).map_err(|source| BuildError::Io {
        node: "log",
        what: format!("{} cannot be made", path.display()),
        source,
    })?;
    Ok(Arc::new(log.with_id(args.id())))
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "log",
        "writes a line for each request",
        Shape::Layer,
        PARAMS,
        build,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockDeviceExt, Null};

    fn lines(format: LogFormat) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log::to_file(Arc::new(Null::new(1 << 40)), file.path(), format).unwrap();
        log.write_at(&[0; 1000], 4096).unwrap();
        log.read_at(&mut [0; 8], 8).unwrap();
        log.discard(0..5 << 30, ReqFlags::empty()).unwrap();
        log.flush().unwrap();
        assert!(log.write_at(&[0; 8], u64::MAX).is_err());
        drop(log);
        std::fs::read_to_string(file.path())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn text() {
        let all = lines(LogFormat::Text);
        assert_eq!(all.len(), 5);
        assert!(all[0].contains(" write 4096+1000 ") && all[0].ends_with(" ok"));
        assert!(all[4].contains("ends past the device"));
    }

    #[test]
    fn iolog_has_its_header_and_short_lengths() {
        let all = lines(LogFormat::Iolog3);
        let without_time = |l: &String| l.split_once(' ').map(|(_, r)| r.to_owned()).unwrap();
        assert_eq!(all[0], "fio version 3 iolog");
        let rest: Vec<String> = all[1..].iter().map(without_time).collect();
        assert_eq!(
            rest,
            [
                "cairn add",
                "cairn open",
                "cairn write 4096 1000",
                "cairn read 8 8",
                "cairn trim 0 4294963200",
                "cairn trim 4294963200 1073745920",
                "cairn datasync",
                "cairn close",
            ]
        );
    }

    #[test]
    fn blk_issues_and_completes() {
        let all = lines(LogFormat::Blk);
        assert_eq!(all.len(), 10);
        assert!(all[0].contains(" D   W 8 + 2 [cairn]"), "{}", all[0]);
        assert!(all[1].contains(" C   W 8 + 2 [cairn]"), "{}", all[1]);
    }
}
