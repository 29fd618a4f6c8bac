//! The interleaved comparison of a live lab.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on may panic"
)]

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use cairn_lab::{AutoPlan, Lab, Options, Registry, Sample, Scenario};

/// For a condition that holds within a second or two on a quiet machine.
const DEADLINE: Duration = Duration::from_mins(1);

fn scenario() -> Scenario {
    let mut scenario = Scenario::preset("creat-clo").unwrap();
    "ram(40m)".clone_into(&mut scenario.stack);
    scenario
}

fn lab() -> Lab {
    let options = Options {
        interval: Duration::from_millis(20),
        ..Options::default()
    };
    Lab::start(scenario(), &Registry::default(), options).unwrap()
}

fn wait_for(
    samples: &Receiver<Arc<Sample>>,
    what: &str,
    mut holds: impl FnMut(&Sample) -> bool,
) -> Arc<Sample> {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let sample = samples.recv_timeout(left);
        let sample = sample.unwrap_or_else(|_| panic!("no {what}"));
        if holds(&sample) {
            return sample;
        }
    }
}

fn plan(lab: &Lab) -> AutoPlan {
    AutoPlan {
        pairs: 3,
        slice: Duration::from_millis(60),
        ..AutoPlan::new(lab.policies().index_of("flag-set").unwrap(), [0, 1])
    }
}

#[test]
fn it_switches_by_itself_ends_and_its_figures_are_those_of_its_arms() {
    let lab = lab();
    let samples = lab.take_samples().unwrap();
    let plan = plan(&lab);
    lab.start_auto(plan).unwrap();
    let mut arms = Vec::new();
    let done = wait_for(&samples, "end of the comparison", |s| {
        if s.auto.is_some() && arms.last() != s.arms.first() {
            arms.extend(s.arms.first());
        }
        s.auto.is_some_and(|auto| !auto.running)
    });
    let auto = done.auto.unwrap();
    assert_eq!((auto.pairs, auto.wanted), (3, 3));
    // Each arm is followed by the other; a disturbed pair may begin again with its first arm.
    assert!(arms.windows(2).all(|pair| pair[0] != pair[1]), "{arms:?}");
    assert!(arms.len() >= 4, "A B, B A, A B: {arms:?}");
    let comparison = done.comparison.as_ref().unwrap();
    assert_eq!(comparison.effect, auto.rate);
    let effect = auto.rate.unwrap();
    assert!(effect.lo <= effect.ratio && effect.ratio <= effect.hi);
    assert!(comparison.estimator.contains("paired"));
    // What the policy switches was really switched: all set calls against hardly any.
    let mechanism = comparison.mechanism.unwrap();
    assert_eq!(mechanism.name, "RMWs per set call");
    assert!(mechanism.a.unwrap() > 0.99, "{mechanism:?}");
    assert!(mechanism.b.unwrap() < 0.01, "{mechanism:?}");
    // Both arms have their latencies by size.
    for arm in &comparison.arms {
        let all: u64 = arm.buckets.counts.iter().map(|n| u64::from(*n)).sum();
        assert_eq!(all, arm.latency.n);
        assert!(all > 0);
    }
    lab.finish();
}

#[test]
fn a_hand_on_the_policy_ends_it_and_so_does_whoever_began_it() {
    let lab = lab();
    let samples = lab.take_samples().unwrap();
    let endless = AutoPlan {
        pairs: 100_000,
        ..plan(&lab)
    };
    lab.start_auto(endless).unwrap();
    wait_for(&samples, "beginning", |s| s.auto.is_some());
    lab.stop_auto();
    wait_for(&samples, "end", |s| s.auto.is_none());
    lab.start_auto(endless).unwrap();
    let on = |s: &Sample| s.auto.is_some_and(|auto| auto.running);
    wait_for(&samples, "beginning", on);
    // It switches back and forth itself, so one hand may meet it just as it switches to the same arm.
    let policies = lab.policies();
    wait_for(&samples, "end by hand", |s| {
        let arm = policies.arm(endless.policy);
        policies.set(endless.policy, 1 - arm).unwrap();
        s.auto.is_none()
    });
    lab.finish();
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let lab = lab();
    let plan = plan(&lab);
    let refused = |plan| lab.start_auto(plan).unwrap_err().to_string();
    let same = AutoPlan {
        arms: [1, 1],
        ..plan
    };
    assert!(refused(same).contains("two different"));
    let none = AutoPlan {
        arms: [0, 2],
        ..plan
    };
    assert!(refused(none).contains("it has 2"));
    let one = AutoPlan { pairs: 1, ..plan };
    assert!(refused(one).contains("two pairs"));
    assert!(lab.start_auto(AutoPlan { policy: 99, ..plan }).is_err());
    lab.finish();
    // A policy that no workload here has anything to do with.
    let randwrite = Scenario::preset("randwrite").unwrap();
    let lab = Lab::start(randwrite, &Registry::default(), Options::default()).unwrap();
    let said = lab.start_auto(plan).unwrap_err().to_string();
    assert!(said.contains("buffer heads"), "{said}");
    lab.finish();
}
