//! Tools that people point at fio's output read ours. Each part is skipped, and says so, where its tool is
//! not installed.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failure here is the test's own"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use cairn_fio::job::{Ddir, Logs};
use cairn_fio::output::{DiskUtil, Histogram, JobResult, LogEntry, RunResult};
use cairn_fio::parse_job_text;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cairn-fio-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two reports with latencies from 1 us to 1 ms.
fn sample() -> RunResult {
    let plan = parse_job_text(
        "j",
        "[global]\nbs=4k\n[reader]\nrw=randread\n[mixer]\nstonewall\nrw=randrw\n",
    )
    .unwrap();
    let mut jobs = Vec::new();
    for job in &plan.jobs {
        let mut result = JobResult::of_job(job);
        result.members = 1;
        for dir in Ddir::ALL.into_iter().filter(|dir| job.access.rw.has(*dir)) {
            let figures = result.directions.get_mut(dir);
            for us in 1..=1000_u64 {
                figures.clat.record(us * 1000);
                figures.lat.record(us * 1000 + 100);
                figures.io_bytes += 4096;
                figures.total_ios += 1;
                result.latency.record(us * 1000);
                result.depth.record_depth(1);
            }
            figures.runtime_ms = 501;
            figures.bw.record(7984);
            figures.iops.record(1996);
        }
        result.job_runtime_ms = 501;
        jobs.push(result);
    }
    RunResult {
        timestamp_ms: 1_796_044_895_393,
        global_options: plan.global_options(),
        jobs,
        disk_util: Some(vec![DiskUtil {
            name: "ram0".to_owned(),
            ..DiskUtil::default()
        }]),
        ..RunResult::default()
    }
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

fn run(folder: &Folder, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {args:?}: {}{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn the_json_is_what_python_and_rust_call_json() {
    let text = sample().json(true).pretty();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let read = &value["jobs"][0]["read"];
    // Strict consumers decode these as integers.
    for key in [
        "io_bytes",
        "bw",
        "bw_bytes",
        "runtime",
        "total_ios",
        "bw_min",
        "iops_min",
        "iops_samples",
    ] {
        assert!(read[key].is_u64(), "{key}");
    }
    assert!(value["jobs"][0]["eta"].is_u64() && value["jobs"][0]["ctx"].is_u64());
    for key in ["iops", "bw_mean", "bw_dev", "bw_agg", "iops_mean"] {
        assert!(read[key].is_f64(), "{key}");
    }
    assert_eq!(value["disk_util"][0]["name"], "ram0");
}

#[test]
fn one_object_a_line_and_several_in_a_stream() {
    let run = sample();
    let lines = format!("{0}\n{0}\n", run.json(false).compact());
    assert_eq!(lines.lines().count(), 2);
    let stream = format!("{0}\n{0}\n", run.json(false).pretty());
    for text in [lines, stream] {
        let objects: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&text)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(objects.len(), 2);
    }
}

#[test]
fn terse_has_the_fields_that_exporters_count() {
    let mut run = sample();
    let fields = |run: &RunResult, version| {
        run.terse(version)
            .lines()
            .next()
            .unwrap()
            .split(';')
            .count()
    };
    assert_eq!(fields(&run, 3), 130);
    run.disk_util = None;
    assert_eq!(
        [2, 3, 4, 5].map(|version| fields(&run, version)),
        [161, 121, 162, 180]
    );
}

#[test]
fn clat2csv_reads_the_bins() {
    if !installed("fio_jsonplus_clat2csv") {
        println!("skipped: fio_jsonplus_clat2csv is not installed");
        return;
    }
    let folder = Folder::new("clat2csv");
    folder.write("run.json", &sample().json(true).pretty());
    run(&folder, "fio_jsonplus_clat2csv", &["run.json", "run.csv"]);
    let csv = std::fs::read_to_string(folder.0.join("run_job0.csv")).unwrap();
    let last = csv.lines().last().unwrap();
    assert!(csv.lines().count() > 100 && last.contains("1.0"), "{last}");
}

/// A script of Debian's fio package, unpacked from its documentation folder.
fn packed_script(folder: &Folder, name: &str) -> bool {
    let path = Path::new("/usr/share/doc/fio").join(format!("{name}.gz"));
    let unpacked = Command::new("gzip").arg("-dc").arg(path).output();
    let Some(script) = unpacked.ok().filter(|out| out.status.success()) else {
        println!("skipped: {name} is not installed");
        return false;
    };
    folder.write(name, &String::from_utf8_lossy(&script.stdout));
    installed("python3")
}

#[test]
fn fiologparser_reads_the_logs() {
    let folder = Folder::new("logparser");
    if !packed_script(&folder, "fiologparser.py") {
        return;
    }
    let mut log = String::new();
    for n in 0..40_u64 {
        let entry = LogEntry {
            largest: 0,
            issued_ns: 0,
            time_ms: n * 50,
            value: 100 + n,
            dir: Ddir::Read,
            bs: 4096,
            offset: 0,
        };
        entry.write(&mut log, &Logs::default());
    }
    // The script in the package knows four columns, and stumbles over the fifth of fio 3.33's own logs too.
    let cut: Vec<&str> = log
        .lines()
        .map(|line| line.strip_suffix(", 0").unwrap())
        .collect();
    folder.write("run_iops.1.log", &(cut.join("\n") + "\n"));
    let out = run(
        &folder,
        "python3",
        &["fiologparser.py", "-i", "500", "run_iops.1.log"],
    );
    let value: f64 = out.split_whitespace().last().unwrap().parse().unwrap();
    assert!((100.0..140.0).contains(&value), "{out}");
}

#[test]
fn the_histogram_tool_reads_the_histograms() {
    let folder = Folder::new("histograms");
    if !packed_script(&folder, "fio-histo-log-pctiles.py") {
        return;
    }
    let mut log = String::new();
    for second in 1..=4_u64 {
        let mut histogram = Histogram::new();
        for us in 1..=1000 {
            histogram.record(us * 1000);
        }
        log.push_str(&histogram.log_line(second * 1000, Ddir::Read, 4096, 0));
    }
    folder.write("run_clat_hist.1.log", &log);
    let args = [
        "fio-histo-log-pctiles.py",
        "--fio-version",
        "3",
        "--time-quantum",
        "1",
        "run_clat_hist.1.log",
    ];
    let out = run(&folder, "python3", &args);
    // Columns: time, samples, minimum, median, ...: the median of 1 to 1000 us is there in us.
    let medians: Vec<f64> = out
        .lines()
        .filter(|line| line.starts_with(' '))
        .filter_map(|line| line.split(',').nth(3)?.trim().parse().ok())
        .collect();
    assert!(
        medians.len() >= 3 && medians.iter().all(|m| (490.0..=510.0).contains(m)),
        "{out}"
    );
}
