//! The arms of a policy side by side, from slices of one run.
//!
//! Samples outside the settle window are summed up to slices of at least a second, booked under the
//! combination of arms that was in force. Two arms of a policy are compared where all other policies stand
//! as they stand now, so that nothing but the one switch differs, and by a workload that uses what the
//! policy acts on; when there is none, nothing is claimed. The arms of such a comparison were measured one
//! after the other, not interleaved, so the interval is that of two independent samples (Welch) and is
//! labelled as confounded with time.
//!
//! Neighbouring slices resemble each other: the same turbo step, the same noisy neighbour. Taken as
//! independent they would promise far too much. Slices of a second take out what is shorter; what is left is
//! measured as the autocorrelation r of a slice with the next one, and n slices count as n (1 - r) / (1 + r).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::latency::{self, Hist};
use crate::policy::{self, Switch};
use crate::sample::{self, ArmSample, Buckets, Comparison, Effect, Latency};
use crate::shared::Workload;
use crate::student::t_975;

/// How the interval is made, as every view prints it.
pub(crate) const ESTIMATOR: &str = "log ratio of means of 1 s slices, delta method, Welch, n lowered by lag-1 \
     autocorrelation; unpaired, time-confounded";

/// Length of a slice: samples are added up until it is reached.
const SLICE: Duration = Duration::from_secs(1);

/// Mean and spread of a rate over slices, summed up one by one (Welford), and how much a slice resembles the
/// one before it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    pub(crate) n: u64,
    pub(crate) mean: f64,
    m2: f64,
    /// The first value; the sums below are of distances from it, so that they keep their digits.
    origin: f64,
    /// The value before, if nothing lies between.
    before: Option<f64>,
    /// Of neighbours x, y: how many, their products, and the sum of all x and all y.
    pairs: u64,
    products: f64,
    ends: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, x: f64) {
        if self.n == 0 {
            self.origin = x;
        }
        let y = x - self.origin;
        if let Some(before) = self.before.replace(y) {
            self.pairs += 1;
            self.products += before * y;
            self.ends += before + y;
        }
        self.n += 1;
        let d = x - self.mean;
        self.mean += d / self.n as f64;
        self.m2 += d * (x - self.mean);
    }

    /// Variance of the sample; 0 below two values.
    pub(crate) fn variance(&self) -> f64 {
        if self.n < 2 {
            0.0
        } else {
            self.m2 / (self.n - 1) as f64
        }
    }

    /// The next value does not follow the last one directly.
    pub(crate) fn interrupt(&mut self) {
        self.before = None;
    }

    /// How many independent slices would tell as much as these: between 1 and `n`.
    ///
    /// The autocorrelation of few values comes out too small by about 1 / n; that is added, and what is then
    /// below zero counts as zero: slices are never worth more than their number.
    pub(crate) fn effective(&self) -> f64 {
        let n = self.n as f64;
        if self.pairs == 0 || self.m2 <= 0.0 {
            return n;
        }
        let mean = self.mean - self.origin;
        let pairs = self.pairs as f64;
        let covariance = (self.products - mean * self.ends) / pairs + mean * mean;
        let r = (covariance / (self.m2 / n) + 1.0 / n).clamp(0.0, 0.99);
        (n * (1.0 - r) / (1.0 + r)).max(1.0)
    }
}

/// Second mean over first, minus one, with the 95 % interval.
///
/// x = ln(b / a) has, by the delta method, the variance va / (na a^2) + vb / (nb b^2) with the effective
/// numbers na and nb; the degrees of freedom are Welch's for the sum of the two terms, one at least. `None` below two slices an arm, or when a mean is
/// not above zero and the logarithm does not exist.
pub(crate) fn effect(a: &Moments, b: &Moments) -> Option<Effect> {
    if a.n < 2 || b.n < 2 || a.mean <= 0.0 || b.mean <= 0.0 {
        return None;
    }
    let (na, nb) = (a.effective(), b.effective());
    let term = |m: &Moments, n: f64| m.variance() / (n * m.mean * m.mean);
    let (ta, tb) = (term(a, na), term(b, nb));
    let x = (b.mean / a.mean).ln();
    let half = if ta + tb > 0.0 {
        let free = |n: f64| (n - 1.0).max(1.0);
        let df = (ta + tb).powi(2) / (ta * ta / free(na) + tb * tb / free(nb));
        t_975(df) * (ta + tb).sqrt()
    } else {
        0.0
    };
    Some(Effect {
        ratio: x.exp_m1(),
        lo: (x - half).exp_m1(),
        hi: (x + half).exp_m1(),
    })
}

/// What one workload did while one combination of arms was in force.
struct Arm {
    rate: Moments,
    latency: Hist,
    /// Of `latency`, once somebody asked since it changed.
    summary: Option<(Latency, Arc<Buckets>)>,
}

impl Arm {
    fn new() -> Self {
        Self {
            rate: Moments::default(),
            latency: latency::new_hist(),
            summary: None,
        }
    }
}

/// What one workload did in one sample.
pub(crate) struct Share<'a> {
    /// `None` if it did not run all the time.
    pub(crate) ops: Option<u64>,
    pub(crate) latency: &'a Hist,
}

/// The slice that is being added up.
#[derive(Default)]
struct Open {
    arms: Vec<usize>,
    time: Duration,
    /// `None` for a workload that rested meanwhile.
    ops: Vec<Option<u64>>,
}

/// What was counted below the workloads in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) sets: u64,
    pub(crate) rmws: u64,
    /// Extent look-ups that the cache answered or could not.
    pub(crate) lookups: u64,
    /// Of them, those counted on the shared counters.
    pub(crate) shared: u64,
}

impl Counted {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            sets: self.sets.saturating_sub(before.sets),
            rmws: self.rmws.saturating_sub(before.rmws),
            lookups: self.lookups.saturating_sub(before.lookups),
            shared: self.shared.saturating_sub(before.shared),
        }
    }

    fn add(&mut self, more: Self) {
        self.sets += more.sets;
        self.rmws += more.rmws;
        self.lookups += more.lookups;
        self.shared += more.shared;
    }
}

/// What a policy of this name is to move, and its share in what was counted.
type Counter = (&'static str, fn(&Counted) -> (u64, u64));

fn counter(policy: &str) -> Option<Counter> {
    match policy {
        "flag-set" => Some(("RMWs per set call", |c| (c.rmws, c.sets))),
        "es-counters" => Some(("shared adds per look-up", |c| (c.shared, c.lookups))),
        _ => None,
    }
}

/// The slices of a run, by combination of arms.
#[derive(Default)]
pub(crate) struct Slices {
    by_arms: HashMap<Vec<usize>, Vec<Arm>>,
    counted: HashMap<Vec<usize>, Counted>,
    open: Open,
}

/// What is compared: the workload, and what to call it.
pub(crate) struct Subject {
    pub(crate) workload: Option<usize>,
    pub(crate) metric: Arc<str>,
    /// Why there is nothing to compare.
    pub(crate) reason: Option<Arc<str>>,
    counter: Option<Counter>,
}

impl Subject {
    /// The workload that was chosen, should there be such a one, else the first that uses what a policy acts on.
    pub(crate) fn new(policy: &str, workloads: &[Workload], chosen: Option<usize>) -> Self {
        let mechanism = policy::Mechanism::of_policy(policy);
        let chosen = chosen.filter(|index| *index < workloads.len());
        let uses = |w: &Workload| w.uses.contains(&mechanism);
        let found = chosen.or_else(|| workloads.iter().position(uses));
        let workload = found.and_then(|index| workloads.get(index));
        Self {
            workload: found,
            metric: match workload {
                Some(w) if uses(w) => Arc::from(format!("throughput of {}", w.name)),
                Some(w) => Arc::from(format!(
                    "throughput of {}, which has no {mechanism}",
                    w.name
                )),
                None => Arc::from("throughput"),
            },
            reason: workload.is_none().then(|| {
                Arc::from(format!(
                    "no workload here has {mechanism}, which {policy} acts on"
                ))
            }),
            counter: counter(policy),
        }
    }
}

impl Slices {
    /// Books one sample of all workloads.
    pub(crate) fn add(&mut self, arms: &[usize], time: Duration, shares: &[Share<'_>]) {
        if self.open.arms != arms || self.open.ops.len() != shares.len() {
            self.interrupt();
            self.open = Open {
                arms: arms.to_vec(),
                time: Duration::ZERO,
                ops: vec![Some(0); shares.len()],
            };
        }
        self.open.time += time;
        let list = match self.by_arms.get_mut(arms) {
            Some(list) => list,
            None => self
                .by_arms
                .entry(arms.to_vec())
                .or_insert_with(|| shares.iter().map(|_| Arm::new()).collect()),
        };
        let whole = self.open.time >= SLICE;
        let seconds = self.open.time.as_secs_f64();
        for ((arm, share), ops) in list.iter_mut().zip(shares).zip(&mut self.open.ops) {
            latency::add(&mut arm.latency, share.latency);
            arm.summary = None;
            *ops = ops.zip(share.ops).map(|(sum, n)| sum + n);
            if whole {
                match ops.replace(0) {
                    Some(ops) => arm.rate.add(ops as f64 / seconds),
                    None => arm.rate.interrupt(),
                }
            }
        }
        if whole {
            self.open.time = Duration::ZERO;
        }
    }

    /// Books what was counted below the workloads in the same sample.
    pub(crate) fn count(&mut self, arms: &[usize], more: Counted) {
        match self.counted.get_mut(arms) {
            Some(sum) => sum.add(more),
            None => {
                self.counted.insert(arms.to_vec(), more);
            }
        }
    }

    /// What comes next does not follow directly; a slice that was begun is dropped.
    pub(crate) fn interrupt(&mut self) {
        if let Some(list) = self.by_arms.get_mut(&self.open.arms) {
            for arm in list {
                arm.rate.interrupt();
            }
        }
        self.open = Open::default();
    }

    pub(crate) fn clear(&mut self) {
        self.by_arms.clear();
        self.counted.clear();
        self.open = Open::default();
    }

    fn at(&mut self, key: &[usize], workload: usize) -> Option<&mut Arm> {
        self.by_arms.get_mut(key)?.get_mut(workload)
    }

    /// The two arms of the last switch, in the order of the policy's list.
    pub(crate) fn compare(
        &mut self,
        switch: Switch,
        arms: &[usize],
        subject: &Subject,
    ) -> Comparison {
        let (first, second) = if switch.from < switch.to {
            (switch.from, switch.to)
        } else {
            (switch.to, switch.from)
        };
        let key = |arm: usize| {
            let mut key = arms.to_vec();
            if let Some(slot) = key.get_mut(switch.policy) {
                *slot = arm;
            }
            key
        };
        let mechanism = subject.counter.map(|(name, of)| {
            let [a, b] = [first, second].map(|arm| {
                let (part, whole) = of(self.counted.get(&key(arm))?);
                (whole > 0).then(|| part as f64 / whole as f64)
            });
            sample::Mechanism { name, a, b }
        });
        let mut look = |arm: usize| {
            let key = key(arm);
            let found = subject.workload.and_then(|w| self.at(&key, w));
            let rate = found.as_ref().map_or_else(Moments::default, |a| a.rate);
            let (latency, buckets) = found.map_or_else(Default::default, |a| {
                a.summary
                    .get_or_insert_with(|| {
                        let (latency, buckets) = latency::with_buckets(&a.latency);
                        (latency, Arc::new(buckets))
                    })
                    .clone()
            });
            let shown = ArmSample {
                arm,
                slices: rate.n,
                mean: rate.mean,
                sd: rate.variance().sqrt(),
                latency,
                buckets,
            };
            (shown, rate)
        };
        let (a, rate_a) = look(first);
        let (b, rate_b) = look(second);
        let effect = effect(&rate_a, &rate_b);
        let reason = match (&subject.reason, effect) {
            (Some(reason), _) => Some(Arc::clone(reason)),
            (None, Some(_)) => None,
            (None, None) if rate_a.n < 2 || rate_b.n < 2 => {
                Some(Arc::from("each arm needs two slices of 1 s"))
            }
            (None, None) => Some(Arc::from("an arm did nothing")),
        };
        Comparison {
            policy: switch.policy,
            metric: Arc::clone(&subject.metric),
            workload: subject.workload,
            arms: [a, b],
            effect,
            reason,
            estimator: ESTIMATOR,
            mechanism,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Mechanism;
    use proptest::prelude::*;
    use std::time::Instant;

    fn moments(values: &[f64]) -> Moments {
        let mut m = Moments::default();
        for v in values {
            m.add(*v);
        }
        m
    }

    /// Straight from the definitions, in two passes.
    fn slow(a: &[f64], b: &[f64]) -> (f64, f64) {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let var = |v: &[f64]| {
            let m = mean(v);
            v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (v.len() - 1) as f64
        };
        let term = |v: &[f64]| var(v) / v.len() as f64 / mean(v).powi(2);
        let se = (term(a) + term(b)).sqrt();
        ((mean(b) / mean(a)).ln(), se)
    }

    proptest! {
        #[test]
        fn one_pass_agrees_with_two(
            a in prop::collection::vec(10.0_f64..1e6, 2..40),
            b in prop::collection::vec(10.0_f64..1e6, 2..40),
        ) {
            let got = effect(&moments(&a), &moments(&b)).unwrap();
            let (x, se) = slow(&a, &b);
            prop_assert!((got.ratio - x.exp_m1()).abs() < 1e-6 * (1.0 + got.ratio.abs()));
            // The half width on the log scale is a t value between 1.96 and 12.71 standard errors, the
            // more the fewer slices these are worth.
            let half = ((1.0 + got.hi).ln() - (1.0 + got.lo).ln()) / 2.0;
            let (na, nb) = (moments(&a), moments(&b));
            let worth = (na.effective() / na.n as f64).min(nb.effective() / nb.n as f64);
            prop_assert!(half >= 1.9599 * se - 1e-9);
            prop_assert!(half <= 12.71 * se / worth.sqrt() + 1e-9);
            prop_assert!(got.lo <= got.ratio && got.ratio <= got.hi);
        }
    }

    /// The lag-1 autocorrelation straight from its definition.
    fn lag_one(v: &[f64]) -> f64 {
        let m = v.iter().sum::<f64>() / v.len() as f64;
        let pairs = v.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum::<f64>();
        let all = v.iter().map(|x| (x - m).powi(2)).sum::<f64>();
        (pairs / (v.len() - 1) as f64) / (all / v.len() as f64)
    }

    #[test]
    fn a_known_example() {
        // Two arms of three values each: means 10 and 12, variances 1 and 4, no value like the next.
        let a = moments(&[11.0, 9.0, 10.0]);
        let b = moments(&[14.0, 10.0, 12.0]);
        let got = effect(&a, &b).unwrap();
        assert!((a.effective() - 3.0).abs() < 1e-9);
        let (ta, tb): (f64, f64) = (1.0 / 300.0, 4.0 / 432.0);
        let df = (ta + tb).powi(2) / (ta * ta / 2.0 + tb * tb / 2.0);
        let half = t_975(df) * (ta + tb).sqrt();
        assert!((got.ratio - 0.2).abs() < 1e-12);
        assert!((got.hi - (1.2 * half.exp() - 1.0)).abs() < 1e-9);
        assert!((got.lo - (1.2 * (-half).exp() - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn slices_that_follow_each_other_are_worth_fewer() {
        let ramp: Vec<f64> = (0..20).map(|i| 1e6 + f64::from(i)).collect();
        let r = lag_one(&ramp) + 1.0 / 20.0;
        let want = 20.0 * (1.0 - r) / (1.0 + r);
        assert!((moments(&ramp).effective() - want.max(1.0)).abs() < 1e-6);
        // The same values in another order are not alike.
        let mixed: Vec<f64> = (0..20).map(|i| 1e6 + f64::from(i * 7 % 20)).collect();
        assert!(moments(&mixed).effective() > 15.0);
        // Values with something between them are no neighbours.
        let mut apart = Moments::default();
        for x in &ramp {
            apart.add(*x);
            apart.interrupt();
        }
        assert!((apart.effective() - 20.0).abs() < 1e-12);
    }

    /// How often the interval holds the truth, for arms of so many values that `draw` makes.
    fn coverage(
        lens: [usize; 2],
        truth: f64,
        mut draw: impl FnMut(usize, usize) -> Vec<f64>,
    ) -> f64 {
        let rounds = 2000;
        let mut covered = 0;
        for _ in 0..rounds {
            let e = effect(&moments(&draw(0, lens[0])), &moments(&draw(1, lens[1]))).unwrap();
            if e.lo <= truth && truth <= e.hi {
                covered += 1;
            }
        }
        f64::from(covered) / f64::from(rounds)
    }

    /// Sum of twelve uniform values: near enough to a normal one.
    fn normal(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn the_interval_covers_the_truth_at_least_as_often_as_it_says() {
        let mut rng = fastrand::Rng::with_seed(11);
        let share = coverage([8, 15], 0.10, |arm, n| {
            let (mean, sd) = [(100.0, 5.0), (110.0, 9.0)][arm];
            (0..n).map(|_| mean + sd * normal(&mut rng)).collect()
        });
        assert!((0.94..=0.99).contains(&share), "covered {share}");
    }

    #[test]
    fn slices_that_resemble_their_neighbours_promise_no_more() {
        // Each value keeps 0.6 of the deviation before it. Taken as independent, 30 such values cover the
        // truth two times in three.
        let mut rng = fastrand::Rng::with_seed(12);
        let share = coverage([30, 30], 0.0, |_, n| {
            let mut x = 5.0 * normal(&mut rng);
            (0..n)
                .map(|_| {
                    x = 0.6 * x + 0.8 * 5.0 * normal(&mut rng);
                    100.0 + x
                })
                .collect()
        });
        assert!((0.90..=0.99).contains(&share), "covered {share}");
    }

    #[test]
    fn nothing_is_said_too_early() {
        assert_eq!(effect(&moments(&[1.0]), &moments(&[1.0, 2.0])), None);
        assert_eq!(effect(&moments(&[0.0, 0.0]), &moments(&[1.0, 2.0])), None);
        let same = effect(&moments(&[5.0, 5.0]), &moments(&[5.0, 5.0])).unwrap();
        assert_eq!((same.lo, same.hi), (0.0, 0.0));
    }

    fn workload(name: &str, uses: &[Mechanism]) -> Workload {
        let mut w = Workload::new(name, "", crate::Unit::Io, 1, Duration::ZERO, None);
        w.uses = uses.to_vec();
        w
    }

    fn subject() -> Subject {
        Subject::new(
            "flag-set",
            &[workload("w", &[Mechanism::BufferHeads])],
            None,
        )
    }

    #[test]
    fn only_slices_that_differ_in_the_one_switch_are_compared() {
        let mut slices = Slices::default();
        let hist = latency::new_hist();
        for (arms, factor) in [([0, 0], 1), ([1, 0], 2), ([1, 1], 50)] {
            for ops in [100, 101] {
                let latency = &hist;
                let share = Share {
                    ops: Some(ops * factor),
                    latency,
                };
                slices.add(&arms, SLICE, &[share]);
            }
        }
        let switch = Switch {
            policy: 0,
            from: 1,
            to: 0,
            at: Instant::now(),
        };
        let shown = slices.compare(switch, &[0, 0], &subject());
        assert_eq!(
            shown.arms.each_ref().map(|a| (a.arm, a.slices)),
            [(0, 2), (1, 2)]
        );
        assert!((shown.effect.unwrap().ratio - 1.0).abs() < 1e-9);
        assert_eq!(shown.reason, None);
        let shown = slices.compare(switch, &[0, 1], &subject());
        assert_eq!(shown.arms.each_ref().map(|a| a.slices), [0, 2]);
        assert_eq!(shown.effect, None);
        assert!(shown.reason.unwrap().contains("two slices"));
    }

    #[test]
    fn a_slice_is_a_second_without_interruption() {
        let mut slices = Slices::default();
        let hist = latency::new_hist();
        let tenth = Duration::from_millis(100);
        let mut add = |arms: &[usize], n: usize, stop: bool| {
            for _ in 0..n {
                let latency = &hist;
                slices.add(
                    arms,
                    tenth,
                    &[Share {
                        ops: Some(5),
                        latency,
                    }],
                );
            }
            if stop {
                slices.interrupt();
            }
            slices.at(&[0], 0).map(|a| (a.rate.n, a.rate.mean))
        };
        assert_eq!(add(&[0], 9, true), Some((0, 0.0)));
        assert_eq!(add(&[0], 9, false), Some((0, 0.0)));
        assert_eq!(add(&[0], 1, false), Some((1, 50.0)));
        // The other arm breaks a slice of this one off.
        assert_eq!(add(&[0], 6, false).unwrap().0, 1);
        assert_eq!(add(&[1], 1, false).unwrap().0, 1);
        assert_eq!(add(&[0], 6, false).unwrap().0, 1);
    }

    #[test]
    fn a_policy_is_judged_by_a_workload_that_it_acts_on() {
        use Mechanism::{BlockIo, BufferHeads, ExtentCache};
        let io = workload("randwrite", &[ExtentCache, BlockIo]);
        let files = workload("creat-clo", &[BufferHeads, ExtentCache]);
        let both = [io, files];
        for (policy, index) in [
            ("flag-set", 1),
            ("es-counters", 0),
            ("extent-cache", 0),
            ("batch", 0),
            ("faults", 0),
        ] {
            let subject = Subject::new(policy, &both, None);
            assert_eq!(subject.workload, Some(index), "{policy}");
            assert!(subject.metric.ends_with(&*both[index].name));
            assert_eq!(subject.reason, None);
        }
        // Somebody's choice goes first, and says what it cannot show; one that there is none of counts for nothing.
        let chosen = |index| Subject::new("flag-set", &both, Some(index));
        assert_eq!(chosen(1).workload, Some(1));
        assert_eq!(&*chosen(1).metric, "throughput of creat-clo");
        assert_eq!(chosen(0).workload, Some(0));
        assert_eq!(
            &*chosen(0).metric,
            "throughput of randwrite, which has no buffer heads"
        );
        assert_eq!(chosen(2).workload, Some(1));
        let subject = Subject::new("flag-set", &both[..1], None);
        assert_eq!(subject.workload, None);
        assert_eq!(
            subject.reason.as_deref(),
            Some("no workload here has buffer heads, which flag-set acts on")
        );
    }
}
