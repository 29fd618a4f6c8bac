//! How fast a job may go.

use std::time::Duration;

use crate::job::access::PerDir;
use crate::words::words;

words! {
    /// `rate_process=`: how the intended starts are spread.
    pub enum RateProcess {
        /// Evenly.
        Linear = "linear",
        /// Exponential gaps with a mean of 1/IOPS.
        Poisson = "poisson",
    }
}

words! {
    /// `thinktime_blocks_type=`: what is counted between two thinks.
    pub enum ThinkBlocksType {
        /// Completions.
        Complete = "complete",
        /// Issues.
        Issue = "issue",
    }
}

/// `latency_target=` and its companions: search the depth that keeps a latency.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyTarget {
    /// `latency_target=`; zero is off.
    pub target: Duration,
    /// `latency_window=`.
    pub window: Duration,
    /// `latency_percentile=` (default 100).
    pub percentile: f64,
    /// `latency_run=` (default 0).
    pub keep_running: bool,
    /// `max_latency=`: stop the job when one I/O takes longer; zero is off.
    pub max: Duration,
}

/// Rates, think time, latency targets. Rates of `None` or 0 are unlimited.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// `rate=`: bytes per second.
    pub rate: PerDir<Option<u64>>,
    /// `rate_min=`: bytes per second below which the job fails.
    pub rate_min: PerDir<Option<u64>>,
    /// `rate_iops=`.
    pub rate_iops: PerDir<Option<u32>>,
    /// `rate_iops_min=`.
    pub rate_iops_min: PerDir<Option<u32>>,
    /// `rate_process=`.
    pub process: RateProcess,
    /// `rate_cycle=` (default 1000 ms): over which the minimum rates are averaged.
    pub cycle: Duration,
    /// `rate_ignore_thinktime=` (default 0).
    pub ignore_thinktime: bool,
    /// `thinktime=`.
    pub thinktime: Duration,
    /// `thinktime_spin=`: the part of it spent spinning.
    pub thinktime_spin: Duration,
    /// `thinktime_blocks=` (default 1).
    pub thinktime_blocks: u32,
    /// `thinktime_blocks_type=`.
    pub thinktime_blocks_type: ThinkBlocksType,
    /// `thinktime_iotime=`: think after this much time of I/O.
    pub thinktime_iotime: Duration,
    /// `latency_target=` and its companions.
    pub latency: LatencyTarget,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            rate: PerDir::default(),
            rate_min: PerDir::default(),
            rate_iops: PerDir::default(),
            rate_iops_min: PerDir::default(),
            process: RateProcess::Linear,
            cycle: Duration::from_secs(1),
            ignore_thinktime: false,
            thinktime: Duration::ZERO,
            thinktime_spin: Duration::ZERO,
            thinktime_blocks: 1,
            thinktime_blocks_type: ThinkBlocksType::Complete,
            thinktime_iotime: Duration::ZERO,
            latency: LatencyTarget {
                target: Duration::ZERO,
                window: Duration::ZERO,
                percentile: 100.0,
                keep_running: false,
                max: Duration::ZERO,
            },
        }
    }
}

impl Pace {
    /// Whether any rate is set, so that intended starts exist.
    pub fn is_rated(&self) -> bool {
        let bytes = [self.rate.read, self.rate.write, self.rate.trim];
        let iops = [
            self.rate_iops.read,
            self.rate_iops.write,
            self.rate_iops.trim,
        ];
        bytes.iter().any(|r| r.is_some_and(|n| n > 0))
            || iops.iter().any(|r| r.is_some_and(|n| n > 0))
    }
}
