//! Options of the whole run.

use std::time::Duration;

use super::args::Takes::{self, Maybe, Nothing, Value};
use crate::error::{Location, ParseError, ParseErrorKind};
use crate::options::nearest_word;
use crate::plan::{Eta, OutputFormat, RunOptions, Show};
use crate::value::{Bare, Reason, duration, number};

/// Every option of the run, and whether it takes a value.
pub(super) static TABLE: &[(&str, Takes)] = &[
    ("output", Value),
    ("output-format", Value),
    ("minimal", Nothing),
    ("append-terse", Maybe),
    ("terse-version", Value),
    ("eta", Value),
    ("eta-interval", Value),
    ("eta-newline", Value),
    ("status-interval", Value),
    ("parse-only", Nothing),
    ("readonly", Nothing),
    ("warnings-fatal", Nothing),
    ("lenient", Nothing),
    ("max-jobs", Value),
    ("section", Value),
    ("aux-path", Value),
    ("bandwidth-log", Maybe),
    ("help", Nothing),
    ("version", Nothing),
    ("cmdhelp", Maybe),
    ("enghelp", Maybe),
    ("showcmd", Nothing),
    ("alloc-size", Value),
    ("debug", Value),
    ("idle-prof", Value),
    ("trigger", Value),
    ("trigger-file", Value),
    ("trigger-timeout", Value),
    ("trigger-remote", Value),
    ("inflate-log", Value),
    ("crctest", Maybe),
    ("cpuclock-test", Nothing),
    ("merge-blktrace-only", Nothing),
    ("server", Maybe),
    ("client", Value),
    ("remote-config", Value),
    ("daemonize", Value),
];

/// Whether the request is answered without any job.
pub(super) const fn needs_no_job(show: &Show) -> bool {
    !matches!(show, Show::ShowCmd)
}

/// Shortest interval of the ETA line fio takes.
const ETA_FLOOR: Duration = Duration::from_millis(250);

pub(super) fn apply(
    run: &mut RunOptions,
    notes: &mut Vec<String>,
    name: &str,
    value: Option<&str>,
    at: &Location,
) -> Result<(), ParseError> {
    let text = value.unwrap_or("");
    set(run, notes, name, value).map_err(|outcome| {
        let option = format!("--{name}");
        let kind = match outcome {
            Outcome::Bad(reason) => ParseErrorKind::BadValue {
                option,
                value: text.to_owned(),
                reason,
            },
            Outcome::Refused(reason) => ParseErrorKind::Refused {
                option,
                reason: reason.to_owned(),
            },
        };
        ParseError::new(at.clone(), kind)
    })
}

enum Outcome {
    Bad(Reason),
    Refused(&'static str),
}

impl From<Reason> for Outcome {
    fn from(reason: Reason) -> Self {
        Self::Bad(reason)
    }
}

fn set(
    run: &mut RunOptions,
    notes: &mut Vec<String>,
    name: &str,
    value: Option<&str>,
) -> Result<(), Outcome> {
    let text = value.unwrap_or("");
    match name {
        "output" => run.output = Some(text.to_owned()),
        "output-format" => run.formats = formats(text)?,
        "minimal" => run.formats = vec![OutputFormat::Terse],
        "append-terse" => run.append_terse = true,
        "terse-version" => {
            run.terse_version = match text {
                "2" => 2,
                "3" => 3,
                "4" => 4,
                "5" => 5,
                _ => return Err(Outcome::Bad("the versions are 2, 3, 4 and 5".to_owned())),
            }
        }
        "eta" => run.eta = word(text, Eta::WORDS, Eta::from_word)?,
        "eta-interval" => {
            run.eta_interval = duration(text, Bare::Millis)?;
            if run.eta_interval < ETA_FLOOR {
                return Err(Outcome::Bad("at least 250 ms is needed".to_owned()));
            }
        }
        "eta-newline" => run.eta_newline = Some(positive(text)?),
        "status-interval" => run.status_interval = Some(positive(text)?),
        "parse-only" => run.parse_only = true,
        "readonly" => run.readonly = true,
        "warnings-fatal" => run.warnings_fatal = true,
        "lenient" => run.lenient = true,
        "max-jobs" => {
            let jobs = number(text, 1024, 1, u64::from(u32::MAX))?;
            run.max_jobs = u32::try_from(jobs).ok();
        }
        // Read beforehand: jobs are left out while they are parsed.
        "section" => {}
        "aux-path" => run.aux_path = Some(text.to_owned()),
        "bandwidth-log" => run.bandwidth_log = Some(text.to_owned()),
        "help" => run.show = Some(Show::Help),
        "version" => run.show = Some(Show::Version),
        "cmdhelp" => run.show = Some(Show::CmdHelp(value.map(str::to_owned))),
        "enghelp" => run.show = Some(Show::EngHelp(value.map(str::to_owned))),
        "showcmd" => run.show = Some(Show::ShowCmd),
        "alloc-size" | "debug" => notes.push(format!("--{name} is accepted without effect")),
        "server" | "client" | "remote-config" | "daemonize" => {
            return Err(Outcome::Refused("there is no client and server mode"));
        }
        "trigger" | "trigger-file" | "trigger-timeout" | "trigger-remote" => {
            return Err(Outcome::Refused("commands are not run"));
        }
        "idle-prof" => return Err(Outcome::Refused("idleness of CPUs is not measured")),
        "inflate-log" => return Err(Outcome::Refused("logs are not stored compressed")),
        "merge-blktrace-only" => return Err(Outcome::Refused("binary block traces are not read")),
        _ => return Err(Outcome::Refused("there is no such self-test")),
    }
    Ok(())
}

fn positive(text: &str) -> Result<Duration, Reason> {
    let time = duration(text, Bare::Seconds)?;
    if time.is_zero() {
        Err("must be more than 0".to_owned())
    } else {
        Ok(time)
    }
}

fn word<T>(
    text: &str,
    words: &'static [&'static str],
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, Reason> {
    find(text).ok_or_else(|| match nearest_word(text, words) {
        Some(near) => format!("did you mean {near}? Valid are {}", words.join(", ")),
        None => format!("valid are {}", words.join(", ")),
    })
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, Reason> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let format = word(part.trim(), OutputFormat::WORDS, OutputFormat::from_word)?;
        if !list.contains(&format) {
            list.push(format);
        }
    }
    Ok(list)
}
