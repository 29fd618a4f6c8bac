//! Options about log files.

use super::setter::{Set, U32, boolean, n32};
use super::{OptionDef, Tier, opt};
use Tier::{Must, Next, Noted};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "write_bw_log",
        &[],
        Must,
        "",
        "Log of the bandwidth",
        Set::OptText(|j, v| j.logs.bw = Some(v.to_owned())),
    ),
    opt(
        "write_lat_log",
        &[],
        Must,
        "",
        "Logs of the latencies",
        Set::OptText(|j, v| j.logs.lat = Some(v.to_owned())),
    ),
    opt(
        "write_iops_log",
        &[],
        Must,
        "",
        "Log of the IOPS",
        Set::OptText(|j, v| j.logs.iops = Some(v.to_owned())),
    ),
    opt(
        "write_hist_log",
        &[],
        Next,
        "",
        "Log of the histograms",
        Set::OptText(|j, v| j.logs.hist = Some(v.to_owned())),
    ),
    opt(
        "per_job_logs",
        &[],
        Next,
        "1",
        "The job's number in the names of its logs",
        boolean!(logs.per_job),
    ),
    opt(
        "log_avg_msec",
        &[],
        Must,
        "0",
        "Average logs over this long, in ms",
        Set::Int(0, U32, |j, v| j.logs.avg = millis(v)),
    ),
    opt(
        "log_hist_msec",
        &[],
        Next,
        "0",
        "Log histograms this often, in ms",
        Set::Int(0, U32, |j, v| j.logs.hist_every = millis(v)),
    ),
    opt(
        "log_hist_coarseness",
        &[],
        Next,
        "0",
        "Halve the bins this often",
        Set::Int(0, 6, |j, v| j.logs.hist_coarseness = n32(v)),
    ),
    opt(
        "log_max_value",
        &["log_window_value"],
        Next,
        "0",
        "Log the largest of a window, its mean, or both",
        Set::Words(&["0", "1", "avg", "max", "both"], |j, v| {
            j.logs.max_value = v == "1" || v == "max";
            j.logs.both_values = v == "both";
        }),
    ),
    opt(
        "log_issue_time",
        &[],
        Next,
        "0",
        "A column with the time of issue",
        boolean!(logs.issue_time),
    ),
    opt(
        "log_offset",
        &[],
        Next,
        "0",
        "A column with the offset",
        boolean!(logs.offset),
    ),
    opt(
        "log_prio",
        &[],
        Next,
        "0",
        "A column with the priority",
        boolean!(logs.prio),
    ),
    opt(
        "log_unix_epoch",
        &[],
        Next,
        "0",
        "Times since 1970 in logs",
        boolean!(logs.unix_epoch),
    ),
    opt(
        "log_alternate_epoch",
        &[],
        Next,
        "0",
        "Times of another clock in logs",
        boolean!(logs.unix_epoch),
    ),
    opt(
        "log_alternate_epoch_clock_id",
        &[],
        Next,
        "0",
        "Which clock",
        Set::Int(0, U32, |_, _| {}),
    )
    .unmodelled(),
    opt(
        "log_entries",
        &[],
        Noted,
        "1024",
        "Room for entries of a log",
        Set::Int(1024, 1_048_576, |_, _| {}),
    ),
    opt(
        "log_compression",
        &[],
        Noted,
        "",
        "Compress logs in memory",
        Set::Int(1024, 536_870_912, |_, _| {}),
    ),
    opt(
        "log_compression_cpus",
        &[],
        Noted,
        "",
        "CPUs that compress",
        Set::Text(|_, _| {}),
    ),
    opt(
        "log_store_compressed",
        &[],
        Next,
        "0",
        "Store logs compressed",
        Set::Bool(|_, _| {}),
    )
    .unmodelled(),
];

const fn millis(value: u64) -> std::time::Duration {
    std::time::Duration::from_millis(value)
}
