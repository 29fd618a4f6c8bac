//! `cairn image`: file systems in image files.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use cairn_block::{Device, FileConfig, FileDevice};
use cairn_ext4::{Error, Ext4, FileType, FormatOptions, MountOptions, Stat, check, format};

use crate::cli::{GetArgs, ImageAction, ImageArgs, ImageFile, ImagePath, MkfsArgs, PutArgs};
use crate::exit::{DONE, FAILED, Failed};
use crate::output;

/// Bytes copied at a time.
const STEP: usize = 1 << 20;

/// Runs the command.
pub(crate) fn run(args: &ImageArgs) -> anyhow::Result<u8> {
    match &args.action {
        ImageAction::Mkfs(args) => mkfs(args),
        ImageAction::Info(args) => info(args),
        ImageAction::Ls(args) => ls(args),
        ImageAction::Cat(args) => cat(args),
        ImageAction::Put(args) => put(args),
        ImageAction::Get(args) => get(args),
        ImageAction::Check(args) => check_image(args),
    }
}

/// An error of the file layer: damage and failing devices are work that failed, the rest was asked wrongly.
fn told(e: Error) -> anyhow::Error {
    match e {
        Error::Buffer(_)
        | Error::Device(_)
        | Error::Corrupt { .. }
        | Error::NoSpace { .. }
        | Error::NoInodes { .. } => Failed(e.into()).into(),
        e => e.into(),
    }
}

fn open(path: &Path, read_only: bool) -> anyhow::Result<Device> {
    // Opening a pipe waits for somebody at its other end.
    let kind = fs::metadata(path)
        .with_context(|| path.display().to_string())?
        .file_type();
    anyhow::ensure!(
        !kind.is_fifo(),
        "{}: it is neither a regular file nor a block device",
        path.display()
    );
    let device = FileDevice::open(FileConfig::new(path).read_only(read_only))
        .with_context(|| path.display().to_string())?;
    Ok(Arc::new(device))
}

fn mount(path: &Path, read_only: bool) -> anyhow::Result<Ext4> {
    let device = open(path, read_only)?;
    let fs = Ext4::mount(device, &MountOptions::new().read_only(read_only))
        .map_err(told)
        .with_context(|| path.display().to_string())?;
    Ok(fs)
}

fn mkfs(args: &MkfsArgs) -> anyhow::Result<u8> {
    let shown = || args.image.display().to_string();
    let options = FormatOptions::new().block_size(args.block_size);
    // A regular file begins anew, so that everything in it reads as zeros; not before it is known that it can.
    let before = fs::metadata(&args.image);
    let regular = before.as_ref().map_or(true, fs::Metadata::is_file);
    if regular {
        options.fits(args.size).map_err(told).with_context(shown)?;
        let device = FileDevice::open(FileConfig::new(&args.image).size(0)).with_context(shown)?;
        drop(device);
        let file = File::options()
            .write(true)
            .open(&args.image)
            .with_context(shown)?;
        let had = file.metadata().with_context(shown)?.len();
        // A size that the host has no room for is refused before anything is lost.
        if let Err(e) = file.set_len(args.size.max(had)) {
            if before.is_err() {
                let _ = fs::remove_file(&args.image);
            }
            return Err(e).with_context(shown);
        }
        file.set_len(0).with_context(shown)?;
        file.set_len(args.size).with_context(shown)?;
    }
    let device = open(&args.image, false)?;
    if let Err(e) = format(&device, &options) {
        if regular {
            // Nothing half made stays.
            let _ = fs::remove_file(&args.image);
        }
        return Err(told(e)).with_context(shown);
    }
    output::note(&format!(
        "{}: ext4, {} bytes in blocks of {}",
        shown(),
        device.info().len,
        args.block_size
    ));
    Ok(DONE)
}

fn info(args: &ImageFile) -> anyhow::Result<u8> {
    let fs = mount(&args.image, true)?;
    let stat = fs.statfs();
    let bytes = |blocks: u64| blocks * u64::from(stat.block_size);
    let mut uuid = String::new();
    for (n, byte) in stat.uuid.iter().enumerate() {
        let dash = if [4, 6, 8, 10].contains(&n) { "-" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(uuid, "{dash}{byte:02x}");
    }
    output::results(|out| {
        writeln!(out, "format       ext4")?;
        writeln!(out, "uuid         {uuid}")?;
        writeln!(out, "label        {}", fs.label())?;
        writeln!(out, "features     {}", fs.features().join(" "))?;
        writeln!(
            out,
            "state        {}",
            if fs.clean() {
                "clean"
            } else {
                "not cleanly unmounted"
            }
        )?;
        writeln!(out, "block size   {}", stat.block_size)?;
        writeln!(
            out,
            "blocks       {} ({} bytes)",
            stat.blocks,
            bytes(stat.blocks)
        )?;
        writeln!(
            out,
            "free blocks  {} ({} bytes)",
            stat.free_blocks,
            bytes(stat.free_blocks)
        )?;
        writeln!(out, "inodes       {}", stat.inodes)?;
        writeln!(out, "free inodes  {}", stat.free_inodes)?;
        writeln!(out, "directories  {}", stat.directories)?;
        writeln!(out, "groups       {}", stat.groups)?;
        match fs.refuses_writes() {
            None => writeln!(out, "writes       taken"),
            Some(why) => writeln!(out, "writes       refused: {why}"),
        }
    })?;
    Ok(DONE)
}

fn ls(args: &ImagePath) -> anyhow::Result<u8> {
    let fs = mount(&args.image, true)?;
    let at = |e| told(e).context(args.image.display().to_string());
    let stat = fs.stat_path(&args.path).map_err(at)?;
    let mut rows = Vec::new();
    if stat.kind == FileType::Directory {
        let mut entries = fs.read_dir(&args.path).map_err(at)?;
        entries.retain(|e| e.name != b"." && e.name != b"..");
        entries.sort();
        for entry in entries {
            let path = [args.path.as_bytes(), b"/", &entry.name].concat();
            let stat = fs.stat_path(&path).map_err(at)?;
            rows.push(row(&fs, &stat, &path, &entry.name));
        }
    } else {
        let name = args.path.trim_end_matches('/').as_bytes().to_vec();
        rows.push(row(&fs, &stat, args.path.as_bytes(), &name));
    }
    output::results(|out| rows.iter().try_for_each(|row| writeln!(out, "{row}")))?;
    Ok(DONE)
}

/// One line of a listing: mode, links, owner, size, time, name.
fn row(fs: &Ext4, stat: &Stat, path: &[u8], name: &[u8]) -> String {
    let kind = match stat.kind {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Regular => '-',
        _ => '?',
    };
    let mut mode = String::from(kind);
    for shift in [6, 3, 0] {
        let bits = stat.permissions >> shift;
        for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            mode.push(if bits & bit != 0 { letter } else { '-' });
        }
    }
    let name = output::printable(&String::from_utf8_lossy(name)).replace('\n', "\\n");
    let target = match fs.read_link(path) {
        Ok(target) => format!(
            " -> {}",
            output::printable(&String::from_utf8_lossy(&target))
        ),
        Err(_) => String::new(),
    };
    format!(
        "{mode} {:>3} {:>5} {:>5} {:>12} {} {name}{target}",
        stat.links,
        stat.uid,
        stat.gid,
        stat.size,
        date(stat.modified.secs)
    )
}

/// Day and time of a number of seconds since 1970, in UTC.
fn date(secs: i64) -> String {
    let (day, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    // Days are counted from the 1st of March of the year 0, so that leap days come last; 400 years have
    // 146097 days.
    let z = day + 719_468;
    let (era, in_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let dom = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{dom:02} {:02}:{:02}",
        second / 3600,
        second / 60 % 60
    )
}

fn cat(args: &ImagePath) -> anyhow::Result<u8> {
    let fs = mount(&args.image, true)?;
    let file = fs.open(&args.path).map_err(told)?;
    let mut failed = None;
    output::results(|out| {
        failed = copy_out(&fs, &file, out)?.err();
        Ok(())
    })?;
    match failed {
        None => Ok(DONE),
        Some(e) => Err(Failed(e.into()).into()),
    }
}

/// Copies a file; the inner error is the image's, the outer the writer's.
fn copy_out(
    fs: &Ext4,
    file: &cairn_ext4::File,
    to: &mut dyn Write,
) -> io::Result<Result<(), Error>> {
    let mut buf = vec![0; STEP];
    let mut off = 0;
    while off < file.size() {
        match fs.read_at(file, off, &mut buf) {
            Ok(0) => break,
            Ok(n) => {
                to.write_all(buf.get(..n).unwrap_or_default())?;
                off += n as u64;
            }
            Err(e) => return Ok(Err(e)),
        }
    }
    Ok(Ok(()))
}

fn put(args: &PutArgs) -> anyhow::Result<u8> {
    let shown = || args.src.display().to_string();
    let mut source = File::open(&args.src).with_context(shown)?;
    anyhow::ensure!(
        source.metadata().with_context(shown)?.is_file(),
        "{}: a regular file would be right",
        shown()
    );
    let fs = mount(&args.image, false)?;
    if let Some(why) = fs.read_only() {
        anyhow::bail!("{}: {why}", args.image.display());
    }
    let mut path = args.path.trim_end_matches('/').to_owned();
    let into_dir = match fs.stat_path(if path.is_empty() { "/" } else { &path }) {
        Ok(stat) => stat.kind == FileType::Directory,
        Err(Error::NotFound { .. }) => args.path.ends_with('/'),
        Err(e) => return Err(told(e)),
    };
    if into_dir {
        let name = args.src.file_name().unwrap_or_default().to_string_lossy();
        path = format!("{path}/{name}");
    }
    // Written under another name first: a file that was there is replaced whole or not at all.
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let part = format!(
        "{dir}/.{}.part",
        name.get(..name.len().min(200)).unwrap_or("put")
    );
    let copied = copy_in(&fs, &mut source, &part, &path);
    if copied.is_err() {
        // It may not have come to be.
        let _ = fs.unlink(&part);
    }
    let ended = fs.unmount().map_err(told);
    copied.and(ended)?;
    Ok(DONE)
}

fn copy_in(fs: &Ext4, source: &mut File, part: &str, path: &str) -> anyhow::Result<()> {
    let file = fs.create(part).map_err(told)?;
    let mut buf = vec![0; STEP];
    let mut off = 0;
    let copied = loop {
        let n = match source.read(&mut buf) {
            Ok(0) => break Ok(()),
            Ok(n) => n,
            Err(e) => break Err(Failed(e.into()).into()),
        };
        if let Err(e) = fs.write_at(&file, off, buf.get(..n).unwrap_or_default()) {
            break Err(told(e));
        }
        off += n as u64;
    };
    let closed = fs.fsync(&file).and_then(|()| fs.close(file)).map_err(told);
    copied.and(closed)?;
    fs.rename(part, path).map_err(told)
}

fn get(args: &GetArgs) -> anyhow::Result<u8> {
    let fs = mount(&args.image, true)?;
    let file = fs.open(&args.path).map_err(told)?;
    let mut dst: PathBuf = args.dst.clone();
    if dst.is_dir() {
        dst.push(args.path.rsplit('/').next().unwrap_or_default());
    }
    let shown = || dst.display().to_string();
    // A file that is there is replaced whole or not at all; a pipe or a device is written as it is.
    let place = match fs::metadata(&dst) {
        Ok(m) if !m.is_file() => None,
        _ => Some(fs::canonicalize(&dst).unwrap_or_else(|_| dst.clone())),
    };
    let name = format!(".cairn-{}.part", std::process::id());
    let part = place.as_ref().map(|place| place.with_file_name(name));
    let mut to = File::create(part.as_ref().unwrap_or(&dst)).with_context(shown)?;
    let copied = copy_out(&fs, &file, &mut to)
        .map_err(anyhow::Error::from)
        .and_then(|done| done.map_err(anyhow::Error::from))
        .and_then(|()| match (&part, &place) {
            (Some(part), Some(place)) => fs::rename(part, place).map_err(anyhow::Error::from),
            _ => Ok(()),
        });
    if let Err(e) = copied {
        if let Some(part) = part {
            let _ = fs::remove_file(part);
        }
        return Err(Failed(e.context(shown())).into());
    }
    Ok(DONE)
}

fn check_image(args: &ImageFile) -> anyhow::Result<u8> {
    let device = open(&args.image, true)?;
    let report = check(&device)
        .map_err(told)
        .with_context(|| args.image.display().to_string())?;
    output::results(|out| {
        for finding in &report.findings {
            writeln!(out, "{finding}")?;
        }
        writeln!(
            out,
            "{} inodes, {} directories, {} blocks in use, {}: {}",
            report.inodes,
            report.directories,
            report.used_blocks,
            if report.clean {
                "clean"
            } else {
                "not cleanly unmounted"
            },
            match report.findings.len() {
                0 => "sound".to_owned(),
                n => format!("{n} findings"),
            }
        )
    })?;
    Ok(if report.findings.is_empty() {
        DONE
    } else {
        FAILED
    })
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00");
        assert_eq!(date(1_796_083_199), "2026-11-30 23:59");
        assert_eq!(date(-1), "1969-12-31 23:59");
    }
}
