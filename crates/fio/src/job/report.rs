//! What is measured, how it is shown, and the log files.

use std::time::Duration;

use crate::words::words;

words! {
    /// `unified_rw_reporting=`.
    pub enum UnifiedReporting {
        /// Directions apart.
        None = "none" | "0",
        /// One figure for all directions.
        Mixed = "mixed" | "1",
        /// Both.
        Both = "both" | "2",
    }
}

words! {
    /// `steadystate=`: which figure must become steady.
    pub enum SteadyMetric {
        /// IOPS within a band around their mean.
        Iops = "iops",
        /// Slope of the IOPS.
        IopsSlope = "iops_slope",
        /// Bandwidth within a band around its mean.
        Bw = "bw",
        /// Slope of the bandwidth.
        BwSlope = "bw_slope",
    }
}

/// Limit of a steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SteadyLimit {
    /// Percent of the mean.
    Percent(f64),
    /// The figure itself (IOPS, or bytes per second).
    Absolute(f64),
}

/// `steadystate=` and its companions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyState {
    /// Figure watched.
    pub metric: SteadyMetric,
    /// Its limit.
    pub limit: SteadyLimit,
    /// `steadystate_duration=`: how long it must hold; zero is off.
    pub duration: Duration,
    /// `steadystate_ramp_time=`.
    pub ramp: Duration,
    /// `ss_interval=` (default 1 s): length of a sample.
    pub interval: Duration,
}

/// What is measured and how it is shown.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Report {
    /// `group_reporting`: one report for all clones of a group.
    pub group_reporting: bool,
    /// `stats=` (default 1): whether the job is reported at all.
    pub stats: bool,
    /// `percentile_list=`, ascending; `None` is fio's own list.
    pub percentiles: Option<Vec<f64>>,
    /// `clat_percentiles=` (default 1).
    pub clat_percentiles: bool,
    /// `lat_percentiles=` (default 0); turns the percentiles of clat off.
    pub lat_percentiles: bool,
    /// `slat_percentiles=` (default 0).
    pub slat_percentiles: bool,
    /// `gtod_reduce=`: no latencies, no bandwidth samples.
    pub gtod_reduce: bool,
    /// `disable_lat=`, or by `gtod_reduce`.
    pub disable_lat: bool,
    /// `disable_clat=`, or by `gtod_reduce`.
    pub disable_clat: bool,
    /// `disable_slat=`, or by `gtod_reduce`.
    pub disable_slat: bool,
    /// `disable_bw_measurement=`, or by `gtod_reduce`.
    pub disable_bw: bool,
    /// `bwavgtime=` (default 500 ms): length of a bandwidth sample.
    pub bwavgtime: Duration,
    /// `iopsavgtime=` (default 500 ms).
    pub iopsavgtime: Duration,
    /// `disk_util=` (default 1).
    pub disk_util: bool,
    /// `unified_rw_reporting=`.
    pub unified: UnifiedReporting,
    /// `significant_figures=` (default 4).
    pub significant_figures: u32,
    /// `kb_base=` (default 1024).
    pub kb_base: u32,
    /// `unit_base=`: 8 for bytes, 1 for bits, 0 for the engine's own.
    pub unit_base: u32,
    /// `steadystate=` and its companions.
    pub steadystate: SteadyState,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            group_reporting: false,
            stats: true,
            percentiles: None,
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            gtod_reduce: false,
            disable_lat: false,
            disable_clat: false,
            disable_slat: false,
            disable_bw: false,
            bwavgtime: Duration::from_millis(500),
            iopsavgtime: Duration::from_millis(500),
            disk_util: true,
            unified: UnifiedReporting::None,
            significant_figures: 4,
            kb_base: 1024,
            unit_base: 0,
            steadystate: SteadyState {
                metric: SteadyMetric::IopsSlope,
                limit: SteadyLimit::Percent(0.01),
                duration: Duration::ZERO,
                ramp: Duration::ZERO,
                interval: Duration::from_secs(1),
            },
        }
    }
}

/// Log files. A prefix of `Some("")` means the job's own name.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Logs {
    /// `write_bw_log=` prefix.
    pub bw: Option<String>,
    /// `write_lat_log=` prefix: writes the lat, clat and slat logs.
    pub lat: Option<String>,
    /// `write_iops_log=` prefix.
    pub iops: Option<String>,
    /// `write_hist_log=` prefix.
    pub hist: Option<String>,
    /// `per_job_logs=` (default 1): the job's number in the name.
    pub per_job: bool,
    /// `log_avg_msec=`: average over this long; zero logs each I/O.
    pub avg: Duration,
    /// `log_hist_msec=`.
    pub hist_every: Duration,
    /// `log_hist_coarseness=` (default 0).
    pub hist_coarseness: u32,
    /// `log_max_value=` (default 0): the largest of a window instead of its mean.
    pub max_value: bool,
    /// `log_window_value=both`: the largest of a window in a column behind its mean.
    pub both_values: bool,
    /// `log_offset=` (default 0): a column with the offset.
    pub offset: bool,
    /// `log_prio=` (default 0).
    pub prio: bool,
    /// `log_issue_time=` (default 0): a column with the time of issue in ns.
    pub issue_time: bool,
    /// `log_unix_epoch=` or `log_alternate_epoch=`: times since 1970.
    pub unix_epoch: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            bw: None,
            lat: None,
            iops: None,
            hist: None,
            per_job: true,
            avg: Duration::ZERO,
            hist_every: Duration::ZERO,
            hist_coarseness: 0,
            max_value: false,
            both_values: false,
            offset: false,
            prio: false,
            issue_time: false,
            unix_epoch: false,
        }
    }
}
