//! Fields by semicolon, versions 2 to 5.

use std::fmt::Write;

use super::view::{GroupDirection, share_of_group_in_whole_kib};
use super::{Direction, FIO_VERSION, JobResult, Latency, RunResult, Stats};
use crate::job::{Ddir, PerDir};

/// Places for percentiles; those not asked for are padded.
const PERCENTILES: usize = 20;

impl RunResult {
    /// One line for each report (two with a description in version 2). Versions other than 2, 4 and 5
    /// print as 3.
    pub fn terse(&self, version: u8) -> String {
        let groups = self.group_of_jobs();
        let lines = self
            .jobs
            .iter()
            .zip(&groups)
            .map(|(result, group)| line(self, result, group, version));
        lines.collect()
    }
}

fn line(
    run: &RunResult,
    result: &JobResult,
    group: &PerDir<GroupDirection>,
    version: u8,
) -> String {
    let mut fields = Vec::new();
    if version == 2 {
        fields.push("2".to_owned());
    } else {
        let version = if matches!(version, 4 | 5) { version } else { 3 };
        fields.extend([
            version.to_string(),
            format!("{FIO_VERSION}{}", run.version_suffix),
        ]);
    }
    fields.extend([
        result.jobname.clone(),
        result.groupid.to_string(),
        result.error.to_string(),
    ]);
    for dir in Ddir::ALL {
        if dir != Ddir::Trim || matches!(version, 2 | 4 | 5) {
            direction(
                &mut fields,
                result.directions.get(dir),
                group.get(dir),
                result,
                version == 5,
            );
        }
    }
    let (usr, sys) = result.cpu_percent();
    fields.extend([format!("{usr:.6}%"), format!("{sys:.6}%")]);
    fields.extend([result.cpu.ctx, result.cpu.majf, result.cpu.minf].map(|n| n.to_string()));
    fields.extend(result.depth_percent().map(|share| format!("{share:.1}%")));
    let shares = result.latency_percent_from_us();
    fields.extend(shares.iter().map(|share| format!("{share:.2}%")));
    for disk in run.disk_util.iter().flatten() {
        fields.push(disk.name.clone());
        let counts = [disk.ios, disk.merges, disk.ticks];
        fields.extend(counts.iter().flatten().map(ToString::to_string));
        fields.extend([disk.in_queue.to_string(), format!("{:.2}%", disk.util)]);
    }
    if let Some((count, first)) = result.errors {
        fields.extend([count.to_string(), first.to_string()]);
    }
    let mut text = fields.join(";");
    if let Some(description) = &result.description {
        let break_line = if version == 2 { "\n" } else { "" };
        let _ = write!(text, "{break_line};{description}");
    }
    text.push('\n');
    text
}

fn direction(
    fields: &mut Vec<String>,
    figures: &Direction,
    group: &GroupDirection,
    result: &JobResult,
    samples: bool,
) {
    let bw = figures.bw_bytes() >> 10;
    fields.extend(
        [
            figures.io_bytes >> 10,
            bw,
            figures.iops_whole(),
            figures.runtime_ms,
        ]
        .map(|n| n.to_string()),
    );
    latency(fields, &figures.slat.stats);
    latency(fields, &figures.clat.stats);
    percentiles(fields, &figures.clat, result);
    latency(fields, &figures.lat.stats);
    let (bw, iops) = (&figures.bw, &figures.iops);
    fields.extend([bw.min().to_string(), bw.max().to_string()]);
    fields.push(format!(
        "{:.6}%",
        share_of_group_in_whole_kib(figures, group)
    ));
    fields.extend([bw.mean(), bw.stddev()].map(|x| format!("{x:.6}")));
    if samples {
        fields.extend([bw.count(), iops.min(), iops.max()].map(|n| n.to_string()));
        fields.extend([iops.mean(), iops.stddev()].map(|x| format!("{x:.6}")));
        fields.push(iops.count().to_string());
    }
}

/// Minimum, maximum, mean and deviation in us.
fn latency(fields: &mut Vec<String>, stats: &Stats) {
    fields.extend([stats.min() / 1000, stats.max() / 1000].map(|n| n.to_string()));
    fields.extend([stats.mean() / 1000.0, stats.stddev() / 1000.0].map(|x| format!("{x:.6}")));
}

fn percentiles(fields: &mut Vec<String>, latency: &Latency, result: &JobResult) {
    let empty = super::Histogram::new();
    let list = if result.clat_percentiles {
        result.percentiles.as_slice()
    } else {
        &[]
    };
    let values = latency
        .histogram
        .as_ref()
        .unwrap_or(&empty)
        .percentiles(list);
    let mut count = 0;
    for (percent, value) in list.iter().zip(values).take(PERCENTILES) {
        fields.push(format!("{percent:.6}%={}", value / 1000));
        count += 1;
    }
    fields.extend(std::iter::repeat_n("0%=0".to_owned(), PERCENTILES - count));
}
