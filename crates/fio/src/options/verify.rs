//! Options about checking what was written.

use super::setter::{Set, U32, boolean, flag, n8, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::VerifyKind;
use crate::value::{self};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
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
        "verify_async_cpus",
        &[],
        Next,
        "",
        "CPUs the threads that check may use",
        Set::Custom("CPU numbers and ranges by comma (0-3,6)", |j, v| {
            j.verify.async_cpus = super::control::cpus(v)?;
            Ok(())
        }),
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
            j.verify.backlog_batch = (v != 0).then(|| n32(v));
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
];
