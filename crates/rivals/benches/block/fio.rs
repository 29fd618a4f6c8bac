//! Real fio beside the ramdisk: its mmap engine on a file in tmpfs whose pages are all there.
//!
//! fio and Cairn take turns of a second each. fio times every request and keeps each time in its
//! histogram. Cairn's arm reads and writes through `stats/ram`: two looks at the clock for each request, and
//! one count in a histogram of the same 29 x 64 buckets, kept in per-CPU counters; the sampled arm does so for
//! one request in 64, drawn at random.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_block::{BlockDeviceExt, Device, Registry};

use crate::plain::Plain;
use crate::walk::{BLOCK, Offsets};

const LEN: usize = 64 << 20;
const ROUNDS: usize = 5;

/// IOPS of each arm, round by round.
#[derive(Default)]
struct Seen {
    fio: Vec<f64>,
    psync: Vec<f64>,
    all: Vec<f64>,
    sampled: Vec<f64>,
    bare: Vec<f64>,
    plain: Vec<f64>,
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A file that goes when the bench goes.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn scratch() -> io::Result<Scratch> {
    let scratch = Scratch(format!("/dev/shm/cairn-bench-{}", std::process::id()).into());
    let mut file = File::create(&scratch.0)?;
    let bytes = vec![1; 1 << 20];
    for _ in 0..LEN >> 20 {
        file.write_all(&bytes)?;
    }
    Ok(scratch)
}

/// One second of fio, after half a second in which its mapping gets its pages.
fn fio(file: &Path, engine: &str, op: &str) -> Result<f64, String> {
    let out = Command::new("fio")
        .args(["--name=x", "--bs=4k", "--thread", "--norandommap"])
        .args(["--time_based", "--runtime=1", "--ramp_time=1"])
        .args(["--output-format=json", "--cpus_allowed=0"])
        .arg(format!("--ioengine={engine}"))
        .arg(format!("--rw=rand{op}"))
        .arg(format!("--size={LEN}"))
        .arg(format!("--filename={}", file.display()))
        .output()
        .map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).trim().to_owned());
    }
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).map_err(|e| e.to_string())?;
    json.pointer(&format!("/jobs/0/{op}/iops"))
        .and_then(serde_json::Value::as_f64)
        .ok_or_else(|| format!("no IOPS of a {op} in its output"))
}

/// IOPS of a loop that goes on for half a second.
fn ours(mut batch: impl FnMut(u64)) -> f64 {
    let time = Duration::from_millis(500);
    // Every page several times, untimed, as fio has its ramp.
    batch((4 * LEN / BLOCK) as u64);
    let start = Instant::now();
    let mut ops = 0;
    loop {
        batch(512);
        ops += 512;
        let took = start.elapsed();
        if took >= time {
            return f64::from(ops) / took.as_secs_f64();
        }
    }
}

fn through(device: &Device, offsets: &Offsets, op: &str) -> f64 {
    let walk = offsets.walk();
    let device = black_box(&**device);
    ours(|n| {
        walk.go(0, n, |off, buffer| {
            let done = if op == "read" {
                device.read_at(buffer, off)
            } else {
                device.write_at(buffer, off)
            };
            done.expect("the device is sound");
        });
    })
}

fn plainly(plain: &Plain, offsets: &Offsets, op: &str) -> f64 {
    let walk = offsets.walk();
    ours(|n| {
        walk.go(0, n, |off, buffer| {
            let off = usize::try_from(off).unwrap_or(0);
            if op == "read" {
                plain.read(off, buffer);
            } else {
                plain.write(off, buffer);
            }
        });
    })
}

/// Measures and prints; an error says why there is nothing to print.
pub(crate) fn beside(quick: bool) -> Result<(), String> {
    let version = Command::new("fio")
        .arg("--version")
        .output()
        .map_err(|_| "fio is not installed".to_owned())?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let file = scratch().map_err(|e| format!("/dev/shm: {e}"))?;
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    let ram = registry
        .open(&format!("ram({LEN})"))
        .map_err(|e| e.to_string())?;
    let ram = Arc::clone(ram.device());
    let bytes = vec![1; 1 << 20];
    for off in (0..LEN as u64).step_by(1 << 20) {
        ram.write_at(&bytes, off).map_err(|e| e.to_string())?;
    }
    let all: Device = Arc::new(cairn_block::StatsLayer::new(Arc::clone(&ram)));
    let sampled: Device = Arc::new(cairn_block::StatsLayer::new(Arc::clone(&ram)).sampling(64));
    let plain = Plain::new(LEN).map_err(|e| e.to_string())?;
    let offsets = Offsets::new(LEN);
    let mut stdout = io::stdout().lock();
    let told = |e: io::Error| format!("report: {e}");
    writeln!(
        stdout,
        "\n{version} beside it, one thread, {} MiB, {BLOCK} bytes at random; IOPS: medians of turns of a second",
        LEN >> 20
    )
    .map_err(told)?;
    let mut report = Vec::new();
    for op in ["read", "write"] {
        let mut seen = Seen::default();
        // Once for warmth, not counted: the file's pages have only been written so far.
        fio(&file.0, "mmap", op)?;
        for _ in 0..if quick { 1 } else { ROUNDS } {
            seen.fio.push(fio(&file.0, "mmap", op)?);
            seen.all.push(through(&all, &offsets, op));
            seen.sampled.push(through(&sampled, &offsets, op));
            seen.bare.push(through(&ram, &offsets, op));
            seen.plain.push(plainly(&plain, &offsets, op));
        }
        seen.psync.push(fio(&file.0, "psync", op)?);
        let base = median(&seen.fio);
        for (arm, values, bar) in [
            ("fio, mmap engine, every latency", &seen.fio, None),
            ("fio, psync engine, every latency", &seen.psync, None),
            ("stats/ram: every latency", &seen.all, Some(1.2)),
            (
                "stats(sample=64)/ram: 1 latency in 64",
                &seen.sampled,
                Some(1.5),
            ),
            ("ram", &seen.bare, None),
            ("plain copy, mmap", &seen.plain, None),
        ] {
            let iops = median(values);
            let ratio = iops / base;
            let verdict = match bar {
                Some(bar) if ratio >= bar => format!("  bar {bar}: holds"),
                Some(bar) => format!("  bar {bar}: MISSED"),
                None => String::new(),
            };
            writeln!(
                stdout,
                "  {op:<5} {arm:<40} {:>8.0} k {ratio:>7.2} x fio{verdict}",
                iops / 1e3
            )
            .map_err(told)?;
            report.push(serde_json::json!({
                "op": op, "arm": arm, "iops": iops, "over_fio_mmap": ratio, "bar": bar,
            }));
        }
    }
    let json = serde_json::json!({ "bench": "block beside fio", "fio": version, "arms": report });
    writeln!(stdout, "{json}").map_err(told)
}
