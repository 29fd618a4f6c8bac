//! `cairn dash`: the dashboard, or the same scenario without a terminal.

mod headless;
mod plain;
mod record;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use cairn_lab::{Lab, Options, Registry, Scenario};

use crate::cli::{Color, DashArgs};
use crate::config::{self, Config};
use crate::exit::{self, Failed};
use crate::metrics::{About, Metrics};
use crate::output;
use crate::recorded;
use crate::tui;

/// Runs the command.
pub(crate) fn run(args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let config = config::load(args.config.as_deref(), |name| std::env::var(name).ok())?.config;
    let name = args.scenario.as_deref().or(config.scenario.as_deref());
    if let Some(folder) = name.map(Path::new).filter(|path| path.is_dir()) {
        return replay(folder, args, &config, registry);
    }
    let mut scenario = Scenario::load(name.unwrap_or(config::DEFAULT_SCENARIO))?;
    if let Some(stack) = &args.stack {
        scenario.stack.clone_from(stack);
    }
    if args.plain {
        return plain::run(scenario, args, registry);
    }
    if args.headless || args.duration.is_some() || args.format.is_some() || !has_screen() {
        return headless::run(scenario, args, registry);
    }
    let (lab, mut metrics) = start(scenario, args, registry)?;
    let around = tui::Around {
        registry: Some(registry),
        watch: Box::new(move |sample| metrics.take(sample)),
    };
    let outcome = tui::run_with(lab, options(args, &config), around).map_err(Failed)?;
    output::results(|out| {
        if let Some(screen) = &outcome.screen {
            writeln!(out, "{screen}")?;
        }
        outcome.summary.write_text(out)
    })?;
    Ok(outcome.code)
}

/// Shows a recorded run.
fn replay(
    folder: &Path,
    args: &DashArgs,
    config: &Config,
    registry: &Registry,
) -> anyhow::Result<u8> {
    let recording = recorded::read(folder, registry)?;
    if args.headless || args.plain || args.format.is_some() || !has_screen() {
        bail!(
            "{}: a recorded run is shown on a screen, and there is none",
            folder.display()
        );
    }
    Ok(tui::replay(recording, options(args, config)).map_err(Failed)?)
}

/// Starts the scenario, and what else wants to see its samples.
fn start(
    scenario: Scenario,
    args: &DashArgs,
    registry: &Registry,
) -> anyhow::Result<(Lab, Metrics)> {
    let name = scenario.name.clone();
    let lab = Lab::start(scenario, registry, Options::default())
        .map_err(exit::of_lab)
        .with_context(|| format!("scenario {name}"))?;
    let about = About {
        scenario: name,
        stack: lab.stack().to_owned(),
        policies: lab.policies().list().to_vec(),
    };
    let metrics = Metrics::open(
        args.listen,
        args.metrics_file.as_deref(),
        about,
        output::note,
    );
    let metrics = metrics.with_context(|| {
        let listen = args.listen.map(|address| format!("--listen {address}"));
        let file = args.metrics_file.as_ref();
        let file = file.map(|file| format!("--metrics-file {}", file.display()));
        [listen, file]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    })?;
    Ok((lab, metrics))
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

fn options(args: &DashArgs, config: &Config) -> tui::Options {
    let ascii = || tui::theme::wants_ascii(|name| std::env::var(name).ok());
    tui::Options {
        color: match args.color.or(config.color).unwrap_or_default() {
            Color::Auto => None,
            Color::None => Some(tui::ColorDepth::None),
            Color::Sixteen => Some(tui::ColorDepth::Sixteen),
            Color::Palette => Some(tui::ColorDepth::Palette),
            Color::True => Some(tui::ColorDepth::True),
        },
        ascii: args.ascii || config.ascii.unwrap_or_else(ascii),
        hz: config.hz.unwrap_or(config::DEFAULT_HZ),
        mouse: args.mouse || config.mouse.unwrap_or(false),
    }
}
