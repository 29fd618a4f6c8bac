//! The order of the runs, fixed before the first one.

use fastrand::Rng;
use serde::Serialize;

use crate::engine::generate::mix;

/// Which of the two arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Side {
    A,
    B,
}

/// Two runs, one of each arm, with one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Pair {
    /// Number in the plan, from 0.
    pub(crate) number: usize,
    /// Seed of both runs, so that both do the same operations.
    pub(crate) seed: u64,
    /// Arm that goes first.
    pub(crate) first: Side,
}

impl Pair {
    pub(crate) fn order(&self) -> [Side; 2] {
        match self.first {
            Side::A => [Side::A, Side::B],
            Side::B => [Side::B, Side::A],
        }
    }
}

/// Pairs in blocks of two, each `AB BA` or `BA AB` by a seeded coin: what drifts evenly over a block favours
/// neither arm.
pub(crate) fn pairs(count: usize, seed: u64) -> Vec<Pair> {
    let mut coin = Rng::with_seed(mix(seed, 0x000a_bba0, 0));
    let mut first = Side::A;
    (0..count)
        .map(|number| {
            // A coin opens a block, and its second pair goes the other way round.
            let a_first = if number.is_multiple_of(2) {
                coin.bool()
            } else {
                first == Side::B
            };
            first = if a_first { Side::A } else { Side::B };
            Pair {
                number,
                seed: mix(seed, number as u64, 1),
                first,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_each_arm_first_once() {
        let plan = pairs(20, 7);
        for block in plan.chunks(2) {
            assert_ne!(block[0].first, block[1].first);
        }
        let heads = plan
            .iter()
            .step_by(2)
            .filter(|p| p.first == Side::A)
            .count();
        assert!((1..10).contains(&heads), "the coin has two sides: {heads}");
        assert_eq!(plan, pairs(20, 7));
        assert_ne!(plan, pairs(20, 8));
        let mut seeds: Vec<u64> = plan.iter().map(|p| p.seed).collect();
        seeds.dedup();
        assert_eq!(seeds.len(), 20);
        assert_eq!(plan[3].order()[0], plan[3].first);
    }
}
