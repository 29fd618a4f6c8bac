//! Options about how much, from where, how long a file.

use super::setter::{Set, boolean};
use super::{OptionDef, Tier, opt};
use crate::job::Amount;
use crate::value::{self};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "size",
        &[],
        Must,
        "",
        "Size of the region, over all files of the job",
        Set::Custom("a size or a share of the file (512m, 50%)", |j, v| {
            let size = value::amount(v, j.report.kb_base)?;
            if matches!(size, Amount::Bytes(0) | Amount::Percent(0)) {
                return Err(
                    "a job of size 0 does nothing; give the bytes to work on, for example 64m"
                        .to_owned(),
                );
            }
            j.extent.size = Some(size);
            Ok(())
        }),
    ),
    opt(
        "io_size",
        &["io_limit"],
        Must,
        "",
        "Bytes to transfer, less or more than the size",
        Set::Amount(|j, v| j.extent.io_size = Some(v).filter(|v| *v != Amount::Bytes(0))),
    ),
    opt(
        "fill_device",
        &["fill_fs"],
        Next,
        "0",
        "Write until no space is left",
        boolean!(extent.fill_device),
    ),
    opt(
        "filesize",
        &[],
        Must,
        "",
        "Size of each file, or a range of sizes",
        Set::Custom("a size or a range of sizes", |j, v| {
            let base = j.report.kb_base;
            let range = if v.contains(['-', ':']) {
                value::range(v, base, 1)?
            } else {
                let size = value::number(v, base, 1, u64::MAX)?;
                (size, size)
            };
            j.files.filesize = Some(range);
            Ok(())
        }),
    ),
    opt(
        "file_append",
        &[],
        Next,
        "0",
        "Start at the end of the file",
        boolean!(extent.file_append),
    ),
    opt(
        "offset",
        &["fileoffset"],
        Must,
        "0",
        "Where the region starts",
        Set::Amount(|j, v| j.extent.offset = Some(v).filter(|v| *v != Amount::Bytes(0))),
    ),
    opt(
        "offset_increment",
        &[],
        Next,
        "0",
        "Added to the offset for each clone, times its number",
        Set::Amount(|j, v| j.extent.offset_increment = Some(v).filter(|v| *v != Amount::Bytes(0))),
    ),
    opt(
        "offset_align",
        &[],
        Next,
        "0",
        "The offset is rounded down to this",
        Set::Int(0, u64::MAX, |j, v| j.extent.offset_align = v),
    ),
    opt(
        "number_ios",
        &[],
        Next,
        "0",
        "Stop after this many I/Os",
        Set::Int(0, u64::MAX, |j, v| {
            j.extent.number_ios = (v != 0).then_some(v);
        }),
    ),
];
