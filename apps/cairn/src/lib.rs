#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod config;
mod exit;
mod interrupt;
mod metrics;
mod output;
mod progress;
mod recorded;
pub mod tui;

use std::process::ExitCode;

use cairn_lab::Registry;
use clap::Parser as _;
use clap::error::ErrorKind;

/// Runs the program on the command line it was started with, with everything that `registry` holds.
///
/// A program of your own registers its layers and policies and calls this: they then show up in the
/// lists, the stack specs and the dashboard.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     cairn_tui::run(&cairn_lab::Registry::default())
/// }
/// ```
pub fn run(registry: &Registry) -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is no failure of ours: there is nobody left to tell.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(exit::USAGE),
            };
        }
    };
    exit::report(commands::run(cli, registry))
}
