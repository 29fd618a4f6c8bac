//! A line on stderr that shows a long run going on.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often the line is redrawn on a terminal.
const REDRAW: Duration = Duration::from_millis(250);

/// The line of one run: redrawn in place on a terminal, printed once at the start elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    redraw: bool,
    width: usize,
    last: Option<Instant>,
}

impl Progress {
    /// Begins with `what` is being done.
    pub(crate) fn start(what: &str) -> Self {
        let redraw = io::stderr().is_terminal();
        let mut progress = Self { redraw, width: 0, last: None };
        if redraw {
            progress.draw(what);
        } else {
            let _ = writeln!(io::stderr(), "{what}");
        }
        progress
    }

    /// Shows `line` if the one before is old enough and stderr is a terminal.
    pub(crate) fn update(&mut self, line: impl FnOnce() -> String) {
        if self.redraw && self.last.is_none_or(|last| last.elapsed() >= REDRAW) {
            self.draw(&line());
        }
    }

    fn draw(&mut self, line: &str) {
        // Blanks wipe what a longer line before left behind.
        let _ = write!(io::stderr(), "\r{line:<width$}", width = self.width);
        let _ = io::stderr().flush();
        self.width = line.chars().count();
        self.last = Some(Instant::now());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.redraw {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.width);
            let _ = io::stderr().flush();
        }
    }
}
