//! Options about rates, think time and latency targets.

use super::setter::{Set, U32, boolean, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{RateProcess, ThinkBlocksType};
use crate::value::{self, Bare};
use Tier::{Must, Next};

const SECONDS: Bare = Bare::Seconds;
const MICROS: Bare = Bare::Micros;

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "rate",
        &[],
        Must,
        "",
        "Bytes per second",
        Set::Sizes(0, u64::MAX, |j, v| v.store(&mut j.pace.rate, some)),
    ),
    opt(
        "rate_min",
        &["ratemin"],
        Next,
        "",
        "Bytes per second below which the job fails",
        Set::Sizes(0, u64::MAX, |j, v| v.store(&mut j.pace.rate_min, some)),
    ),
    opt(
        "rate_iops",
        &[],
        Next,
        "",
        "I/Os per second",
        Set::Sizes(0, U32, |j, v| v.store(&mut j.pace.rate_iops, some32)),
    ),
    opt(
        "rate_iops_min",
        &[],
        Next,
        "",
        "I/Os per second below which the job fails",
        Set::Sizes(0, U32, |j, v| v.store(&mut j.pace.rate_iops_min, some32)),
    ),
    opt(
        "rate_process",
        &[],
        Next,
        "linear",
        "How the starts are spread",
        word!(RateProcess, pace.process),
    ),
    opt(
        "rate_cycle",
        &["ratecycle"],
        Next,
        "1000",
        "Over which the minimum rates are averaged, in ms",
        Set::Int(0, U32, |j, v| j.pace.cycle = millis(v)),
    ),
    opt(
        "rate_ignore_thinktime",
        &[],
        Next,
        "0",
        "Catch up for think time",
        boolean!(pace.ignore_thinktime),
    ),
    opt(
        "thinktime",
        &[],
        Next,
        "0",
        "Pause between I/Os",
        Set::Time(MICROS, |j, v| j.pace.thinktime = v),
    ),
    opt(
        "thinktime_spin",
        &[],
        Next,
        "0",
        "Part of the pause spent spinning",
        Set::Time(MICROS, |j, v| j.pace.thinktime_spin = v),
    ),
    opt(
        "thinktime_blocks",
        &[],
        Next,
        "1",
        "I/Os between two pauses",
        Set::Int(0, U32, |j, v| j.pace.thinktime_blocks = n32(v)),
    ),
    opt(
        "thinktime_blocks_type",
        &[],
        Next,
        "complete",
        "What thinktime_blocks counts",
        word!(ThinkBlocksType, pace.thinktime_blocks_type),
    ),
    opt(
        "thinktime_iotime",
        &[],
        Next,
        "0",
        "Time of I/O between two pauses",
        Set::Time(SECONDS, |j, v| j.pace.thinktime_iotime = v),
    ),
    opt(
        "max_latency",
        &[],
        Next,
        "",
        "Stop the job when one I/O takes longer",
        Set::Time(MICROS, |j, v| j.pace.latency.max = v),
    ),
    opt(
        "latency_target",
        &[],
        Next,
        "",
        "Find the depth that keeps this latency",
        Set::Time(MICROS, |j, v| j.pace.latency.target = v),
    ),
    opt(
        "latency_window",
        &[],
        Next,
        "",
        "How long the latency must hold",
        Set::Time(MICROS, |j, v| j.pace.latency.window = v),
    ),
    opt(
        "latency_percentile",
        &[],
        Next,
        "100",
        "Share of I/Os that must keep it",
        Set::Custom("a number, 0 to 100", |j, v| {
            let list = value::floats(v, 0.0, 100.0, 1)?;
            j.pace.latency.percentile = list.first().copied().unwrap_or(100.0);
            Ok(())
        }),
    ),
    opt(
        "latency_run",
        &[],
        Next,
        "0",
        "Go on adjusting the depth",
        boolean!(pace.latency.keep_running),
    ),
];

#[expect(
    clippy::unnecessary_wraps,
    reason = "the tables want a function into an option"
)]
fn some(value: u64) -> Option<u64> {
    Some(value)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the tables want a function into an option"
)]
fn some32(value: u64) -> Option<u32> {
    Some(n32(value))
}

const fn millis(value: u64) -> std::time::Duration {
    std::time::Duration::from_millis(value)
}
