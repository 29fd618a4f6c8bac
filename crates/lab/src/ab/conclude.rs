//! From all the runs of a comparison to what it says.

use std::time::{SystemTime, UNIX_EPOCH};

use super::compare::{Better, Effect, Finding, effect, words};
use super::mechanism;
use super::result::{AbResult, Metric, Quantile, Resolution, SCHEMA_VERSION};
use super::run::{Counted, Run};
use super::{Ab, Compared, Series};
use crate::aim7::FILES_PER_JOB;
use crate::environment::Environment;
use crate::sample::Unit;
use crate::scenario::Scenario;
use crate::stats::interval::{FEWEST, Interval, RESAMPLES};
use crate::stats::{median, rank, variation};

/// Quantiles shown of both arms.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// What an arm against itself came to.
pub(super) struct Placebo {
    resolution: Resolution,
    pub(super) excludes_one: bool,
}

fn rates(series: &Series, side: usize) -> Vec<f64> {
    values(series, side, |run| run.record.rate)
}

fn values(series: &Series, side: usize, of: impl Fn(&Run) -> f64) -> Vec<f64> {
    series
        .pairs
        .iter()
        .filter_map(|pair| pair.get(side))
        .map(of)
        .collect()
}

pub(super) fn resolution(series: &Series, mde: f64) -> Placebo {
    let (e, _) = effect(&rates(series, 0), &rates(series, 1), mde, RESAMPLES, 2);
    let interval = Interval { lo: e.lo, hi: e.hi };
    Placebo {
        excludes_one: series.pairs.len() >= FEWEST && interval.excludes(1.0),
        resolution: Resolution {
            pairs: series.pairs.len(),
            rejected: series.rejected.len(),
            effect: e.effect,
            lo: e.lo,
            hi: e.hi,
            resolution: interval.reach(1.0),
        },
    }
}

/// Everything that was measured.
pub(super) struct Parts {
    pub(super) arms: (String, String),
    pub(super) workload: Compared,
    pub(super) main: Series,
    pub(super) aa: Series,
    pub(super) counted: Option<[Counted; 2]>,
    /// Arm A differed from itself twice.
    pub(super) broken_rig: bool,
    pub(super) cancelled: bool,
}

/// A metric before it is calculated.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    /// The value of a run.
    of: Box<dyn Fn(&Run) -> f64>,
}

/// The metrics, fixed beforehand; the first is the one that the verdict rests on.
fn wanted(unit: Unit) -> Vec<Wanted> {
    let (name, per, factor) = match unit {
        Unit::Io => ("IOPS", "1/s", 1.0),
        Unit::Op => ("jobs/min", "1/min", 60.0 / FILES_PER_JOB as f64),
    };
    let lower = |name, of| Wanted {
        name,
        unit: "ns",
        better: Better::Lower,
        of,
    };
    let latency = |i: usize| -> Box<dyn Fn(&Run) -> f64> {
        Box::new(move |run| run.record.latency_ns.get(i).copied().unwrap_or(0) as f64)
    };
    vec![
        Wanted {
            name,
            unit: per,
            better: Better::Higher,
            of: Box::new(move |run| run.record.rate * factor),
        },
        lower(
            "CPU time of an operation",
            Box::new(|run| run.record.cpu_ns),
        ),
        lower("latency p50", latency(0)),
        lower("latency p99", latency(1)),
        lower("latency p99.9", latency(2)),
    ]
}

pub(super) fn conclude(ab: &Ab, scenario: &Scenario, parts: Parts) -> AbResult {
    let placebo = resolution(&parts.aa, ab.mde).resolution;
    let (metrics, main) = metrics(&parts, ab.mde);
    let op_ns = metrics
        .iter()
        .find(|m| m.name.starts_with("CPU"))
        .map_or(0.0, |m| m.a);
    let (mechanism, explained) = match &parts.counted {
        Some([a, b]) => mechanism::compare(&ab.policy, a, b, op_ns),
        None => (Vec::new(), None),
    };
    let (found, mut verdict) = match &main {
        Some((e, found, better)) => {
            let text = words(*found, e, *better, ab.mde, placebo.resolution);
            (*found, text)
        }
        None => (Finding::Undetected, "no pair was kept".to_owned()),
    };
    let must: Vec<_> = mechanism.iter().filter(|c| c.must_move).collect();
    if found.calls_a_difference() && !must.is_empty() && !must.iter().any(|c| c.moved()) {
        verdict += "; but no count of the mechanism moved, so something else did it";
    }
    let unusable = unusable(scenario, &parts);
    if let Some(why) = &unusable {
        verdict = format!("no verdict: {why}");
    }
    let Parts {
        arms,
        workload,
        main,
        aa,
        ..
    } = parts;
    let primary = wanted(workload.unit).into_iter().next().map(|w| w.of);
    let of_side = |side| {
        let of = primary.as_ref();
        of.map_or_else(Vec::new, |of| values(&main, side, of))
    };
    AbResult {
        schema_version: SCHEMA_VERSION,
        kind: "ab".into(),
        policy: ab.policy.clone(),
        scenario: scenario.name.clone(),
        workload: workload.name,
        stack: scenario.stack.clone(),
        seed: scenario.seed,
        arms: [arms.0, arms.1],
        pairs: main.pairs.len(),
        pairs_planned: ab.pairs,
        rejected: main.rejected.len(),
        run_seconds: ab.run_time.as_secs_f64(),
        warmup_seconds: ab.warmup.as_secs_f64(),
        mde: ab.mde,
        metrics,
        quantiles: quantiles(&main, ab.mde),
        aa: placebo,
        mechanism,
        explained,
        finding: found,
        verdict,
        usable: unusable.is_none(),
        unusable_because: unusable,
        remarks: remarks(&main, scenario, ab),
        cpus_in_use: workload.in_use,
        environment: Environment::read(),
        command: ab.command.clone(),
        at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs()),
        ratios: ratios(&main),
        aa_ratios: ratios(&aa),
        values: [of_side(0), of_side(1)],
    }
}

fn ratios(series: &Series) -> Vec<f64> {
    let (a, b) = (rates(series, 0), rates(series, 1));
    a.iter().zip(b).map(|(a, b)| b / a).collect()
}

/// All metrics, and of the primary one what is said about it.
fn metrics(parts: &Parts, mde: f64) -> (Vec<Metric>, Option<(Effect, Finding, Better)>) {
    let mut metrics = Vec::new();
    let mut main = None;
    for (i, w) in wanted(parts.workload.unit).into_iter().enumerate() {
        let (a, b) = (values(&parts.main, 0, &w.of), values(&parts.main, 1, &w.of));
        // A time that the kernel's clock was too coarse for has no ratio.
        if a.is_empty() || a.iter().chain(&b).any(|x| *x <= 0.0) {
            continue;
        }
        let (e, finding) = effect(&a, &b, mde, RESAMPLES, 1);
        metrics.push(Metric::new(&w, i == 0, (median(&a), median(&b)), &e));
        if i == 0 {
            main = Some((e, finding, w.better));
        }
    }
    let p: Vec<f64> = metrics.iter().map(|m| m.p).collect();
    for (metric, p) in metrics.iter_mut().zip(rank::holm(&p)) {
        metric.p_holm = p;
    }
    (metrics, main)
}

/// Why nothing may be claimed, if that is so.
fn unusable(scenario: &Scenario, parts: &Parts) -> Option<String> {
    let runs = || parts.main.pairs.iter().chain(&parts.aa.pairs).flatten();
    let errors: u64 = runs().map(|r| r.record.errors).sum();
    let injected = scenario.stack.contains("error") || scenario.stack.contains("fault");
    if parts.cancelled {
        Some("broken off".to_owned())
    } else if !parts.main.whole || !parts.aa.whole {
        let runs = parts.main.rejected.iter().chain(&parts.aa.rejected);
        let restless = runs.clone().filter(|why| why.contains("never steady"));
        Some(if 2 * restless.count() > runs.count() {
            "the runs were never steady: more pairs were rejected than kept".to_owned()
        } else {
            "machine too busy: more pairs were rejected than kept".to_owned()
        })
    } else if parts.broken_rig {
        let text = "arm A differs from itself even with twice the pairs: this machine cannot tell";
        Some(text.to_owned())
    } else if let Some(why) = runs().find_map(|r| r.record.rate_not_held()) {
        Some(why)
    } else if errors > 0 && !injected {
        let first = runs().find_map(|r| r.record.first_error.clone());
        Some(format!(
            "{errors} operations failed, first: {}",
            first.unwrap_or_default()
        ))
    } else {
        None
    }
}

/// What a reader should know beside the figures.
fn remarks(main: &Series, scenario: &Scenario, ab: &Ab) -> Vec<String> {
    let spread = variation(&rates(main, 0)).max(variation(&rates(main, 1)));
    let mut said = Vec::new();
    if spread > 0.03 && main.pairs.len() < 20 {
        said.push(format!(
            "runs of one arm vary by {:.1} % (standard deviation): 20 pairs or more would tell more",
            100.0 * spread
        ));
    }
    let runs: Vec<&Run> = main.pairs.iter().flatten().collect();
    let restless = runs.iter().filter(|r| !r.record.steady).count();
    if restless > 0 {
        let sloping = runs.iter().filter(|r| !r.record.flat).count();
        let kept = |r: &Run| {
            r.record
                .windows
                .iter()
                .copied()
                .skip(r.record.dropped)
                .collect::<Vec<f64>>()
        };
        let restless_runs = runs.iter().filter(|r| !r.record.steady);
        let windows: Vec<f64> = restless_runs.flat_map(|r| kept(r)).collect();
        let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
        let most = windows.iter().copied().fold(0.0, f64::max);
        said.push(format!(
            "{restless} of {} runs were not steady: their rate went up and down by more than 20 %, or went one way \
             by more than 10 %; their windows lie between {least:.0} and {most:.0} a second (by a slope of 0.3 % a \
             window {sloping} runs were not)",
            runs.len()
        ));
    }
    let dropped: usize = runs.iter().map(|r| r.record.dropped).sum();
    if dropped > 0 {
        let all: usize = runs.iter().map(|r| r.record.windows.len()).sum();
        said.push(format!(
            "{dropped} of {all} windows at the start of runs were left out as a transient"
        ));
    }
    let faults: u64 = runs
        .iter()
        .filter_map(|r| r.record.weather.faults.first())
        .sum();
    said.push(format!(
        "minor page faults while measuring: {:.1} a run",
        faults as f64 / runs.len().max(1) as f64
    ));
    if crate::environment::cpus() < 4 {
        said.push(format!(
            "{} CPUs here: what comes of contention between many cores cannot be seen",
            crate::environment::cpus()
        ));
    }
    if scenario.workloads.len() > 1 {
        let text =
            "the scenario has several workloads: CPU time and counts are those of all together";
        said.push(text.to_owned());
    }
    said.push("each worker is kept on one CPU, in turn; hardware counters are not read".to_owned());
    for why in main.rejected.iter().take(3) {
        said.push(format!("a pair was rejected: {why}"));
    }
    if ab.pairs < FEWEST {
        said.push("fewer than 6 pairs have no 95 % interval".to_owned());
    }
    said
}

/// Latency of both arms, all runs of an arm merged, and how each quantile of a run shifts within its pair.
fn quantiles(main: &Series, mde: f64) -> Vec<Quantile> {
    let merged = [0, 1].map(|side| {
        let mut all = crate::latency::new_hist();
        for run in main.pairs.iter().filter_map(|p| p.get(side)) {
            crate::latency::add(&mut all, &run.hist);
        }
        all
    });
    let [a, b] = &merged;
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    QUANTILES
        .iter()
        .map(|q| {
            let of = |run: &Run| run.hist.value_at_quantile(*q) as f64;
            let (e, _) = effect(
                &values(main, 0, of),
                &values(main, 1, of),
                mde,
                RESAMPLES,
                3,
            );
            let above = (1.0 - q) * a.len().min(b.len()) as f64;
            Quantile {
                q: *q,
                a_ns: a.value_at_quantile(*q),
                b_ns: b.value_at_quantile(*q),
                ratio: e.effect,
                lo: e.lo,
                hi: e.hi,
                few: above < 10.0,
            }
        })
        .collect()
}
