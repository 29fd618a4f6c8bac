//! `cairn stack`: what a stack spec means.

use anyhow::Context as _;
use cairn_lab::Registry;

use crate::cli::{ExplainArgs, StackAction, StackArgs};
use crate::exit::DONE;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &StackArgs, registry: &Registry) -> anyhow::Result<u8> {
    let StackAction::Explain(args) = &args.action;
    explain(args, registry)?;
    Ok(DONE)
}

fn explain(args: &ExplainArgs, registry: &Registry) -> anyhow::Result<()> {
    let explained = registry
        .block_registry()
        .explain(&args.spec)
        .context("the stack")?;
    let text = format!("{explained}\n");
    output::results(|out| out.write_all(text.as_bytes()))?;
    Ok(())
}
