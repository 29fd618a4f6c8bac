//! Options about what is done: direction, order, block sizes.

use super::setter::{Set, U32, boolean, flag, n8, word};
use super::{OptionDef, Tier, opt};
use crate::job::{BlockSizes, Ddir, Job, RwMode, RwSequencer, RwStep};
use crate::value::{self, Reason};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "description",
        &[],
        Must,
        "",
        "Text shown with the results",
        Set::Text(|j, v| j.description = Some(v.to_owned())),
    ),
    opt(
        "name",
        &[],
        Must,
        "",
        "Name of the job",
        Set::Text(|j, v| v.clone_into(&mut j.name)),
    ),
    opt(
        "rw",
        &["readwrite"],
        Must,
        "read",
        "Direction and order of the I/O",
        Set::Custom(
            "a mode, and :N behind it (randread, write:64k, randrw:8)",
            rw,
        ),
    ),
    opt(
        "bs",
        &["blocksize"],
        Must,
        "4096",
        "Block size",
        Set::Sizes(1, u64::MAX, |j, v| {
            for (dir, size) in [
                (Ddir::Read, v.read),
                (Ddir::Write, v.write),
                (Ddir::Trim, v.trim),
            ] {
                let slot = j.access.bs.get_mut(dir);
                // A range or split keeps its place: in fio the more detailed option wins in any order.
                if let (Some(size), BlockSizes::Fixed(old)) = (size, slot) {
                    *old = size;
                }
            }
        }),
    ),
    opt(
        "ba",
        &["blockalign"],
        Next,
        "",
        "Alignment of random offsets",
        Set::Sizes(1, u64::MAX, |j, v| v.store(&mut j.access.align, Some)),
    ),
    opt(
        "bsrange",
        &["blocksize_range"],
        Must,
        "",
        "Range of block sizes",
        Set::Custom("one to three ranges (1k-4k, 1k-4k/8k-32k)", |j, v| {
            let ranges = value::ranges(v, j.report.kb_base, 1)?;
            for (dir, range) in [
                (Ddir::Read, ranges.read),
                (Ddir::Write, ranges.write),
                (Ddir::Trim, ranges.trim),
            ] {
                let slot = j.access.bs.get_mut(dir);
                if let (Some((min, max)), false) = (range, matches!(slot, BlockSizes::Split(_))) {
                    *slot = BlockSizes::Range { min, max };
                }
            }
            Ok(())
        }),
    ),
    opt(
        "bssplit",
        &[],
        Next,
        "",
        "Block sizes with their shares",
        Set::Custom("sizes with shares (4k/50:8k/:16k/)", |j, v| {
            let lists = value::bssplit(v, j.report.kb_base)?;
            lists.store(&mut j.access.bs, BlockSizes::Split);
            Ok(())
        }),
    ),
    opt(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Next,
        "",
        "Any length within the range",
        flag!(access.bs_unaligned),
    ),
    opt(
        "bs_is_seq_rand",
        &[],
        Next,
        "0",
        "Read size for sequential, write size for random I/O",
        boolean!(access.bs_is_seq_rand),
    ),
    opt(
        "rw_sequencer",
        &[],
        Next,
        "sequential",
        "What the I/Os between two draws do",
        word!(RwSequencer, access.sequencer),
    ),
    opt(
        "rwmixread",
        &[],
        Must,
        "50",
        "Reads in percent of mixed I/O",
        Set::Int(0, 100, |j, v| j.access.rwmixread = n8(v)),
    ),
    opt(
        "rwmixwrite",
        &[],
        Must,
        "50",
        "Writes in percent of mixed I/O",
        Set::Int(0, 100, |j, v| j.access.rwmixread = 100 - n8(v).min(100)),
    ),
    opt(
        "percentage_random",
        &[],
        Next,
        "100,100,100",
        "How much of a random mode is random",
        Set::Sizes(0, 100, |j, v| v.store(&mut j.access.percentage_random, n8)),
    ),
];

fn rw(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (word, step) = match text.split_once(':') {
        Some((word, step)) => (word, Some(step)),
        None => (text, None),
    };
    let mode =
        RwMode::from_word(word).ok_or_else(|| super::suggest::wrong_word(word, RwMode::WORDS))?;
    let base = job.report.kb_base;
    let step = match step {
        None => None,
        Some(n) if mode.is_random() => Some(RwStep::Every(value::number(n, base, 1, U32)?)),
        Some(n) => {
            let (sign, digits) = n.strip_prefix('-').map_or((1, n), |rest| (-1, rest));
            let bytes =
                i64::try_from(value::size(digits, base)?).map_err(|_| "too large".to_owned())?;
            Some(RwStep::Skip(sign * bytes))
        }
    };
    job.access.rw = mode;
    job.access.step = step;
    Ok(())
}
