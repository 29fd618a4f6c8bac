//! One run of one arm, on a device of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::plan::Side;
use super::steady;
use crate::environment::{Moment, Weather};
use crate::lab::{Lab, LabError, Options};
use crate::latency::{self, Hist};
use crate::registry::Registry;
use crate::sample::{Sample, Unit};
use crate::scenario::Scenario;

/// Length of a window, over which a rate is taken.
const WINDOW: Duration = Duration::from_millis(100);

/// How long a sample may be late before the run counts as broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one run came to.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) record: RunRecord,
    pub(crate) hist: Hist,
}

/// The same without the distribution, as it is written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// `A` or `B`; both are arm A in the comparison of an arm with itself.
    pub(crate) side: Side,
    /// Name of the arm.
    pub arm: String,
    /// Seed of its generators.
    pub seed: u64,
    /// Operations a second in each window after the warm-up.
    pub windows: Vec<f64>,
    /// Windows at the start that were left out as not steady yet.
    pub dropped: usize,
    /// Whether the rest was steady.
    pub steady: bool,
    /// Whether the line through them was nearly flat, by fio's rule.
    pub flat: bool,
    /// Share of its I/Os that began more than 1 ms after their intended start, where there is a rate.
    pub late: f64,
    /// Seconds that count.
    pub seconds: f64,
    /// Operations in them.
    pub ops: u64,
    /// Operations a second.
    pub rate: f64,
    /// CPU time of an operation in ns, over all windows.
    pub cpu_ns: f64,
    /// p50, p99, p99.9 in ns.
    pub latency_ns: [u64; 3],
    /// Operations that failed, warm-up included.
    pub errors: u64,
    /// What went wrong first.
    pub first_error: Option<String>,
    /// What the machine did meanwhile.
    pub weather: Weather,
}

/// What every run of a comparison has in common.
pub(crate) struct Rig<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) registry: &'a Registry,
    pub(crate) policy: &'a str,
    /// Index of the workload that is compared.
    pub(crate) workload: usize,
    pub(crate) warmup: Duration,
    pub(crate) run_time: Duration,
    pub(crate) cancel: Option<&'a Arc<AtomicBool>>,
}

impl Rig<'_> {
    /// The scenario of an arm.
    pub(crate) fn scenario(&self, arm: &str, seed: u64) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.seed = seed;
        scenario
            .policies
            .insert(self.policy.to_owned(), arm.to_owned());
        for workload in &mut scenario.workloads {
            workload.warmup = self.warmup;
            workload.runtime = None;
        }
        scenario
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|c| c.load(Ordering::Relaxed))
    }

    /// Runs an arm without a probe.
    pub(crate) fn run(&self, side: Side, arm: &str, seed: u64) -> Result<Run, LabError> {
        let options = Options {
            probe: false,
            interval: WINDOW.min(self.run_time / 2).max(Duration::from_millis(10)),
            pin: true,
        };
        let watched = self.watch(arm, seed, options)?;
        let windows: Vec<f64> = watched.windows.iter().map(|w| w.1 / w.0).collect();
        let dropped = match steady::transient(&windows) {
            // A start is no transient if nothing came after it.
            n if windows.iter().skip(n).all(|rate| *rate <= 0.0) => 0,
            n => n,
        };
        if !watched.windows.iter().any(|w| w.1 > 0.0) && !self.cancelled() {
            let why = watched
                .first_error
                .unwrap_or_else(|| "nothing was done in it".to_owned());
            return Err(LabError::Failed {
                workload: self.scenario.name.clone(),
                message: format!("a run with {} = {arm} measured nothing: {why}", self.policy),
            });
        }
        let kept = watched.windows.get(dropped..).unwrap_or_default();
        let seconds: f64 = kept.iter().map(|w| w.0).sum();
        let ops: f64 = kept.iter().map(|w| w.1).sum();
        let all: f64 = watched.windows.iter().map(|w| w.1).sum();
        let hist = watched.hist;
        let quantile = |q| {
            if hist.is_empty() {
                0
            } else {
                hist.value_at_quantile(q)
            }
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of counts"
        )]
        let record = RunRecord {
            side,
            arm: arm.to_owned(),
            seed,
            steady: steady::steady(windows.get(dropped..).unwrap_or_default()),
            flat: steady::flat(windows.get(dropped..).unwrap_or_default()),
            windows,
            dropped,
            late: watched.late as f64 / all.max(1.0),
            seconds,
            ops: ops.round() as u64,
            rate: ops / seconds.max(1e-9),
            cpu_ns: 1e9 * watched.weather.cpu_seconds / all.max(1.0),
            latency_ns: [quantile(0.5), quantile(0.99), quantile(0.999)],
            errors: watched.errors,
            first_error: watched.first_error,
            weather: watched.weather,
        };
        Ok(Run { record, hist })
    }

    /// Runs an arm with the probe on, for counts only.
    pub(crate) fn count(&self, arm: &str, seed: u64) -> Result<Counted, LabError> {
        let options = Options {
            probe: true,
            interval: WINDOW.min(self.run_time / 2).max(Duration::from_millis(10)),
            pin: true,
        };
        let watched = self.watch(arm, seed, options)?;
        let Some(last) = watched.last else {
            return Ok(Counted::default());
        };
        let ops = last.workloads.get(self.workload).map_or(0, |w| w.ops);
        let files: u64 = last
            .workloads
            .iter()
            .filter(|w| w.unit == Unit::Op)
            .map(|w| w.ops)
            .sum();
        let all: u64 = last.workloads.iter().map(|w| w.ops).sum();
        let per = |count: f64, ops: u64| count / ops.max(1) as f64;
        let (mut own, mut shared) = (0, 0);
        for row in &last.extents.slots {
            let adds = row.hits + row.misses;
            if &*row.label == "shared" {
                shared += adds;
            } else {
                own += adds;
            }
        }
        let batch = f64::from(last.extents.batch.max(1));
        Ok(Counted {
            ops,
            buffers: files > 0,
            rmws: per(last.flags.rmws as f64, files),
            avoided: per(last.flags.avoided as f64, files),
            hits: per(last.extents.hits.exact as f64, all),
            misses: per(last.extents.misses.exact as f64, all),
            shared_adds: per(shared as f64 + own as f64 / batch, all),
            own_adds: per(own as f64, all),
        })
    }

    fn watch(&self, arm: &str, seed: u64, options: Options) -> Result<Watched, LabError> {
        let lab = Lab::start(self.scenario(arm, seed), self.registry, options)?;
        let mut watched = Watched {
            windows: Vec::new(),
            hist: latency::new_hist(),
            errors: 0,
            first_error: None,
            weather: Moment::now().since(&Moment::now()),
            last: None,
            late: 0,
        };
        if let Some(samples) = lab.take_samples() {
            let mut began: Option<(Moment, Duration)> = None;
            while let Ok(sample) = samples.recv_timeout(PATIENCE) {
                match began {
                    // The statistics begin again right after the first sample past the warm-up.
                    None if sample.elapsed >= self.warmup => {
                        began = Some((Moment::now(), sample.elapsed));
                    }
                    None => {}
                    Some((before, since)) => {
                        if let Some(w) = sample.workloads.get(self.workload) {
                            let seconds = sample.interval.as_secs_f64();
                            watched.windows.push((seconds, w.ops_per_s * seconds));
                        }
                        let ran = sample.elapsed.saturating_sub(since);
                        let some = watched.windows.iter().any(|w| w.1 > 0.0);
                        // On a busy machine a short run may end before anything was done in it.
                        let over = ran >= self.run_time && (some || ran >= PATIENCE);
                        let stopped = sample.failure.is_some() || !sample.running;
                        if over || stopped || self.cancelled() {
                            watched.weather = Moment::now().since(&before);
                            break;
                        }
                    }
                }
            }
        }
        watched.late = lab.late(self.workload);
        let (summary, hists, last) = lab.finish_with_distributions();
        watched.last = last;
        if let Some(hist) = hists.into_iter().nth(self.workload) {
            watched.hist = hist;
        }
        watched.errors = summary.workloads.iter().map(|w| w.errors).sum();
        watched.first_error = summary.first_error.or(summary.failure);
        Ok(watched)
    }
}

struct Watched {
    /// Seconds and operations of each window.
    windows: Vec<(f64, f64)>,
    hist: Hist,
    errors: u64,
    first_error: Option<String>,
    weather: Weather,
    last: Option<Sample>,
    /// I/Os that began late.
    late: u64,
}

/// Share of late starts above which a rate was not held: one stall leaves less, a backlog that grows leaves nearly all.
const LATE: f64 = 0.1;

impl RunRecord {
    /// Why the run is no measurement of a steady state, if it is none and was long enough to tell.
    pub(crate) fn restless(&self) -> Option<String> {
        steady::refusal(self.windows.get(self.dropped..).unwrap_or_default())
    }

    /// What is wrong with its rate, if that was not held.
    pub(crate) fn rate_not_held(&self) -> Option<String> {
        (self.late > LATE).then(|| {
            format!(
                "the rate was not held: {:.0} % of the I/Os began more than 1 ms late; ask for a lower one",
                100.0 * self.late
            )
        })
    }
}

/// Events of a counting run, for each operation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) ops: u64,
    /// Whether there were buffer heads.
    pub(crate) buffers: bool,
    pub(crate) rmws: f64,
    pub(crate) avoided: f64,
    pub(crate) hits: f64,
    pub(crate) misses: f64,
    /// Additions to a line that all CPUs share: those of the shared arm, and the folds of full batches.
    pub(crate) shared_adds: f64,
    pub(crate) own_adds: f64,
}
