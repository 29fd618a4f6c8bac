//! Samples as lines for other programs, one a sample as they come.

use std::io::{self, Write};

use cairn_lab::{PolicyInfo, Sample};
use serde::Serialize;

/// Version of the form of a line.
const SCHEMA_VERSION: u32 = 1;

/// A sample in the form `jsonl`.
#[derive(Serialize)]
struct Record<'a> {
    schema_version: u32,
    seq: u64,
    seconds: f64,
    interval_seconds: f64,
    late_seconds: f64,
    dropped: u64,
    running: bool,
    settling: bool,
    failure: Option<&'a str>,
    policies: Vec<Policy<'a>>,
    workloads: Vec<Workload<'a>>,
    counters: Vec<Counter>,
    shrinks: Shrinks,
    flags: Flags,
}

#[derive(Serialize)]
struct Policy<'a> {
    name: &'a str,
    arm: &'a str,
}

#[derive(Serialize)]
struct Workload<'a> {
    name: &'a str,
    ops: u64,
    bytes: u64,
    errors: u64,
    ops_per_second: f64,
    bytes_per_second: f64,
    /// Of the sample, in nanoseconds.
    n: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
}

#[derive(Serialize)]
struct Counter {
    name: &'static str,
    exact: i64,
    approximate: i64,
    bound: u64,
}

/// Of the extent cache, since the reset.
#[derive(Serialize)]
struct Shrinks {
    limit: Option<u64>,
    scans: u64,
    scanned: u64,
    reclaimed: u64,
    reclaimed_per_second: f64,
}

#[derive(Serialize)]
struct Flags {
    sets: u64,
    rmws: u64,
    avoided: u64,
}

fn record<'a>(sample: &'a Sample, policies: &'a [PolicyInfo]) -> Record<'a> {
    let e = &sample.extents;
    let counters = [
        ("hits", e.hits),
        ("misses", e.misses),
        ("objects", e.objects),
        ("reclaimable", e.reclaimable),
    ];
    Record {
        schema_version: SCHEMA_VERSION,
        seq: sample.seq,
        seconds: sample.elapsed.as_secs_f64(),
        interval_seconds: sample.interval.as_secs_f64(),
        late_seconds: sample.late.as_secs_f64(),
        dropped: sample.dropped,
        running: sample.running,
        settling: sample.settling,
        failure: sample.failure.as_deref(),
        policies: arms(sample, policies)
            .map(|(name, arm)| Policy { name, arm })
            .collect(),
        workloads: sample
            .workloads
            .iter()
            .map(|w| Workload {
                name: &w.name,
                ops: w.ops,
                bytes: w.bytes,
                errors: w.errors,
                ops_per_second: w.ops_per_s,
                bytes_per_second: w.bytes_per_s,
                n: w.recent.n,
                p50_ns: w.recent.p50,
                p90_ns: w.recent.p90,
                p99_ns: w.recent.p99,
                p999_ns: w.recent.p999,
                max_ns: w.recent.max,
            })
            .collect(),
        counters: counters
            .map(|(name, view)| Counter {
                name,
                exact: view.exact,
                approximate: view.approx,
                bound: view.bound,
            })
            .into(),
        shrinks: Shrinks {
            limit: e.shrinks.limit,
            scans: e.shrinks.scans,
            scanned: e.shrinks.scanned,
            reclaimed: e.shrinks.reclaimed,
            reclaimed_per_second: e.shrinks.reclaimed_per_s,
        },
        flags: Flags {
            sets: sample.flags.sets,
            rmws: sample.flags.rmws,
            avoided: sample.flags.avoided,
        },
    }
}

/// Each policy with the name of its arm.
fn arms<'a>(
    sample: &'a Sample,
    policies: &'a [PolicyInfo],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    policies.iter().zip(&sample.arms).map(|(policy, arm)| {
        let arm = policy.arms.get(*arm).map_or("?", String::as_str);
        (policy.name.as_str(), arm)
    })
}

/// Writes a sample as one line of JSON.
pub(super) fn jsonl(
    out: &mut dyn Write,
    sample: &Sample,
    policies: &[PolicyInfo],
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &record(sample, policies))?;
    writeln!(out)
}

/// Names the columns of [`csv`].
pub(super) fn csv_head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "t,arms,workload,ops,bytes,errors,ops_per_s,n,p50_ns,p99_ns,p999_ns,max_ns,hits,misses,exact,approx,\
         avoided_rmw,settle,shrink_scans,reclaimed"
    )
}

/// Writes a sample as one line for each workload; no field needs quotes, as names hold no commas there.
pub(super) fn csv(out: &mut dyn Write, sample: &Sample, policies: &[PolicyInfo]) -> io::Result<()> {
    let plain = |text: &str| text.replace([',', '"', '\n'], "_");
    let arms: Vec<String> = arms(sample, policies)
        .map(|(name, arm)| plain(&format!("{name}={arm}")))
        .collect();
    let e = &sample.extents;
    for w in &sample.workloads {
        let l = &w.recent;
        writeln!(
            out,
            "{:.3},{},{},{},{},{},{:.1},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            sample.elapsed.as_secs_f64(),
            arms.join(";"),
            plain(&w.name),
            w.ops,
            w.bytes,
            w.errors,
            w.ops_per_s,
            l.n,
            l.p50,
            l.p99,
            l.p999,
            l.max,
            e.hits.exact,
            e.misses.exact,
            e.hits.exact,
            e.hits.approx,
            sample.flags.avoided,
            u8::from(sample.settling),
            e.shrinks.scans,
            e.shrinks.reclaimed,
        )?;
    }
    Ok(())
}
