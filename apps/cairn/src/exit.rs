//! Exit codes, and the one place where an error becomes one.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use cairn_lab::LabError;

use crate::output::printable;

/// Done, and all checks held.
pub(crate) const DONE: u8 = 0;
/// Ran, and a check failed, data was wrong or an I/O error came through.
pub(crate) const FAILED: u8 = 1;
/// Bad usage or unreadable input; nothing was run.
pub(crate) const USAGE: u8 = 2;

/// An error of work that had begun, as opposed to one in what was asked for.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) anyhow::Error);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// The error of a lab, told apart by whether the request was wrong or something broke.
pub(crate) fn of_lab(error: LabError) -> anyhow::Error {
    if error.is_usage() {
        error.into()
    } else {
        Failed(error.into()).into()
    }
}

/// Turns the outcome of a command into the exit code, and says what went wrong.
pub(crate) fn report(outcome: anyhow::Result<u8>) -> ExitCode {
    let error = match outcome {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    if closed_pipe(&error) {
        return ExitCode::from(DONE);
    }
    let code = if error.is::<Failed>() { FAILED } else { USAGE };
    // stderr may be closed as well; the exit code still tells.
    let _ = writeln!(io::stderr(), "cairn: {}", printable(&sentence(&error)));
    ExitCode::from(code)
}

/// The error and its causes in one sentence; a cause that an error quotes already is not repeated.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            if !text.is_empty() {
                text += ": ";
            }
            text += &cause;
        }
    }
    text
}

/// Nobody reads the results any more, which is the reader's choice.
fn closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = anyhow::anyhow!("`(` is never closed");
        assert_eq!(
            sentence(&cause.context("the stack")),
            "the stack: `(` is never closed"
        );
        let cause = anyhow::anyhow!("`(` is never closed");
        assert_eq!(
            sentence(&cause.context("ram(1g: `(` is never closed")),
            "ram(1g: `(` is never closed"
        );
    }

    #[test]
    fn what_broke_is_no_bad_usage() {
        let broken = LabError::Thread(io::Error::from(io::ErrorKind::OutOfMemory));
        let error = of_lab(broken).context("scenario a");
        assert!(error.is::<Failed>());
        assert!(sentence(&error).starts_with("scenario a: "));
        let wrong = LabError::Workload {
            workload: "a".to_owned(),
            message: "no".to_owned(),
        };
        assert!(!of_lab(wrong).is::<Failed>());
    }

    #[test]
    fn a_closed_pipe_is_success_and_nothing_else_is() {
        let pipe =
            anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("results");
        assert!(closed_pipe(&pipe));
        assert!(!closed_pipe(&anyhow::anyhow!("no such scenario")));
        assert!(anyhow::Error::from(Failed(anyhow::anyhow!("data was wrong"))).is::<Failed>());
    }
}
