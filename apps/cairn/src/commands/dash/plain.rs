//! The dashboard as lines of text: one a second and one an event, for screen readers and logs. A letter
//! and Enter switch a policy.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use cairn_lab::{Lab, Registry, RunWriter, Sample, Scenario};

use crate::cli::DashArgs;
use crate::exit::{DONE, Failed};
use crate::interrupt::Interrupt;
use crate::output;
use crate::tui::format::{arm_letter, rate, stamp, time_of};
use crate::tui::log::Kind;
use crate::tui::model::{Model, Setup};
use crate::tui::theme::{ColorDepth, Theme};
use crate::tui::update::{Msg, update};

use super::headless;

/// Time between two lines of figures.
const EVERY: Duration = Duration::from_secs(1);

/// Runs the scenario and prints its course, then its summary.
pub(super) fn run(scenario: Scenario, args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let (lab, mut metrics) = super::start(scenario, args, registry)?;
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    let samples = lab
        .take_samples()
        .context("the lab's samples are taken already")?;
    // Without anybody who could end it, it ends as a run without a screen does.
    let typed = io::stdin().is_terminal().then(typed).transpose()?;
    let keys = typed.is_some() && io::stdout().is_terminal();
    let end = match args.duration {
        None if keys => None,
        given => Some(given.unwrap_or(headless::DEFAULT_DURATION)),
    };
    let mut writer = super::writer(&lab, args)?;
    let mut model = Model::new(setup(&lab));
    let mut said = 0;
    let mut due = Duration::ZERO;
    let mut code = DONE;
    for sample in samples {
        for word in typed.iter().flat_map(Receiver::try_iter) {
            if word == "q" {
                return sum_up(lab, writer, &interrupt, code);
            }
            if word == "s" {
                update(&mut model, Msg::Shrunk(lab.shrink()));
                continue;
            }
            if let Some(text) = switch(&lab, &mut model, &word) {
                output::note(&text);
            }
        }
        if let Some(text) = metrics.take(&sample) {
            output::note(&text);
        }
        if let Some(writer) = &mut writer {
            writer.sample(&sample);
        }
        update(&mut model, Msg::Sample(Arc::clone(&sample)));
        let line = (sample.elapsed >= due).then(|| figures(&model, &sample));
        if line.is_some() {
            due = sample.elapsed + EVERY;
        }
        output::results(|out| {
            for event in model.live.log.iter().skip(said) {
                let kind = match event.kind {
                    Kind::Info | Kind::Switch => "event",
                    Kind::Warn => "note",
                    Kind::Bad => "ERROR",
                };
                writeln!(out, "{} {kind}: {}", stamp(event.at), event.text)?;
            }
            line.iter().try_for_each(|line| writeln!(out, "{line}"))
        })?;
        said = model.live.log.len();
        code = u8::from(model.wrong().is_some());
        let over = end.is_some_and(|end| sample.elapsed >= end);
        if over || model.failure.is_some() || interrupt.code().is_some() {
            break;
        }
    }
    sum_up(lab, writer, &interrupt, code)
}

fn sum_up(
    lab: Lab,
    writer: Option<RunWriter>,
    interrupt: &Interrupt,
    code: u8,
) -> anyhow::Result<u8> {
    let summary = super::finish(lab, writer)?;
    output::results(|out| summary.write_text(out))?;
    Ok(interrupt.code().unwrap_or(code))
}

fn setup(lab: &Lab) -> Setup {
    let policies = lab.policies();
    let list = policies.list().to_vec();
    Setup {
        scenario: lab.scenario().name.clone(),
        stack: lab.stack().to_owned(),
        seed: lab.scenario().seed,
        recorded: None,
        workloads: Vec::new(),
        arms: (0..list.len()).map(|i| policies.arm(i)).collect(),
        policies: list,
        settings: Vec::new(),
        interval: cairn_lab::Options::default().interval,
        theme: Theme {
            depth: ColorDepth::None,
            ascii: true,
        },
        hz: 1,
        size: (80, 24),
    }
}

/// Reads words from standard input, a line each, on a thread of its own.
fn typed() -> anyhow::Result<Receiver<String>> {
    let (words, inbox) = mpsc::channel();
    thread::Builder::new()
        .name("plain-keys".to_owned())
        .spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if words.send(line.trim().to_owned()).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| Failed(anyhow::Error::new(error).context("cannot start a thread")))?;
    output::note(
        "a policy's letter and Enter switch it, s and Enter shrink the extent cache, q and Enter quit",
    );
    Ok(inbox)
}

/// Switches the policy of a letter to its next arm; what there is to say if that cannot be.
fn switch(lab: &Lab, model: &mut Model, word: &str) -> Option<String> {
    let policies = lab.policies();
    let mut chars = word.chars();
    let index = match (chars.next(), chars.next()) {
        (Some(key), None) => policies.by_key(key),
        (None, _) => return None,
        _ => None,
    };
    let Some(index) = index else {
        let list = policies.list().iter();
        let keys: Vec<_> = list.map(|p| format!("{} {}", p.key, p.name)).collect();
        return Some(format!(
            "`{word}` does nothing; there are: {}, s shrink, q quit",
            keys.join(", ")
        ));
    };
    let arms = policies.list().get(index).map_or(1, |p| p.arms.len());
    let arm = (policies.arm(index) + 1) % arms.max(1);
    match policies.set(index, arm) {
        Ok(()) => {
            update(model, Msg::Armed { policy: index, arm });
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

/// `01:14.0 randwrite 190.6 kIOPS, p99 112 us; arm B of flag-set`.
fn figures(model: &Model, sample: &Sample) -> String {
    let rates = sample.workloads.iter().map(|w| {
        format!(
            "{} {}, p99 {}",
            w.name,
            rate(w.ops_per_s, w.unit),
            time_of(w.recent.n, w.recent.p99)
        )
    });
    let mut parts: Vec<String> = rates.collect();
    if let Some(policy) = model.setup.policies.get(model.lead) {
        let arm = model.arms.get(model.lead).copied().unwrap_or(0);
        let name = model.arm_name(model.lead, arm);
        parts.push(format!(
            "arm {} of {}: {name}",
            arm_letter(arm),
            policy.name
        ));
    }
    if let Some(effect) = sample.comparison.as_ref().and_then(|c| c.effect) {
        parts.push(format!(
            "B vs A {:+.1} %, 95 % CI [{:+.1}, {:+.1}]",
            effect.ratio * 100.0,
            effect.lo * 100.0,
            effect.hi * 100.0
        ));
    }
    format!("{} {}", stamp(sample.elapsed), parts.join("; "))
}
