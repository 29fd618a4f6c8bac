//! Which I/Os are timed.

use fastrand::Rng;

/// Times all, none, or one in so many I/Os.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// No I/O: two reads of the clock cost more than a null I/O itself.
    Off,
    /// Every I/O.
    Every,
    /// One in `n` on average, at random distances, so that a workload with a period is not seen at one phase of
    /// it only.
    Sampled { n: u32, left: u32, rng: Rng },
}

impl Clock {
    pub(crate) fn new(on: bool, sample: u32, seed: u64) -> Self {
        match (on, sample) {
            (false, _) => Self::Off,
            (true, 0 | 1) => Self::Every,
            (true, n) => {
                let mut rng = Rng::with_seed(seed);
                let left = rng.u32(0..n);
                Self::Sampled { n, left, rng }
            }
        }
    }

    /// Whether the next I/O is timed.
    #[inline]
    pub(crate) fn due(&mut self) -> bool {
        match self {
            Self::Off => false,
            Self::Every => true,
            Self::Sampled { left, .. } if *left > 0 => {
                *left -= 1;
                false
            }
            Self::Sampled { n, left, rng } => {
                // From 0 to 2n - 2 others until the next: n - 1 on average.
                *left = rng.u32(0..2 * *n - 1);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_on_average_and_at_no_fixed_distance() {
        let mut clock = Clock::new(true, 64, 3);
        let timed: Vec<u32> = (0..640_000).filter(|_| clock.due()).collect();
        assert!((9500..10_500).contains(&timed.len()), "{}", timed.len());
        let odd = timed.iter().filter(|i| *i % 2 == 1).count();
        assert!((0.45..0.55).contains(&(odd as f64 / timed.len() as f64)));
        assert!(Clock::new(true, 1, 0).due() && !Clock::new(false, 64, 0).due());
    }
}
