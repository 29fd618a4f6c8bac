//! Why a fio plan did not run.

use std::error::Error;
use std::fmt;
use std::io;

use crate::policy::PolicyError;

/// Why a fio plan was refused or broke off.
#[derive(Debug)]
#[non_exhaustive]
pub enum FioError {
    /// An option that does not act here, refused rather than ignored.
    Option {
        /// Name of the job.
        job: String,
        /// Name of the option.
        option: String,
        /// Why, and what would be right.
        message: String,
    },
    /// What a job asks for cannot be.
    Job {
        /// Name of the job.
        job: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The plan has no job.
    NoJobs,
    /// A `--map` that is none.
    Map {
        /// What was given.
        given: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The device holds less than the jobs ask for.
    DeviceTooShort {
        /// The path that no longer fits.
        path: String,
        /// Bytes the jobs ask for up to and with this path.
        need: u64,
        /// Bytes the device holds.
        have: u64,
        /// Its spec.
        stack: String,
    },
    /// The jobs need more memory than there is, and no stack was given to put their files on.
    NoRoom {
        /// The largest of their files.
        path: String,
        /// Its bytes.
        largest: u64,
        /// Bytes of all of them.
        bytes: u64,
        /// What the system or the device said.
        source: Box<cairn_block::BuildError>,
    },
    /// The stack could not be built.
    Stack(Box<cairn_block::BuildError>),
    /// A file of the host that a job names cannot be read.
    HostFile {
        /// Name of the job.
        job: String,
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Laying out a file failed.
    Layout {
        /// The file.
        path: String,
        /// What the device said.
        source: Box<cairn_block::Error>,
    },
    /// A policy or an arm that does not exist.
    Policy(PolicyError),
    /// A thread could not be started.
    Thread(io::Error),
}

impl FioError {
    /// Whether the request was wrong, as opposed to something that broke while it ran.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Layout { .. } | Self::Thread(_))
    }

    pub(crate) fn job(job: &str, message: impl Into<String>) -> Self {
        Self::Job {
            job: job.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn option(job: &str, option: &str, message: impl Into<String>) -> Self {
        Self::Option {
            job: job.to_owned(),
            option: option.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option {
                job,
                option,
                message,
            } => write!(f, "job `{job}`: option `{option}`: {message}"),
            Self::Job { job, message } => write!(f, "job `{job}`: {message}"),
            Self::NoJobs => f.write_str("no jobs: name one with --name=NAME or give a job file"),
            Self::Map { given, message } => write!(f, "--map {given}: {message}"),
            Self::DeviceTooShort {
                path,
                need,
                have,
                stack,
            } => write!(
                f,
                "{path}: the jobs need {need} bytes of `{stack}`, which holds {have} bytes; \
                 give a smaller size or a larger stack"
            ),
            Self::NoRoom {
                path,
                largest,
                bytes,
                ..
            } => write!(
                f,
                "the jobs' files take {bytes} bytes ({path}: {largest}), more than this machine has \
                 memory for; give a smaller size, or a stack with --stack"
            ),
            Self::Stack(e) => e.fmt(f),
            Self::Policy(e) => e.fmt(f),
            Self::HostFile { job, path, source } => write!(f, "job `{job}`: {path}: {source}"),
            Self::Layout { path, source } => write!(f, "laying out {path}: {source}"),
            Self::Thread(source) => write!(f, "starting a worker: {source}"),
        }
    }
}

impl Error for FioError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoRoom { source, .. } => Some(source),
            Self::Stack(e) => Some(e),
            Self::Policy(e) => Some(e),
            Self::HostFile { source, .. } | Self::Thread(source) => Some(source),
            Self::Layout { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<cairn_block::BuildError> for FioError {
    fn from(e: cairn_block::BuildError) -> Self {
        Self::Stack(Box::new(e))
    }
}
