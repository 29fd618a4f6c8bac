//! What an engine hands to the writers.

use super::{Histogram, Stats};
use crate::job::{Ddir, PerDir, SteadyMetric, UnifiedReporting};

/// A whole run, or its state so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunResult {
    /// Text behind `fio-3.33` in `fio version`, for example ` (cairn 0.1.0)`; may be empty.
    pub version_suffix: String,
    /// When the results were taken, ms since 1970.
    pub timestamp_ms: u64,
    /// Seconds east of UTC for the times in words.
    pub utc_offset_s: i32,
    /// `global options`, see [`Plan::global_options`](crate::Plan::global_options).
    pub global_options: Vec<(String, String)>,
    /// One for each report.
    pub jobs: Vec<JobResult>,
    /// Devices used; `None` leaves the part out (`disk_util=0`).
    pub disk_util: Option<Vec<DiskUtil>>,
    /// What the program adds of its own, under one key `cairn`: keys and values.
    pub own: Vec<(String, super::Json)>,
}

/// One report: a job, a clone, or the clones of a group merged.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct JobResult {
    /// Name.
    pub jobname: String,
    /// `description=`.
    pub description: Option<String>,
    /// Reporting group.
    pub groupid: u32,
    /// Clones merged into it.
    pub members: u32,
    /// Process or thread id shown in the text.
    pub pid: u32,
    /// First error as an errno, 0 for none.
    pub error: i32,
    /// Errors that `continue_on_error` let pass, and the first of them; `None` without that option.
    pub errors: Option<(u64, i32)>,
    /// Seconds left; `None` when unknown or done.
    pub eta_s: Option<u64>,
    /// Seconds since the start, rounded up.
    pub elapsed_s: u64,
    /// `job options`, see [`Job::json_options`](crate::Job::json_options).
    pub options: Vec<(String, String)>,
    /// Figures per direction.
    pub directions: PerDir<Direction>,
    /// Flushes.
    pub sync: Latency,
    /// Runtime summed over the clones, in ms.
    pub job_runtime_ms: u64,
    /// CPU time and events.
    pub cpu: CpuUsage,
    /// How deep the queue was at each issue.
    pub depth: DepthCounts,
    /// I/Os per submission.
    pub submit: DepthCounts,
    /// I/Os per reaping.
    pub complete: DepthCounts,
    /// Completion latencies in fio's coarse buckets.
    pub latency: LatencyBuckets,
    /// Outcome of `latency_target`.
    pub latency_depth: LatencyDepth,
    /// `percentile_list`, ascending.
    pub percentiles: Vec<f64>,
    /// `unified_rw_reporting=mixed`: the figures of all directions stand in `read`.
    pub unified: bool,
    /// Percentiles shown for completion latency.
    pub clat_percentiles: bool,
    /// Percentiles shown for total latency.
    pub lat_percentiles: bool,
    /// Percentiles shown for submission latency.
    pub slat_percentiles: bool,
    /// `significant_figures` of the text.
    pub significant_figures: u32,
    /// `kb_base` of the text.
    pub kb_base: u32,
    /// `unit_base` of the text: 1 shows bits.
    pub unit_base: u32,
    /// Outcome of `steadystate`.
    pub steadystate: Option<SteadyResult>,
    /// What the program adds of its own, under one key `cairn`.
    pub own: Vec<(String, super::Json)>,
}

/// Figures of one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Direction {
    /// Bytes transferred.
    pub io_bytes: u64,
    /// I/Os issued.
    pub total_ios: u64,
    /// I/Os that transferred less than asked.
    pub short_ios: u64,
    /// I/Os that were dropped.
    pub drop_ios: u64,
    /// Time in which they ran, in ms; of merged clones the longest.
    pub runtime_ms: u64,
    /// Submission latency.
    pub slat: Latency,
    /// Completion latency.
    pub clat: Latency,
    /// Both together.
    pub lat: Latency,
    /// Bandwidth samples in KiB/s.
    pub bw: Stats,
    /// IOPS samples.
    pub iops: Stats,
}

/// Latencies of one kind, in ns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latency {
    /// Extremes, mean, deviation.
    pub stats: Stats,
    /// Distribution; `None` when it was not kept.
    pub histogram: Option<Histogram>,
}

impl Latency {
    /// Adds a sample to the statistics and, where it is kept, to the distribution.
    pub fn record(&mut self, ns: u64) {
        self.stats.record(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record(ns);
        }
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        self.stats.merge(&other.stats);
        if let Some(theirs) = &other.histogram {
            self.histogram.get_or_insert_default().merge(theirs);
        }
    }
}

/// CPU time and events of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuUsage {
    /// Time in user mode, in us.
    pub user_us: u64,
    /// Time in the kernel, in us.
    pub sys_us: u64,
    /// Context switches.
    pub ctx: u64,
    /// Major page faults.
    pub majf: u64,
    /// Minor page faults.
    pub minf: u64,
}

/// Counts by power of two: depth 1, 2, 4, 8, 16, 32, 64 and more (for batches: 0, 4, 8, ...).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepthCounts {
    /// The seven counts.
    pub counts: [u64; 7],
    /// What a share is taken of.
    pub total: u64,
}

impl DepthCounts {
    /// Counts a depth at issue: buckets `1=`, `2=`, `4=` .. `>=64=` hold up to the next label.
    #[inline]
    pub fn record_depth(&mut self, depth: u32) {
        let index = match depth {
            0..=1 => 0,
            2..=3 => 1,
            4..=7 => 2,
            8..=15 => 3,
            16..=31 => 4,
            32..=63 => 5,
            _ => 6,
        };
        self.add(index);
    }

    /// Counts a batch: buckets `0=`, `4=`, `8=` .. `64=`, `>=64=` hold up to their label.
    #[inline]
    pub fn record_batch(&mut self, ios: u32) {
        let index = match ios {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            _ => 6,
        };
        self.add(index);
    }

    #[inline]
    fn add(&mut self, index: usize) {
        if let Some(slot) = self.counts.get_mut(index) {
            *slot += 1;
        }
        self.total += 1;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }
}

/// Labels of the ns and us buckets; each counts what lies below it and not below the one before.
const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Completion latencies in fio's coarse buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyBuckets {
    /// Below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 ns.
    pub ns: [u64; 10],
    /// The same in us.
    pub us: [u64; 10],
    /// The same in ms, then below 2000 ms and the rest.
    pub ms: [u64; 12],
}

impl LatencyBuckets {
    /// Counts a latency.
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    fn record_many(&mut self, ns: u64, count: u64) {
        let place = |value: u64| STEPS.iter().position(|step| value < *step);
        let slot = if ns < 1000 {
            place(ns).and_then(|i| self.ns.get_mut(i))
        } else if ns < 1_000_000 {
            place(ns / 1000).and_then(|i| self.us.get_mut(i))
        } else {
            let ms = ns / 1_000_000;
            let index = place(ms).unwrap_or(if ms < 2000 { 10 } else { 11 });
            self.ms.get_mut(index)
        };
        if let Some(slot) = slot {
            *slot += count;
        }
    }

    /// The counts as a histogram tells them: a sample within 1/128 of a label may fall on its other side.
    pub fn from_histogram(histogram: &Histogram) -> Self {
        let mut buckets = Self::default();
        for bucket in histogram.iter() {
            buckets.record_many(bucket.value, bucket.count);
        }
        buckets
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        let mine = self.ns.iter_mut().chain(&mut self.us).chain(&mut self.ms);
        let theirs = other.ns.iter().chain(&other.us).chain(&other.ms);
        for (mine, theirs) in mine.zip(theirs) {
            *mine += theirs;
        }
    }
}

/// Outcome of `latency_target`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyDepth {
    /// Depth reached, or the job's `iodepth`.
    pub depth: u32,
    /// Target in us.
    pub target_us: u64,
    /// Percentile.
    pub percentile: f64,
    /// Window in us.
    pub window_us: u64,
}

impl Default for LatencyDepth {
    fn default() -> Self {
        Self {
            depth: 1,
            target_us: 0,
            percentile: 100.0,
            window_us: 0,
        }
    }
}

/// Outcome of `steadystate`.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyResult {
    /// Figure watched.
    pub metric: SteadyMetric,
    /// Its limit.
    pub limit: f64,
    /// `steadystate_duration` in s.
    pub duration_s: u64,
    /// Whether it was reached.
    pub attained: bool,
    /// Last value of the criterion.
    pub criterion: f64,
    /// Whether the limit is in percent.
    pub percent: bool,
    /// Largest deviation from the mean.
    pub max_deviation: f64,
    /// Slope.
    pub slope: f64,
    /// Bandwidth of each second in bytes per second.
    pub bw: Vec<u64>,
    /// IOPS of each second.
    pub iops: Vec<u64>,
}

/// One device as the stack counted it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiskUtil {
    /// Name.
    pub name: String,
    /// Reads and writes completed.
    pub ios: [u64; 2],
    /// Reads and writes merged with neighbours.
    pub merges: [u64; 2],
    /// Time of reads and writes in ms.
    pub ticks: [u64; 2],
    /// Time with I/O in the queue, weighted by its length, in ms.
    pub in_queue: u64,
    /// Share of the time with I/O in flight, in percent.
    pub util: f64,
}

impl JobResult {
    /// An empty result of a job, with everything that follows from its options filled in.
    pub fn of_job(job: &crate::Job) -> Self {
        let report = &job.report;
        let keep = |on: bool| Latency {
            stats: Stats::default(),
            histogram: on.then(Histogram::new),
        };
        let direction = Direction {
            slat: keep(!report.disable_slat && report.slat_percentiles),
            clat: keep(!report.disable_clat),
            lat: keep(!report.disable_lat && report.lat_percentiles),
            ..Direction::default()
        };
        let latency = &job.pace.latency;
        let micros =
            |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            jobname: job.name.clone(),
            description: job.description.clone(),
            groupid: job.group,
            members: 0,
            pid: 0,
            error: 0,
            errors: None,
            eta_s: None,
            elapsed_s: 0,
            options: job.json_options(),
            directions: PerDir::all(direction),
            sync: keep(true),
            job_runtime_ms: 0,
            cpu: CpuUsage::default(),
            depth: DepthCounts::default(),
            submit: DepthCounts::default(),
            complete: DepthCounts::default(),
            latency: LatencyBuckets::default(),
            latency_depth: LatencyDepth {
                depth: job.queue.iodepth,
                target_us: micros(latency.target),
                percentile: latency.percentile,
                window_us: micros(latency.window),
            },
            percentiles: report
                .percentiles
                .clone()
                .unwrap_or_else(|| super::DEFAULT_PERCENTILES.to_vec()),
            unified: report.unified == UnifiedReporting::Mixed,
            clat_percentiles: report.clat_percentiles && !report.disable_clat,
            lat_percentiles: report.lat_percentiles && !report.disable_lat,
            slat_percentiles: report.slat_percentiles && !report.disable_slat,
            significant_figures: report.significant_figures,
            kb_base: report.kb_base,
            unit_base: report.unit_base,
            steadystate: None,
            own: Vec::new(),
        }
    }

    /// Adds what one clone measured; options and name stay those of the first.
    pub fn merge(&mut self, other: &Self) {
        for dir in Ddir::ALL {
            self.directions
                .get_mut(dir)
                .merge(other.directions.get(dir));
        }
        self.members += other.members;
        if self.error == 0 {
            self.error = other.error;
        }
        if let Some((count, first)) = other.errors {
            let mine = self.errors.get_or_insert((0, 0));
            mine.0 += count;
            if mine.1 == 0 {
                mine.1 = first;
            }
        }
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
        self.eta_s = self.eta_s.max(other.eta_s);
        self.sync.merge(&other.sync);
        self.job_runtime_ms += other.job_runtime_ms;
        self.cpu.user_us += other.cpu.user_us;
        self.cpu.sys_us += other.cpu.sys_us;
        self.cpu.ctx += other.cpu.ctx;
        self.cpu.majf += other.cpu.majf;
        self.cpu.minf += other.cpu.minf;
        self.depth.merge(&other.depth);
        self.submit.merge(&other.submit);
        self.complete.merge(&other.complete);
        self.latency.merge(&other.latency);
    }
}

impl Direction {
    /// Adds what one clone measured: counts add up, the runtime is the longest, and the samples of
    /// bandwidth and IOPS add up as the clones run side by side.
    pub fn merge(&mut self, other: &Self) {
        self.io_bytes += other.io_bytes;
        self.total_ios += other.total_ios;
        self.short_ios += other.short_ios;
        self.drop_ios += other.drop_ios;
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        self.bw.add_parallel(&other.bw);
        self.iops.add_parallel(&other.iops);
    }
}
