//! The interleaved comparison of a live lab: the sampler itself switches a policy A B B A, a second each.
//!
//! Neighbouring slices of the two arms form a pair, so what drifts slowly (heat, a growing map, another
//! program) is the same for both and falls out of their ratio; the order A B B A takes out what drifts
//! steadily, too. The figures are the mean of the pairs' log ratios and its Student t interval. The number
//! of pairs is fixed beforehand: looking before it is reached is allowed, and labelled as provisional.
//! Neighbours of the same arm (B B, A A) compare nothing with nothing, which shows what the machine can
//! resolve.

use std::time::Duration;

use crate::latency::{self, Hist};
use crate::sample::{AutoSample, Effect};
use crate::student::t_975;

/// How the interval is made, as every view prints it.
pub(crate) const ESTIMATOR: &str = "mean log ratio of neighbouring slices A B B A, paired t";

/// Half width that "so many more pairs" aims at.
const AIM: f64 = 0.01;

/// What is to be compared, and how often.
///
/// # Examples
/// ```
/// use cairn_lab::AutoPlan;
///
/// let plan = AutoPlan::new(0, [0, 1]);
/// assert_eq!((plan.pairs, plan.slice.as_secs()), (24, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoPlan {
    /// Index of the policy in the policy list.
    pub policy: usize,
    /// Its two arms, A first.
    pub arms: [usize; 2],
    /// Pairs after which it ends.
    pub pairs: u32,
    /// Time that a slice counts; the settle window before it comes on top.
    pub slice: Duration,
}

impl AutoPlan {
    /// 24 pairs of a second each, about a minute in all.
    pub fn new(policy: usize, arms: [usize; 2]) -> Self {
        Self {
            policy,
            arms,
            pairs: 24,
            slice: Duration::from_secs(1),
        }
    }
}

/// One sample of the workload that is compared.
pub(crate) struct Seen<'a> {
    /// All arms.
    pub(crate) arms: &'a [usize],
    /// It belongs to no arm.
    pub(crate) settling: bool,
    /// It is as long as planned.
    pub(crate) whole: bool,
    pub(crate) interval: Duration,
    /// `None` if it did not run all the time.
    pub(crate) ops: Option<u64>,
    pub(crate) latency: &'a Hist,
}

/// What is to be done after a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Stay,
    /// Switch the policy to this arm.
    Switch(usize),
}

/// What came of one slice.
#[derive(Clone, Copy)]
struct Slice {
    rate: f64,
    p99: f64,
}

/// A comparison under way, or at its end.
pub(crate) struct Auto {
    plan: AutoPlan,
    /// The arm from before, which the policy goes back to at the end.
    home: usize,
    /// Number of the slice, from 0.
    number: u64,
    /// All arms, when the pair began.
    arms: Vec<usize>,
    time: Duration,
    ops: u64,
    latency: Hist,
    /// The first slice of the pair.
    first: Option<Slice>,
    /// The slice before, if nothing lies between.
    before: Option<Slice>,
    rates: Vec<f64>,
    p99s: Vec<f64>,
    /// Log ratios of neighbours of the same arm.
    same: Vec<f64>,
    /// Mean log rate of each pair.
    levels: Vec<f64>,
    rejected: u32,
    running: bool,
    /// Somebody switched the policy by hand.
    broken: bool,
}

/// The arm of a slice, 0 for A: A B B A and so on.
fn side(number: u64) -> usize {
    usize::from(matches!(number % 4, 1 | 2))
}

impl Auto {
    /// A comparison that begins; the policy is to be switched to arm A, and stood on `home`.
    pub(crate) fn new(plan: AutoPlan, home: usize) -> Self {
        Self {
            plan,
            home,
            number: 0,
            arms: Vec::new(),
            time: Duration::ZERO,
            ops: 0,
            latency: latency::new_hist(),
            first: None,
            before: None,
            rates: Vec::new(),
            p99s: Vec::new(),
            same: Vec::new(),
            levels: Vec::new(),
            rejected: 0,
            running: true,
            broken: false,
        }
    }

    pub(crate) fn plan(&self) -> AutoPlan {
        self.plan
    }

    /// The arm that the policy stood on before.
    pub(crate) fn home(&self) -> usize {
        self.home
    }

    /// Whether it goes on.
    pub(crate) fn running(&self) -> bool {
        self.running
    }

    /// Whether what it found still holds: nobody switched its policy by hand.
    pub(crate) fn holds(&self) -> bool {
        !self.broken
    }

    fn arm(&self) -> usize {
        let [a, b] = self.plan.arms;
        if side(self.number) == 0 { a } else { b }
    }

    /// Takes a sample in.
    pub(crate) fn step(&mut self, seen: &Seen<'_>) -> Next {
        let now = seen.arms.get(self.plan.policy);
        if !self.running {
            self.broken |= now != Some(&self.home);
            return Next::Stay;
        }
        let here = now == Some(&self.arm());
        if !here {
            (self.running, self.broken) = (false, true);
            return Next::Stay;
        }
        if self.arms.is_empty() {
            self.arms = seen.arms.to_vec();
        }
        let policy = self.plan.policy;
        let other = |i: usize| i != policy && self.arms.get(i) != seen.arms.get(i);
        let others = (0..seen.arms.len()).any(other);
        let Some(ops) = seen.ops.filter(|_| seen.whole && !others) else {
            return self.reject();
        };
        if seen.settling {
            return Next::Stay;
        }
        self.time += seen.interval;
        self.ops += ops;
        latency::add(&mut self.latency, seen.latency);
        if self.time < self.plan.slice {
            return Next::Stay;
        }
        let slice = Slice {
            rate: self.ops as f64 / self.time.as_secs_f64(),
            p99: latency::summary(&self.latency).p99 as f64,
        };
        self.clear();
        if slice.rate <= 0.0 || slice.p99 <= 0.0 {
            return self.reject();
        }
        self.book(slice)
    }

    /// Begins the pair again: something else changed meanwhile, or time stood still.
    fn reject(&mut self) -> Next {
        let begun = self.first.is_some() || self.ops > 0;
        self.rejected += u32::from(begun);
        let before = self.arm();
        self.number -= self.number % 2;
        (self.first, self.before) = (None, None);
        self.arms.clear();
        self.clear();
        self.go_on(before)
    }

    fn book(&mut self, slice: Slice) -> Next {
        let arm = self.arm();
        if let Some(first) = self.first.take() {
            let (a, b) = if side(self.number) == 1 {
                (first, slice)
            } else {
                (slice, first)
            };
            self.rates.push((b.rate / a.rate).ln());
            self.p99s.push((b.p99 / a.p99).ln());
            self.levels.push(f64::midpoint(a.rate.ln(), b.rate.ln()));
        } else {
            if let Some(before) = self.before {
                self.same.push((slice.rate / before.rate).ln());
            }
            self.first = Some(slice);
        }
        self.before = Some(slice);
        if self.rates.len() >= self.plan.pairs as usize {
            self.running = false;
            return if arm == self.home {
                Next::Stay
            } else {
                Next::Switch(self.home)
            };
        }
        self.number += 1;
        self.go_on(arm)
    }

    fn go_on(&self, from: usize) -> Next {
        let arm = self.arm();
        if arm == from {
            Next::Stay
        } else {
            Next::Switch(arm)
        }
    }

    fn clear(&mut self) {
        self.time = Duration::ZERO;
        self.ops = 0;
        self.latency.reset();
    }

    /// What came of it so far.
    pub(crate) fn sample(&self) -> AutoSample {
        let count = |list: &[f64]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let pairs = count(&self.rates);
        AutoSample {
            policy: self.plan.policy,
            arms: self.plan.arms,
            pairs,
            wanted: self.plan.pairs,
            rejected: self.rejected,
            running: self.running,
            slice: self.plan.slice,
            rate: interval(&self.rates),
            p99: interval(&self.p99s),
            resolution: half_width(&self.same).map(f64::exp_m1),
            drift: self.drift(),
            more: more(&self.rates),
        }
    }

    /// Second half over first half of the pairs, minus one.
    fn drift(&self) -> Option<f64> {
        let half = self.levels.len() / 2;
        if half < 2 {
            return None;
        }
        let (first, rest) = self.levels.split_at(half);
        Some((mean(rest) - mean(first)).exp_m1())
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let sum: f64 = values.iter().map(|x| (x - middle).powi(2)).sum();
    (sum / (values.len().max(2) - 1) as f64).sqrt()
}

/// Half of the 95 % interval of the mean, on the log scale.
fn half_width(logs: &[f64]) -> Option<f64> {
    let n = logs.len();
    (n >= 2).then(|| t_975((n - 1) as f64) * deviation(logs) / (n as f64).sqrt())
}

fn interval(logs: &[f64]) -> Option<Effect> {
    let half = half_width(logs)?;
    let x = mean(logs);
    Some(Effect {
        ratio: x.exp_m1(),
        lo: (x - half).exp_m1(),
        hi: (x + half).exp_m1(),
    })
}

/// Pairs that are missing until the interval is about as narrow as [`AIM`]; none once it is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded up and clamped to what a u32 holds"
)]
fn more(logs: &[f64]) -> Option<u32> {
    half_width(logs).filter(|half| *half > AIM)?;
    let wanted = (1.96 * deviation(logs) / AIM).powi(2);
    let missing = wanted - logs.len() as f64;
    Some(missing.ceil().clamp(1.0, 1e6) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of samples of 100 ms in which arm B is `gain` times as fast, with a steady drift.
    struct World {
        auto: Auto,
        arms: Vec<usize>,
        hist: Hist,
        settle: u32,
        t: f64,
        gain: f64,
        drift: f64,
        seen: Vec<usize>,
    }

    impl World {
        fn new(pairs: u32, gain: f64, drift: f64) -> Self {
            let mut hist = latency::new_hist();
            hist.saturating_record(1000);
            Self {
                auto: Auto::new(
                    AutoPlan {
                        pairs,
                        ..AutoPlan::new(1, [0, 1])
                    },
                    1,
                ),
                arms: vec![5, 0, 7],
                hist,
                settle: 0,
                t: 0.0,
                gain,
                drift,
                seen: Vec::new(),
            }
        }

        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate of a test"
        )]
        fn sample(&mut self, whole: bool) {
            let gain = if self.arms[1] == 1 { self.gain } else { 1.0 };
            let ops = 1e6 * gain * (self.drift * self.t).exp();
            let next = self.auto.step(&Seen {
                arms: &self.arms,
                settling: self.settle > 0,
                whole,
                interval: Duration::from_millis(100),
                ops: Some(ops as u64),
                latency: &self.hist,
            });
            self.t += 0.1;
            self.settle = self.settle.saturating_sub(1);
            if let Next::Switch(arm) = next {
                self.arms[1] = arm;
                self.settle = 2;
                self.seen.push(arm);
            }
        }

        fn finish(&mut self) {
            for _ in 0..5000 {
                if !self.auto.sample().running {
                    return;
                }
                self.sample(true);
            }
            panic!("it does not end");
        }
    }

    #[test]
    fn arms_alternate_as_a_b_b_a_and_it_ends_after_its_pairs() {
        let mut world = World::new(4, 1.1, 0.0);
        world.finish();
        // A|B B|A A|B B|A: a switch inside each pair only.
        // At the end the arm from before stands again.
        assert_eq!(world.seen, [1, 0, 1, 0, 1]);
        let found = world.auto.sample();
        assert_eq!((found.pairs, found.rejected), (4, 0));
        let effect = found.rate.unwrap();
        assert!((effect.ratio - 0.1).abs() < 1e-6, "{effect:?}");
        assert!(found.p99.unwrap().ratio.abs() < 1e-9);
        world.sample(true);
        assert!(world.auto.holds());
        world.arms[1] = 0;
        world.sample(true);
        assert!(!world.auto.holds(), "switched by hand afterwards");
    }

    #[test]
    fn a_steady_drift_falls_out() {
        // Two per cent a second: unpaired, the later arm would win by far.
        let mut world = World::new(24, 1.0, 0.02);
        world.finish();
        let found = world.auto.sample();
        let effect = found.rate.unwrap();
        assert!(effect.ratio.abs() < 0.002, "{effect:?}");
        assert!(effect.lo <= 0.0 && effect.hi >= 0.0, "{effect:?}");
        assert!(found.drift.unwrap() > 0.3, "{found:?}");
    }

    #[test]
    fn what_disturbs_a_pair_rejects_it() {
        let mut world = World::new(4, 1.1, 0.0);
        for _ in 0..15 {
            world.sample(true);
        }
        world.sample(false);
        assert_eq!(world.arms[1], 0, "the pair begins again with its first arm");
        for _ in 0..5 {
            world.sample(true);
        }
        // Another policy is switched meanwhile.
        world.arms[2] = 8;
        world.sample(true);
        world.finish();
        let found = world.auto.sample();
        assert_eq!((found.pairs, found.rejected), (4, 2));
        assert!((found.rate.unwrap().ratio - 0.1).abs() < 1e-6);
    }

    #[test]
    fn a_hand_on_its_policy_ends_it() {
        let mut world = World::new(4, 1.1, 0.0);
        world.sample(true);
        world.arms[1] = 1;
        world.sample(true);
        assert!(!world.auto.sample().running && !world.auto.holds());
    }

    #[test]
    fn the_interval_is_that_of_a_paired_t() {
        let logs = [0.08, 0.10, 0.12, 0.10];
        let effect = interval(&logs).unwrap();
        // Mean 0.1, deviation 0.01633, t for 3 degrees of freedom 3.182.
        let half: f64 = 3.1824 * 0.016_329_93 / 2.0;
        assert!((effect.ratio - 0.1_f64.exp_m1()).abs() < 1e-9);
        assert!((effect.hi - (0.1 + half).exp_m1()).abs() < 1e-4);
        assert_eq!(interval(&logs[..1]), None);
        let missing = more(&logs).unwrap();
        assert_eq!(missing, 7, "(1.96 x 0.0163 / 0.01)^2 = 10.2, less 4");
        assert_eq!(more(&[0.1, 0.1001]), None, "narrow enough");
    }
}
