//! A line on stderr that shows a long run going on.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The line of one run: redrawn in place on a terminal, printed once at the start elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    redraw: bool,
    newline: Option<Duration>,
    width: usize,
    begun: Instant,
}

impl Progress {
    /// Begins with what is being done.
    pub(crate) fn start(what: &str) -> Self {
        let redraw = io::stderr().is_terminal();
        let mut progress = Self::empty(redraw, None);
        if redraw {
            progress.update(|| what.to_owned());
        } else {
            let _ = writeln!(io::stderr(), "{what}");
        }
        progress
    }

    /// A line that is redrawn whatever stderr is, with a new line each `newline`.
    pub(crate) fn redrawn(newline: Option<Duration>) -> Self {
        Self::empty(true, newline)
    }

    fn empty(redraw: bool, newline: Option<Duration>) -> Self {
        Self {
            redraw,
            newline,
            width: 0,
            begun: Instant::now(),
        }
    }

    /// Shows `line` in place of the one before.
    pub(crate) fn update(&mut self, line: impl FnOnce() -> String) {
        if !self.redraw {
            return;
        }
        let line = line();
        // Blanks wipe what a longer line before left behind. A closed stderr is no reason to stop.
        let _ = write!(io::stderr(), "\r{line:<width$}", width = self.width);
        self.width = line.chars().count();
        if self
            .newline
            .is_some_and(|every| self.begun.elapsed() >= every)
        {
            let _ = writeln!(io::stderr());
            self.width = 0;
            self.begun = Instant::now();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.redraw {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.width);
        }
    }
}
