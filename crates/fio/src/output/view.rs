//! Figures that several formats show, computed once so that they agree.

use super::{DepthCounts, Direction, JobResult, Latency, LatencyBuckets, RunResult};
use crate::job::{Ddir, PerDir};

impl Direction {
    /// Bytes per second over the runtime.
    pub fn bw_bytes(&self) -> u64 {
        per_second(self.io_bytes, self.runtime_ms)
    }

    /// I/Os per second over the runtime.
    pub fn iops_mean(&self) -> f64 {
        if self.runtime_ms == 0 {
            0.0
        } else {
            1000.0 * self.total_ios as f64 / self.runtime_ms as f64
        }
    }

    /// I/Os per second as a whole number.
    pub fn iops_whole(&self) -> u64 {
        per_second(self.total_ios, self.runtime_ms)
    }
}

fn per_second(count: u64, ms: u64) -> u64 {
    let rate = u128::from(count) * 1000 / u128::from(ms.max(1));
    if ms == 0 {
        0
    } else {
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// One direction over all reports of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GroupDirection {
    pub(super) bytes: u64,
    pub(super) min_bw: u64,
    pub(super) max_bw: u64,
    pub(super) min_run_ms: u64,
    pub(super) max_run_ms: u64,
}

impl GroupDirection {
    /// All bytes over the longest runtime.
    pub(super) fn aggregate(&self) -> u64 {
        per_second(self.bytes, self.max_run_ms)
    }
}

impl RunResult {
    /// The groups there are, in order.
    pub(super) fn groups(&self) -> Vec<u32> {
        let mut list: Vec<u32> = self.jobs.iter().map(|job| job.groupid).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    /// What the directions of a group sum up to.
    pub(super) fn group(&self, id: u32) -> PerDir<GroupDirection> {
        let mut group: PerDir<GroupDirection> = PerDir::default();
        for job in self.jobs.iter().filter(|job| job.groupid == id) {
            for dir in Ddir::ALL {
                let figures = job.directions.get(dir);
                if figures.runtime_ms == 0 {
                    continue;
                }
                let sum = group.get_mut(dir);
                let bw = figures.bw_bytes();
                let first = sum.max_run_ms == 0;
                sum.min_bw = if first { bw } else { sum.min_bw.min(bw) };
                sum.max_bw = sum.max_bw.max(bw);
                sum.min_run_ms = if first {
                    figures.runtime_ms
                } else {
                    sum.min_run_ms.min(figures.runtime_ms)
                };
                sum.max_run_ms = sum.max_run_ms.max(figures.runtime_ms);
                sum.bytes += figures.io_bytes;
            }
        }
        group
    }

    /// The group of each job, in the order of the jobs.
    pub(super) fn group_of_jobs(&self) -> Vec<PerDir<GroupDirection>> {
        self.jobs
            .iter()
            .map(|job| self.group(job.groupid))
            .collect()
    }
}

/// Mean of the bandwidth samples as a share of the group's bandwidth, in percent.
pub(super) fn share_of_group(figures: &Direction, group: &GroupDirection) -> f64 {
    share_of(figures, group.aggregate() as f64 / 1024.0)
}

/// The same of whole KiB/s, as terse lines have it.
pub(super) fn share_of_group_in_whole_kib(figures: &Direction, group: &GroupDirection) -> f64 {
    share_of(figures, (group.aggregate() / 1024) as f64)
}

fn share_of(figures: &Direction, whole: f64) -> f64 {
    if whole > 0.0 && figures.bw.count() > 0 {
        (figures.bw.mean() * 100.0 / whole).min(100.0)
    } else {
        0.0
    }
}

impl JobResult {
    /// I/Os of all directions.
    pub(super) fn all_ios(&self) -> u64 {
        Ddir::ALL
            .iter()
            .map(|d| self.directions.get(*d).total_ios)
            .sum()
    }

    /// User and system time in percent of the job's runtime.
    pub(super) fn cpu_percent(&self) -> (f64, f64) {
        if self.job_runtime_ms == 0 {
            return (0.0, 0.0);
        }
        let percent = |us: u64| us as f64 / 10.0 / self.job_runtime_ms as f64;
        (percent(self.cpu.user_us), percent(self.cpu.sys_us))
    }

    /// Shares of issue depths. Their whole is the I/Os, so that flushes may push a share above 100.
    pub(super) fn depth_percent(&self) -> [f64; 7] {
        self.depth.percent(self.all_ios())
    }

    /// Shares of the latency buckets: ns, us, ms.
    pub(super) fn latency_percent(&self) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let whole = self.all_ios();
        let shares = |list: &[u64]| list.iter().map(|n| share(*n, whole, 0.01)).collect();
        let LatencyBuckets { ns, us, ms } = &self.latency;
        (shares(ns), shares(us), shares(ms))
    }

    /// Shares of the buckets from microseconds on. What is faster counts in the first of them: the counts
    /// are added, not the shares, some of which show more than there is.
    pub(super) fn latency_percent_from_us(&self) -> Vec<f64> {
        let whole = self.all_ios();
        let LatencyBuckets { ns, us, ms } = &self.latency;
        let mut counts: Vec<u64> = us.iter().chain(ms).copied().collect();
        if let Some(first) = counts.first_mut() {
            *first += ns.iter().sum::<u64>();
        }
        counts.into_iter().map(|n| share(n, whole, 0.01)).collect()
    }
}

impl DepthCounts {
    /// Shares in percent of a whole.
    pub(super) fn percent(&self, whole: u64) -> [f64; 7] {
        self.counts.map(|n| share(n, whole, 0.1))
    }
}

/// A share in percent; what is there but below `floor` shows as `floor`.
fn share(count: u64, whole: u64, floor: f64) -> f64 {
    if count == 0 || whole == 0 {
        return 0.0;
    }
    // fio is built with fast math, which takes the reciprocal first; so does this, or shares that end in
    // a half would differ in their last digit.
    let reciprocal = 1.0 / whole as f64;
    (count as f64 * reciprocal * 100.0).max(floor)
}

impl Latency {
    /// The percentiles to show: `None` where they are turned off or nothing was measured.
    pub(super) fn shown_percentiles(&self, on: bool, list: &[f64]) -> Option<Vec<u64>> {
        let histogram = self.histogram.as_ref().filter(|h| on && !h.is_empty())?;
        Some(histogram.percentiles(list))
    }
}
