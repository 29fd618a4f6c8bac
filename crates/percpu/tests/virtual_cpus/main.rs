//! The batched protocol on CPUs of our own making, with every migration and preemption written in a script.
//!
//! A section here is what the real one is to the protocol: read the CPU id, load, compute, commit, and start
//! again if anything happened in between. The scripts are proptest's; the oracle knows what was added, and how
//! far the approximate sum may be off at each step. Two mutants must be found out: sections that do not start
//! again, and a protocol that folds after it has committed, when it may be on another CPU.
#![cfg(not(loom))]
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::inline_always,
    reason = "a file of the crate, compiled a second time for the simulation, which uses a part of it"
)]

#[path = "../../src/protocol/batch.rs"]
mod batch;
mod machine;

/// Atomics that let the script run between any two changes of a shared word.
mod sync {
    use std::sync::atomic::AtomicU64 as Word;
    pub(crate) use std::sync::atomic::Ordering;

    use crate::machine;

    #[derive(Default)]
    pub(crate) struct AtomicU64(Word);

    impl AtomicU64 {
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        pub(crate) fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
        }

        pub(crate) fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            machine::interrupted();
            self.0.fetch_add(n, order)
        }

        pub(crate) fn fetch_max(&self, n: u64, order: Ordering) -> u64 {
            self.0.fetch_max(n, order)
        }

        pub(crate) fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            yes: Ordering,
            no: Ordering,
        ) -> Result<u64, u64> {
            self.0.compare_exchange(old, new, yes, no)
        }
    }
}

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use crate::machine::{CPUS, Event, Kind, SLOTS, run};

/// One scripted run: the batch, what the first thread adds, and what happens at each point.
#[derive(Debug, Clone)]
struct Script {
    batch: u32,
    adds: Vec<i64>,
    events: Vec<Event>,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Nothing),
        2 => (0..CPUS).prop_map(Event::Migrate),
        3 => (0..CPUS, -12_i64..=12).prop_map(|(back_on, n)| Event::Preempt { n, back_on }),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    (1_u32..=9, vec(-12_i64..=12, 1..40), vec(event(), 0..200)).prop_map(|(batch, adds, events)| {
        Script {
            batch,
            adds,
            events,
        }
    })
}

/// What the proptest runner makes of scripts under this kind of machine.
fn verdict(kind: Kind) -> Result<(), TestError<Script>> {
    let config = Config {
        cases: 20_000,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    TestRunner::new(config).run(&script(), |script| {
        run(kind, script.batch, &script.adds, script.events).map_err(TestCaseError::fail)
    })
}

#[test]
fn the_protocol_holds_on_every_script() {
    const { assert!(SLOTS < CPUS, "a CPU without a slot is part of the test") };
    verdict(Kind::Right).unwrap();
}

#[test]
fn sections_that_do_not_start_again_are_found_out() {
    let failed = verdict(Kind::NoRestart);
    assert!(matches!(failed, Err(TestError::Fail(..))), "{failed:?}");
}

#[test]
fn a_fold_after_the_commit_is_found_out() {
    let failed = verdict(Kind::FoldAfterCommit);
    assert!(matches!(failed, Err(TestError::Fail(..))), "{failed:?}");
}

/// The fold after the commit, spelled out: commit on one CPU, be moved, publish the other's residue.
#[test]
fn the_shortest_script_of_the_fold_after_the_commit() {
    // Per add: two points in the section and one after it. The second add fills the slot of CPU 0.
    let mut events = vec![Event::Nothing; 5];
    events.push(Event::Migrate(1));
    run(Kind::Right, 2, &[1, 1], events.clone()).unwrap();
    let error = run(Kind::FoldAfterCommit, 2, &[1, 1], events).unwrap_err();
    assert!(error.contains("cpu 0 holds 2"), "{error}");
}
