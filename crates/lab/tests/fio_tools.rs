//! What the engine writes, beside what fio writes for the same job, and in the hands of fio's own tools. Each part
//! is skipped, and says so, where its tool is not installed.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failure here is the test's own"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use cairn_fio::output::RunResult;
use cairn_lab::{FioOptions, Registry, run_fio};
use serde_json::Value;

/// Runs a job here; its log files go to the folder.
fn ours(line: &str, folder: &Path) -> (RunResult, cairn_fio::Plan) {
    let plan = cairn_fio::parse_command_line(line.split_whitespace()).unwrap();
    let mut take = |name: &str, text: &[u8]| std::fs::write(folder.join(name), text).unwrap();
    let options = FioOptions {
        logs: Some(&mut take),
        ..FioOptions::default()
    };
    let result = run_fio(&plan, options, &Registry::default(), &mut |_| {}).unwrap();
    (result, plan)
}

/// Runs the same job by fio; `None` if there is none of the version that is followed.
fn fios(line: &str, folder: &Path) -> Option<Value> {
    let out = Command::new("fio")
        .args(line.split_whitespace())
        .arg("--output-format=json")
        .current_dir(folder)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let value: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    (value["fio version"] == "fio-3.33").then_some(value)
}

/// Every path of keys with the type of what is there.
fn shape(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if matches!(key.as_str(), "cairn" | "disk_util") {
                    continue;
                }
                shape(value, &format!("{at}.{key}"), out);
            }
        }
        Value::Array(items) => {
            for item in items {
                shape(item, &format!("{at}[]"), out);
            }
        }
        Value::String(_) => out.push(format!("{at} text")),
        Value::Number(n) if n.is_f64() => out.push(format!("{at} float")),
        Value::Number(_) => out.push(format!("{at} integer")),
        other => out.push(format!("{at} {other}")),
    }
}

fn shape_of(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    shape(value, "", &mut out);
    out.sort();
    out.dedup();
    out
}

#[test]
fn the_same_job_has_the_same_keys_types_and_totals_as_under_fio() {
    let temp = tempfile::tempdir().unwrap();
    let jobs = [
        "--name=a --rw=randrw --bs=4k --size=1m --filename=f --ioengine=psync",
        "--name=a --rw=write --bs=64k --size=2m --filename=f --numjobs=2 --group_reporting --thread --fsync=8",
        "--name=a --rw=randread --bs=8k --size=1m --filename=f --gtod_reduce=1",
        "--name=a --rw=write --bs=4k --size=1m --filename=f --verify=crc32c",
        "--name=a --rw=randwrite --bs=4k --io_size=2m --size=1m --norandommap --filename=f --percentile_list=50:99.9",
        "--name=a --rw=write --bs=4k --size=256k --filename=f --description=text --continue_on_error=all",
        "--name=a --ioengine=filecreate --filesize=8k --bs=4k --nrfiles=30 --create_on_open=1 --openfiles=1 \
         --fallocate=none",
        "--name=a --ioengine=filestat --rw=write --filesize=4k --nrfiles=30",
        "--name=a --ioengine=filedelete --filesize=4k --nrfiles=30 --numjobs=2 --group_reporting --thread",
        "--name=b --ioengine=falloc --rw=randwrite --bs=4k --size=256k",
        "--name=b --ioengine=ftruncate --rw=write --bs=4k --size=256k --unlink=1",
        "--name=b --ioengine=psync --rw=write --bs=4k --size=64k --loops=3 --unlink_each_loop=1 --verify=md5",
    ];
    for line in jobs {
        let Some(theirs) = fios(line, temp.path()) else {
            println!("skipped: fio 3.33 is not installed, so no key is compared with its own");
            return;
        };
        let (result, _) = ours(line, temp.path());
        let text = result.json(false).pretty();
        let mine: Value = serde_json::from_str(&text).unwrap();
        let (a, b) = (shape_of(&mine), shape_of(&theirs));
        let only = |x: &[String], y: &[String]| -> Vec<String> {
            x.iter().filter(|k| !y.contains(k)).cloned().collect()
        };
        assert_eq!(
            (only(&a, &b), only(&b, &a)),
            (Vec::new(), Vec::new()),
            "{line}"
        );
        for dir in ["read", "write", "trim"] {
            let of = |v: &Value| -> (u64, u64) {
                let jobs = v["jobs"].as_array().unwrap().iter();
                jobs.fold((0, 0), |(ios, bytes), job| {
                    let d = &job[dir];
                    (
                        ios + d["total_ios"].as_u64().unwrap(),
                        bytes + d["io_bytes"].as_u64().unwrap(),
                    )
                })
            };
            if line.contains("randrw") {
                // Which of the two an I/O is, is drawn; all of them together are not.
                continue;
            }
            assert_eq!(of(&mine), of(&theirs), "{line}: {dir}");
        }
        let all = |v: &Value| {
            let job = &v["jobs"][0];
            job["read"]["total_ios"].as_u64().unwrap() + job["write"]["total_ios"].as_u64().unwrap()
        };
        assert_eq!(all(&mine), all(&theirs), "{line}");
        let calls = |v: &Value| {
            let job = &v["jobs"][0];
            let n = |dir: &str, what: &str| job[dir][what]["N"].as_u64().unwrap();
            ["clat_ns", "lat_ns"].map(|what| n("read", what) + n("write", what))
        };
        if line.contains("=file") && line.contains("ioengine") || line.contains("name=b") {
            assert_eq!(calls(&mine), calls(&theirs), "{line}");
            assert!(mine["jobs"][0]["error"] == 0, "{line}");
        }
    }
}

#[test]
fn the_state_of_a_job_that_verifies_is_fios_file_and_fio_reads_it() {
    let temp = tempfile::tempdir().unwrap();
    let [us, them] = ["us", "them"].map(|name| temp.path().join(name));
    for folder in [&us, &them] {
        std::fs::create_dir(folder).unwrap();
    }
    let name = "local-w-0-verify.state";
    let of = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
    let job = "--name=w --bs=4k --size=64k --ioengine=psync --verify=crc32c";
    let write = format!("{job} --rw=write --number_ios=9 --do_verify=0");
    if fios(&write, &them).is_none() {
        println!("skipped: fio 3.33 is not installed, so no state is compared with its own");
        return;
    }
    ours(&write, &us);
    assert_eq!(of(&us), of(&them), "sequential, so no generator was used");
    // fio goes by what we wrote: nine blocks of its own file, then by ours of five.
    let read = format!("{job} --rw=read --verify_state_load=1");
    for n in [9_u64, 5] {
        ours(&write.replace("ios=9", &format!("ios={n}")), &us);
        std::fs::copy(us.join(name), them.join(name)).unwrap();
        let job = &fios(&read, &them).unwrap()["jobs"][0];
        assert_eq!(
            (&job["error"], &job["read"]["total_ios"]),
            (&0.into(), &n.into())
        );
    }
}

/// A script of Debian's fio package, unpacked from its documentation folder.
fn script(folder: &Path, name: &str) -> Option<PathBuf> {
    let packed = Path::new("/usr/share/doc/fio").join(format!("{name}.gz"));
    let out = Command::new("gzip").arg("-dc").arg(packed).output().ok()?;
    if !out.status.success() || Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: {name} is not installed");
        return None;
    }
    let path = folder.join(name);
    std::fs::write(&path, out.stdout).unwrap();
    Some(path)
}

fn answer(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {errors}{text}");
    text
}

#[test]
fn the_csv_of_fios_tool_counts_every_io() {
    if Command::new("fio_jsonplus_clat2csv")
        .arg("--help")
        .output()
        .is_err()
    {
        println!("skipped: fio_jsonplus_clat2csv is not installed");
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let (result, _) = ours(
        "--name=a --rw=randwrite --bs=4k --size=4m --filename=f",
        temp.path(),
    );
    std::fs::write(temp.path().join("run.json"), result.json(true).pretty()).unwrap();
    answer(
        Command::new("fio_jsonplus_clat2csv")
            .args(["run.json", "run.csv"])
            .current_dir(temp.path()),
    );
    let csv = std::fs::read_to_string(temp.path().join("run_job0.csv")).unwrap();
    // The columns of writes: count, cumulative count, percentile.
    let head: Vec<&str> = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .map(str::trim)
        .collect();
    let column = head
        .iter()
        .position(|h| *h == "write_clat_ns_cumulative")
        .unwrap();
    let last = csv.lines().rev().find_map(|line| {
        line.split(',')
            .nth(column)
            .and_then(|n| n.trim().parse::<u64>().ok())
    });
    assert_eq!(last, Some(1024), "{head:?}");
}

#[test]
fn fios_log_tools_read_the_logs_of_a_run() {
    let temp = tempfile::tempdir().unwrap();
    let line = "--name=a --rw=randwrite --bs=4k --size=4m --filename=f --time_based --runtime=2s --norandommap \
                --write_iops_log=run --log_avg_msec=100 --write_hist_log=run --log_hist_msec=500 --rate_iops=4000";
    let (result, _) = ours(line, temp.path());
    let ios = result.jobs[0].directions.write.total_ios;
    if let Some(script) = script(temp.path(), "fiologparser.py") {
        // The script of the package knows four columns and stumbles over the fifth of fio 3.33's own logs too.
        let log = std::fs::read_to_string(temp.path().join("run_iops.1.log")).unwrap();
        let cut: Vec<&str> = log
            .lines()
            .map(|l| l.strip_suffix(", 0").unwrap())
            .collect();
        std::fs::write(temp.path().join("cut.log"), cut.join("\n") + "\n").unwrap();
        let text = answer(
            Command::new("python3")
                .arg(script)
                .args(["-i", "500", "cut.log"])
                .current_dir(temp.path()),
        );
        let mean: f64 = text.split_whitespace().last().unwrap().parse().unwrap();
        assert!(mean > 1000.0 && mean < 5000.0, "{text}");
    }
    if let Some(script) = script(temp.path(), "fio-histo-log-pctiles.py") {
        let text = answer(
            Command::new("python3")
                .arg(script)
                .args([
                    "--fio-version",
                    "3",
                    "--time-quantum",
                    "1",
                    "run_clat_hist.1.log",
                ])
                .current_dir(temp.path()),
        );
        // Columns: time, samples, ...
        let samples: f64 = text
            .lines()
            .filter(|l| l.starts_with(' '))
            .filter_map(|l| l.split(',').nth(1)?.trim().parse::<f64>().ok())
            .sum();
        // The tool weighs histograms by how far they reach into its seconds.
        assert!(
            samples > 0.4 * ios as f64 && samples < 1.6 * ios as f64,
            "{samples} of {ios}\n{text}"
        );
    }
}

/// Offsets of the I/Os in a log that `write_iolog` left, in their order.
fn offsets(log: &str) -> Vec<u64> {
    let log = cairn_fio::iolog::Iolog::parse(log, false).unwrap();
    let of = |event: &cairn_fio::iolog::IologEvent| match event.op {
        cairn_fio::iolog::IologOp::Write { offset, .. } => Some(offset),
        _ => None,
    };
    log.events.iter().filter_map(of).collect()
}

/// Share of the I/Os that went to the busiest tenth, two tenths ... of the blocks that were hit.
fn curve(offsets: &[u64]) -> Vec<f64> {
    let mut hits = std::collections::HashMap::new();
    for offset in offsets {
        *hits.entry(*offset).or_insert(0_u32) += 1;
    }
    let mut hits: Vec<u32> = hits.into_values().collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    let tenth = hits.len().div_ceil(10);
    let share = |n: usize| hits.iter().take(n).sum::<u32>();
    (1..10)
        .map(|i| 100.0 * f64::from(share(i * tenth)) / offsets.len() as f64)
        .collect()
}

#[test]
fn offsets_cover_and_are_spread_as_by_fio() {
    let temp = tempfile::tempdir().unwrap();
    let both = |options: &str| -> Option<[Vec<u64>; 2]> {
        let line =
            format!("--name=a --rw=randwrite --bs=4k --ioengine=null --filename=f {options}");
        let theirs = temp.path().join("theirs");
        // fio adds to a log that is there.
        let _ = std::fs::remove_file(&theirs);
        fios(&format!("{line} --write_iolog=theirs"), temp.path())?;
        ours(&format!("{line} --write_iolog=ours"), temp.path());
        let read = |name: &str| std::fs::read_to_string(temp.path().join(name)).unwrap();
        Some([offsets(&read("ours")), offsets(&read("theirs"))])
    };
    let Some([mut ours, mut theirs]) = both("--size=4m") else {
        println!("skipped: fio 3.33 is not installed, so no offset is compared with its own");
        return;
    };
    assert_ne!(ours, theirs, "the order is each program's own");
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs, "each block once");
    for distribution in [
        "zipf:1.2",
        "zipf:0.8",
        "pareto:0.2",
        "normal:10",
        "normal:60",
    ] {
        let options = format!("--size=4m --io_size=80m --random_distribution={distribution}");
        let [ours, theirs] = both(&options).unwrap();
        assert_eq!(ours.len(), theirs.len());
        for (tenth, (a, b)) in curve(&ours).iter().zip(curve(&theirs)).enumerate() {
            // Within three points in a hundred at each tenth of the curve.
            assert!(
                (a - b).abs() < 3.0,
                "{distribution}, {} tenths: {a} here, {b} by fio",
                tenth + 1
            );
        }
    }
}
