//! fio's normal text.

use std::fmt::Write;

use super::json::mean;
use super::view::{GroupDirection, share_of_group};
use super::{
    Direction, JobResult, Latency, RunResult, Stats, SteadyResult, Unit, shorten, time_in_words,
};
use crate::job::{Ddir, PerDir, SteadyMetric};

/// Digits of the latency extremes.
const LATENCY_DIGITS: u32 = 6;

const STEPS: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

impl RunResult {
    /// The result as fio's text: a block for each report, the groups, the devices.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let groups = self.group_of_jobs();
        for (result, group) in self.jobs.iter().zip(&groups) {
            let style = Style::of(self, result.groupid);
            job(&mut out, self, result, group, style);
        }
        for id in self.groups() {
            group(&mut out, self, id);
        }
        if let Some(disks) = self.disk_util.as_ref().filter(|disks| !disks.is_empty()) {
            out.push_str("\nDisk stats (read/write):\n");
            for disk in disks {
                let ([r, w], [rm, wm], [rt, wt]) = (disk.ios, disk.merges, disk.ticks);
                let _ = writeln!(
                    out,
                    "  {}: ios={r}/{w}, merge={rm}/{wm}, ticks={rt}/{wt}, in_queue={}, util={:.2}%",
                    disk.name, disk.in_queue, disk.util
                );
            }
        }
        out
    }
}

/// Units of a group's rates and sizes.
#[derive(Clone, Copy)]
struct Style {
    digits: u32,
    binary: bool,
    bits: bool,
}

impl Style {
    /// The last job of a group decides, as in fio.
    fn of(run: &RunResult, group: u32) -> Self {
        let last = run.jobs.iter().rev().find(|job| job.groupid == group);
        Self {
            digits: last.map_or(4, |job| job.significant_figures),
            binary: last.is_none_or(|job| job.kb_base != 1000),
            bits: last.is_some_and(|job| job.unit_base == 1),
        }
    }

    const fn rate_unit(self) -> Unit {
        if self.bits {
            Unit::BitsPerSecond
        } else {
            Unit::BytesPerSecond
        }
    }

    fn rate(self, bytes: u64) -> String {
        shorten(bytes, self.digits, self.binary, self.rate_unit())
    }

    fn other_rate(self, bytes: u64) -> String {
        shorten(bytes, self.digits, !self.binary, self.rate_unit())
    }

    fn bytes(self, bytes: u64) -> String {
        shorten(bytes, self.digits, self.binary, Unit::Bytes)
    }

    fn other_bytes(self, bytes: u64) -> String {
        shorten(bytes, self.digits, !self.binary, Unit::Bytes)
    }
}

fn job(
    out: &mut String,
    run: &RunResult,
    result: &JobResult,
    group: &PerDir<GroupDirection>,
    style: Style,
) {
    let error = if result.error == 0 {
        String::new()
    } else {
        format!(" ({})", error_text(result.error))
    };
    let _ = writeln!(
        out,
        "{}: (groupid={}, jobs={}): err={:2}{error}: pid={}: {}",
        result.jobname,
        result.groupid,
        result.members,
        result.error,
        result.pid,
        time_in_words(run.timestamp_ms / 1000, run.utc_offset_s)
    );
    if let Some(text) = &result.description {
        let _ = writeln!(out, "  Description  : [{text}]");
    }
    for dir in Ddir::ALL {
        direction(out, dir, result, group.get(dir), style);
    }
    buckets(out, result);
    if result.sync.stats.count() > 0 {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        latency_line(out, " sync", &result.sync.stats);
        percentile_lines(out, "sync", &result.sync, true, result);
    }
    let (usr, sys) = result.cpu_percent();
    let cpu = &result.cpu;
    let _ = writeln!(
        out,
        "  cpu          : usr={usr:.2}%, sys={sys:.2}%, ctx={}, majf={}, minf={}",
        cpu.ctx, cpu.majf, cpu.minf
    );
    map(out, "  IO depths    :", &DEPTHS, &result.depth_percent());
    map(
        out,
        "     submit    :",
        &BATCHES,
        &result.submit.percent(result.submit.total),
    );
    map(
        out,
        "     complete  :",
        &BATCHES,
        &result.complete.percent(result.complete.total),
    );
    issued(out, result);
    if let Some((count, first)) = result.errors {
        let _ = writeln!(
            out,
            "     errors    : total={count}, first_error={first}/<{}>",
            error_text(first)
        );
    }
    let depth = &result.latency_depth;
    let _ = writeln!(
        out,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        depth.target_us, depth.window_us, depth.percentile, depth.depth
    );
    if let Some(steady) = &result.steadystate {
        steadystate(out, steady, style);
    }
}

fn error_text(errno: i32) -> String {
    if errno == 0 {
        return "Success".to_owned();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split_once(" (os error")
        .map_or(text.clone(), |(name, _)| name.to_owned())
}

fn direction(
    out: &mut String,
    dir: Ddir,
    result: &JobResult,
    group: &GroupDirection,
    style: Style,
) {
    let figures = result.directions.get(dir);
    if figures.runtime_ms == 0 {
        return;
    }
    let name = if result.unified { "mixed" } else { dir.word() };
    let zones = if dir == Ddir::Write && !result.unified {
        "; 0 zone resets"
    } else {
        ""
    };
    let bw = figures.bw_bytes();
    let _ = writeln!(
        out,
        "  {name}: IOPS={}, BW={} ({})({}/{}msec){zones}",
        shorten(figures.iops_whole(), style.digits, false, Unit::None),
        style.rate(bw),
        style.other_rate(bw),
        style.bytes(figures.io_bytes),
        figures.runtime_ms
    );
    let kinds = [
        ("slat", &figures.slat, result.slat_percentiles),
        ("clat", &figures.clat, result.clat_percentiles),
        ("lat", &figures.lat, result.lat_percentiles),
    ];
    for (name, latency, _) in kinds {
        if latency.stats.max() > 0 {
            latency_line(out, &format!("{name:>5}"), &latency.stats);
        }
    }
    for (name, latency, on) in kinds {
        percentile_lines(out, name, latency, on, result);
    }
    samples(out, figures, group, style);
}

/// Divisor and name of the unit that fits: ns, us or ms.
fn scale(stats: &Stats) -> (u64, &'static str) {
    if stats.min() > 2_000_000 && stats.max() > 99_999_999 && stats.stddev() > 1_000_000.0 {
        (1_000_000, "msec")
    } else if stats.min() > 2000 && stats.max() > 99_999 && stats.stddev() > 1000.0 {
        (1000, "usec")
    } else {
        (1, "nsec")
    }
}

fn latency_line(out: &mut String, name: &str, stats: &Stats) {
    let (divisor, unit) = scale(stats);
    let short = |ns: u64| shorten(ns / divisor, LATENCY_DIGITS, false, Unit::None);
    let _ = writeln!(
        out,
        "   {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        short(stats.min()),
        short(stats.max()),
        stats.mean() / divisor as f64,
        stats.stddev() / divisor as f64
    );
}

fn percentile_lines(out: &mut String, name: &str, latency: &Latency, on: bool, result: &JobResult) {
    let list = &result.percentiles;
    let Some(values) = latency.shown_percentiles(on, list) else {
        return;
    };
    let low = values.iter().min().copied().unwrap_or(0);
    let high = values.iter().max().copied().unwrap_or(0);
    let (divisor, unit) = if low > 2_000_000 && high > 99_999_999 {
        (1_000_000, "msec")
    } else if low > 2000 && high > 99_999 {
        (1000, "usec")
    } else {
        (1, "nsec")
    };
    let width = high.div_ceil(divisor).to_string().len().max(5);
    let precision = decimals(list);
    let per_line = ((80 - 7) / (precision + 10 + width)).max(1);
    let _ = writeln!(out, "    {name} percentiles ({unit}):");
    let entries: Vec<String> = list
        .iter()
        .zip(&values)
        .map(|(percent, value)| {
            let places = precision + 3;
            format!(
                "{percent:places$.precision$}th=[{:width$}]",
                value.div_ceil(divisor)
            )
        })
        .collect();
    let lines: Vec<String> = entries
        .chunks(per_line)
        .map(|chunk| format!("     | {}", chunk.join(", ")))
        .collect();
    let _ = writeln!(out, "{}", lines.join(",\n"));
}

/// Decimals that every percentile can be told apart with, as they were written.
fn decimals(list: &[f64]) -> usize {
    list.iter()
        .map(|percent| {
            percent
                .to_string()
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len())
        })
        .max()
        .unwrap_or(0)
        .min(6)
}

fn samples(out: &mut String, figures: &Direction, group: &GroupDirection, style: Style) {
    let bw = &figures.bw;
    if bw.count() > 0 {
        let base = if style.binary { 1024.0 } else { 1000.0 };
        let large = bw.mean() > base * base;
        let divisor = if large { base } else { 1.0 };
        // The samples are KiB/s whatever the label says; fio prints these labels.
        let unit = match (large, style.binary) {
            (true, _) => "MiB",
            (false, true) => "KiB",
            (false, false) => "kB",
        };
        let whole = |n: u64| (n as f64 / divisor).floor();
        let _ = writeln!(
            out,
            "   bw ({unit:>5}/s): min={:5}, max={:5}, per={:.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
            whole(bw.min()),
            whole(bw.max()),
            share_of_group(figures, group),
            bw.mean() / divisor,
            bw.stddev() / divisor,
            bw.count()
        );
    }
    let iops = &figures.iops;
    if iops.count() > 0 {
        let _ = writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min(),
            iops.max(),
            iops.mean(),
            iops.stddev(),
            iops.count()
        );
    }
}

fn buckets(out: &mut String, result: &JobResult) {
    let (ns, us, ms) = result.latency_percent();
    for (unit, shares) in [("nsec", ns), ("usec", us), ("msec", ms)] {
        let entries: Vec<String> = STEPS
            .iter()
            .zip(shares)
            .filter(|(_, share)| *share > 0.0)
            .map(|(step, share)| format!("{step}={share:.2}%"))
            .collect();
        for line in entries.chunks(5) {
            let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
        }
    }
}

fn map(out: &mut String, label: &str, names: &[&str], shares: &[f64]) {
    let entries: Vec<String> = names
        .iter()
        .zip(shares)
        .map(|(name, share)| format!("{name}={share:.1}%"))
        .collect();
    let _ = writeln!(out, "{label} {}", entries.join(", "));
}

fn issued(out: &mut String, result: &JobResult) {
    let row = |pick: fn(&Direction) -> u64, syncs: u64| {
        let [r, w, t] = Ddir::ALL.map(|d| pick(result.directions.get(d)));
        format!("{r},{w},{t},{syncs}")
    };
    let _ = writeln!(
        out,
        "     issued rwts: total={} short={} dropped={}",
        row(|d| d.total_ios, result.sync.stats.count()),
        row(|d| d.short_ios, 0),
        row(|d| d.drop_ios, 0)
    );
}

fn steadystate(out: &mut String, steady: &SteadyResult, style: Style) {
    let bw = mean(&steady.bw);
    let (what, kind) = match steady.metric {
        SteadyMetric::Iops => ("iops", "mean dev"),
        SteadyMetric::IopsSlope => ("iops", "slope"),
        SteadyMetric::Bw => ("bw", "mean dev"),
        SteadyMetric::BwSlope => ("bw", "slope"),
    };
    let _ = writeln!(
        out,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {what} {kind}={:.3}{}",
        if steady.attained { "yes" } else { "no" },
        style.rate(bw),
        style.other_rate(bw),
        shorten(mean(&steady.iops), style.digits, false, Unit::None),
        steady.criterion,
        if steady.percent { "%" } else { "" }
    );
}

fn group(out: &mut String, run: &RunResult, id: u32) {
    let Some(first) = run.jobs.iter().find(|job| job.groupid == id) else {
        return;
    };
    let style = Style::of(run, id);
    let sums = run.group(id);
    let _ = writeln!(out, "\nRun status group {id} (all jobs):");
    for dir in Ddir::ALL {
        let sum = sums.get(dir);
        if sum.max_run_ms == 0 {
            continue;
        }
        let name = if first.unified {
            "MIXED".to_owned()
        } else {
            dir.word().to_ascii_uppercase()
        };
        let (rate, other) = (|n| style.rate(n), |n| style.other_rate(n));
        let total = sum.aggregate();
        let _ = writeln!(
            out,
            "{name:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
            rate(total),
            other(total),
            rate(sum.min_bw),
            rate(sum.max_bw),
            other(sum.min_bw),
            other(sum.max_bw),
            style.bytes(sum.bytes),
            style.other_bytes(sum.bytes),
            sum.min_run_ms,
            sum.max_run_ms
        );
    }
}
