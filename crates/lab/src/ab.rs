//! Two arms of a policy, run against each other in interleaved pairs.
//!
//! Every run has a fresh device, built and laid out from the same seed as its partner's, so both do the same
//! operations; one switch differs. Pairs come in blocks of two, `AB BA` or `BA AB`, so that a machine that
//! drifts favours neither arm. A run is one value, however many operations it had. What was disturbed by
//! others, or was never steady, is left out with its partner and repeated at the end, whichever arm it was of; that
//! rule never looks at which arm was faster. The same plan with arm A on both sides tells what the machine can resolve at all.

mod compare;
mod conclude;
mod cost;
mod error;
mod files;
mod mechanism;
mod plan;
mod result;
mod run;
mod steady;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use compare::{Better, Effect as PairedEffect, Finding};
pub use cost::Cost;
pub use error::AbError;
pub use mechanism::{Count, Explained};
pub use result::{AbResult, Metric, Quantile, Resolution};
pub use run::RunRecord;

use crate::compare::Subject;
use crate::environment::{Limits, wait_for_quiet};
use crate::lab::Options;
use crate::load;
use crate::policy::{Mechanism, PolicyError, resolve};
use crate::registry::Registry;
use crate::sample::Unit;
use crate::scenario::Scenario;
use conclude::{Parts, conclude, resolution};
use plan::{Pair, Side};
use run::{Rig, Run};

/// Pairs of an arm against itself at least.
const FEWEST_AA: usize = 10;

/// A comparison.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use cairn_lab::{Ab, Limits, Registry, run_ab};
///
/// let ab = Ab {
///     pairs: 2,
///     aa_pairs: Some(2),
///     run_time: Duration::from_millis(100),
///     warmup: Duration::from_millis(20),
///     patience: Duration::ZERO,
///     // However busy the machine is: only to show how it is called.
///     limits: Limits { steal: 9.0, others: 9.0 },
///     ..Ab::new("flag-set")
/// };
/// let result = run_ab(&ab, &Registry::default(), &mut |_| {})?;
/// let rate = &result.metrics[0];
/// assert!(rate.lo <= rate.effect && rate.effect <= rate.hi);
/// # Ok::<(), cairn_lab::AbError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ab {
    /// Name of the policy.
    pub policy: String,
    /// Preset or path of the scenario; by default the one that the policy was made for.
    pub scenario: Option<String>,
    /// Names of both arms; by default the first two of the policy.
    pub arms: Option<[String; 2]>,
    /// Pairs to keep.
    pub pairs: usize,
    /// Pairs of arm A against itself; by default as many, ten at least.
    pub aa_pairs: Option<usize>,
    /// Measured time of a run.
    pub run_time: Duration,
    /// Time before it that is left out.
    pub warmup: Duration,
    /// Smallest interesting effect, as a share.
    pub mde: f64,
    /// What others may do meanwhile.
    pub limits: Limits,
    /// How long all waiting for a quiet machine may take together.
    pub patience: Duration,
    /// Folder that everything is written to.
    pub out: Option<PathBuf>,
    /// Set from outside to break it off; nothing is claimed then.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Command line that repeats it, for the report.
    pub command: String,
}

impl Ab {
    /// Ten pairs of 1.5 s with the policy's own scenario.
    pub fn new(policy: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            scenario: None,
            arms: None,
            pairs: 10,
            aa_pairs: None,
            run_time: Duration::from_millis(1500),
            warmup: Duration::from_millis(500),
            mde: 0.02,
            limits: Limits::default(),
            patience: Duration::from_mins(1),
            out: None,
            cancel: None,
            command: format!("cairn ab {policy}"),
        }
    }
}

/// Runs a comparison. What the machine made impossible to say is in the result (`usable` is false then).
///
/// # Errors
/// [`AbError`] if what was asked for does not exist or a run broke; nothing is known then.
pub fn run_ab(
    ab: &Ab,
    registry: &Registry,
    notes: &mut dyn FnMut(&str),
) -> Result<AbResult, AbError> {
    let name = ab
        .scenario
        .clone()
        .unwrap_or_else(|| default_scenario(&ab.policy).to_owned());
    let scenario = Scenario::load(&name).map_err(|e| AbError::Scenario(Box::new(e)))?;
    let arms = arms(ab, registry)?;
    check(ab)?;
    let workload = subject(&ab.policy, &scenario, registry)?;
    if let Some(layer) = &workload.file_layer {
        notes(layer);
    }
    let rig = Rig {
        scenario: &scenario,
        registry,
        policy: &ab.policy,
        workload: workload.index,
        warmup: ab.warmup,
        run_time: ab.run_time,
        cancel: ab.cancel.as_ref(),
    };
    only_one_line_differs(&rig, &arms)?;
    if ab.pairs < crate::stats::interval::FEWEST {
        notes(
            "fewer than 6 pairs have no 95 % interval: whatever comes out, no difference is called",
        );
    }
    let mut bench = Bench {
        ab,
        rig: &rig,
        in_use: workload.in_use,
        // Who bears everything waits for nothing.
        patience: if ab.limits.others < 1.0 {
            ab.patience
        } else {
            Duration::ZERO
        },
        files: files::Files::new(ab.out.as_deref()).map_err(AbError::Write)?,
        calm: false,
        notes,
        number: 0,
    };
    let main = bench.series("ab", [&arms.0, &arms.1], ab.pairs, scenario.seed)?;
    let mut aa = Series::default();
    let mut broken_rig = false;
    if main.whole {
        let pairs = ab.aa_pairs.unwrap_or_else(|| ab.pairs.max(FEWEST_AA));
        let again = [arms.0.as_str(); 2];
        aa = bench.series("aa", again, pairs, scenario.seed.wrapping_add(1))?;
        if aa.whole && resolution(&aa, ab.mde).excludes_one {
            (bench.notes)("arm A differs from itself: once more with twice the pairs");
            aa = bench.series("aa", again, 2 * pairs, scenario.seed.wrapping_add(2))?;
            broken_rig = aa.whole && resolution(&aa, ab.mde).excludes_one;
        }
    }
    let counted = if main.whole && aa.whole {
        let seed = scenario.seed;
        let count = |arm: &str| rig.count(arm, seed).map_err(|e| AbError::Lab(Box::new(e)));
        Some([count(&arms.0)?, count(&arms.1)?])
    } else {
        None
    };
    let parts = Parts {
        arms,
        workload,
        main,
        aa,
        counted,
        broken_rig,
        cancelled: rig.cancelled(),
    };
    let files = bench.files;
    let result = conclude(ab, &scenario, parts);
    files.result(&result).map_err(AbError::Write)?;
    Ok(result)
}

/// The scenario that a policy is judged by unless another one is named.
fn default_scenario(policy: &str) -> &'static str {
    match Mechanism::of_policy(policy) {
        Mechanism::BufferHeads => "creat-clo",
        Mechanism::ExtentCache | Mechanism::BlockIo => "randwrite",
    }
}

fn arms(ab: &Ab, registry: &Registry) -> Result<(String, String), AbError> {
    let policies = registry.policies();
    let info = policies
        .iter()
        .find(|p| p.name == ab.policy)
        .ok_or_else(|| {
            AbError::Policy(PolicyError::NoSuchPolicy {
                policy: ab.policy.clone(),
                known: policies.iter().map(|p| p.name.clone()).collect(),
            })
        })?;
    let named = |i: usize| info.arms.get(i).cloned().unwrap_or_default();
    let [a, b] = ab.arms.clone().unwrap_or_else(|| [named(0), named(1)]);
    for arm in [&a, &b] {
        resolve(&policies, &ab.policy, arm).map_err(AbError::Policy)?;
    }
    if a == b {
        return Err(AbError::request(format!(
            "both arms are `{a}`: a comparison of an arm with itself is part of every comparison; {} has {}",
            ab.policy,
            info.arms.join(", ")
        )));
    }
    Ok((a, b))
}

fn check(ab: &Ab) -> Result<(), AbError> {
    if ab.pairs == 0 || ab.pairs > 10_000 {
        return Err(AbError::request(format!(
            "{} pairs are not in 1..=10000; 10 is usual",
            ab.pairs
        )));
    }
    if ab.run_time < Duration::from_millis(50) {
        return Err(AbError::request(format!(
            "a run time of {:?} is too short to measure anything; give at least 50ms",
            ab.run_time
        )));
    }
    if !(0.0..1.0).contains(&ab.mde) {
        return Err(AbError::request(
            "the smallest interesting effect lies between 0 and 100 %".to_owned(),
        ));
    }
    Ok(())
}

/// The workload that is compared.
struct Compared {
    index: usize,
    name: String,
    unit: Unit,
    /// What its files are made on, in one line.
    file_layer: Option<String>,
    /// CPUs that the workers of the scenario keep busy.
    in_use: usize,
}

/// Composes the scenario once, without running it, to see what its workloads use.
fn subject(policy: &str, scenario: &Scenario, registry: &Registry) -> Result<Compared, AbError> {
    let options = Options {
        probe: false,
        ..Options::default()
    };
    let built = load::build(scenario, registry, &options).map_err(|e| AbError::Lab(Box::new(e)))?;
    let workloads = &built.shared.workloads;
    let subject = Subject::new(policy, workloads, None);
    let found = subject.workload.and_then(|i| Some((i, workloads.get(i)?)));
    let Some((index, workload)) = found else {
        let reason = subject
            .reason
            .as_deref()
            .unwrap_or("nothing here uses it")
            .to_owned();
        return Err(AbError::request(format!(
            "scenario `{}`: {reason}",
            scenario.name
        )));
    };
    let workers: usize = workloads.iter().map(|w| w.workers).sum();
    Ok(Compared {
        index,
        name: workload.name.to_string(),
        unit: workload.unit,
        file_layer: built.file_layer.clone(),
        in_use: workers.clamp(1, crate::environment::cpus()),
    })
}

/// Both arms are the same but for the one switch.
fn only_one_line_differs(rig: &Rig<'_>, arms: &(String, String)) -> Result<(), AbError> {
    let [a, b] = [&arms.0, &arms.1].map(|arm| rig.scenario(arm, 0).to_toml());
    let differ = a.lines().zip(b.lines()).filter(|(a, b)| a != b).count();
    if differ == 1 && a.lines().count() == b.lines().count() {
        Ok(())
    } else {
        Err(AbError::request(format!(
            "{differ} lines of the two arms differ where one should"
        )))
    }
}

/// Pairs that were kept, and what happened to the others.
#[derive(Default)]
struct Series {
    pairs: Vec<[Run; 2]>,
    /// Pairs rejected, with reasons.
    rejected: Vec<String>,
    /// Whether all planned pairs are there.
    whole: bool,
}

struct Bench<'a, 'r> {
    ab: &'a Ab,
    rig: &'a Rig<'r>,
    in_use: usize,
    patience: Duration,
    files: files::Files,
    /// Whether the machine was quiet in the last run.
    calm: bool,
    notes: &'a mut dyn FnMut(&str),
    number: usize,
}

impl Bench<'_, '_> {
    fn series(
        &mut self,
        kind: &'static str,
        arms: [&str; 2],
        count: usize,
        seed: u64,
    ) -> Result<Series, AbError> {
        let in_use = self.in_use;
        let mut todo: std::collections::VecDeque<Pair> = plan::pairs(count, seed).into();
        self.files
            .planned(kind, arms, todo.make_contiguous())
            .map_err(AbError::Write)?;
        let mut series = Series::default();
        while let Some(pair) = todo.pop_front() {
            let mut kept: [Option<Run>; 2] = [None, None];
            let mut why = None;
            for side in pair.order() {
                if !self.calm {
                    wait_for_quiet(&mut self.patience, || self.rig.cancelled());
                }
                let slot = usize::from(side == Side::B);
                let arm = arms.get(slot).copied().unwrap_or_default();
                let run = self
                    .rig
                    .run(side, arm, pair.seed)
                    .map_err(|e| AbError::Lab(Box::new(e)))?;
                if self.rig.cancelled() {
                    return Ok(series);
                }
                let weather = run.record.weather.pollution(self.ab.limits, in_use);
                self.calm = weather.is_none();
                // Who bears everything that others do bears what it does to a run.
                let bears_all = self.ab.limits.others >= 1.0;
                let restless = || run.record.restless().filter(|_| !bears_all);
                let polluted = weather.or_else(restless);
                self.number += 1;
                self.files
                    .run(kind, self.number, pair.number, &run, polluted.as_deref())
                    .map_err(AbError::Write)?;
                if let Some(slot) = kept.get_mut(slot) {
                    *slot = Some(run);
                }
                if let Some(reason) = polluted {
                    why = Some(reason);
                    break;
                }
            }
            match (why, kept) {
                (None, [Some(a), Some(b)]) => {
                    (self.notes)(&format!(
                        "{kind} pair {} of {count}: {:+.2} %",
                        series.pairs.len() + 1,
                        100.0 * (b.record.rate / a.record.rate - 1.0)
                    ));
                    series.pairs.push([a, b]);
                }
                (why, _) => {
                    let why = why.unwrap_or_default();
                    (self.notes)(&format!("{kind} pair {} rejected: {why}", pair.number + 1));
                    self.files
                        .rejected(kind, pair.number, &why)
                        .map_err(AbError::Write)?;
                    series.rejected.push(why);
                    if series.rejected.len() > count {
                        return Ok(series);
                    }
                    todo.push_back(pair);
                }
            }
        }
        series.whole = true;
        Ok(series)
    }
}
