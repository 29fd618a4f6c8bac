//! Options about the files of a job.

use super::setter::{Set, U32, boolean, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{Fallocate, FileServiceType, Job};
use crate::value::{self, Reason};
use Tier::{Must, Next, Noted};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "filename",
        &[],
        Must,
        "",
        "Files to work on, by colon",
        Set::Text(|j, v| j.files.names = value::names(v)),
    ),
    opt(
        "directory",
        &[],
        Must,
        "",
        "Folders for the files, by colon",
        Set::Text(|j, v| j.files.directories = value::names(v)),
    ),
    opt(
        "filename_format",
        &[],
        Must,
        "$jobname.$jobnum.$filenum",
        "How file names are made",
        Set::Text(filename_format),
    ),
    opt(
        "unique_filename",
        &[],
        Noted,
        "1",
        "Client address in file names",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "lockfile",
        &[],
        Next,
        "none",
        "Lock on a file during I/O",
        Set::Words(&["none", "exclusive", "readwrite"], |_, _| {}),
    )
    .unmodelled(),
    opt(
        "opendir",
        &[],
        Next,
        "",
        "Add the files below a folder",
        Set::Text(|_, _| {}),
    )
    .unmodelled(),
    opt(
        "nrfiles",
        &["nr_files"],
        Must,
        "1",
        "Files the region is split over",
        Set::Int(0, U32, |j, v| j.files.nrfiles = (v > 1).then(|| n32(v))),
    ),
    opt(
        "openfiles",
        &[],
        Next,
        "",
        "Files open at a time",
        Set::Int(0, U32, |j, v| j.files.openfiles = (v != 0).then(|| n32(v))),
    ),
    opt(
        "file_service_type",
        &[],
        Next,
        "roundrobin",
        "How the next file is chosen",
        Set::Custom(
            "random, zipf, pareto, normal, roundrobin or sequential, and :N behind it",
            file_service,
        ),
    ),
    opt(
        "fallocate",
        &[],
        Next,
        "native",
        "How files are allocated beforehand",
        word!(Fallocate, files.fallocate),
    ),
    opt(
        "fadvise_hint",
        &[],
        Noted,
        "1",
        "Advice to the kernel on the order",
        Set::Words(&["0", "1", "random", "sequential"], |_, _| {}),
    ),
    opt(
        "create_serialize",
        &[],
        Noted,
        "1",
        "Lay files out one job at a time",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "create_fsync",
        &[],
        Noted,
        "1",
        "Flush each file after laying it out",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "create_on_open",
        &[],
        Next,
        "0",
        "Create files when they are opened",
        boolean!(files.create_on_open),
    ),
    opt(
        "create_only",
        &[],
        Next,
        "0",
        "Lay the files out and stop",
        boolean!(files.create_only),
    ),
    opt(
        "allow_file_create",
        &[],
        Next,
        "1",
        "Create files that are not there",
        boolean!(files.allow_file_create),
    ),
    opt(
        "allow_mounted_write",
        &[],
        Noted,
        "0",
        "Write to devices that are mounted",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "overwrite",
        &[],
        Next,
        "0",
        "Lay files out before writing them",
        boolean!(files.overwrite),
    ),
    opt(
        "pre_read",
        &[],
        Next,
        "0",
        "Read the files before the job",
        boolean!(files.pre_read),
    ),
    opt(
        "invalidate",
        &[],
        Next,
        "1",
        "Drop caches before the job",
        boolean!(files.invalidate),
    ),
    opt(
        "unlink",
        &[],
        Must,
        "0",
        "Remove the files after the job",
        boolean!(files.unlink),
    ),
    opt(
        "unlink_each_loop",
        &[],
        Next,
        "0",
        "Remove the files after each loop",
        boolean!(files.unlink_each_loop),
    ),
];

fn filename_format(job: &mut Job, text: &str) {
    job.files.format = (text != "$jobname.$jobnum.$filenum").then(|| text.to_owned());
}

fn file_service(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (word, parameter) = text
        .split_once(':')
        .map_or((text, None), |(word, n)| (word, Some(n)));
    let kind = FileServiceType::from_word(word)
        .ok_or_else(|| super::suggest::wrong_word(word, FileServiceType::WORDS))?;
    let parameter = match parameter {
        None => None,
        Some(n) => Some(n.parse::<f64>().map_err(|_| format!("{n} is no number"))?),
    };
    if parameter.is_some_and(|p| !p.is_finite() || p < 0.0) {
        return Err("the number behind the colon must not be negative".to_owned());
    }
    job.files.service = crate::job::FileService { kind, parameter };
    Ok(())
}
