//! Why a comparison could not be made.

use std::error::Error;
use std::fmt;

use crate::lab::LabError;
use crate::policy::PolicyError;
use crate::scenario::ScenarioError;

/// Why a comparison could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum AbError {
    /// The policy or an arm does not exist.
    Policy(PolicyError),
    /// The scenario cannot be read.
    Scenario(Box<ScenarioError>),
    /// The scenario cannot be run, or a run broke.
    Lab(Box<LabError>),
    /// What is asked for cannot be.
    Request {
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The folder cannot be written to.
    Write(std::io::Error),
}

impl AbError {
    pub(crate) fn request(message: String) -> Self {
        Self::Request { message }
    }

    /// Whether the request was wrong (exit code 2), as opposed to something that broke (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Lab(e) => e.is_usage(),
            Self::Write(e) => e.kind() == std::io::ErrorKind::AlreadyExists,
            _ => true,
        }
    }
}

impl fmt::Display for AbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(e) => e.fmt(f),
            Self::Scenario(e) => e.fmt(f),
            Self::Lab(e) => e.fmt(f),
            Self::Request { message } => f.write_str(message),
            Self::Write(e) => write!(f, "writing the results: {e}"),
        }
    }
}

impl Error for AbError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Policy(e) => Some(e),
            Self::Scenario(e) => Some(e),
            Self::Lab(e) => Some(e),
            Self::Request { .. } => None,
            Self::Write(e) => Some(e),
        }
    }
}
