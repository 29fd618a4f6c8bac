//! The program `cairn`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cairn_tui::run(&cairn_lab::Registry::default())
}
