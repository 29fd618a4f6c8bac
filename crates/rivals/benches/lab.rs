//! The lab's engine beside fio itself and beside a bare loop over the device.
//!
//! `cargo bench -p cairn-rivals --bench lab`
//!
//! Arms are whole runs of a second, so they are interleaved in pairs and the ratio is the median of the pairs'
//! ratios. fio runs as a process of its own and says itself how many I/Os it did.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench: a run that fails ends it, and nothing is exported"
)]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_block::{BlockDeviceExt as _, Device, Shape};
use cairn_lab::{FioOptions, Registry, run_fio};
use cairn_ramdisk::Ram;
use serde_json::{Value, json};

const BLOCK: u64 = 4096;

/// Bytes of the ram that is written: four times a large cache would be better, but it must be in memory twice.
const SIZE: u64 = 256 << 20;

struct Plan {
    pairs: usize,
    seconds: f64,
}

/// I/Os a second of real fio.
fn fio(words: &[&str], seconds: f64) -> Option<f64> {
    let runtime = format!("--runtime={}ms", seconds * 1e3);
    let out = Command::new("fio")
        .args(words)
        .args([runtime.as_str(), "--time_based", "--output-format=json"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let value: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    value["jobs"][0]["write"]["iops"].as_f64()
}

/// I/Os a second of the same job here.
fn ours(words: &[&str], seconds: f64, sample: u32, device: Option<&Arc<Ram>>) -> f64 {
    let runtime = format!("--runtime={}ms", seconds * 1e3);
    let all = words
        .iter()
        .copied()
        .chain([runtime.as_str(), "--time_based"]);
    let plan = cairn_fio::parse_command_line(all).unwrap();
    let mut registry = Registry::default();
    let options = FioOptions {
        stack: device.map(|_| "kept".to_owned()),
        sample,
        ..FioOptions::default()
    };
    if let Some(device) = device.cloned() {
        // The very memory that the bare loop writes to.
        let about = "the memory of the bare loop";
        let blocks = registry.blocks();
        blocks.register("kept", about, Shape::Leaf, &[], move |_| {
            Ok(Arc::clone(&device) as Device)
        });
    }
    let result = run_fio(&plan, options, &registry, &mut |_| {}).unwrap();
    let job = &result.jobs[0];
    assert_eq!(job.error, 0);
    1000.0 * job.directions.write.total_ios as f64 / job.job_runtime_ms as f64
}

/// The same writes by nothing but a loop.
fn bare(device: &Ram, seconds: f64) -> f64 {
    let mut rng = fastrand::Rng::with_seed(1);
    let len = usize::try_from(BLOCK).unwrap();
    // At a page, as the engine's buffers are: what that is worth is no merit of either.
    let mut pages = vec![0; 2 * len];
    let from = pages.as_ptr().align_offset(len);
    let buf = &mut pages[from..from + len];
    rng.fill(buf);
    let blocks = SIZE / BLOCK;
    let began = Instant::now();
    let mut n: u64 = 0;
    while began.elapsed() < Duration::from_secs_f64(seconds) {
        for _ in 0..256 {
            let at = rng.u64(0..blocks) * BLOCK;
            buf[..8].copy_from_slice(&n.to_le_bytes());
            device.write_at(buf, at).unwrap();
            n += 1;
        }
    }
    n as f64 / began.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both arms in pairs, each first in turn, and tells the median ratio of the second over the first.
fn pairs(
    plan: &Plan,
    what: &str,
    bar: f64,
    mut rival: impl FnMut() -> Option<f64>,
    mut cairn: impl FnMut() -> f64,
) -> Option<Value> {
    let (mut ratios, mut a, mut b) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..plan.pairs {
        let (theirs, mine) = if pair % 2 == 0 {
            let theirs = rival()?;
            (theirs, cairn())
        } else {
            let mine = cairn();
            (rival()?, mine)
        };
        ratios.push(mine / theirs);
        a.push(theirs);
        b.push(mine);
    }
    let (low, high) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    let ratio = median(ratios);
    let met = ratio >= bar;
    println!(
        "{what:<58} {:>11.0} {:>11.0}  {ratio:>6.2} [{low:.2}, {high:.2}]  bar {bar:>4.2}  {}",
        median(a.clone()),
        median(b.clone()),
        if met { "met" } else { "NOT met" }
    );
    Some(json!({
        "what": what, "rival_iops": median(a), "cairn_iops": median(b),
        "ratio": ratio, "lowest": low, "highest": high, "bar": bar, "met": met,
    }))
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|a| a == "--quick" || a == "--test");
    let plan = if quick {
        Plan {
            pairs: 1,
            seconds: 0.1,
        }
    } else {
        Plan {
            pairs: 7,
            seconds: 1.0,
        }
    };
    let installed = Command::new("fio").arg("--version").output().is_ok();
    if !installed {
        println!("skipped: fio is not installed, so the null engine has no rival");
    }
    println!(
        "{:<58} {:>11} {:>11}  {:>6}",
        "one job, depth 1, I/Os a second", "rival", "cairn", "ratio"
    );
    let null = [
        "--name=n",
        "--ioengine=null",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1g",
        "--norandommap",
    ];
    let reduced: Vec<&str> = null.iter().copied().chain(["--gtod_reduce=1"]).collect();
    let seconds = plan.seconds;
    let mut rows = Vec::new();
    if installed {
        rows.push(pairs(
            &plan,
            "null engine, every latency: cairn over fio",
            2.0,
            || fio(&null, seconds),
            || ours(&null, seconds, 0, None),
        ));
        rows.push(pairs(
            &plan,
            "null engine, gtod_reduce on both: cairn over fio",
            3.0,
            || fio(&reduced, seconds),
            || ours(&reduced, seconds, 0, None),
        ));
    }
    let device = Arc::new(Ram::with_len(SIZE).unwrap());
    bare(&device, 0.5_f64.min(seconds));
    let size = format!("--size={SIZE}");
    let ram: Vec<&str> = vec![
        "--name=r",
        "--ioengine=psync",
        "--rw=randwrite",
        "--bs=4k",
        "--norandommap",
        "--filename=/dev/ram",
        "--ramp_time=300ms",
        &size,
    ];
    for (what, bar, sample) in [
        (
            "4 KiB randwrite on ram, every latency: over the bare loop",
            0.72,
            0,
        ),
        (
            "4 KiB randwrite on ram, 1 in 64 timed: over the bare loop",
            0.90,
            64,
        ),
    ] {
        rows.push(pairs(
            &plan,
            what,
            bar,
            || Some(bare(&device, seconds)),
            || ours(&ram, seconds, sample, Some(&device)),
        ));
    }
    if args.iter().any(|a| a == "--json") {
        let rows: Vec<Value> = rows.into_iter().flatten().collect();
        println!("{}", json!({ "bench": "lab", "rows": rows }));
    }
}
