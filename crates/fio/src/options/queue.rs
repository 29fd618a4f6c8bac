//! Options about the engine, its depth and flushes.

use super::setter::{Set, U32, boolean, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{IoEngine, Job, SubmitMode, SyncIo};
use crate::value::{self, Reason};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "ioengine",
        &[],
        Must,
        "psync",
        "Engine that does the I/O",
        Set::Custom("the name of an engine", engine),
    ),
    opt(
        "iodepth",
        &[],
        Must,
        "1",
        "I/Os kept in flight",
        Set::Int(1, U32, |j, v| j.queue.iodepth = n32(v)),
    ),
    opt(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        Must,
        "1",
        "I/Os submitted in one go",
        Set::Int(0, U32, |j, v| j.queue.batch = n32(v)),
    ),
    opt(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        Must,
        "1",
        "Completions reaped at least",
        Set::Int(0, U32, |j, v| j.queue.batch_complete_min = n32(v)),
    ),
    opt(
        "iodepth_batch_complete_max",
        &[],
        Must,
        "",
        "Completions reaped at most",
        Set::Int(0, U32, |j, v| j.queue.batch_complete_max = Some(n32(v))),
    ),
    opt(
        "iodepth_low",
        &[],
        Next,
        "",
        "Depth at which the queue is filled again",
        Set::Int(0, U32, |j, v| j.queue.iodepth_low = Some(n32(v))),
    ),
    opt(
        "serialize_overlap",
        &[],
        Next,
        "0",
        "I/Os that overlap one in flight wait",
        boolean!(queue.serialize_overlap),
    ),
    opt(
        "io_submit_mode",
        &[],
        Next,
        "inline",
        "Who submits the I/O",
        word!(SubmitMode, queue.submit_mode),
    ),
    opt(
        "direct",
        &[],
        Must,
        "0",
        "Bypass caches",
        boolean!(queue.direct),
    ),
    opt(
        "buffered",
        &[],
        Must,
        "1",
        "Go through caches; the opposite of direct",
        Set::Bool(|j, on| j.queue.direct = !on),
    ),
    opt(
        "atomic",
        &[],
        Next,
        "0",
        "Atomic direct I/O",
        Set::Bool(|j, on| {
            j.queue.atomic = on;
            j.queue.direct |= on;
        }),
    ),
    opt(
        "fsync",
        &[],
        Must,
        "0",
        "Flush after this many writes",
        Set::Int(0, U32, |j, v| j.durability.fsync = n32(v)),
    ),
    opt(
        "fdatasync",
        &[],
        Must,
        "0",
        "Flush the data after this many writes",
        Set::Int(0, U32, |j, v| j.durability.fdatasync = n32(v)),
    ),
    opt(
        "write_barrier",
        &[],
        Next,
        "0",
        "Make each this many-th write a barrier",
        Set::Int(0, U32, |j, v| j.durability.write_barrier = n32(v)),
    ),
    opt(
        "sync_file_range",
        &[],
        Next,
        "",
        "Write-out of ranges every this many writes",
        Set::Custom(
            "wait_before, write, wait_after by comma, then :N",
            sync_file_range,
        ),
    ),
    opt(
        "end_fsync",
        &[],
        Must,
        "0",
        "Flush at the end of the job",
        boolean!(durability.end_fsync),
    ),
    opt(
        "fsync_on_close",
        &[],
        Next,
        "0",
        "Flush at each close",
        boolean!(durability.fsync_on_close),
    ),
    opt(
        "sync",
        &[],
        Must,
        "none",
        "Each write is durable when it completes",
        word!(SyncIo, durability.sync),
    ),
];

fn engine(job: &mut Job, text: &str) -> Result<(), Reason> {
    // The parser looks the engine up beforehand, so as to name it in its own error.
    job.queue.ioengine = IoEngine::from_word(text)
        .ok_or_else(|| super::suggest::wrong_word(text, IoEngine::WORDS))?;
    Ok(())
}

fn sync_file_range(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (flags, count) = text
        .split_once(':')
        .map_or((text, None), |(flags, n)| (flags, Some(n)));
    let mut range = crate::job::SyncFileRange {
        every: match count {
            None => 1,
            Some(n) => n32(value::number(n, job.report.kb_base, 0, U32)?),
        },
        ..Default::default()
    };
    for flag in flags.split(',') {
        match flag {
            "wait_before" => range.wait_before = true,
            "write" => range.write = true,
            "wait_after" => range.wait_after = true,
            other => {
                return Err(super::suggest::wrong_word(
                    other,
                    &["wait_before", "write", "wait_after"],
                ));
            }
        }
    }
    job.durability.sync_file_range = range;
    Ok(())
}
