//! fio's latency histogram: 29 groups of 64 buckets, error at most 1/128 of the value.
//!
//! ```text
//! value < 128      bucket = value                      groups 0 and 1, exact
//! otherwise        e = msb - 6; bucket = (e + 1) * 64 + the 6 bits below the msb
//! ```
//! What lies beyond the last group (about 17 s) is counted in the last bucket.

/// Groups, each twice as wide as the one before.
pub const GROUPS: usize = 29;

/// Buckets in a group.
pub const GROUP_BUCKETS: usize = 64;

/// Buckets in all.
pub const BUCKETS: usize = GROUPS * GROUP_BUCKETS;

/// Bits of a value that choose the bucket within its group.
const BITS: u32 = 6;

/// A bucket that holds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Index from 0 to [`BUCKETS`] - 1.
    pub index: usize,
    /// Middle of its range in ns, the key of JSON's `bins`.
    pub value: u64,
    /// Samples in it.
    pub count: u64,
}

/// A latency histogram in fio's own buckets.
///
/// ```
/// use cairn_fio::output::Histogram;
/// let mut h = Histogram::new();
/// for ns in 1..=1000 {
///     h.record(ns);
/// }
/// let median = h.percentiles(&[50.0])[0];
/// assert!((496..=504).contains(&median));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; this allocates, recording does not.
    pub fn new() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
        }
    }

    /// Index of the bucket of a value.
    #[inline]
    pub const fn index(ns: u64) -> usize {
        // Below 2 * 64 the value is its own bucket.
        let msb = (ns | 1).ilog2();
        if msb <= BITS {
            #[expect(clippy::cast_possible_truncation, reason = "below 128")]
            return ns as usize;
        }
        let error_bits = msb - BITS;
        let offset = (ns >> error_bits) & (GROUP_BUCKETS as u64 - 1);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "error_bits <= 57 and offset < 64"
        )]
        let index = (((error_bits as u64 + 1) << BITS) + offset) as usize;
        if index < BUCKETS { index } else { BUCKETS - 1 }
    }

    /// Middle of the range of a bucket, in ns.
    pub const fn value(index: usize) -> u64 {
        if index < 2 * GROUP_BUCKETS {
            return index as u64;
        }
        let error_bits = (index >> BITS) as u64 - 1;
        let base = 1_u64 << (error_bits + BITS as u64);
        let step = (index % GROUP_BUCKETS) as u64;
        // (step + 0.5) * 2^error_bits, and error_bits >= 1 here.
        base + (step << error_bits) + (1 << (error_bits - 1))
    }

    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Adds `count` samples of one value.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        self.add_to_bucket(Self::index(ns), count);
    }

    /// Adds samples to a bucket by its index; indices past the last go to the last.
    #[inline]
    pub fn add_to_bucket(&mut self, index: usize, count: u64) {
        #[expect(clippy::indexing_slicing, reason = "the index is clamped")]
        let slot = &mut self.buckets[index.min(BUCKETS - 1)];
        *slot += count;
        self.count += count;
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        for (slot, count) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *slot += count;
        }
        self.count += other.count;
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
        self.count = 0;
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is no sample.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All buckets, empty ones too.
    pub fn counts(&self) -> &[u64] {
        self.buckets.as_slice()
    }

    /// The buckets that hold something, from the fastest.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| Bucket {
                index,
                value: Self::value(index),
                count: *count,
            })
    }

    /// Values of ascending percentiles (0 to 100): the first bucket at which the running count reaches
    /// the share. Without samples, zeros.
    pub fn percentiles(&self, list: &[f64]) -> Vec<u64> {
        let mut filled = self.iter();
        let (mut sum, mut reached) = (0_u64, 0);
        list.iter()
            .map(|percent| {
                while sum == 0 || !reaches(sum, self.count, *percent) {
                    let Some(bucket) = filled.next() else { break };
                    sum += bucket.count;
                    reached = bucket.value;
                }
                reached
            })
            .collect()
    }
}

/// Whether `sum` is at least `percent` of `count`, decided on the exact value of the floating point number:
/// 99.95 is a little more than it looks, and fio, which computes in extended precision, tells.
fn reaches(sum: u64, count: u64, percent: f64) -> bool {
    const MANTISSA: u32 = 52;
    let bits = percent.to_bits();
    let exponent = i64::try_from(bits >> MANTISSA & 0x7ff).unwrap_or(0) - 1075;
    let mantissa = (bits & ((1 << MANTISSA) - 1)) | 1 << MANTISSA;
    // percent = mantissa / 2^shift, so compare sum * 100 * 2^shift with count * mantissa.
    let shift = u32::try_from(-exponent).ok();
    let left =
        shift.and_then(|shift| (u128::from(sum) * 100).checked_mul(1_u128.checked_shl(shift)?));
    let right = u128::from(count).checked_mul(u128::from(mantissa));
    match (left, right) {
        (Some(left), Some(right)) => left >= right,
        _ => sum as f64 >= percent / 100.0 * count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_their_values() {
        for shift in 0..34 {
            for delta in [0_u64, 1, 3, 77] {
                let ns = (1_u64 << shift) + delta;
                let value = Histogram::value(Histogram::index(ns));
                assert!(value.abs_diff(ns) * 128 <= ns, "{ns} is shown as {value}");
            }
        }
        assert_eq!(Histogram::index(u64::MAX), BUCKETS - 1);
        assert_eq!(Histogram::index(0), 0);
    }

    #[test]
    fn index_and_value_agree_on_every_bucket() {
        for index in 0..BUCKETS {
            assert_eq!(Histogram::index(Histogram::value(index)), index);
        }
    }

    #[test]
    fn shares_are_compared_exactly() {
        // 99.95 as a double is 99.950000000000002842, so 19990 of 20000 do not reach it.
        assert!(!reaches(19_990, 20_000, 99.95));
        assert!(reaches(19_991, 20_000, 99.95));
        assert!(reaches(1, 2, 50.0));
        assert!(reaches(u64::MAX, u64::MAX, 100.0));
        assert!(reaches(0, 5, 0.0));
        assert!(!reaches(0, 5, 1e-300));
    }

    #[test]
    fn percentiles_are_the_first_bucket_that_reaches_the_share() {
        let mut h = Histogram::new();
        assert_eq!(h.percentiles(&[50.0]), [0]);
        h.record_many(10, 99);
        h.record(100);
        assert_eq!(h.percentiles(&[0.0]), [10]);
        assert_eq!(
            h.percentiles(&[1.0, 50.0, 99.0, 99.5, 100.0]),
            [10, 10, 10, 100, 100]
        );
    }
}
