//! Histograms and depths in fio's form.

use cairn_fio::output::{DepthCounts, Histogram, Latency, Stats};

use crate::latency::Hist;

/// Fills in statistics, and the distribution where it is kept.
pub(super) fn put(to: &mut Latency, hist: &Hist) {
    let n = hist.len();
    // The deviation of the sample, where the histogram gives that of the population.
    let stddev = if n > 1 {
        hist.stdev() * (n as f64 / (n - 1) as f64).sqrt()
    } else {
        0.0
    };
    to.stats = Stats::from_parts(n, hist.min(), hist.max(), hist.mean(), stddev);
    if to.histogram.is_some() {
        to.histogram = Some(rebin(hist));
    }
}

/// The same samples in fio's buckets. Each of ours lies inside one of fio's, so this is exact.
pub(super) fn rebin(hist: &Hist) -> Histogram {
    let mut binned = Histogram::new();
    for step in hist.iter_recorded() {
        binned.record_many(step.value_iterated_to(), step.count_at_value());
    }
    binned
}

/// Every I/O found the queue this deep: one with inline completion, else as many as there are lanes.
pub(super) fn all_at(issued: u64, lanes: usize) -> DepthCounts {
    let mut one = DepthCounts::default();
    one.record_depth(u32::try_from(lanes).unwrap_or(u32::MAX));
    times(one, issued)
}

/// Every I/O was submitted and reaped alone.
pub(super) fn batches(issued: u64) -> DepthCounts {
    let mut one = DepthCounts::default();
    one.record_batch(1);
    times(one, issued)
}

fn times(one: DepthCounts, n: u64) -> DepthCounts {
    DepthCounts {
        counts: one.counts.map(|c| c * n),
        total: n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::new_hist;

    #[test]
    fn rebinned_percentiles_equal_those_of_the_values_themselves() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut ours = new_hist();
        let mut direct = Histogram::new();
        for _ in 0..20_000 {
            let bits = rng.u32(1..33);
            let v = rng.u64(1..1 << bits);
            ours.saturating_record(v);
            direct.record(v);
        }
        let list = cairn_fio::output::DEFAULT_PERCENTILES;
        assert_eq!(rebin(&ours).percentiles(&list), direct.percentiles(&list));
        assert_eq!(rebin(&ours), direct);
    }

    #[test]
    fn depths_are_what_they_were() {
        assert_eq!(all_at(10, 1).counts, [10, 0, 0, 0, 0, 0, 0]);
        assert_eq!(all_at(10, 32).counts, [0, 0, 0, 0, 0, 10, 0]);
        assert_eq!(batches(4).counts, [0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(batches(4).total, 4);
    }
}
