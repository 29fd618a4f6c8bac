//! `cairn dash`: the dashboard, or the same scenario without a terminal.

mod headless;
mod plain;
mod record;

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use cairn_lab::{Lab, Options, Registry, RunWriter, Scenario, Summary};

use crate::cli::{Color, DashArgs};
use crate::config::{self, Config};
use crate::exit::{self, Failed};
use crate::metrics::{About, Metrics};
use crate::output;
use crate::recorded;
use crate::tui;

/// Runs the command.
pub(crate) fn run(args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let loaded = config::load(args.config.as_deref(), |name| std::env::var(name).ok())?;
    let settings = settings(args, &loaded);
    let config = loaded.config;
    let name = args.scenario.as_deref().or(config.scenario.as_deref());
    if let Some(folder) = name.map(Path::new).filter(|path| path.is_dir()) {
        return replay(folder, args, &config, registry);
    }
    let mut scenario = Scenario::load(name.unwrap_or(config::DEFAULT_SCENARIO))?;
    if let Some(stack) = &args.stack {
        scenario.stack.clone_from(stack);
    }
    if let Some(folder) = &args.out {
        vacant(folder)?;
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
        out: args.out.clone(),
        command: command(),
        settings,
    };
    let outcome = tui::run_with(lab, options(args, &config), around).map_err(Failed)?;
    output::results(|out| {
        if let Some(screen) = &outcome.screen {
            writeln!(out, "{screen}")?;
        }
        outcome.summary.write_text(out)?;
        match &outcome.compared {
            Some(compared) => writeln!(out, "{compared}"),
            None => Ok(()),
        }
    })?;
    if let Some(folder) = &outcome.out {
        output::note(&format!("the run is in {folder}"));
    }
    Ok(outcome.code)
}

/// What was given beside the scenario, for the settings of the dashboard.
fn settings(args: &DashArgs, loaded: &config::Loaded) -> Vec<(String, String)> {
    let file = match (&loaded.path, loaded.found) {
        (Some(path), true) => path.display().to_string(),
        (Some(path), false) => format!("none at {}", path.display()),
        (None, _) => "none".to_owned(),
    };
    let listen = args.listen.map(|address| address.to_string());
    let metrics = args.metrics_file.as_ref().map(|f| f.display().to_string());
    [
        ("configuration", Some(file)),
        ("metrics at", listen),
        ("metrics file", metrics),
        ("mouse", args.mouse.then(|| "on".to_owned())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// Refuses a directory of `--out` that holds something, before anything runs.
fn vacant(folder: &Path) -> anyhow::Result<()> {
    let held = match folder.read_dir() {
        Ok(mut inside) => inside.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| format!("--out {}", folder.display())),
    };
    if held {
        bail!(
            "--out {}: holds files already; give a new folder",
            folder.display()
        );
    }
    Ok(())
}

/// The command line that repeats this run.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let words = std::iter::once("cairn".to_owned()).chain(words);
    words.collect::<Vec<_>>().join(" ")
}

/// The directory of `--out`, made before the run.
fn writer(lab: &Lab, args: &DashArgs) -> anyhow::Result<Option<RunWriter>> {
    let Some(folder) = &args.out else {
        return Ok(None);
    };
    let writer = RunWriter::create(folder, &lab.policies());
    Ok(Some(writer.context("--out")?))
}

/// Ends the lab, and writes its run if that was asked for.
fn finish(lab: Lab, writer: Option<RunWriter>) -> anyhow::Result<Summary> {
    let Some(writer) = writer else {
        return Ok(lab.finish());
    };
    let folder = writer.folder().map(|f| f.display().to_string());
    let written = writer.finish(lab, &command(), None);
    let summary = written.map_err(|error| Failed(anyhow::Error::new(error).context("--out")))?;
    output::note(&format!("the run is in {}", folder.unwrap_or_default()));
    Ok(summary)
}

/// Shows a recorded run.
fn replay(
    folder: &Path,
    args: &DashArgs,
    config: &Config,
    registry: &Registry,
) -> anyhow::Result<u8> {
    if let Some(out) = &args.out {
        bail!(
            "--out {}: a recorded run is not written again",
            out.display()
        );
    }
    let recording = recorded::read(folder, registry)?;
    if args.headless || args.plain || args.format.is_some() || !has_screen() {
        bail!(
            "{}: a recorded run is shown on a screen; `cairn report {0} --format text` prints it",
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
pub(super) fn has_screen() -> bool {
    if !io::stdout().is_terminal() {
        return false;
    }
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if dumb {
        output::note("TERM=dumb has no screen: the scenario runs without one and is summed up");
    }
    !dumb
}

pub(super) fn options(args: &DashArgs, config: &Config) -> tui::Options {
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
