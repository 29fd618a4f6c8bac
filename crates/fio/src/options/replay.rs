//! Options about logs that are replayed or written.

use super::setter::{Set, U32, boolean, n32};
use super::{OptionDef, Tier, opt};
use crate::job::Job;
use crate::value::{self, Reason};
use Tier::Next;

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
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
];

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
