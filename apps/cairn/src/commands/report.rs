//! `cairn report`: what a run directory holds.

use cairn_lab::{ReportError, RunDir};

use crate::cli::{ReportArgs, ReportFormat};
use crate::exit::{DONE, Failed};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let dir = RunDir::read(&args.dir)?;
    match args.format {
        ReportFormat::Html => {
            dir.write_report().map_err(|error| match error {
                ReportError::Write(_) => anyhow::Error::from(Failed(error.into())),
                _ => error.into(),
            })?;
            let path = args.dir.join("report.html");
            output::results(|out| writeln!(out, "{}", path.display()))?;
        }
        ReportFormat::Text => output::results(|out| dir.write_text(out))?,
        ReportFormat::Json => output::results(|out| dir.write_json(out))?,
    }
    Ok(DONE)
}
