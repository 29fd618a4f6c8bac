//! `cairn config`: the configuration as it is in force.

use crate::cli::{ConfigAction, ConfigArgs};
use crate::config;
use crate::exit::DONE;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<u8> {
    let ConfigAction::Print(args) = &args.action;
    let loaded = config::load(args.config.as_deref(), |name| std::env::var(name).ok())?;
    output::results(|out| write!(out, "{}", loaded.print()))?;
    Ok(DONE)
}
