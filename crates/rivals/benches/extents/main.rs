//! The extent map beside the interval maps and concurrent maps one would pick instead.
//!
//! `cargo bench -p cairn-rivals --bench extents`
//!
//! All arms run with transparent huge pages, also the rivals' memory: the bench starts itself
//! again with glibc's malloc told so. `CAIRN_BENCH_HUGE=0` runs all without.

#![allow(
    missing_docs,
    unsafe_code,
    reason = "a bench: nothing is exported, and a counting allocator cannot be written without"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "indices and sizes are the bench's own, far below 2^32"
)]
#![allow(
    clippy::needless_for_each,
    reason = "arms of one line are compared best on one line"
)]

mod contenders;
mod groups;
mod memory;
mod workload;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use cairn_rivals::{Bench, Options};

fn main() -> ExitCode {
    let huge_pages = memory::with_huge_pages();
    let mut options = match Options::from_args() {
        Ok(options) => options,
        Err(message) => return fail(&message),
    };
    if options.sample == Options::default().sample {
        // Every sample begins with the caches that another arm left. Large maps need a while to
        // be as warm as they get.
        options.sample = Duration::from_millis(8);
        options.rounds = options.rounds.min(60);
    }
    memory::report(huge_pages, &options);
    let mut bench = Bench::new("extents", options);
    groups::fill(&mut bench, huge_pages);
    match bench.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&format!("report: {error}")),
    }
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "extents: {message}");
    ExitCode::from(2)
}
