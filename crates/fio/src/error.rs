//! Errors of the parser: each says where it stands and what would have been right.

use std::fmt;

/// Where an option stood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Location {
    /// A line of a job file.
    File {
        /// The file as it was named.
        path: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// A word of the command line.
    Argument {
        /// Position, counted from 1.
        position: usize,
    },
    /// Nowhere in particular.
    #[default]
    Whole,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Argument { position } => write!(f, "argument {position}"),
            Self::Whole => f.write_str("job"),
        }
    }
}

/// Why a job file or command line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Where.
    pub at: Location,
    /// What.
    pub kind: ParseErrorKind,
}

/// What was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// No option has this name.
    UnknownOption {
        /// As written.
        option: String,
        /// The nearest name there is.
        suggestion: Option<String>,
    },
    /// An abbreviation that fits several options of the command line.
    Ambiguous {
        /// As written.
        option: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// The value is not of the option's kind.
    BadValue {
        /// Canonical name.
        option: String,
        /// As written.
        value: String,
        /// What was wrong and what would be right.
        reason: String,
    },
    /// The option needs a value.
    MissingValue {
        /// Canonical name.
        option: String,
        /// What it would take.
        expected: String,
    },
    /// An option of the command line takes none.
    UnexpectedValue {
        /// The option.
        option: String,
        /// As written.
        value: String,
    },
    /// An option stands before the first `[section]`.
    OutsideSection {
        /// As written.
        line: String,
    },
    /// A section without a name, or one in an included file.
    BadSection {
        /// As written.
        line: String,
        /// What was wrong.
        reason: &'static str,
    },
    /// A known option that is not supported.
    Refused {
        /// Canonical name.
        option: String,
        /// Why.
        reason: String,
    },
    /// No engine has this name.
    UnknownEngine {
        /// As written.
        engine: String,
        /// The nearest name there is.
        suggestion: Option<&'static str>,
    },
    /// An engine that needs something outside a storage stack.
    RefusedEngine {
        /// Its name.
        engine: &'static str,
    },
    /// An option that belongs to other engines than the job's.
    OtherEngine {
        /// Canonical name.
        option: String,
        /// The job's engine.
        engine: &'static str,
        /// Engines that have it.
        engines: Vec<&'static str>,
    },
    /// Options that do not go together.
    Conflict {
        /// The job.
        job: String,
        /// What does not, and what would.
        reason: String,
    },
    /// A file that cannot be read.
    Unreadable {
        /// As named.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// A line beyond fio's limit.
    LineTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// Includes nested too deeply, most likely a circle.
    IncludeDepth {
        /// The file that was not entered.
        path: String,
    },
    /// Nothing to run.
    NoJobs,
    /// `--section` named something that is not there.
    NoSection {
        /// As named.
        section: String,
    },
    /// More jobs than `--max-jobs` allows.
    TooManyJobs {
        /// Jobs with their clones.
        jobs: u64,
        /// The limit.
        limit: u64,
    },
    /// A lint, under `--warnings-fatal`.
    Warning(String),
}

impl ParseError {
    pub(crate) const fn new(at: Location, kind: ParseErrorKind) -> Self {
        Self { at, kind }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at != Location::Whole {
            write!(f, "{}: ", self.at)?;
        }
        self.kind.fmt(f)
    }
}

fn did_you_mean(f: &mut fmt::Formatter<'_>, suggestion: Option<&str>) -> fmt::Result {
    match suggestion {
        Some(name) => write!(f, "; did you mean {name}?"),
        None => Ok(()),
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption { option, suggestion } => {
                write!(f, "unknown option {option}")?;
                did_you_mean(f, suggestion.as_deref())
            }
            Self::Ambiguous { option, candidates } => {
                write!(f, "option {option} is ambiguous: {}", candidates.join(", "))
            }
            Self::BadValue {
                option,
                value,
                reason,
            } => write!(f, "{option}={value}: {reason}"),
            Self::MissingValue { option, expected } => {
                write!(f, "option {option} needs a value: {expected}")
            }
            Self::UnexpectedValue { option, value } => {
                write!(f, "option {option} takes no value, but {value} was given")
            }
            Self::OutsideSection { line } => {
                write!(
                    f,
                    "{line} stands before any section; put [global] or [jobname] above it"
                )
            }
            Self::BadSection { line, reason } => write!(f, "section {line}: {reason}"),
            Self::Refused { option, reason } => {
                write!(f, "option {option} is not supported: {reason}")
            }
            Self::UnknownEngine { engine, suggestion } => {
                write!(f, "unknown ioengine {engine}")?;
                did_you_mean(f, *suggestion)
            }
            Self::RefusedEngine { engine } => write!(
                f,
                "ioengine {engine} is not supported: it needs something outside a storage stack"
            ),
            Self::OtherEngine {
                option,
                engine,
                engines,
            } => write!(
                f,
                "option {option} does not belong to ioengine {engine}, but to {}",
                engines.join(", ")
            ),
            Self::Conflict { job, reason } => write!(f, "job {job}: {reason}"),
            Self::Unreadable { path, reason } => write!(f, "cannot read job file {path}: {reason}"),
            Self::LineTooLong { len } => {
                write!(
                    f,
                    "line of {len} bytes is too long; the limit is {}",
                    crate::parse::LINE_LIMIT
                )
            }
            Self::IncludeDepth { path } => write!(
                f,
                "include {path}: nested more than {} deep; does it include itself?",
                crate::parse::INCLUDE_LIMIT
            ),
            Self::NoJobs => {
                f.write_str("no jobs defined: name a job file, or start a job with --name=NAME")
            }
            Self::NoSection { section } => {
                write!(f, "--section={section}: no job section of that name")
            }
            Self::TooManyJobs { jobs, limit } => {
                write!(f, "{jobs} jobs are more than --max-jobs={limit} allows")
            }
            Self::Warning(text) => write!(f, "{text} (fatal by --warnings-fatal)"),
        }
    }
}

impl std::error::Error for ParseError {}
