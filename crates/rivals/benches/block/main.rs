//! Devices and layers beside a plain copy to and from the same kind of memory, and real fio beside both.
//!
//! `cargo bench -p cairn-rivals --bench block`; with a filter `fio` only the last part runs.

#![allow(
    missing_docs,
    unsafe_code,
    reason = "a bench: nothing is exported, and the plain copy is what safe code cannot write"
)]

mod fio;
mod large;
mod plain;
mod stacks;
mod walk;

use std::io::{self, Write as _};
use std::process::ExitCode;

use cairn_rivals::{Bench, Options};

fn main() -> ExitCode {
    let mut options = match Options::from_args() {
        Ok(options) => options,
        Err(message) => return fail(&message),
    };
    // Some forty arms of half a microsecond: a sixth of the usual rounds tells them apart.
    options.rounds = options.rounds.min(60);
    let quick = options.rounds < 10;
    let beside = options.filter.as_deref().is_none_or(|f| "fio".contains(f));
    let mut bench = Bench::new("block", options);
    if let Err(why) = stacks::fill(&mut bench) {
        return fail(&why);
    }
    match bench.run() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => return fail(&format!("report: {error}")),
    }
    if beside && let Err(why) = fio::beside(quick) {
        let _ = writeln!(io::stderr(), "skipped: fio: {why}");
    }
    ExitCode::SUCCESS
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "block: {message}");
    ExitCode::from(2)
}
