//! The summary of a run, as text and as data.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checks::Checks;
use crate::sample::{
    BufferSample, CounterView, ExtentSample, FlagSample, Latency, Sample, ShrinkSample, Unit,
};

/// Version of the data form.
pub const SUMMARY_SCHEMA_VERSION: u32 = 1;

/// What a run came to, from the last reset of the statistics to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// The stack, client to media.
    pub stack: String,
    /// Seed of every generator.
    pub seed: u64,
    /// Seconds that the workloads ran since the reset.
    pub seconds: f64,
    /// The workloads in the order of the scenario.
    pub workloads: Vec<WorkloadSummary>,
    /// The policies and the arms they ended on.
    pub policies: Vec<PolicySummary>,
    /// The counters of the extent cache.
    pub counters: Vec<CounterSummary>,
    /// The shrinker of the extent cache.
    #[serde(default)]
    pub shrinks: ShrinkSummary,
    /// The flag words of the buffer heads.
    pub flags: FlagSummary,
    /// Seconds of warm-up that the run was too short for: then all of it is counted, from its cold start on.
    pub warmup_missed: Option<f64>,
    /// Samples dropped because their reader was too slow.
    pub samples_dropped: u64,
    /// The first operation that failed, warm-up included: workload, operation, place, and what was said.
    pub first_error: Option<String>,
    /// The first failure of a worker, or else the first invariant that did not hold.
    pub failure: Option<String>,
    /// Workers that did not stop in time and were left behind.
    pub stuck_workers: usize,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// Name.
    pub name: String,
    /// What it did, in a few words.
    pub about: String,
    /// Worker threads.
    pub workers: usize,
    /// `io` or `op`.
    pub unit: Cow<'static, str>,
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Operations that failed since the lab started: those of the warm-up too.
    pub errors: u64,
    /// Of them, those that no reset, such as the end of the warm-up, came after.
    pub errors_measured: u64,
    /// Seconds that it ran since the reset; the rates are over them.
    pub seconds: f64,
    /// Operations a second.
    pub ops_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Latency.
    pub latency_ns: LatencySummary,
}

/// A latency distribution in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Recorded operations.
    pub n: u64,
    /// Smallest.
    pub min: u64,
    /// 50th percentile.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// 99.99th percentile.
    pub p9999: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
}

impl From<Latency> for LatencySummary {
    fn from(l: Latency) -> Self {
        Self {
            n: l.n,
            min: l.min,
            p50: l.p50,
            p90: l.p90,
            p99: l.p99,
            p999: l.p999,
            p9999: l.p9999,
            max: l.max,
            mean: l.mean,
        }
    }
}

/// A policy and its arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySummary {
    /// Name of the policy.
    pub name: String,
    /// Name of the chosen arm.
    pub arm: String,
}

/// A counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSummary {
    /// What it counts.
    pub name: Cow<'static, str>,
    /// The exact sum.
    pub exact: i64,
    /// The approximate value.
    pub approx: i64,
    /// Largest possible distance of the two.
    pub bound: u64,
}

impl CounterSummary {
    fn new(name: &'static str, view: CounterView) -> Self {
        Self {
            name: name.into(),
            exact: view.exact,
            approx: view.approx,
            bound: view.bound,
        }
    }
}

/// The shrinker of the extent cache since the reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShrinkSummary {
    /// Reclaimable entries above which it ran by itself.
    pub limit: Option<u64>,
    /// Scans, of at most 128 entries each.
    pub scans: u64,
    /// Entries scanned.
    pub scanned: u64,
    /// Entries reclaimed.
    pub reclaimed: u64,
}

impl From<ShrinkSample> for ShrinkSummary {
    fn from(s: ShrinkSample) -> Self {
        Self {
            limit: s.limit,
            scans: s.scans,
            scanned: s.scanned,
            reclaimed: s.reclaimed,
        }
    }
}

/// The flag words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagSummary {
    /// Whether they were counted.
    pub counted: bool,
    /// Set calls.
    pub sets: u64,
    /// Set calls that did a read-modify-write.
    pub rmws: u64,
    /// Set calls that found the bit set and left the word alone.
    pub avoided: u64,
}

/// What a summary says beside the last sample.
pub(crate) struct Ending {
    pub(crate) scenario: String,
    pub(crate) stack: String,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) cold: Option<Duration>,
    pub(crate) policies: Vec<PolicySummary>,
    pub(crate) stuck_workers: usize,
}

impl Summary {
    pub(crate) fn new(ending: Ending, last: Option<&Sample>) -> Self {
        let none = nothing();
        let last = last.unwrap_or(&none);
        let rate = |n: u64, over: Duration| {
            if over.is_zero() {
                0.0
            } else {
                n as f64 / over.as_secs_f64()
            }
        };
        Self {
            schema_version: SUMMARY_SCHEMA_VERSION,
            scenario: ending.scenario,
            stack: ending.stack,
            seed: ending.seed,
            seconds: ending.seconds,
            workloads: last
                .workloads
                .iter()
                .map(|w| WorkloadSummary {
                    name: w.name.to_string(),
                    about: w.about.to_string(),
                    workers: w.workers,
                    unit: match w.unit {
                        Unit::Io => "io".into(),
                        Unit::Op => "op".into(),
                    },
                    ops: w.ops,
                    bytes: w.bytes,
                    errors: w.errors_in_all,
                    errors_measured: w.errors,
                    seconds: w.ran.as_secs_f64(),
                    ops_per_s: rate(w.ops, w.ran),
                    bytes_per_s: rate(w.bytes, w.ran),
                    latency_ns: w.total.into(),
                })
                .collect(),
            policies: ending.policies,
            counters: vec![
                CounterSummary::new("hits", last.extents.hits),
                CounterSummary::new("misses", last.extents.misses),
                CounterSummary::new("objects", last.extents.objects),
                CounterSummary::new("reclaimable", last.extents.reclaimable),
            ],
            shrinks: last.extents.shrinks.into(),
            flags: FlagSummary {
                counted: last.flags.probe,
                sets: last.flags.sets,
                rmws: last.flags.rmws,
                avoided: last.flags.avoided,
            },
            warmup_missed: ending.cold.map(|d| d.as_secs_f64()),
            samples_dropped: last.dropped,
            first_error: last.first_error.as_ref().map(ToString::to_string),
            failure: match (&last.failure, last.checks.broken()) {
                (Some(failure), _) => Some(failure.to_string()),
                (None, Some((name, what))) => Some(format!("invariant broken: {name}: {what}")),
                (None, None) => None,
            },
            stuck_workers: ending.stuck_workers,
        }
    }

    /// Prints the summary as text: the throughput and the latency of each workload, a line for each
    /// policy and each counter, and the flag words.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(
            to,
            "scenario {}, {:.1} s measured, seed {}",
            self.scenario, self.seconds, self.seed
        )?;
        writeln!(to, "stack {}", self.stack)?;
        for w in &self.workloads {
            if w.unit == "io" {
                writeln!(
                    to,
                    "throughput {:.1} kIOPS, {:.1} MB/s  {}: {}",
                    w.ops_per_s / 1e3,
                    w.bytes_per_s / 1e6,
                    w.name,
                    w.about
                )?;
            } else {
                writeln!(
                    to,
                    "throughput {:.0} ops/s  {}: {}",
                    w.ops_per_s, w.name, w.about
                )?;
            }
            let l = &w.latency_ns;
            writeln!(
                to,
                "latency p50 {}, p99 {}, max {}, n {}  {}",
                nanos(l.p50),
                nanos(l.p99),
                nanos(l.max),
                l.n,
                w.name
            )?;
            let early = w.errors.saturating_sub(w.errors_measured);
            if early > 0 {
                let errors = w.errors;
                writeln!(
                    to,
                    "errors {errors}, {early} before measuring began  {}",
                    w.name
                )?;
            } else if w.errors > 0 {
                writeln!(to, "errors {}  {}", w.errors, w.name)?;
            }
            if (w.seconds - self.seconds).abs() > 0.1 * self.seconds {
                writeln!(to, "ran {:.2} s  {}", w.seconds, w.name)?;
            }
        }
        for p in &self.policies {
            writeln!(to, "policy {} {}", p.name, p.arm)?;
        }
        for c in &self.counters {
            writeln!(
                to,
                "counter {} exact {}, approximate {}, bound {}",
                c.name, c.exact, c.approx, c.bound
            )?;
        }
        let s = &self.shrinks;
        let limit = s.limit.map_or("none".to_owned(), |n| n.to_string());
        writeln!(
            to,
            "shrinks scans {}, scanned {}, reclaimed {}, limit {limit}",
            s.scans, s.scanned, s.reclaimed
        )?;
        if self.flags.counted {
            writeln!(
                to,
                "flags sets {}, read-modify-writes {}, avoided {}",
                self.flags.sets, self.flags.rmws, self.flags.avoided
            )?;
        } else {
            writeln!(to, "flags not counted: no buffer heads, or no probe")?;
        }
        if let Some(warmup) = self.warmup_missed {
            writeln!(
                to,
                "warm-up of {warmup:.2} s was not over: all of the run is counted"
            )?;
        }
        if let Some(error) = &self.first_error {
            writeln!(to, "first error: {error}")?;
        }
        if self.samples_dropped > 0 {
            writeln!(to, "samples dropped {}", self.samples_dropped)?;
        }
        if self.stuck_workers > 0 {
            writeln!(to, "workers that did not stop {}", self.stuck_workers)?;
        }
        if let Some(failure) = &self.failure {
            writeln!(to, "failed: {failure}")?;
        }
        Ok(())
    }
}

/// What is said when the sampler did not answer: nothing was measured.
fn nothing() -> Sample {
    Sample {
        seq: 0,
        elapsed: Duration::ZERO,
        interval: Duration::ZERO,
        late: Duration::ZERO,
        dropped: 0,
        running: false,
        settling: false,
        first_error: None,
        failure: Some(Arc::from("the sampler did not answer")),
        workloads: Vec::new(),
        arms: Vec::new(),
        layers: Vec::new(),
        extents: ExtentSample::default(),
        flags: FlagSample::default(),
        buffers: BufferSample::default(),
        comparison: None,
        auto: None,
        checks: Checks::default(),
        machine: None,
    }
}

/// A time in a unit that leaves three or four digits.
fn nanos(n: u64) -> String {
    let x = n as f64;
    match n {
        0..10_000 => format!("{n} ns"),
        10_000..10_000_000 => format!("{:.1} us", x / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", x / 1e6),
        _ => format!("{:.1} s", x / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stay_short() {
        for (n, text) in [
            (0, "0 ns"),
            (9999, "9999 ns"),
            (12_345, "12.3 us"),
            (23_000_000, "23.0 ms"),
            (60_000_000_000, "60.0 s"),
        ] {
            assert_eq!(nanos(n), text);
        }
    }
}
