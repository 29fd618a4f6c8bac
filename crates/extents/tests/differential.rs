//! The map, the map of rules and the model of blocks agree on everything, whatever is done.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::cast_possible_truncation, reason = "few blocks")]

#[path = "support/blocks.rs"]
mod blocks;
#[path = "support/ops.rs"]
mod ops;

use ops::{Op, Trio, op, rules};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

const LENGTH: usize = 1000;

fn check(rules: cairn_extents::Rules, ops: &[Op]) {
    let mut trio = Trio::new(rules);
    for (i, op) in ops.iter().enumerate() {
        trio.run(op);
        if i % 16 == 0 {
            trio.compare();
        }
    }
    trio.compare();
}

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn short_sequences_agree(rules in rules(), ops in proptest::collection::vec(op(), 1..80)) {
        let mut trio = Trio::new(rules);
        for op in &ops {
            trio.run(op);
            trio.compare();
        }
    }
}

/// Long sequences, drawn without a tree of smaller ones, so that a million are quick.
fn long(seed: u64, operations: usize) {
    let config = Config {
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let (rules, one) = (rules(), op());
    for _ in 0..operations / LENGTH {
        let rules = rules.new_tree(&mut runner).expect("a value").current();
        let ops: Vec<Op> = (0..LENGTH)
            .map(|_| one.new_tree(&mut runner).expect("a value").current())
            .collect();
        check(rules, &ops);
    }
}

#[test]
fn half_a_million_operations_agree() {
    long(1, 500_000);
}

#[test]
fn another_half_a_million_operations_agree() {
    long(2, 500_000);
}

#[test]
#[ignore = "minutes; just soak extents"]
fn a_hundred_million_operations_agree() {
    std::thread::scope(|s| {
        for seed in [11, 12] {
            s.spawn(move || {
                for round in 0..50 {
                    long(1000 * seed + round, 1_000_000);
                }
            });
        }
    });
}
