//! Options about clones, order, time and ends.

use super::setter::{Set, U32, flag, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{CpusPolicy, ErrorMask, ExitWhat, Job};
use crate::value::{self, Bare, Reason};
use Tier::{Must, Next};

const SECONDS: Bare = Bare::Seconds;

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "loops",
        &[],
        Must,
        "1",
        "Times the job is run over",
        Set::Int(0, U32, |j, v| j.control.loops = n32(v).max(1)),
    ),
    opt(
        "numjobs",
        &[],
        Must,
        "1",
        "Clones of the job",
        Set::Int(1, U32, |j, v| j.control.numjobs = n32(v)),
    ),
    opt(
        "startdelay",
        &[],
        Next,
        "0",
        "Wait before starting, or a range to draw from",
        Set::Custom("a time or a range of times", startdelay),
    ),
    opt(
        "runtime",
        &["timeout"],
        Must,
        "0",
        "Stop after this time",
        Set::Time(SECONDS, |j, v| j.control.runtime = v),
    ),
    opt(
        "time_based",
        &[],
        Must,
        "",
        "Repeat until the runtime is over",
        flag!(control.time_based),
    ),
    opt(
        "ramp_time",
        &[],
        Must,
        "",
        "Run this long before measuring",
        Set::Time(SECONDS, |j, v| j.control.ramp_time = v),
    ),
    opt(
        "thread",
        &[],
        Must,
        "",
        "A thread instead of a process",
        flag!(control.thread),
    ),
    opt(
        "stonewall",
        &["wait_for_previous"],
        Must,
        "",
        "Wait for all jobs before this one",
        flag!(control.stonewall),
    ),
    opt(
        "new_group",
        &[],
        Next,
        "",
        "Start a reporting group",
        flag!(control.new_group),
    ),
    opt(
        "wait_for",
        &[],
        Next,
        "",
        "Name of a job to wait for",
        Set::Text(|j, v| j.control.wait_for = Some(v.to_owned())),
    ),
    opt(
        "exitall",
        &[],
        Next,
        "",
        "All jobs end when this one does",
        flag!(control.exitall),
    ),
    opt(
        "exit_what",
        &[],
        Next,
        "group",
        "What exitall ends",
        word!(ExitWhat, control.exit_what),
    ),
    opt(
        "exitall_on_error",
        &[],
        Next,
        "",
        "All jobs end when this one fails",
        flag!(control.exitall_on_error),
    ),
    opt(
        "continue_on_error",
        &[],
        Next,
        "none",
        "Errors that do not end the job",
        word!(ErrorMask, control.continue_on_error),
    ),
    opt(
        "ignore_error",
        &[],
        Next,
        "",
        "Errors that are not counted",
        Set::Text(|_, _| {}),
    )
    .unmodelled(),
    opt(
        "error_dump",
        &[],
        Next,
        "0",
        "Print each error",
        Set::Bool(|_, _| {}),
    )
    .unmodelled(),
    opt(
        "exec_prerun",
        &[],
        Next,
        "",
        "Command before the job",
        Set::Text(|j, v| j.control.exec_prerun = Some(v.to_owned())),
    ),
    opt(
        "exec_postrun",
        &[],
        Next,
        "",
        "Command after the job",
        Set::Text(|j, v| j.control.exec_postrun = Some(v.to_owned())),
    ),
    opt(
        "flow",
        &[],
        Next,
        "0",
        "Weight in flow control",
        Set::Int(0, 1000, |j, v| j.control.flow = n32(v)),
    ),
    opt(
        "flow_id",
        &[],
        Next,
        "0",
        "Which flow",
        Set::Int(0, U32, |j, v| j.control.flow_id = n32(v)),
    ),
    opt(
        "flow_sleep",
        &[],
        Next,
        "0",
        "Pause after being held back, in us",
        Set::Int(0, U32, |j, v| {
            j.control.flow_sleep = std::time::Duration::from_micros(v);
        }),
    ),
    opt(
        "cpus_allowed",
        &[],
        Next,
        "",
        "CPUs the job may use",
        Set::Custom("CPU numbers and ranges by comma (0-3,6)", |j, v| {
            j.control.cpus_allowed = cpus(v)?;
            Ok(())
        }),
    ),
    opt(
        "cpumask",
        &[],
        Next,
        "",
        "CPUs the job may use, as a mask",
        Set::Int(0, U32, |j, v| {
            j.control.cpus_allowed = (0..32).filter(|bit| v >> bit & 1 == 1).collect();
        }),
    ),
    opt(
        "cpus_allowed_policy",
        &[],
        Next,
        "shared",
        "Whether clones share the CPUs",
        word!(CpusPolicy, control.cpus_policy),
    ),
];

fn startdelay(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (first, second) = text.split_once(['-', ':']).unwrap_or((text, text));
    let first = value::duration(first, SECONDS)?;
    let second = value::duration(second, SECONDS)?;
    job.control.startdelay = (first.min(second), first.max(second));
    Ok(())
}

pub(super) fn cpus(text: &str) -> Result<Vec<u32>, Reason> {
    // The kernel's own limit on CPUs; a longer range is a slip, and a list of it would be memory.
    const LIMIT: u32 = 8192;
    let number = |part: &str| {
        part.trim()
            .parse::<u32>()
            .ok()
            .filter(|n| *n < LIMIT)
            .ok_or_else(|| format!("{part} is no CPU number"))
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (number(low)?, number(high)?);
        list.extend(low.min(high)..=high.max(low));
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}
