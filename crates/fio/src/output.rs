//! Results in fio's formats.
//!
//! An engine fills [`RunResult`] with what it counted; the writers add percentiles, buckets and units,
//! nothing else, so that all formats agree on every number.

mod histogram;
mod json;
mod json_value;
mod result;
mod stats;
mod terse;
mod text;
mod units;
mod view;

pub use histogram::{BUCKETS, Bucket, GROUP_BUCKETS, GROUPS, Histogram};
pub use json_value::Json;
pub use result::{
    CpuUsage, DepthCounts, Direction, DiskUtil, JobResult, Latency, LatencyBuckets, LatencyDepth,
    RunResult, SteadyResult,
};
pub use stats::Stats;
pub use units::{Unit, shorten, time_in_words};

/// Percentiles shown unless `percentile_list` says otherwise.
pub const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Version whose formats are written; the start of `fio version`.
pub const FIO_VERSION: &str = "fio-3.33";
