//! `cairn compare`: two run directories side by side.

use cairn_lab::{RunDir, compare_runs};

use crate::cli::{CompareArgs, ReportFormat};
use crate::exit::DONE;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let first = RunDir::read(&args.first)?;
    let second = RunDir::read(&args.second)?;
    let comparison = compare_runs(&first, &second)?;
    match args.format {
        ReportFormat::Html => output::results(|out| out.write_all(comparison.html().as_bytes()))?,
        ReportFormat::Text => output::results(|out| comparison.write_text(out))?,
        ReportFormat::Json => output::json(&comparison)?,
    }
    Ok(DONE)
}
