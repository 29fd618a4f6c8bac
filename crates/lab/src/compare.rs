//! The arms of a policy side by side, from slices of one run.
//!
//! Every sample outside the settle window is one slice, booked under the combination of arms that was
//! in force. Two arms of a policy are compared where all other policies stand as they stand now, so
//! that nothing but the one switch differs. The arms of such a comparison were measured one after the
//! other, not interleaved, so the interval is that of two independent samples (Welch) and is labelled
//! as confounded with time.

use std::collections::HashMap;
use std::sync::Arc;

use crate::latency::{self, Hist};
use crate::policy::Switch;
use crate::sample::{ArmSample, Comparison, Effect, Latency};
use crate::student::t_975;

/// How the interval is made, as every view prints it.
pub(crate) const ESTIMATOR: &str =
    "log ratio of means, delta method, Welch; unpaired, time-confounded";

/// Mean and spread of a rate over slices, summed up one by one (Welford).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    pub(crate) n: u64,
    pub(crate) mean: f64,
    m2: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, x: f64) {
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
}

/// Second mean over first, minus one, with the 95 % interval.
///
/// x = ln(b / a) has, by the delta method, the variance va / (na a^2) + vb / (nb b^2); the degrees of
/// freedom are Welch's for the sum of the two terms. `None` below two slices an arm, or when a mean is
/// not above zero and the logarithm does not exist.
pub(crate) fn effect(a: &Moments, b: &Moments) -> Option<Effect> {
    if a.n < 2 || b.n < 2 || a.mean <= 0.0 || b.mean <= 0.0 {
        return None;
    }
    let term = |m: &Moments| m.variance() / (m.n as f64 * m.mean * m.mean);
    let (ta, tb) = (term(a), term(b));
    let x = (b.mean / a.mean).ln();
    let half = if ta + tb > 0.0 {
        let df = (ta + tb).powi(2) / (ta * ta / (a.n - 1) as f64 + tb * tb / (b.n - 1) as f64);
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

/// What was measured while one combination of arms was in force.
struct Arm {
    rate: Moments,
    latency: Hist,
    summary: Latency,
}

/// The slices of a run, by combination of arms.
#[derive(Default)]
pub(crate) struct Slices {
    by_arms: HashMap<Vec<usize>, Arm>,
}

impl Slices {
    /// Books one slice.
    pub(crate) fn add(&mut self, arms: &[usize], rate: f64, latency: &Hist) {
        let arm = match self.by_arms.get_mut(arms) {
            Some(arm) => arm,
            None => self.by_arms.entry(arms.to_vec()).or_insert_with(|| Arm {
                rate: Moments::default(),
                latency: latency::new_hist(),
                summary: Latency::default(),
            }),
        };
        arm.rate.add(rate);
        latency::add(&mut arm.latency, latency);
        arm.summary = latency::summary(&arm.latency);
    }

    pub(crate) fn clear(&mut self) {
        self.by_arms.clear();
    }

    /// The two arms of the last switch, in the order of the policy's list.
    pub(crate) fn compare(&self, switch: Switch, arms: &[usize], metric: &Arc<str>) -> Comparison {
        let (first, second) = if switch.from < switch.to {
            (switch.from, switch.to)
        } else {
            (switch.to, switch.from)
        };
        let at = |arm: usize| {
            let mut key = arms.to_vec();
            if let Some(slot) = key.get_mut(switch.policy) {
                *slot = arm;
            }
            self.by_arms.get(&key)
        };
        let shown = |arm: usize| match at(arm) {
            Some(a) => ArmSample {
                arm,
                slices: a.rate.n,
                mean: a.rate.mean,
                sd: a.rate.variance().sqrt(),
                latency: a.summary,
            },
            None => ArmSample {
                arm,
                slices: 0,
                mean: 0.0,
                sd: 0.0,
                latency: Latency::default(),
            },
        };
        let effect = match (at(first), at(second)) {
            (Some(a), Some(b)) => effect(&a.rate, &b.rate),
            _ => None,
        };
        Comparison {
            policy: switch.policy,
            metric: Arc::clone(metric),
            arms: [shown(first), shown(second)],
            effect,
            estimator: ESTIMATOR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            // The half width on the log scale is a t value between 1.96 and 12.71 standard errors.
            let half = ((1.0 + got.hi).ln() - (1.0 + got.lo).ln()) / 2.0;
            prop_assert!(half >= 1.9599 * se - 1e-9 && half <= 12.71 * se + 1e-9);
            prop_assert!(got.lo <= got.ratio && got.ratio <= got.hi);
        }
    }

    #[test]
    fn a_known_example() {
        // Two arms of three values each: means 10 and 12, variances 1 and 4.
        let got = effect(&moments(&[9.0, 10.0, 11.0]), &moments(&[10.0, 12.0, 14.0])).unwrap();
        let (ta, tb): (f64, f64) = (1.0 / 300.0, 4.0 / 432.0);
        let df = (ta + tb).powi(2) / (ta * ta / 2.0 + tb * tb / 2.0);
        let half = t_975(df) * (ta + tb).sqrt();
        assert!((got.ratio - 0.2).abs() < 1e-12);
        assert!((got.hi - (1.2 * half.exp() - 1.0)).abs() < 1e-9);
        assert!((got.lo - (1.2 * (-half).exp() - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        let mut rng = fastrand::Rng::with_seed(11);
        // Sum of twelve uniform values: near enough to a normal one.
        let mut normal =
            |mean: f64, sd: f64| mean + sd * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0);
        let mut covered = 0;
        let rounds = 2000;
        for _ in 0..rounds {
            let a: Vec<_> = (0..8).map(|_| normal(100.0, 5.0)).collect();
            let b: Vec<_> = (0..15).map(|_| normal(110.0, 9.0)).collect();
            let e = effect(&moments(&a), &moments(&b)).unwrap();
            if e.lo <= 0.10 && 0.10 <= e.hi {
                covered += 1;
            }
        }
        let share = f64::from(covered) / f64::from(rounds);
        assert!((0.93..=0.97).contains(&share), "covered {share}");
    }

    #[test]
    fn nothing_is_said_too_early() {
        assert_eq!(effect(&moments(&[1.0]), &moments(&[1.0, 2.0])), None);
        assert_eq!(effect(&moments(&[0.0, 0.0]), &moments(&[1.0, 2.0])), None);
        let same = effect(&moments(&[5.0, 5.0]), &moments(&[5.0, 5.0])).unwrap();
        assert_eq!((same.lo, same.hi), (0.0, 0.0));
    }

    #[test]
    fn only_slices_that_differ_in_the_one_switch_are_compared() {
        let mut slices = Slices::default();
        let hist = latency::new_hist();
        for rate in [100.0, 101.0] {
            slices.add(&[0, 0], rate, &hist);
            slices.add(&[1, 0], rate * 2.0, &hist);
            slices.add(&[1, 1], rate * 50.0, &hist);
        }
        let switch = Switch {
            policy: 0,
            from: 1,
            to: 0,
            at: Instant::now(),
        };
        let shown = slices.compare(switch, &[0, 0], &Arc::from("iops"));
        assert_eq!(
            shown.arms.each_ref().map(|a| (a.arm, a.slices)),
            [(0, 2), (1, 2)]
        );
        assert!((shown.effect.unwrap().ratio - 1.0).abs() < 1e-9);
        let shown = slices.compare(switch, &[0, 1], &Arc::from("iops"));
        assert_eq!(shown.arms.each_ref().map(|a| a.slices), [0, 2]);
        assert_eq!(shown.effect, None);
    }
}
