//! Options about what is done: direction, blocks, extent, files, queue, durability.

use super::setter::{Set, U32, boolean, flag, n8, n32, word};
use super::{OptionDef, Tier, opt};
use crate::job::{
    Amount, BlockSizes, Ddir, Distribution, Fallocate, FileServiceType, IoEngine, Job,
    RandomGenerator, RwMode, RwSequencer, RwStep, ShapedDistribution, SubmitMode, SyncIo,
};
use crate::value::{self, Reason};
use Tier::{Must, Next, Noted, Refused};

const ZBD: &str = "zoned block devices are not modelled";

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
        "randrepeat",
        &[],
        Must,
        "1",
        "Same offsets on every run",
        boolean!(random.randrepeat),
    ),
    opt(
        "randseed",
        &[],
        Next,
        "0x89",
        "Seed of the random sequences",
        Set::Int(0, u64::MAX, |j, v| {
            j.random.randseed = (v != 0x89).then_some(v)
        }),
    ),
    opt(
        "allrandrepeat",
        &[],
        Next,
        "0",
        "Same random decisions of every kind on every run",
        boolean!(random.allrandrepeat),
    ),
    opt(
        "norandommap",
        &[],
        Must,
        "",
        "Draw offsets freely instead of covering each block once",
        flag!(random.norandommap),
    ),
    opt(
        "softrandommap",
        &[],
        Next,
        "0",
        "Go on when there is no room for the map",
        boolean!(random.softrandommap),
    ),
    opt(
        "random_generator",
        &[],
        Next,
        "tausworthe",
        "Random generator",
        word!(RandomGenerator, random.generator),
    ),
    opt(
        "random_distribution",
        &[],
        Next,
        "random",
        "Distribution of random offsets",
        Set::Custom(
            "random, zipf:theta, pareto:h, normal:deviation, zoned:share/size%:... or zoned_abs:share/size:...",
            distribution,
        ),
    ),
    opt(
        "percentage_random",
        &[],
        Next,
        "100,100,100",
        "How much of a random mode is random",
        Set::Sizes(0, 100, |j, v| v.store(&mut j.access.percentage_random, n8)),
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
            j.extent.number_ios = (v != 0).then_some(v)
        }),
    ),
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
    opt("zonemode", &[], Refused, "none", "Zones", Set::Refused(ZBD)),
    opt(
        "zonesize",
        &[],
        Refused,
        "0",
        "Size of a zone",
        Set::Refused(ZBD),
    ),
    opt(
        "zonecapacity",
        &[],
        Refused,
        "0",
        "Capacity of a zone",
        Set::Refused(ZBD),
    ),
    opt(
        "zonerange",
        &[],
        Refused,
        "0",
        "Length of a zone's range",
        Set::Refused(ZBD),
    ),
    opt(
        "zoneskip",
        &[],
        Refused,
        "0",
        "Distance between zones",
        Set::Refused(ZBD),
    ),
    opt(
        "read_beyond_wp",
        &[],
        Refused,
        "0",
        "Read behind the write pointer",
        Set::Refused(ZBD),
    ),
    opt(
        "max_open_zones",
        &[],
        Refused,
        "0",
        "Zones open at a time",
        Set::Refused(ZBD),
    ),
    opt(
        "job_max_open_zones",
        &[],
        Refused,
        "0",
        "Zones open at a time in one job",
        Set::Refused(ZBD),
    ),
    opt(
        "ignore_zone_limits",
        &[],
        Refused,
        "0",
        "Ignore the device's limits on zones",
        Set::Refused(ZBD),
    ),
    opt(
        "zone_reset_threshold",
        &[],
        Refused,
        "",
        "When zones are reset",
        Set::Refused(ZBD),
    ),
    opt(
        "zone_reset_frequency",
        &[],
        Refused,
        "",
        "How often zones are reset",
        Set::Refused(ZBD),
    ),
];

fn filename_format(job: &mut Job, text: &str) {
    job.files.format = (text != "$jobname.$jobnum.$filenum").then(|| text.to_owned());
}

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

fn engine(job: &mut Job, text: &str) -> Result<(), Reason> {
    // The parser looks the engine up beforehand, so as to name it in its own error.
    job.queue.ioengine = IoEngine::from_word(text)
        .ok_or_else(|| super::suggest::wrong_word(text, IoEngine::WORDS))?;
    Ok(())
}

fn distribution(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let base = job.report.kb_base;
    job.random.distribution = match word {
        "random" => Distribution::Uniform,
        "zipf" => {
            let shape = shaped(rest, 1.1)?;
            if (shape.parameter - 1.0).abs() < f64::EPSILON {
                return Err("zipf is not defined for theta 1; take 1.1 or 0.9, say".to_owned());
            }
            if shape.parameter < 0.0 {
                return Err("theta must not be negative".to_owned());
            }
            Distribution::Zipf(shape)
        }
        "pareto" => {
            let shape = shaped(rest, 0.2)?;
            if !(shape.parameter > 0.0 && shape.parameter < 1.0) {
                return Err("h must be between 0 and 1, without the ends".to_owned());
            }
            Distribution::Pareto(shape)
        }
        "normal" => {
            let shape = shaped(rest, 0.0)?;
            if !(0.0..100.0).contains(&shape.parameter) {
                return Err("the deviation must be at least 0 and below 100".to_owned());
            }
            Distribution::Normal(shape)
        }
        "zoned" | "zoned_abs" => {
            let mut lists = crate::job::PerDir::default();
            value::zones(rest, base, word == "zoned_abs")?.store(&mut lists, |zones| zones);
            Distribution::Zoned(lists)
        }
        _ => {
            let words = &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
            return Err(super::suggest::wrong_word(word, words));
        }
    };
    Ok(())
}

fn shaped(text: &str, default: f64) -> Result<ShapedDistribution, Reason> {
    let mut parts = text.split(':');
    let mut next = |name: &str| match parts.next().map(str::trim).filter(|p| !p.is_empty()) {
        None => Ok(None),
        Some(part) => part
            .parse::<f64>()
            .ok()
            .filter(|x| x.is_finite())
            .map(Some)
            .ok_or_else(|| format!("{part} is no number for the {name}")),
    };
    let parameter = next("parameter")?.unwrap_or(default);
    let center = next("centre")?;
    if center.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
        return Err("the centre must be between 0 and 1".to_owned());
    }
    Ok(ShapedDistribution { parameter, center })
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
