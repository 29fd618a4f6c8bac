//! `cairn list`: what exists, one line each.

use std::io;

use cairn_lab::{Registry, Scenario};

use crate::cli::{ListArgs, What};
use crate::exit::DONE;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &ListArgs, registry: &Registry) -> anyhow::Result<u8> {
    let rows: Vec<(String, String)> = match args.what {
        What::Scenarios => Scenario::presets()
            .iter()
            .map(|preset| (preset.name.to_owned(), preset.about.to_owned()))
            .collect(),
        What::Policies => registry
            .policies()
            .into_iter()
            .map(|policy| {
                let arms = policy.arms.join(" | ");
                (
                    policy.name,
                    format!("{} ({arms}; key {})", policy.about, policy.key),
                )
            })
            .collect(),
        What::Layers => registry
            .layers()
            .into_iter()
            .map(|l| (l.name, l.about))
            .collect(),
        What::Engines => registry
            .engines()
            .into_iter()
            .map(|e| (e.name, e.about))
            .collect(),
    };
    output::results(|out| table(out, &rows))?;
    Ok(DONE)
}

/// Writes the names, padded to one width, and what they are.
fn table(out: &mut dyn io::Write, rows: &[(String, String)]) -> io::Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, about) in rows {
        writeln!(out, "{name:<width$}  {about}")?;
    }
    Ok(())
}
