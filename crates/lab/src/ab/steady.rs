//! Where a run became steady, and whether it stayed so.

/// Rounds that the rule for a steady state looks at.
const ROUNDS: usize = 5;

/// Share of the windows that may be dropped at most.
const MOST: f64 = 0.5;

/// How many windows from the start belong to a phase of their own.
///
/// The split that minimises the summed squared distance to two means is taken if it explains more than a
/// split of noise would: for n windows of one level the best of all splits takes away about
/// 2 ln(n) / n of the sum, so that four times as much is asked for.
pub(crate) fn transient(rates: &[f64]) -> usize {
    let n = rates.len();
    if n < 4 {
        return 0;
    }
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    let whole = squares(rates);
    if whole <= 0.0 {
        return 0;
    }
    let best = (1..n)
        .take_while(|k| *k as f64 <= MOST * n as f64)
        .map(|k| {
            let (head, tail) = rates.split_at(k);
            (k, squares(head) + squares(tail))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let asked = (8.0 * (n as f64).ln() / n as f64).min(0.9);
    match best {
        Some((k, left)) if whole - left > asked * whole => k,
        _ => 0,
    }
}

/// Why these windows are refused: they are enough to tell, neither rule calls them steady, and they went one way by
/// more than their noise explains. Noise alone is no reason: that is what pairs and the interval are for.
pub(crate) fn refusal(rates: &[f64]) -> Option<String> {
    if rates.len() < ROUNDS || steady(rates) || flat(rates) || !drifts(rates) {
        return None;
    }
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    Some(format!(
        "never steady: its windows lie between {least:.0} and {most:.0} a second"
    ))
}

/// Whether the last five rounds of the windows stayed together: the range within 20 % of their mean, and a
/// fitted line within 10 %. This is the form of the rule that the SNIA's test specification uses.
pub(crate) fn steady(rates: &[f64]) -> bool {
    if rates.len() < ROUNDS {
        return false;
    }
    let size = rates.len() / ROUNDS;
    let rounds: Vec<f64> = rates
        .rchunks(size)
        .take(ROUNDS)
        .map(|part| part.iter().sum::<f64>() / part.len() as f64)
        .collect();
    let n = rounds.len() as f64;
    let mean = rounds.iter().sum::<f64>() / n;
    let range = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = (n - 1.0) / 2.0;
    let (xy, xx) = rounds
        .iter()
        .enumerate()
        .map(|(i, y)| (i as f64 - middle, y - mean))
        .fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    let excursion = (xy / xx * (n - 1.0)).abs();
    range <= 0.2 * mean && excursion <= 0.1 * mean
}

/// Whether the line fitted through the windows is nearly flat: its slope, from one window to the next, below
/// 0.3 % of their mean. This is the rule of fio's `steadystate=iops_slope:0.3%`.
pub(crate) fn flat(rates: &[f64]) -> bool {
    const LIMIT: f64 = 0.003;
    if rates.len() < 2 {
        return false;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let [xy, xx, _] = moments(rates);
    (xy / xx).abs() < LIMIT * mean
}

/// Whether the slope of the line fitted through the windows is more than three of its standard errors away from none.
fn drifts(rates: &[f64]) -> bool {
    const ERRORS: f64 = 3.0;
    let [xy, xx, yy] = moments(rates);
    let left = yy - xy * xy / xx;
    let free = (rates.len() as f64 - 2.0).max(1.0);
    xy * xy / xx * free > ERRORS * ERRORS * left
}

/// Sums over the windows, each less its mean: number times rate, number squared, rate squared.
fn moments(rates: &[f64]) -> [f64; 3] {
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    rates
        .iter()
        .enumerate()
        .map(|(i, y)| (i as f64 - middle, y - mean))
        .fold([0.0; 3], |[xy, xx, yy], (x, y)| {
            [xy + x * y, xx + x * x, yy + y * y]
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(rng: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn a_slow_start_is_found_and_noise_is_not() {
        let mut rng = fastrand::Rng::with_seed(4);
        let mut false_alarms = 0;
        for _ in 0..500 {
            let level: Vec<f64> = (0..15).map(|_| 100.0 + 2.0 * noise(&mut rng)).collect();
            false_alarms += u32::from(transient(&level) > 0);
            let mut slow = level.clone();
            for x in slow.iter_mut().take(4) {
                *x -= 60.0;
            }
            assert_eq!(transient(&slow), 4);
        }
        assert!(false_alarms <= 5, "{false_alarms} of 500");
        assert_eq!(transient(&[1.0, 1.0, 1.0, 1.0, 1.0]), 0);
        assert_eq!(transient(&[1.0, 9.0]), 0);
    }

    #[test]
    fn a_run_is_refused_only_if_it_was_long_enough_to_tell() {
        assert_eq!(refusal(&[100.0, 900.0]), None);
        assert_eq!(refusal(&[100.0, 101.0, 99.0, 100.0, 101.0]), None);
        let why = refusal(&[100.0, 111.0, 119.0, 130.0, 141.0]).unwrap();
        assert_eq!(
            why,
            "never steady: its windows lie between 100 and 141 a second"
        );
        // Noise without a direction.
        let mut rng = fastrand::Rng::with_seed(5);
        let refused = (0..500)
            .map(|_| (0..15).map(|_| 100.0 + 15.0 * noise(&mut rng)).collect())
            .filter(|level: &Vec<f64>| refusal(level).is_some())
            .count();
        assert!(refused <= 15, "{refused} of 500");
    }

    #[test]
    fn a_line_is_flat_below_three_thousandths_a_window() {
        let line =
            |step: f64| -> Vec<f64> { (0..15).map(|i| 100.0 + step * f64::from(i)).collect() };
        assert!(flat(&line(0.0)) && flat(&line(0.29)) && flat(&line(-0.29)));
        assert!(!flat(&line(0.4)) && !flat(&line(-0.4)));
        assert!(!flat(&[100.0]) && !flat(&[0.0; 5]));
    }

    #[test]
    fn a_slope_or_a_wide_range_is_not_steady() {
        assert!(steady(&[100.0, 101.0, 99.0, 100.0, 102.0, 100.0, 99.0]));
        assert!(!steady(&[100.0, 104.0, 108.0, 112.0, 116.0]), "slope");
        assert!(!steady(&[100.0, 100.0, 130.0, 100.0, 100.0]), "range");
        assert!(!steady(&[100.0; 4]), "too few");
        // The start does not count.
        let mut late = vec![10.0; 2];
        late.extend([100.0; 20]);
        assert!(steady(&late));
    }
}
