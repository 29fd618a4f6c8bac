//! Statistics of paired runs: an interval for the median ratio, ranks, and several metrics at once.
//!
//! Everything works on few values (a run is one value), so the methods are exact or resampled and none
//! assumes a normal distribution.

pub(crate) mod interval;
pub(crate) mod normal;
pub(crate) mod rank;

/// The middle of the values, the mean of the two middle ones for an even number; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The same of values in ascending order.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    if n == 0 {
        f64::NAN
    } else if n.is_multiple_of(2) {
        f64::midpoint(at(n / 2 - 1), at(n / 2))
    } else {
        at(n / 2)
    }
}

/// Standard deviation over mean; 0 below two values.
pub(crate) fn variation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let sum = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (sum / (n - 1.0)).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squares 32.
        let v = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!((variation(&v) - (32.0_f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
        assert!(variation(&[1.0]).abs() < 1e-12);
    }
}
