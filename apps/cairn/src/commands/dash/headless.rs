//! A scenario without a terminal: the same run, summed up at its end.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use cairn_lab::{Lab, Registry, RunWriter, Sample, Scenario, Unit};

use crate::cli::{DashArgs, Format};
use crate::exit::{DONE, FAILED};
use crate::interrupt::Interrupt;
use crate::metrics::Metrics;
use crate::output;
use crate::progress::Progress;

use super::record;

/// How long a run lasts unless told otherwise.
pub(super) const DEFAULT_DURATION: Duration = Duration::from_secs(5);

/// Runs the scenario and prints its summary, or its samples as they come.
pub(super) fn run(scenario: Scenario, args: &DashArgs, registry: &Registry) -> anyhow::Result<u8> {
    let duration = args.duration.unwrap_or(DEFAULT_DURATION);
    let name = scenario.name.clone();
    let (lab, metrics) = super::start(scenario, args, registry)?;
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    let format = args.format.unwrap_or(Format::Text);
    let mut writer = super::writer(&lab, args)?;
    let follower = Follower {
        lab: &lab,
        writer: writer.as_mut(),
        name: &name,
        duration,
        interrupt: &interrupt,
        format,
        metrics,
    };
    let outcome = follower.follow();
    outcome?;
    let summary = super::finish(lab, writer)?;
    match format {
        Format::Text => output::results(|out| summary.write_text(out))?,
        Format::Json => output::json(&summary)?,
        Format::Jsonl | Format::Csv => {}
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
struct Follower<'a> {
    lab: &'a Lab,
    name: &'a str,
    duration: Duration,
    interrupt: &'a Interrupt,
    format: Format,
    metrics: Metrics,
    writer: Option<&'a mut RunWriter>,
}

impl Follower<'_> {
    fn follow(mut self) -> anyhow::Result<()> {
        let (name, duration) = (self.name, self.duration);
        let mut progress = Progress::start(&format!("running {name} for {duration:?}"));
        let samples = self
            .lab
            .take_samples()
            .context("the lab's samples are taken already")?;
        let policies = self.lab.policies();
        if self.format == Format::Csv {
            output::results(record::csv_head)?;
        }
        let end = Instant::now() + duration;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let Ok(sample) = samples.recv_timeout(left) else {
                return Ok(());
            };
            if let Some(text) = self.metrics.take(&sample) {
                output::note(&text);
            }
            if let Some(writer) = &mut self.writer {
                writer.sample(&sample);
            }
            match self.format {
                Format::Jsonl => {
                    output::results(|out| record::jsonl(out, &sample, policies.list()))?;
                }
                Format::Csv => output::results(|out| record::csv(out, &sample, policies.list()))?,
                Format::Text | Format::Json => {}
            }
            if sample.failure.is_some() || self.interrupt.code().is_some() {
                return Ok(());
            }
            progress.update(|| self.words(&sample));
        }
    }

    /// `mixed 3 of 5 s: randwrite 190.6 kIOPS`.
    fn words(&self, sample: &Sample) -> String {
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
        let done = sample.elapsed.min(self.duration);
        format!(
            "{} {:.0} of {:.0} s: {}",
            self.name,
            done.as_secs_f64(),
            self.duration.as_secs_f64(),
            rates.join(", ")
        )
    }
}
