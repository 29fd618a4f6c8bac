//! The writers against fio itself: from the numbers of fio's own JSON+ they must write fio's own text,
//! terse line and JSON, character by character.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failure here is the test's own"
)]

use std::process::Command;

use cairn_fio::job::{Ddir, PerDir};
use cairn_fio::output::{
    CpuUsage, DepthCounts, Direction, DiskUtil, Histogram, JobResult, Latency, LatencyBuckets,
    LatencyDepth, RunResult, Stats,
};
use cairn_fio::{Plan, parse_job_text};
use serde_json::Value;

/// What one run of fio printed.
struct Printed {
    terse: String,
    json: String,
    text: String,
}

/// Splits the output of `--output-format=terse,json+,normal`.
fn split(out: &str) -> Printed {
    let start = out.find("\n{\n").unwrap() + 1;
    let end = out[start..].find("\n}\n").unwrap() + start + 3;
    let terse = out[..start].lines().filter(|l| l.contains(";fio-3.33;"));
    Printed {
        terse: terse.flat_map(|l| [l, "\n"]).collect(),
        json: out[start..end].to_owned(),
        text: out[end..].trim_start().to_owned(),
    }
}

fn int(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

fn stats(value: &Value) -> Stats {
    Stats::from_parts(
        int(value, "N"),
        int(value, "min"),
        int(value, "max"),
        value["mean"].as_f64().unwrap(),
        value["stddev"].as_f64().unwrap(),
    )
}

fn latency(value: &Value) -> Latency {
    let bins = value["bins"].as_object().map(|bins| {
        let mut histogram = Histogram::new();
        for (ns, count) in bins {
            histogram.record_many(ns.parse().unwrap(), count.as_u64().unwrap());
        }
        histogram
    });
    Latency {
        stats: stats(value),
        histogram: bins,
    }
}

fn samples(value: &Value, kind: &str, deviation: &str) -> Stats {
    Stats::from_parts(
        int(value, &format!("{kind}_samples")),
        int(value, &format!("{kind}_min")),
        int(value, &format!("{kind}_max")),
        value[format!("{kind}_mean")].as_f64().unwrap(),
        value[format!("{kind}_{deviation}")].as_f64().unwrap(),
    )
}

fn direction(value: &Value) -> Direction {
    Direction {
        io_bytes: int(value, "io_bytes"),
        total_ios: int(value, "total_ios"),
        short_ios: int(value, "short_ios"),
        drop_ios: int(value, "drop_ios"),
        runtime_ms: int(value, "runtime"),
        slat: latency(&value["slat_ns"]),
        clat: latency(&value["clat_ns"]),
        lat: latency(&value["lat_ns"]),
        bw: samples(value, "bw", "dev"),
        iops: samples(value, "iops", "stddev"),
    }
}

/// Counts whose shares are these; a large whole keeps the rounding out of sight.
fn counts<const N: usize>(value: &Value, whole: u64) -> [u64; N] {
    let shares: Vec<u64> = value
        .as_object()
        .unwrap()
        .values()
        .map(|share| {
            let share = share.as_f64().unwrap();
            let count = share / 100.0 * whole as f64;
            // A share of just 0.01 (0.1 of depths) stands for anything that is less.
            let floored = (share - 0.01).abs() < 1e-9 || (share - 0.1).abs() < 1e-9;
            if floored {
                count.floor().max(1.0) as u64
            } else {
                count.round() as u64
            }
        })
        .collect();
    std::array::from_fn(|i| shares.get(i).copied().unwrap_or(0))
}

fn texts(value: &Value) -> Vec<(String, String)> {
    let Some(object) = value.as_object() else {
        return Vec::new();
    };
    object
        .iter()
        .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
        .collect()
}

fn job(value: &Value, plan: &Plan, index: usize, header: &str) -> JobResult {
    let mut result = JobResult::of_job(&plan.jobs[index]);
    let after = |key: &str| {
        let rest = &header[header.find(key).unwrap() + key.len()..];
        rest.split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    result.members = after("jobs=");
    result.pid = after(" pid=");
    result.groupid = int(value, "groupid").try_into().unwrap();
    result.elapsed_s = int(value, "elapsed");
    let eta = int(value, "eta");
    result.eta_s = (eta != i32::MAX as u64).then_some(eta);
    result.options = texts(&value["job options"]);
    result.directions = PerDir {
        read: direction(&value["read"]),
        write: direction(&value["write"]),
        trim: direction(&value["trim"]),
    };
    result.sync = latency(&value["sync"]["lat_ns"]);
    result.job_runtime_ms = int(value, "job_runtime");
    let time = |key: &str| {
        (value[key].as_f64().unwrap() * 10.0 * result.job_runtime_ms as f64).round() as u64
    };
    result.cpu = CpuUsage {
        user_us: time("usr_cpu"),
        sys_us: time("sys_cpu"),
        ctx: int(value, "ctx"),
        majf: int(value, "majf"),
        minf: int(value, "minf"),
    };
    let ios: u64 = Ddir::ALL
        .iter()
        .map(|d| result.directions.get(*d).total_ios)
        .sum();
    let large = 1_000_000_000;
    result.depth = DepthCounts {
        counts: counts(&value["iodepth_level"], ios),
        total: ios,
    };
    result.submit = DepthCounts {
        counts: counts(&value["iodepth_submit"], large),
        total: large,
    };
    result.complete = DepthCounts {
        counts: counts(&value["iodepth_complete"], large),
        total: large,
    };
    result.latency = LatencyBuckets {
        ns: counts(&value["latency_ns"], ios),
        us: counts(&value["latency_us"], ios),
        ms: counts(&value["latency_ms"], ios),
    };
    if value.get("total_err").is_some() {
        result.errors = Some((int(value, "total_err"), 0));
    }
    result.latency_depth = LatencyDepth {
        depth: int(value, "latency_depth").try_into().unwrap(),
        ..LatencyDepth::default()
    };
    result
}

fn run(printed: &Printed, plan: &Plan) -> RunResult {
    let value: Value = serde_json::from_str(&printed.json).unwrap();
    let headers: Vec<&str> = printed
        .text
        .lines()
        .filter(|l| l.contains(": (groupid="))
        .collect();
    let jobs = value["jobs"].as_array().unwrap();
    RunResult {
        timestamp_ms: int(&value, "timestamp_ms"),
        global_options: texts(&value["global options"]),
        jobs: jobs
            .iter()
            .zip(&headers)
            .enumerate()
            .map(|(i, (v, h))| job(v, plan, i, h))
            .collect(),
        disk_util: value["disk_util"]
            .as_array()
            .map(|disks| disks.iter().map(disk).collect()),
        ..RunResult::default()
    }
}

fn disk(value: &Value) -> DiskUtil {
    DiskUtil {
        name: value["name"].as_str().unwrap().to_owned(),
        ios: [int(value, "read_ios"), int(value, "write_ios")],
        merges: [int(value, "read_merges"), int(value, "write_merges")],
        ticks: [int(value, "read_ticks"), int(value, "write_ticks")],
        in_queue: int(value, "in_queue"),
        util: value["util"].as_f64().unwrap(),
    }
}

/// The coarse latency shares lose their counts in print: a share shown as 0.01 may be less.
fn without_floors(text: &str) -> String {
    text.lines()
        .filter(|l| !l.trim_start().starts_with("lat (") || !l.contains("=0.01%"))
        .flat_map(|l| [l, "\n"])
        .collect()
}

/// The terse field that counts everything below 2 us: the sum of eleven of JSON's buckets.
const FASTEST: usize = 99;

/// How many of those buckets show 0.01 %, which may stand for any smaller share that is not zero.
fn floored(job: &Value) -> u32 {
    let below = job["latency_ns"].as_object().unwrap().values();
    let shares = below.chain([&job["latency_us"]["2"]]);
    let floor = |share: &&Value| (share.as_f64().unwrap() - 0.01).abs() < 1e-9;
    u32::try_from(shares.filter(floor).count()).unwrap()
}

/// Whether two fields are one number that was calculated from figures printed with six decimals: one unit in
/// the last place is then open, and 0.01 for each share of which only that was told.
fn near(a: &str, b: &str, floored: u32) -> bool {
    let number = |text: &str| -> Option<(f64, i32)> {
        let text = text.strip_suffix('%').unwrap_or(text);
        let (_, decimals) = text.split_once('.')?;
        Some((text.parse().ok()?, i32::try_from(decimals.len()).ok()?))
    };
    let (Some((x, decimals)), Some((y, others))) = (number(a), number(b)) else {
        return false;
    };
    let unit = 10_f64.powi(-decimals);
    decimals == others && (x - y).abs() < 1.001 * unit + 0.01 * f64::from(floored)
}

#[test]
fn near_is_no_more_than_the_last_digit() {
    assert!(near("99.97%", "99.96%", 0) && !near("99.97%", "99.95%", 0));
    assert!(near("99.97%", "99.95%", 1) && !near("99.97%", "99.94%", 1));
    assert!(near("1.000001", "1.000002", 0) && !near("1.000001", "1.000003", 0));
    assert!(!near("12", "13", 0) && !near("1.00%", "1.000%", 0));
}

fn compare(out: &str, jobs: &str) {
    let plan = parse_job_text("jobs.fio", jobs).unwrap();
    let printed = split(out);
    let run = run(&printed, &plan);
    assert_eq!(without_floors(&run.text()), without_floors(&printed.text));
    assert_eq!(run.json(true).pretty().trim_end(), printed.json.trim_end());
    let ours = run.terse(3);
    let jobs: Value = serde_json::from_str(&printed.json).unwrap();
    for (index, (ours, theirs)) in ours.lines().zip(printed.terse.lines()).enumerate() {
        let unknown = floored(&jobs["jobs"][index]);
        assert_eq!(ours.split(';').count(), theirs.split(';').count());
        for (index, (a, b)) in ours.split(';').zip(theirs.split(';')).enumerate() {
            let terms = if index == FASTEST { unknown } else { 0 };
            assert!(
                a == b || near(a, b, terms),
                "terse field {index}: {a} and {b}, {terms} floored"
            );
        }
    }
    assert_eq!(ours.lines().count(), printed.terse.lines().count());
}

const RECORDED: &str = include_str!("data/recorded.fio");

#[test]
fn a_recorded_run_is_written_as_fio_wrote_it() {
    compare(include_str!("data/recorded.out"), RECORDED);
}

#[test]
fn a_fresh_run_is_written_as_fio_writes_it() {
    let folder = std::env::temp_dir().join(format!("cairn-fio-output-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let jobs = "[global]\nioengine=null\nsize=64m\n[a]\nrw=randrw\nbs=4k,8k\niodepth=16\n[b]\nstonewall\nrw=read\nslat_percentiles=1\n\
                lat_percentiles=1\npercentile_list=50:99.5\n[c]\nstonewall\nrw=randtrim\ngtod_reduce=1\n[d]\nrw=write\nkb_base=1000\nbs=1m\n\
                size=20g\n[e]\nunit_base=1\nnumjobs=3\ngroup_reporting\nstonewall\ndisable_clat=1\n";
    let path = folder.join("jobs.fio");
    std::fs::write(&path, jobs).unwrap();
    let result = Command::new("fio")
        .current_dir(&folder)
        .env("TZ", "UTC")
        .args(["--output-format=terse,json+,normal", "jobs.fio"])
        .output();
    let _ = std::fs::remove_dir_all(&folder);
    match result {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("fio-3.33") => {
            compare(&String::from_utf8_lossy(&output.stdout), jobs);
        }
        _ => println!("skipped: fio 3.33 is not installed, so no fresh run is compared"),
    }
}
