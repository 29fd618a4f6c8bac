//! Running minimum, maximum, mean and deviation.

/// What fio calls `io_stat`: one pass, mergeable, without keeping the samples.
///
/// ```
/// use cairn_fio::output::Stats;
/// let mut all = Stats::default();
/// for x in [2, 4, 9] {
///     all.record(x);
/// }
/// assert_eq!((all.min(), all.max(), all.count()), (2, 9, 3));
/// assert!((all.mean() - 5.0).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    count: u64,
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford).
    squares: f64,
}

impl Stats {
    /// Statistics known from elsewhere: samples, extremes, mean and standard deviation.
    pub fn from_parts(count: u64, min: u64, max: u64, mean: f64, stddev: f64) -> Self {
        let squares = if count > 1 {
            stddev * stddev * (count - 1) as f64
        } else {
            0.0
        };
        Self {
            count,
            min,
            max,
            mean,
            squares,
        }
    }

    /// Adds a sample.
    pub fn record(&mut self, value: u64) {
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        self.max = self.max.max(value);
        self.count += 1;
        let distance = value as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value as f64 - self.mean);
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.squares += other.squares + distance * distance * n * m / (n + m);
        self.mean += distance * m / (n + m);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
    }

    /// Adds a series that was sampled at the same times, as fio does for the rates of clones: extremes,
    /// means and deviations add up, and so do the counts.
    pub fn add_parallel(&mut self, other: &Self) {
        let stddev = self.stddev() + other.stddev();
        let sum = Self::from_parts(
            self.count + other.count,
            self.min + other.min,
            self.max + other.max,
            self.mean + other.mean,
            stddev,
        );
        *self = sum;
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Smallest sample, 0 without any.
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// Largest sample, 0 without any.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Mean, 0 without samples.
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of the sample (n - 1), 0 below two samples.
    pub fn stddev(&self) -> f64 {
        if self.count > 1 {
            (self.squares.max(0.0) / (self.count - 1) as f64).sqrt()
        } else {
            0.0
        }
    }
}
