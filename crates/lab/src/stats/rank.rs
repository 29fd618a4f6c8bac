//! Tests by ranks, and the correction for several of them.

use super::{median, normal};

/// Largest number of pairs whose distribution is counted out exactly.
const EXACT: usize = 25;

/// Mean ranks of the values, ties sharing theirs, and the sum of t^3 - t over the ties.
fn ranks(values: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
    order.sort_by(|a, b| at(*a).total_cmp(&at(*b)));
    let mut ranks = vec![0.0; values.len()];
    let mut ties = 0.0;
    let mut rest = order.as_slice();
    let mut before = 0;
    while let Some(first) = rest.first() {
        let same = rest
            .iter()
            .take_while(|i| at(**i).total_cmp(&at(*first)).is_eq())
            .count();
        let rank = before as f64 + f64::midpoint(same as f64, 1.0);
        let (now, later) = rest.split_at(same);
        for i in now {
            if let Some(slot) = ranks.get_mut(*i) {
                *slot = rank;
            }
        }
        ties += (same as f64).powi(3) - same as f64;
        before += same;
        rest = later;
    }
    (ranks, ties)
}

/// Two-sided p of the Wilcoxon signed-rank test that `x` is symmetric about 0.
///
/// Zeros are dropped. Up to 25 values without ties the distribution is exact, else normal with the corrections
/// for ties and continuity. 1 where nothing is left.
pub(crate) fn signed_rank(x: &[f64]) -> f64 {
    let kept: Vec<f64> = x.iter().copied().filter(|x| *x != 0.0).collect();
    let n = kept.len();
    if n == 0 {
        return 1.0;
    }
    let sizes: Vec<f64> = kept.iter().map(|x| x.abs()).collect();
    let (ranks, ties) = ranks(&sizes);
    let plus: f64 = kept
        .iter()
        .zip(&ranks)
        .filter(|(x, _)| **x > 0.0)
        .map(|(_, r)| r)
        .sum();
    let all = (n * (n + 1)) as f64 / 2.0;
    let small = plus.min(all - plus);
    if n <= EXACT && ties == 0.0 {
        return exact_signed(n, small);
    }
    let variance = (n * (n + 1) * (2 * n + 1)) as f64 / 24.0 - ties / 48.0;
    two_sided((all / 2.0 - small - 0.5).max(0.0), variance)
}

/// Share of the 2^n signs whose rank sum is at most `small`, both sides.
fn exact_signed(n: usize, small: f64) -> f64 {
    let most = n * (n + 1) / 2;
    let mut ways = vec![0.0_f64; most + 1];
    if let Some(first) = ways.first_mut() {
        *first = 1.0;
    }
    for rank in 1..=n {
        for sum in (rank..=most).rev() {
            let add = ways.get(sum - rank).copied().unwrap_or(0.0);
            if let Some(slot) = ways.get_mut(sum) {
                *slot += add;
            }
        }
    }
    let below: f64 = ways
        .iter()
        .enumerate()
        .take_while(|(sum, _)| *sum as f64 <= small)
        .map(|(_, ways)| ways)
        .sum();
    (2.0 * below / 2.0_f64.powi(i32::try_from(n).unwrap_or(i32::MAX))).min(1.0)
}

/// Two-sided p of the Mann-Whitney test that neither sample tends to be larger. Exact up to 20 values each
/// without ties.
pub(crate) fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (a.len(), b.len());
    if na == 0 || nb == 0 {
        return 1.0;
    }
    let both: Vec<f64> = a.iter().chain(b).copied().collect();
    let (ranks, ties) = ranks(&both);
    let sum: f64 = ranks.iter().take(na).sum();
    let product = (na * nb) as f64;
    let u = sum - (na * (na + 1)) as f64 / 2.0;
    let small = u.min(product - u);
    if na <= 20 && nb <= 20 && ties == 0.0 {
        return exact_u(na, nb, small);
    }
    let n = (na + nb) as f64;
    let variance = product / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    two_sided((product / 2.0 - small - 0.5).max(0.0), variance)
}

/// Share of the orders of two samples in which at most `small` pairs are inverted, both sides.
fn exact_u(na: usize, nb: usize, small: f64) -> f64 {
    // ways[i] after j steps: orders of i of the first and j of the second with each number of inversions. One
    // more of the first, put last, adds j; one more of the second adds none.
    let most = na * nb;
    let mut ways = vec![vec![0.0_f64; most + 1]; na + 1];
    for row in &mut ways {
        if let Some(first) = row.first_mut() {
            *first = 1.0;
        }
    }
    for j in 1..=nb {
        for i in 1..=na {
            let (done, todo) = ways.split_at_mut(i);
            let (Some(above), Some(row)) = (done.last(), todo.first_mut()) else {
                continue;
            };
            for (u, slot) in row.iter_mut().enumerate().skip(j) {
                *slot += above.get(u - j).copied().unwrap_or(0.0);
            }
        }
    }
    let row = ways.last().map(Vec::as_slice).unwrap_or_default();
    let all: f64 = row.iter().sum();
    let below: f64 = row
        .iter()
        .enumerate()
        .take_while(|(u, _)| *u as f64 <= small)
        .map(|(_, ways)| ways)
        .sum();
    (2.0 * below / all).min(1.0)
}

fn two_sided(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    (2.0 * (1.0 - normal::cdf(distance / variance.sqrt()))).min(1.0)
}

/// Hodges-Lehmann: the median of all means of two, each value with itself included.
pub(crate) fn hodges_lehmann(x: &[f64]) -> f64 {
    let mut means = Vec::with_capacity(x.len() * (x.len() + 1) / 2);
    for (i, a) in x.iter().enumerate() {
        for b in x.iter().skip(i) {
            means.push(f64::midpoint(*a, *b));
        }
    }
    median(&means)
}

/// Holm's correction: the p of each test when all of them are looked at.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let at = |i: usize| p.get(i).copied().unwrap_or(1.0);
    order.sort_by(|a, b| at(*a).total_cmp(&at(*b)));
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (k, i) in order.iter().enumerate() {
        largest = largest.max(at(*i) * (p.len() - k) as f64);
        if let Some(slot) = corrected.get_mut(*i) {
            *slot = largest.min(1.0);
        }
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From the definition: every assignment of signs.
    fn slow_signed(x: &[f64]) -> f64 {
        let sizes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
        let (ranks, _) = ranks(&sizes);
        let n = x.len();
        let all: f64 = ranks.iter().sum();
        let sum_of = |signs: u32| -> f64 {
            let on = (0..n).filter(|i| signs >> i & 1 == 1);
            on.map(|i| ranks[i]).sum()
        };
        let seen: f64 = x
            .iter()
            .zip(&ranks)
            .filter(|(x, _)| **x > 0.0)
            .map(|(_, r)| r)
            .sum();
        let small = seen.min(all - seen);
        let hits = (0..1_u32 << n)
            .filter(|s| sum_of(*s).min(all - sum_of(*s)) <= small + 1e-9)
            .count();
        (hits as f64 / f64::from(1_u32 << n)).min(1.0)
    }

    /// From the definition: every choice of places for the first sample.
    fn slow_u(a: &[f64], b: &[f64]) -> f64 {
        let (na, n) = (a.len(), a.len() + b.len());
        let both: Vec<f64> = a.iter().chain(b).copied().collect();
        let (ranks, _) = ranks(&both);
        let u_of = |pick: &dyn Fn(usize) -> bool| -> f64 {
            let sum: f64 = (0..n).filter(|i| pick(*i)).map(|i| ranks[i]).sum();
            let u = sum - (na * (na + 1)) as f64 / 2.0;
            u.min((na * b.len()) as f64 - u)
        };
        let seen = u_of(&|i| i < na);
        let sets = (0..1_u32 << n).filter(|s| s.count_ones() as usize == na);
        let (mut hits, mut all) = (0, 0);
        for set in sets {
            all += 1;
            hits += u32::from(u_of(&|i| set >> i & 1 == 1) <= seen + 1e-9);
        }
        f64::from(hits) / f64::from(all)
    }

    fn distinct(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..n).map(|_| rng.f64() - 0.45).collect()
    }

    proptest! {
        #[test]
        fn exact_p_values_equal_the_counted_ones(seed: u64, n in 1_usize..11) {
            let x = distinct(seed, n);
            prop_assert!((signed_rank(&x) - slow_signed(&x)).abs() < 1e-12);
            let (a, b) = x.split_at(n / 2);
            if !a.is_empty() {
                prop_assert!((mann_whitney(a, b) - slow_u(a, b)).abs() < 1e-12);
            }
        }
    }

    #[test]
    #[expect(clippy::approx_constant, reason = "a measured value, not pi")]
    fn signed_ranks_by_a_worked_example() {
        // Differences of the nine pairs of Hollander and Wolfe's depression data: V = 40, two-sided p 0.0391.
        let a = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let b = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.140, 1.29];
        let d: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        assert!(
            (signed_rank(&d) - 0.0391).abs() < 1e-4,
            "{}",
            signed_rank(&d)
        );
        assert!((hodges_lehmann(&d) - 0.46).abs() < 1e-9);
    }

    #[test]
    fn two_samples_and_several_tests_by_worked_examples() {
        // Permeability data of the same book: W = 35 for 10 and 5 values, two-sided p 0.2544.
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        assert!((mann_whitney(&x, &y) - 0.2544).abs() < 1e-4);
        // Holm's own kind of table: smallest times 4, next times 3, then monotone.
        let p = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in p.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{p:?}");
        }
    }

    #[test]
    fn ties_zeros_and_nothing() {
        assert!((signed_rank(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
        assert!((signed_rank(&[]) - 1.0).abs() < 1e-12);
        let tied = [1.0, 1.0, 1.0, -1.0, 2.0, 2.0];
        let p = signed_rank(&tied);
        assert!(p > 0.05 && p < 0.5, "{p}");
        let p = mann_whitney(&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 3.0, 4.0]);
        assert!(p > 0.1 && p <= 1.0, "{p}");
        assert!((mann_whitney(&[], &[1.0]) - 1.0).abs() < 1e-12);
        let many: Vec<f64> = (1..=40).map(f64::from).collect();
        assert!(signed_rank(&many) < 1e-6);
    }
}
