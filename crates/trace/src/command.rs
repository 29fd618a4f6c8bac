//! The command `replay`: files in, text or JSON out, an exit status.
//!
//! 0: every answer agrees. 1: some do not. 2: something could not be read or is not supported.
//! Of several files the worst counts, and all are processed.

mod spool;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cairn_extents::Generation;

use crate::event::Event;
use crate::info::KernelInfo;
use crate::lenient::LenientReplayer;
use crate::model::cairn_model;
use crate::parse::parse_line;
use crate::read::Lines;
use crate::replay::Replayer;
use crate::report::{FileReport, RunReport, Tally, summary};
use crate::survey::Survey;
use spool::Source;

/// What the command was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Text of `es_shrinker_info` to compare with; one trace only.
    pub expect_info: Option<PathBuf>,
    /// The beginning is not known.
    pub lenient: bool,
    /// One JSON document instead of text.
    pub json: bool,
    /// Overrides the choice by the trace.
    pub generation: Option<Generation>,
    /// Note progress on large files.
    pub progress: bool,
}

/// Lines between two notes of progress.
const PROGRESS_EVERY: u64 = 1_000_000;

/// Replays `traces`; results go to `out`, notes to `err`. Returns the exit status.
///
/// # Errors
/// Only what writing to `out` or `err` gives, a closed pipe for one.
pub fn run_replay(
    traces: &[PathBuf],
    options: &ReplayOptions,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    if let Some(usage) = usage_error(traces, options) {
        writeln!(err, "{usage}")?;
        return Ok(2);
    }
    let expected = match options.expect_info.as_deref().map(read_info).transpose() {
        Ok(expected) => expected,
        Err(message) => {
            writeln!(err, "{message}")?;
            return Ok(2);
        }
    };
    let mut run = RunReport::default();
    for path in traces {
        match replay_file(path, options, expected.as_ref(), err)? {
            Ok(report) => {
                if !options.json {
                    write_text(&report, options, traces.len() > 1, out)?;
                }
                run.exit = run.exit.max(u8::from(!report.agrees()));
                run.files.push(report);
            }
            Err(message) => {
                writeln!(err, "{message}")?;
                run.exit = 2;
            }
        }
    }
    if options.json {
        write_json(&run, out)?;
    } else if traces.len() > 1 {
        let sum = |of: fn(&FileReport) -> Tally| {
            let mut sum = Tally::default();
            run.files.iter().for_each(|f| sum.add(of(f)));
            sum
        };
        let line = summary(
            sum(|f| f.lookups),
            sum(|f| f.ranges),
            sum(|f| f.shrinks),
            options.lenient,
        );
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(run.exit)
}

fn usage_error(traces: &[PathBuf], options: &ReplayOptions) -> Option<&'static str> {
    if traces.is_empty() {
        return Some("no trace given: expected at least one file");
    }
    if options.expect_info.is_some() && options.lenient {
        return Some("--expect-info needs the whole history: leave out --lenient");
    }
    if options.expect_info.is_some() && traces.len() > 1 {
        return Some("--expect-info compares with one trace: give one file");
    }
    if options.json && cfg!(not(feature = "serde")) {
        return Some("--json is not built in: build with the feature serde");
    }
    None
}

fn read_info(path: &Path) -> Result<KernelInfo, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("{shown}: cannot be read: {e}"))?;
    KernelInfo::parse(&text).map_err(|e| format!("{shown}:{e}"))
}

/// The outer error is of writing, the inner one is the message for status 2.
fn replay_file(
    path: &Path,
    options: &ReplayOptions,
    expected: Option<&KernelInfo>,
    err: &mut dyn Write,
) -> io::Result<Result<FileReport, String>> {
    let shown = path.display().to_string();
    let mut survey = Survey::default();
    let source = match Source::open(path) {
        Ok(source) => source,
        Err(e) => return Ok(Err(format!("{shown}: cannot be read: {e}"))),
    };
    let surveyed = each_event(source.first(), &shown, |_, event| {
        survey.observe(event);
        Ok(())
    });
    if let Err(message) = surveyed {
        return Ok(Err(message));
    }
    if survey.es_events() == 0 {
        return Ok(Err(format!(
            "{shown}: no event of the extent status cache: expected lines with ext4_es_*"
        )));
    }
    let settings = survey.settings(options.generation);
    if expected.is_some() && settings.several_devices {
        return Ok(Err(format!(
            "{shown}: --expect-info compares with one device, and the trace has several"
        )));
    }
    let again = match source.again() {
        Ok(again) => again,
        Err(e) => return Ok(Err(format!("{shown}: cannot be read: {e}"))),
    };
    let mut written = Ok(());
    let mut progress = |line: u64| {
        if options.progress && line.is_multiple_of(PROGRESS_EVERY) && written.is_ok() {
            written = writeln!(err, "{shown}: {line} lines");
        }
    };
    let result = if options.lenient {
        let mut replayer = LenientReplayer::new(settings);
        each_event(again, &shown, |line, event| {
            progress(line);
            replayer
                .feed(line, event)
                .map(drop)
                .map_err(|e| e.to_string())
        })
        .map(|()| (replayer.notes(), replayer.finish()))
    } else {
        let mut replayer = Replayer::new(settings, cairn_model);
        each_event(again, &shown, |line, event| {
            progress(line);
            replayer
                .feed(line, event)
                .map(drop)
                .map_err(|e| e.to_string())
        })
        .map(|()| (replayer.notes(), replayer.finish(expected)))
    };
    written?;
    let (notes, mut report) = match result {
        Ok(done) => done,
        Err(message) => return Ok(Err(message)),
    };
    for note in notes {
        writeln!(err, "{shown}: {note}")?;
    }
    report.file = shown;
    Ok(Ok(report))
}

/// Calls `each` for every event; the error is a message with file and line.
fn each_event(
    input: impl std::io::Read,
    shown: &str,
    mut each: impl FnMut(u64, &Event<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut lines = Lines::new(input).map_err(|e| format!("{shown}:{e}"))?;
    while let Some((line, text)) = lines.next_line().map_err(|e| format!("{shown}:{e}"))? {
        let event = parse_line(text).map_err(|e| format!("{shown}:{line}: {e}"))?;
        if let Some(event) = event {
            each(line, &event).map_err(|e| format!("{shown}:{line}: {e}"))?;
        }
    }
    Ok(())
}

fn write_text(
    report: &FileReport,
    options: &ReplayOptions,
    several: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for divergence in &report.divergences {
        writeln!(out, "{}:{divergence}", report.file)?;
    }
    if several {
        write!(out, "{}: ", report.file)?;
    }
    writeln!(out, "{}", report.summary(options.lenient))?;
    if let Some(info) = &report.info {
        if info.agreed {
            writeln!(out, "info agreed")?;
        }
        for difference in &info.differences {
            writeln!(out, "info {difference}")?;
        }
    }
    Ok(())
}

#[cfg(feature = "serde")]
fn write_json(run: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, run)?;
    writeln!(out)
}

#[cfg(not(feature = "serde"))]
fn write_json(_: &RunReport, _: &mut dyn Write) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
