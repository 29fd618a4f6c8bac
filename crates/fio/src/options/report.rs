//! Options about what is measured and shown.

use super::setter::{Set, U32, boolean, flag, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{Job, SteadyLimit, SteadyMetric, UnifiedReporting};
use crate::value::{self, Bare, Reason};
use Tier::{Must, Next};

const SECONDS: Bare = Bare::Seconds;
/// Most percentiles fio lists.
const PERCENTILES: usize = 20;

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "group_reporting",
        &[],
        Must,
        "",
        "One report for the clones of a group",
        flag!(report.group_reporting),
    ),
    opt(
        "stats",
        &[],
        Next,
        "1",
        "Report the job at all",
        boolean!(report.stats),
    ),
    opt(
        "percentile_list",
        &[],
        Must,
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "Percentiles shown",
        Set::Custom("numbers from 0 to 100 by colon, at most 20", percentiles),
    ),
    opt(
        "clat_percentiles",
        &[],
        Next,
        "1",
        "Percentiles of completion latency",
        boolean!(report.clat_percentiles),
    ),
    opt(
        "lat_percentiles",
        &[],
        Next,
        "0",
        "Percentiles of total latency",
        boolean!(report.lat_percentiles),
    ),
    opt(
        "slat_percentiles",
        &[],
        Next,
        "0",
        "Percentiles of submission latency",
        boolean!(report.slat_percentiles),
    ),
    opt(
        "significant_figures",
        &[],
        Next,
        "4",
        "Digits of the figures in the text",
        Set::Int(1, 10, |j, v| j.report.significant_figures = n32(v)),
    ),
    opt(
        "disk_util",
        &[],
        Next,
        "1",
        "Report the disks",
        boolean!(report.disk_util),
    ),
    opt(
        "gtod_reduce",
        &[],
        Must,
        "0",
        "Ask for the time as rarely as possible",
        Set::Bool(|j, on| {
            j.report.gtod_reduce = on;
            j.report.disable_lat = on;
            j.report.disable_clat = on;
            j.report.disable_slat = on;
            j.report.disable_bw = on;
            j.report.clat_percentiles = !on;
        }),
    ),
    opt(
        "disable_lat",
        &[],
        Must,
        "0",
        "Do not measure total latency",
        boolean!(report.disable_lat),
    ),
    opt(
        "disable_clat",
        &[],
        Must,
        "0",
        "Do not measure completion latency",
        boolean!(report.disable_clat),
    ),
    opt(
        "disable_slat",
        &[],
        Must,
        "0",
        "Do not measure submission latency",
        boolean!(report.disable_slat),
    ),
    opt(
        "disable_bw_measurement",
        &["disable_bw"],
        Next,
        "0",
        "Do not sample the bandwidth",
        boolean!(report.disable_bw),
    ),
    opt(
        "bwavgtime",
        &[],
        Next,
        "500",
        "Length of a bandwidth sample, in ms",
        Set::Int(0, U32, |j, v| j.report.bwavgtime = millis(v)),
    ),
    opt(
        "iopsavgtime",
        &[],
        Next,
        "500",
        "Length of an IOPS sample, in ms",
        Set::Int(0, U32, |j, v| j.report.iopsavgtime = millis(v)),
    ),
    opt(
        "unified_rw_reporting",
        &[],
        Next,
        "none",
        "One figure for all directions",
        word!(UnifiedReporting, report.unified),
    ),
    opt(
        "kb_base",
        &[],
        Next,
        "1024",
        "What k means",
        Set::Words(&["1024", "1000"], |j, v| {
            j.report.kb_base = if v == "1000" { 1000 } else { 1024 }
        }),
    ),
    opt(
        "unit_base",
        &[],
        Next,
        "0",
        "Bits (1) or bytes (8) in the text",
        Set::Words(&["0", "8", "1"], |j, v| {
            j.report.unit_base = v.parse().unwrap_or(0);
        }),
    ),
    opt(
        "steadystate",
        &["ss"],
        Next,
        "iops_slope:0.01%",
        "When the job counts as steady",
        Set::Custom(
            "iops, iops_slope, bw or bw_slope, then :LIMIT or :PERCENT%",
            steadystate,
        ),
    ),
    opt(
        "steadystate_duration",
        &["ss_dur"],
        Next,
        "0",
        "How long it must be steady",
        Set::Time(SECONDS, |j, v| j.report.steadystate.duration = v),
    ),
    opt(
        "steadystate_ramp_time",
        &["ss_ramp"],
        Next,
        "0",
        "Wait before judging",
        Set::Time(SECONDS, |j, v| j.report.steadystate.ramp = v),
    ),
    opt(
        "steadystate_check_interval",
        &["ss_interval"],
        Next,
        "1",
        "Length of a sample it is judged by",
        Set::Time(SECONDS, |j, v| {
            j.report.steadystate.interval = v.max(std::time::Duration::from_millis(10));
        }),
    ),
    opt(
        "block_error_percentiles",
        &[],
        Next,
        "0",
        "Histogram of trim errors",
        Set::Bool(|_, _| {}),
    )
    .unmodelled(),
];

const fn millis(value: u64) -> std::time::Duration {
    std::time::Duration::from_millis(value)
}

fn percentiles(job: &mut Job, text: &str) -> Result<(), Reason> {
    let mut list = value::floats(text, 0.0, 100.0, PERCENTILES)?;
    list.sort_by(f64::total_cmp);
    let same = list.len() == crate::output::DEFAULT_PERCENTILES.len()
        && list
            .iter()
            .zip(crate::output::DEFAULT_PERCENTILES)
            .all(|(a, b)| (a - b).abs() < f64::EPSILON);
    job.report.percentiles = (!same).then_some(list);
    Ok(())
}

fn steadystate(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (word, limit) = text.split_once(':').ok_or_else(|| {
        "the limit is missing; write for example iops:5% or bw_slope:0.1%".to_owned()
    })?;
    let metric = SteadyMetric::from_word(word)
        .ok_or_else(|| super::suggest::wrong_word(word, SteadyMetric::WORDS))?;
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x >= 0.0)
            .ok_or_else(|| format!("{text} is no limit"))
    };
    let limit = match limit.strip_suffix('%') {
        Some(percent) => SteadyLimit::Percent(number(percent)?),
        None if matches!(metric, SteadyMetric::Bw | SteadyMetric::BwSlope) => {
            SteadyLimit::Absolute(value::size(limit, job.report.kb_base)? as f64)
        }
        None => SteadyLimit::Absolute(number(limit)?),
    };
    job.report.steadystate.metric = metric;
    job.report.steadystate.limit = limit;
    Ok(())
}
