//! Latency histograms and what is told of them.

use hdrhistogram::Histogram;

use crate::sample::{Buckets, Latency};

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

/// The figures shown of a distribution, in one pass: a histogram has 27 600 buckets, and this is done
/// for several of them ten times a second.
pub(crate) fn summary(hist: &Hist) -> Latency {
    with_buckets(hist).0
}

/// As [`summary`], with the operations by size from the same pass.
pub(crate) fn with_buckets(hist: &Hist) -> (Latency, Buckets) {
    let n = hist.len();
    let mut buckets = Buckets::default();
    if n == 0 {
        return (Latency::default(), buckets);
    }
    let mut found = [0; 5];
    let mut wanted = found
        .iter_mut()
        .zip([0.5, 0.9, 0.99, 0.999, 0.9999])
        .map(|(slot, share)| (slot, rank(share, n)))
        .peekable();
    let mut seen = 0;
    let mut sum = 0.0;
    for step in hist.iter_recorded() {
        let value = step.value_iterated_to();
        seen += step.count_at_value();
        buckets.add(value, step.count_at_value());
        sum += step.count_at_value() as f64 * hist.median_equivalent(value) as f64;
        while let Some((slot, _)) = wanted.next_if(|(_, rank)| seen >= *rank) {
            *slot = value;
        }
    }
    drop(wanted);
    let [p50, p90, p99, p999, p9999] = found;
    let latency = Latency {
        n,
        min: hist.min(),
        p50,
        p90,
        p99,
        p999,
        p9999,
        max: hist.max(),
        mean: sum / n as f64,
    };
    (latency, buckets)
}

/// The buckets that hold something: their upper ends in nanoseconds, and how much.
pub(crate) fn buckets(hist: &Hist) -> Vec<(u64, u64)> {
    hist.iter_recorded()
        .map(|s| (s.value_iterated_to(), s.count_at_value()))
        .collect()
}

/// How many of the `n` smallest values a quantile takes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and n"
)]
fn rank(share: f64, n: u64) -> u64 {
    ((share * n as f64).ceil() as u64).clamp(1, n)
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
    fn one_pass_finds_what_the_histogram_itself_finds() {
        let mut rng = fastrand::Rng::with_seed(3);
        for n in [1, 2, 9, 100, 12_345] {
            let mut hist = new_hist();
            for _ in 0..n {
                let bits = rng.u32(1..34);
                hist.saturating_record(rng.u64(1..1 << bits));
            }
            let got = summary(&hist);
            let want = |q| hist.value_at_quantile(q);
            assert_eq!(
                [got.p50, got.p90, got.p99, got.p999, got.p9999],
                [want(0.5), want(0.9), want(0.99), want(0.999), want(0.9999)]
            );
            assert!((got.mean - hist.mean()).abs() <= 1e-9 * hist.mean());
        }
    }

    #[test]
    fn buckets_hold_every_operation_in_its_place() {
        let mut hist = new_hist();
        for v in [1, 255, 256, 319, 320, 10_000, 60_000_000_000] {
            hist.saturating_record(v);
        }
        let (latency, buckets) = with_buckets(&hist);
        let sum: u32 = buckets.counts.iter().sum();
        assert_eq!(u64::from(sum), latency.n);
        assert_eq!(
            (buckets.counts[0], buckets.counts[1], buckets.counts[2]),
            (2, 2, 1)
        );
        for i in 1..Buckets::LEN {
            let floor = Buckets::floor(i);
            assert_eq!(Buckets::index(floor), i, "{floor}");
            assert_eq!(Buckets::index(floor - 1), i - 1, "{floor}");
        }
        assert_eq!(Buckets::index(u64::MAX), Buckets::LEN - 1);
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        assert_eq!(summary(&new_hist()), Latency::default());
    }
}
