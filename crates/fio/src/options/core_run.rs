//! Options about the course of a job: clones, time, pace, buffers, verification, replay.

use super::setter::{Set, U32, boolean, flag, n8, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{
    CpusPolicy, DedupeMode, ErrorMask, ExitWhat, Job, RateProcess, ThinkBlocksType, VerifyKind,
};
use crate::value::{self, Bare, Reason};
use Tier::{Must, Next, Noted, Refused};

const EXEC: &str = "commands of a job file are not run";
const SECONDS: Bare = Bare::Seconds;
const MICROS: Bare = Bare::Micros;

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
            j.control.flow_sleep = std::time::Duration::from_micros(v)
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
    opt(
        "exec_prerun",
        &[],
        Refused,
        "",
        "Command before the job",
        Set::Refused(EXEC),
    ),
    opt(
        "exec_postrun",
        &[],
        Refused,
        "",
        "Command after the job",
        Set::Refused(EXEC),
    ),
    opt(
        "profile",
        &[],
        Refused,
        "",
        "Built-in test",
        Set::Refused("there are no built-in profiles; write the job out"),
    ),
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
    opt(
        "zero_buffers",
        &[],
        Next,
        "",
        "Buffers of zeros",
        flag!(buffers.zero),
    ),
    opt(
        "refill_buffers",
        &[],
        Must,
        "",
        "New content for each write",
        flag!(buffers.refill),
    ),
    opt(
        "scramble_buffers",
        &[],
        Next,
        "1",
        "Small changes before each write",
        boolean!(buffers.scramble),
    ),
    opt(
        "buffer_pattern",
        &[],
        Next,
        "",
        "Content of the buffers",
        Set::Custom(
            "0x hex, a number, \"text\", 'file' or %o, joined",
            |j, v| {
                j.buffers.pattern = Some(value::pattern(v)?);
                Ok(())
            },
        ),
    ),
    opt(
        "buffer_compress_percentage",
        &[],
        Next,
        "",
        "How compressible buffers are",
        Set::Int(0, 100, |j, v| j.buffers.compress_percent = Some(n8(v))),
    ),
    opt(
        "buffer_compress_chunk",
        &[],
        Next,
        "512",
        "Length of compressible pieces",
        Set::Int(0, U32, |j, v| j.buffers.compress_chunk = v),
    ),
    opt(
        "dedupe_percentage",
        &[],
        Next,
        "",
        "Share of buffers that repeat",
        Set::Int(0, 100, |j, v| j.buffers.dedupe_percent = Some(n8(v))),
    ),
    opt(
        "dedupe_mode",
        &[],
        Next,
        "repeat",
        "How buffers repeat",
        word!(DedupeMode, buffers.dedupe_mode),
    ),
    opt(
        "dedupe_working_set_percentage",
        &[],
        Next,
        "5",
        "Working set that repeats are taken from",
        Set::Int(0, 100, |j, v| j.buffers.dedupe_working_set_percent = n8(v)),
    ),
    opt(
        "dedupe_global",
        &[],
        Next,
        "0",
        "Share repeats across jobs",
        boolean!(buffers.dedupe_global),
    ),
    opt(
        "verify",
        &[],
        Must,
        "0",
        "What each block carries to be checked",
        word!(VerifyKind, verify.kind),
    ),
    opt(
        "do_verify",
        &[],
        Must,
        "1",
        "Read back after writing",
        boolean!(verify.do_verify),
    ),
    opt(
        "verify_only",
        &[],
        Next,
        "",
        "Check what an earlier run wrote",
        flag!(verify.only),
    ),
    opt(
        "verify_interval",
        &[],
        Next,
        "",
        "A header every this many bytes",
        Set::Int(80, U32, |j, v| j.verify.interval = Some(n32(v))),
    ),
    opt(
        "verify_offset",
        &[],
        Next,
        "",
        "Where in the interval the header stands",
        Set::Int(40, U32, |j, v| j.verify.offset = n32(v)),
    ),
    opt(
        "verify_pattern",
        &[],
        Must,
        "",
        "Content that is checked",
        Set::Custom(
            "0x hex, a number, \"text\", 'file' or %o, joined",
            |j, v| {
                j.verify.pattern = Some(value::pattern(v)?);
                Ok(())
            },
        ),
    ),
    opt(
        "verify_fatal",
        &[],
        Must,
        "0",
        "Stop at the first mismatch",
        boolean!(verify.fatal),
    ),
    opt(
        "verify_dump",
        &[],
        Must,
        "0",
        "Write mismatching blocks to files",
        boolean!(verify.dump),
    ),
    opt(
        "verify_async",
        &[],
        Next,
        "0",
        "Threads that check",
        Set::Int(0, U32, |j, v| j.verify.async_threads = n32(v)),
    ),
    opt(
        "verify_backlog",
        &[],
        Must,
        "",
        "Check after this many writes",
        Set::Int(0, u64::MAX, |j, v| j.verify.backlog = (v != 0).then_some(v)),
    ),
    opt(
        "verify_backlog_batch",
        &[],
        Next,
        "",
        "Blocks checked in one go",
        Set::Int(0, U32, |j, v| {
            j.verify.backlog_batch = (v != 0).then(|| n32(v))
        }),
    ),
    opt(
        "experimental_verify",
        &[],
        Next,
        "0",
        "Check by replaying the sequence",
        boolean!(verify.experimental),
    ),
    opt(
        "verify_state_load",
        &[],
        Next,
        "0",
        "Load the state of an earlier run",
        boolean!(verify.state_load),
    ),
    opt(
        "verify_state_save",
        &[],
        Must,
        "1",
        "Save the state at the end",
        boolean!(verify.state_save),
    ),
    opt(
        "trim_percentage",
        &[],
        Next,
        "0",
        "Verify blocks that are trimmed",
        Set::Int(0, 100, |j, v| j.access.trim_percentage = n8(v)),
    ),
    opt(
        "trim_verify_zero",
        &[],
        Next,
        "1",
        "Trimmed blocks must read as zeros",
        Set::Bool(|_, _| {}),
    )
    .unmodelled(),
    opt(
        "trim_backlog",
        &[],
        Next,
        "",
        "Trim after this many writes",
        Set::Int(0, u64::MAX, |_, _| {}),
    )
    .unmodelled(),
    opt(
        "trim_backlog_batch",
        &[],
        Next,
        "",
        "Blocks trimmed in one go",
        Set::Int(0, U32, |_, _| {}),
    )
    .unmodelled(),
    opt(
        "read_iolog",
        &[],
        Next,
        "",
        "Replay this log",
        Set::Text(|j, v| j.replay.read_iolog = value::names(v)),
    ),
    opt(
        "read_iolog_chunked",
        &[],
        Next,
        "0",
        "Read the log piece by piece",
        boolean!(replay.chunked),
    ),
    opt(
        "write_iolog",
        &[],
        Next,
        "",
        "Log the I/Os to this file",
        Set::Text(|j, v| j.replay.write_iolog = Some(v.to_owned())),
    ),
    opt(
        "replay_no_stall",
        &[],
        Next,
        "0",
        "Replay as fast as it goes",
        boolean!(replay.no_stall),
    ),
    opt(
        "replay_redirect",
        &[],
        Next,
        "",
        "Replay everything onto this file",
        Set::Text(|j, v| j.replay.redirect = Some(v.to_owned())),
    ),
    opt(
        "replay_scale",
        &[],
        Next,
        "1",
        "Divide offsets by this",
        Set::Int(0, U32, |j, v| j.replay.scale = n32(v).max(1)),
    ),
    opt(
        "replay_align",
        &[],
        Next,
        "0",
        "Round offsets down to this",
        Set::Int(0, U32, |j, v| j.replay.align = n32(v)),
    ),
    opt(
        "replay_time_scale",
        &[],
        Next,
        "100",
        "Gaps in percent",
        Set::Int(1, U32, |j, v| j.replay.time_scale = n32(v)),
    ),
    opt(
        "replay_skip",
        &[],
        Next,
        "",
        "Kinds left out",
        Set::Custom("read, write, trim, sync by comma", replay_skip),
    ),
    opt(
        "merge_blktrace_file",
        &[],
        Refused,
        "",
        "Merge traces into this file",
        Set::Refused("binary block traces are not read"),
    ),
    opt(
        "merge_blktrace_scalars",
        &[],
        Refused,
        "",
        "Scale merged traces",
        Set::Refused("binary block traces are not read"),
    ),
    opt(
        "merge_blktrace_iters",
        &[],
        Refused,
        "",
        "Repeat merged traces",
        Set::Refused("binary block traces are not read"),
    ),
    opt(
        "nice",
        &[],
        Noted,
        "0",
        "Nice value",
        Set::Custom("a number, -20 to 19", |_, v| match v.parse::<i32>() {
            Ok(-20..=19) => Ok(()),
            _ => Err("must be between -20 and 19".to_owned()),
        }),
    ),
    opt(
        "prio",
        &[],
        Noted,
        "",
        "I/O priority",
        Set::Int(0, 7, |_, _| {}),
    ),
    opt(
        "prioclass",
        &[],
        Noted,
        "",
        "I/O priority class",
        Set::Int(0, 3, |_, _| {}),
    ),
    opt(
        "ioscheduler",
        &[],
        Noted,
        "",
        "I/O scheduler of the device",
        Set::Text(|_, _| {}),
    ),
    opt(
        "write_hint",
        &[],
        Noted,
        "",
        "Expected life of what is written",
        Set::Words(&["none", "short", "medium", "long", "extreme"], |_, _| {}),
    ),
    opt(
        "lockmem",
        &[],
        Noted,
        "0",
        "Lock this much memory",
        Set::Int(0, u64::MAX, |_, _| {}),
    ),
    opt(
        "mem",
        &["iomem"],
        Next,
        "malloc",
        "Where buffers come from",
        Set::Custom(
            "malloc, shm, shmhuge, mmap, mmapshared or mmaphuge, and :FILE behind it",
            mem,
        ),
    )
    .unmodelled(),
    opt(
        "iomem_align",
        &["mem_align"],
        Noted,
        "",
        "Alignment of buffers",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "hugepage-size",
        &[],
        Noted,
        "2097152",
        "Size of huge pages",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "numa_cpu_nodes",
        &[],
        Noted,
        "",
        "NUMA nodes to run on",
        Set::Text(|_, _| {}),
    ),
    opt(
        "numa_mem_policy",
        &[],
        Noted,
        "",
        "NUMA policy of the memory",
        Set::Text(|_, _| {}),
    ),
    opt(
        "cgroup",
        &[],
        Noted,
        "",
        "Control group",
        Set::Text(|_, _| {}),
    ),
    opt(
        "cgroup_weight",
        &[],
        Noted,
        "",
        "Weight of the control group",
        Set::Int(100, 1000, |_, _| {}),
    ),
    opt(
        "cgroup_nodelete",
        &[],
        Noted,
        "0",
        "Keep the control group",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "uid",
        &[],
        Noted,
        "",
        "User to run as",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "gid",
        &[],
        Noted,
        "",
        "Group to run as",
        Set::Int(0, U32, |_, _| {}),
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

fn startdelay(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (first, second) = text.split_once(['-', ':']).unwrap_or((text, text));
    let first = value::duration(first, SECONDS)?;
    let second = value::duration(second, SECONDS)?;
    job.control.startdelay = (first.min(second), first.max(second));
    Ok(())
}

fn cpus(text: &str) -> Result<Vec<u32>, Reason> {
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
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        list.extend(first.min(last)..=first.max(last));
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

fn replay_skip(job: &mut Job, text: &str) -> Result<(), Reason> {
    for word in text.split(',') {
        let skip = &mut job.replay.skip;
        match word.trim() {
            "read" => skip.read = true,
            "write" => skip.write = true,
            "trim" => skip.trim = true,
            "sync" | "flush" => skip.sync = true,
            other => {
                return Err(super::suggest::wrong_word(
                    other,
                    &["read", "write", "trim", "sync"],
                ));
            }
        }
    }
    Ok(())
}

fn mem(_: &mut Job, text: &str) -> Result<(), Reason> {
    const WORDS: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
    let word = text.split(':').next().unwrap_or(text);
    if WORDS.contains(&word) {
        Ok(())
    } else {
        Err(super::suggest::wrong_word(word, WORDS))
    }
}
