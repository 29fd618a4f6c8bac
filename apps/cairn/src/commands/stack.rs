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
    let blocks = registry.block_registry();
    let explained = blocks.explain(&args.spec).context("the stack")?;
    let text = if args.toml {
        blocks.to_toml(&explained.spec)?
    } else if args.json {
        blocks.to_json(&explained.spec)?
    } else {
        explained.to_string()
    };
    output::results(|out| writeln!(out, "{}", text.trim_end()))?;
    Ok(())
}
