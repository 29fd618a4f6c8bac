//! Options about what buffers hold.

use super::setter::{Set, U32, boolean, flag, n8, word};
use super::{OptionDef, Tier, opt};
use crate::job::DedupeMode;
use crate::value::{self};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
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
];
