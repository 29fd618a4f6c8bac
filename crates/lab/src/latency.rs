//! Latency histograms and what is told of them.

use hdrhistogram::Histogram;

use crate::sample::Latency;

/// Nanoseconds in three significant digits, up to a minute.
pub(crate) type Hist = Histogram<u64>;

/// Longest latency told apart, in nanoseconds; longer ones count as this.
pub(crate) const LONGEST: u64 = 60_000_000_000;

/// An empty histogram. About 220 kB: made at the start, never on a hot path.
pub(crate) fn new_hist() -> Hist {
    // The bounds are constants that the constructor accepts.
    Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|_| unreachable_bounds())
}

#[cold]
fn unreachable_bounds() -> Hist {
    unreachable!("1..=60 s in 3 digits are legal bounds")
}

/// Adds `from` to `to`. Both have the bounds of [`new_hist`], so that this cannot fail.
pub(crate) fn add(to: &mut Hist, from: &Hist) {
    let added = to.add(from);
    debug_assert!(added.is_ok(), "equal bounds");
}

/// The figures shown of a distribution.
pub(crate) fn summary(hist: &Hist) -> Latency {
    if hist.is_empty() {
        return Latency::default();
    }
    Latency {
        n: hist.len(),
        min: hist.min(),
        p50: hist.value_at_quantile(0.5),
        p90: hist.value_at_quantile(0.9),
        p99: hist.value_at_quantile(0.99),
        p999: hist.value_at_quantile(0.999),
        p9999: hist.value_at_quantile(0.9999),
        max: hist.max(),
        mean: hist.mean(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_parts_equal_the_whole() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut whole = new_hist();
        let mut merged = new_hist();
        for _ in 0..4 {
            let mut part = new_hist();
            for _ in 0..5000 {
                let bits = rng.u32(4..30);
                let v = rng.u64(1..1 << bits);
                whole.saturating_record(v);
                part.saturating_record(v);
            }
            add(&mut merged, &part);
        }
        assert_eq!(summary(&whole), summary(&merged));
        assert_eq!(summary(&whole).n, 20_000);
    }

    #[test]
    fn percentiles_keep_three_digits() {
        let mut hist = new_hist();
        for v in 1..=100_000_u64 {
            hist.saturating_record(v);
        }
        let got = summary(&hist);
        for (got, want) in [
            (got.p50, 50_000.0),
            (got.p99, 99_000.0),
            (got.p9999, 99_990.0),
        ] {
            let off = (got as f64 - want).abs() / want;
            assert!(off < 1e-3, "{got} against {want}");
        }
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        assert_eq!(summary(&new_hist()), Latency::default());
    }
}
