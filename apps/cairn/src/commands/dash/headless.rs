//! A scenario without a terminal: the same run, summed up at its end.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cairn_lab::{Lab, Options, Registry, Scenario, Unit};

use crate::cli::{DashArgs, Format};
use crate::exit::{DONE, FAILED};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;

/// How long a run lasts unless told otherwise.
const DEFAULT_DURATION: Duration = Duration::from_secs(5);

/// Runs the scenario and prints its summary.
pub(crate) fn run(scenario: Scenario, args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let duration = args.duration.unwrap_or(DEFAULT_DURATION);
    let name = scenario.name.clone();
    let lab = Lab::start(scenario, registry, Options::default())
        .with_context(|| format!("scenario {name}"))?;
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    follow(&lab, &name, duration, &interrupt);
    let summary = lab.finish();
    match args.format.unwrap_or(Format::Text) {
        Format::Text => output::results(|out| summary.write_text(out))?,
        Format::Json => output::json(&summary)?,
    }
    let clean = summary.failure.is_none()
        && summary.stuck_workers == 0
        && summary
            .workloads
            .iter()
            .all(|workload| workload.errors == 0);
    Ok(interrupt
        .code()
        .unwrap_or(if clean { DONE } else { FAILED }))
}

/// Waits until the time is over, a worker has failed or a signal comes, and shows how far the run is.
fn follow(lab: &Lab, name: &str, duration: Duration, interrupt: &Interrupt) {
    let mut progress = Progress::start(&format!("running {name} for {duration:?}"));
    let samples = lab.take_samples();
    let end = Instant::now() + duration;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let Some(samples) = &samples else {
            std::thread::sleep(left);
            return;
        };
        match samples.recv_timeout(left) {
            Ok(sample) => {
                if sample.failure.is_some() || interrupt.code().is_some() {
                    return;
                }
                progress.update(|| {
                    let rates: Vec<_> = sample
                        .workloads
                        .iter()
                        .map(|workload| {
                            let unit = match workload.unit {
                                Unit::Io => "IOPS",
                                Unit::Op => "ops/s",
                            };
                            format!("{} {:.1} k{unit}", workload.name, workload.ops_per_s / 1e3)
                        })
                        .collect();
                    let done = sample.elapsed.min(duration);
                    format!(
                        "{name} {:.0} of {:.0} s: {}",
                        done.as_secs_f64(),
                        duration.as_secs_f64(),
                        rates.join(", ")
                    )
                });
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}
