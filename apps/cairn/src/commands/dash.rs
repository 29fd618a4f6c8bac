//! `cairn dash`: the dashboard, or the same scenario without a terminal.

mod headless;

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use cairn_lab::{Lab, Options, Registry, Scenario};

use crate::cli::{Color, DashArgs};
use crate::output;
use crate::tui;

/// Runs the command.
pub(crate) fn run(args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let mut scenario = Scenario::load(&args.scenario)?;
    if let Some(stack) = &args.stack {
        scenario.stack.clone_from(stack);
    }
    if args.headless || args.duration.is_some() || args.format.is_some() || !has_screen() {
        return headless::run(scenario, args, registry);
    }
    let name = scenario.name.clone();
    let lab = Lab::start(scenario, registry, Options::default())
        .with_context(|| format!("scenario {name}"))?;
    let outcome = tui::run(lab, options(args))?;
    output::results(|out| outcome.summary.write_text(out))?;
    Ok(outcome.code)
}

/// Whether stdout is a terminal that a screen can be drawn on.
fn has_screen() -> bool {
    if !io::stdout().is_terminal() {
        return false;
    }
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if dumb {
        output::note("TERM=dumb has no screen: the scenario runs without one and is summed up");
    }
    !dumb
}

fn options(args: &DashArgs) -> tui::Options {
    tui::Options {
        color: match args.color {
            Color::Auto => None,
            Color::None => Some(tui::ColorDepth::None),
            Color::Sixteen => Some(tui::ColorDepth::Sixteen),
            Color::Palette => Some(tui::ColorDepth::Palette),
            Color::True => Some(tui::ColorDepth::True),
        },
        ascii: args.ascii,
        ..tui::Options::default()
    }
}
