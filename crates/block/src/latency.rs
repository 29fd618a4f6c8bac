//! A latency histogram on per-CPU counters.
//!
//! The buckets are log-linear: 64 of equal width for each doubling, so a value is off by less than
//! 1/64, from 0 to about 9 s in nanoseconds, 29 x 64 of them. These are the bounds fio uses, so
//! results can be laid side by side.

use std::fmt;
use std::time::Duration;

use cairn_percpu::Counter;

const BITS: u32 = 6;
const PER_GROUP: usize = 1 << BITS;
const GROUPS: usize = 29;
const BUCKETS: usize = GROUPS * PER_GROUP;

fn bucket(ns: u64) -> usize {
    let top = (ns | 1).ilog2();
    if top <= BITS {
        // The first two groups count single nanoseconds.
        return usize::try_from(ns).unwrap_or(BUCKETS - 1);
    }
    let shift = top - BITS;
    let group = shift as usize + 1;
    let within = usize::try_from(ns >> shift).unwrap_or(0) & (PER_GROUP - 1);
    (group * PER_GROUP + within).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let group = bucket / PER_GROUP;
    let within = (bucket % PER_GROUP) as u64;
    if group < 2 {
        return bucket as u64;
    }
    let shift = group - 1;
    ((PER_GROUP as u64 + within + 1) << shift) - 1
}

/// Counters of one histogram. A bucket is one word until two threads use it.
pub(crate) struct LatencyCounters {
    buckets: Vec<Counter>,
}

impl LatencyCounters {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| Counter::cold()).collect(),
        }
    }

    #[inline]
    pub(crate) fn record(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(counter) = self.buckets.get(bucket(ns)) {
            counter.inc();
        }
    }

    pub(crate) fn snapshot(&self) -> Latency {
        Latency {
            buckets: self.buckets.iter().map(Counter::sum).collect(),
        }
    }
}

/// Latencies as counted at one moment, in nanoseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct Latency {
    buckets: Vec<u64>,
}

impl Latency {
    /// Values counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The value that `share` (0 to 1) of all values do not exceed, high by less than 1/64; 0 when
    /// nothing was counted.
    pub fn percentile(&self, share: f64) -> u64 {
        let count = self.count();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count, clamped"
        )]
        let rank = ((count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return upper(i);
            }
        }
        0
    }

    /// Buckets that are not empty: the largest value of each, and how many values it has.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(i, n)| (upper(i), *n))
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            buckets: self
                .buckets
                .iter()
                .zip(&earlier.buckets)
                .map(|(now, then)| now.wrapping_sub(*then))
                .collect(),
        }
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_and_hold_their_values() {
        let mut last = 0;
        for shift in 0..40 {
            for part in 0..64_u64 {
                let ns = (1_u64 << shift) + (part << shift >> 6);
                let b = bucket(ns);
                assert!(b >= last, "{ns}");
                last = b;
                if b < BUCKETS - 1 {
                    assert!(upper(b) >= ns, "{ns} in {b} up to {}", upper(b));
                    assert!(upper(b) as f64 <= ns as f64 * (1.0 + 1.0 / 64.0), "{ns}");
                }
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket(0), bucket(127), bucket(128)), (0, 127, 128));
    }

    #[test]
    fn percentiles() {
        let counters = LatencyCounters::new();
        for us in 1..=1000 {
            counters.record(Duration::from_micros(us));
        }
        let all = counters.snapshot();
        assert_eq!(all.count(), 1000);
        for (share, us) in [(0.5, 500), (0.99, 990), (1.0, 1000), (0.0, 1)] {
            let got = all.percentile(share);
            let want = us * 1000;
            assert!(
                (want..=want + want / 64 + 1).contains(&got),
                "{share}: {got}"
            );
        }
        counters.record(Duration::from_micros(5));
        assert_eq!(counters.snapshot().since(&all).count(), 1);
        assert_eq!(all.since(&all).percentile(0.5), 0);
    }
}
