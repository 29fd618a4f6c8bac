//! Results in fio's formats.
//!
//! An engine fills [`RunResult`] with what it counted; the writers add percentiles, buckets and units,
//! nothing else, so that all formats agree on every number.

mod eta;
mod histogram;
mod json;
mod json_value;
mod logs;
mod result;
mod stats;
mod terse;
mod text;
mod units;
mod view;

pub use eta::{EtaLine, RunState};
pub use histogram::{BUCKETS, Bucket, GROUP_BUCKETS, GROUPS, Histogram};
pub use json_value::Json;
pub use logs::{LogEntry, LogKind, LogWindow};
pub use result::{
    CpuUsage, DepthCounts, Direction, DiskUtil, JobResult, Latency, LatencyBuckets, LatencyDepth,
    RunResult, SteadyResult,
};
pub use stats::Stats;
pub use units::{Unit, shorten, time_in_words};

use crate::plan::{OutputFormat, RunOptions};

/// Percentiles shown unless `percentile_list` says otherwise.
pub const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Version whose formats are written; the start of `fio version`.
pub const FIO_VERSION: &str = "fio-3.33";

impl RunResult {
    /// The result in one of the formats, ready to be written out.
    pub fn format(&self, format: OutputFormat, terse_version: u8) -> String {
        match format {
            OutputFormat::Normal => self.text(),
            OutputFormat::Terse => self.terse(terse_version),
            OutputFormat::Json => self.json(false).pretty() + "\n",
            OutputFormat::JsonPlus => self.json(true).pretty() + "\n",
            OutputFormat::JsonLines => self.json(false).compact() + "\n",
        }
    }

    /// The result in every format a run asked for: terse first, then JSON, then text, as fio does.
    ///
    /// A status interval writes this again and again; readers of JSON take it as a stream of objects.
    pub fn formatted(&self, run: &RunOptions) -> String {
        let rank = |format: &OutputFormat| match format {
            OutputFormat::Terse => 0,
            OutputFormat::Json | OutputFormat::JsonPlus | OutputFormat::JsonLines => 1,
            OutputFormat::Normal => 2,
        };
        let mut formats = run.formats.clone();
        formats.sort_by_key(rank);
        let mut text: String = formats
            .iter()
            .map(|f| self.format(*f, run.terse_version))
            .collect();
        if run.append_terse && !formats.contains(&OutputFormat::Terse) {
            text.push_str(&self.terse(run.terse_version));
        }
        text
    }
}
