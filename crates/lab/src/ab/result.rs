//! What a comparison came to, as data and as text.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::compare::{Better, Effect, Finding};
use super::conclude::Wanted;
use super::mechanism::{Count, Explained};
use crate::environment::Environment;

/// Version of the data form.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbResult {
    /// Version of this form.
    pub schema_version: u32,
    /// `ab`, which tells it from other runs.
    pub kind: Cow<'static, str>,
    /// Policy that was switched.
    pub policy: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Workload whose figures these are.
    pub workload: String,
    /// The stack.
    pub stack: String,
    /// Seed of the plan.
    pub seed: u64,
    /// Names of both arms.
    pub arms: [String; 2],
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that were planned.
    pub pairs_planned: usize,
    /// Pairs that were rejected, and repeated if there was an end to it.
    pub rejected: usize,
    /// Measured time of a run.
    pub run_seconds: f64,
    /// Time before it that was left out.
    pub warmup_seconds: f64,
    /// Smallest interesting effect, as a share.
    pub mde: f64,
    /// The metrics, the primary one first.
    pub metrics: Vec<Metric>,
    /// Latency of both arms.
    pub quantiles: Vec<Quantile>,
    /// Arm A against itself.
    pub aa: Resolution,
    /// Counts of the mechanism.
    pub mechanism: Vec<Count>,
    /// How much of the cost they explain.
    pub explained: Option<Explained>,
    /// What the primary metric's interval says.
    pub finding: Finding,
    /// The same in words.
    pub verdict: String,
    /// Whether the figures mean anything.
    pub usable: bool,
    /// Why not.
    pub unusable_because: Option<String>,
    /// What a reader should know beside.
    pub remarks: Vec<String>,
    /// CPUs that the workers keep busy.
    pub cpus_in_use: usize,
    /// The machine.
    pub environment: Environment,
    /// Command line that repeats it.
    pub command: String,
    /// When it ended, seconds since 1970.
    pub at: u64,
    /// Ratio B / A of the primary metric, pair by pair.
    pub ratios: Vec<f64>,
    /// The same of arm A against itself.
    pub aa_ratios: Vec<f64>,
    /// Primary metric of each run of A and of B.
    pub values: [Vec<f64>; 2],
}

/// A number that JSON has no digits for comes back as none.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// One metric of both arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name.
    pub name: Cow<'static, str>,
    /// Unit of `a` and `b`.
    pub unit: Cow<'static, str>,
    /// Which way is better.
    pub better: Better,
    /// Whether the verdict rests on it.
    pub primary: bool,
    /// Median over the runs of arm A.
    pub a: f64,
    /// Median over the runs of arm B.
    pub b: f64,
    /// Median of the paired ratios B / A.
    pub effect: f64,
    /// Lower end of its 95 % interval.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Two-sided p, signed rank.
    pub p: f64,
    /// The same, corrected for the number of metrics (Holm).
    pub p_holm: f64,
    /// Hodges-Lehmann estimate of the ratio.
    pub shift: f64,
    /// What the interval comes from.
    pub estimator: Cow<'static, str>,
    /// Bootstrap interval.
    pub bca: [f64; 2],
    /// Order-statistic interval.
    pub order: [f64; 2],
}

impl Metric {
    pub(super) fn new(wanted: &Wanted, primary: bool, (a, b): (f64, f64), e: &Effect) -> Self {
        Self {
            name: wanted.name.into(),
            unit: wanted.unit.into(),
            better: wanted.better,
            primary,
            a,
            b,
            effect: e.effect,
            lo: e.lo,
            hi: e.hi,
            p: e.p,
            p_holm: e.p,
            shift: e.shift,
            estimator: e.estimator.into(),
            bca: e.bca,
            order: e.order,
        }
    }
}

/// A quantile of the latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Which, between 0 and 1.
    pub q: f64,
    /// Of all runs of arm A together.
    pub a_ns: u64,
    /// Of all runs of arm B together.
    pub b_ns: u64,
    /// Median of the paired ratios of the runs' own quantiles.
    #[serde(deserialize_with = "number")]
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    #[serde(deserialize_with = "number")]
    pub lo: f64,
    /// Upper end.
    #[serde(deserialize_with = "number")]
    pub hi: f64,
    /// Fewer than ten samples lie above it.
    pub few: bool,
}

/// What the machine can tell apart: arm A against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that were rejected.
    pub rejected: usize,
    /// Median of the ratios; `null` in JSON, as the next three, where no pair was kept.
    #[serde(deserialize_with = "number")]
    pub effect: f64,
    /// Lower end of the 95 % interval.
    #[serde(deserialize_with = "number")]
    pub lo: f64,
    /// Upper end.
    #[serde(deserialize_with = "number")]
    pub hi: f64,
    /// Larger distance of the two ends from 1.
    #[serde(deserialize_with = "number")]
    pub resolution: f64,
}

impl AbResult {
    /// Prints the result as text, the verdict last.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let [a, b] = &self.arms;
        writeln!(to, "policy {}: A = {a}, B = {b}", self.policy)?;
        writeln!(
            to,
            "scenario {}, workload {}, stack {}, seed {}",
            self.scenario, self.workload, self.stack, self.seed
        )?;
        writeln!(
            to,
            "{} of {} pairs of {} s kept, {} rejected; a fresh device for each run",
            self.pairs, self.pairs_planned, self.run_seconds, self.rejected
        )?;
        for (what, text) in self.environment.lines() {
            writeln!(to, "{what}: {text}")?;
        }
        self.write_metrics(to)?;
        if !self.quantiles.is_empty() {
            writeln!(to)?;
            writeln!(
                to,
                "latency of all runs together, and the shift within pairs"
            )?;
            for q in &self.quantiles {
                writeln!(
                    to,
                    "p{:<6} A {:>9} ns  B {:>9} ns  {:>+7.2}% [{:>+7.2}%,{:>+7.2}%]{}",
                    100.0 * q.q,
                    q.a_ns,
                    q.b_ns,
                    percent(q.ratio),
                    percent(q.lo),
                    percent(q.hi),
                    if q.few {
                        "  fewer than 10 samples above"
                    } else {
                        ""
                    }
                )?;
            }
        }
        writeln!(to)?;
        for c in &self.mechanism {
            let note = match (c.must_move, c.moved()) {
                (true, true) => "  must move, moved",
                (true, false) => "  must move, did not",
                _ => "",
            };
            writeln!(
                to,
                "per operation {:<36} A {:>9.3}  B {:>9.3}{note}",
                c.name, c.a_per_op, c.b_per_op
            )?;
        }
        if let Some(explained) = &self.explained {
            writeln!(to, "{}", explained.sentence())?;
        }
        if self.aa.pairs == 0 {
            writeln!(to, "A against itself: no pair was kept")?;
        } else {
            writeln!(
                to,
                "A against itself: {} pairs, [{:+.2}%, {:+.2}%]: this machine resolves +-{:.2} %",
                self.aa.pairs,
                percent(self.aa.lo),
                percent(self.aa.hi),
                100.0 * self.aa.resolution
            )?;
        }
        for remark in &self.remarks {
            writeln!(to, "note: {remark}")?;
        }
        writeln!(to, "repeat: {}", self.command)?;
        writeln!(to)?;
        writeln!(to, "{}", self.verdict)
    }

    fn write_metrics(&self, to: &mut dyn Write) -> io::Result<()> {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        writeln!(to)?;
        writeln!(
            to,
            "{:<30} {:>12} {:>12}  {:>8} {:>19} {:>8} {:>8}",
            "metric", "A", "B", "B/A-1", "95 % interval", "p", "p Holm"
        )?;
        for m in &self.metrics {
            writeln!(
                to,
                "{:<30} {:>12.1} {:>12.1}  {:>+7.2}% [{:>+7.2}%,{:>+7.2}%] {:>8.4} {:>8.4}  {}",
                format!("{} ({})", m.name, m.unit),
                m.a,
                m.b,
                percent(m.effect),
                percent(m.lo),
                percent(m.hi),
                m.p,
                m.p_holm,
                match m.better {
                    Better::Higher => "more is better",
                    Better::Lower => "less is better",
                }
            )?;
        }
        if let Some(m) = self.metrics.first() {
            writeln!(
                to,
                "interval: {}; shift {:+.2} % (Hodges-Lehmann)",
                m.estimator,
                percent(m.shift)
            )?;
        }
        Ok(())
    }
}
