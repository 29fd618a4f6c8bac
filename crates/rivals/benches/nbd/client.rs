//! The programs that ask.

use std::process::{Command, Stdio};
use std::time::Instant;

/// Whether a program is installed.
pub(crate) fn needs(program: &str) -> Result<(), String> {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map(|_| ())
        .map_err(|_| format!("{program} is not installed"))
}

fn base(uri: &str, rw: &str) -> Command {
    let mut fio = Command::new("fio");
    fio.args(["--name=x", "--ioengine=nbd", "--output-format=json"])
        .arg(format!("--uri={uri}"))
        .arg(format!("--rw={rw}"))
        .stderr(Stdio::null());
    fio
}

/// Writes every byte once.
pub(crate) fn fill(uri: &str) {
    let size = Command::new("nbdinfo").args(["--size", uri]).output();
    let size = size.ok().and_then(|o| String::from_utf8(o.stdout).ok());
    let size = size.map_or_else(|| "256m".to_owned(), |s| s.trim().to_owned());
    let _ = base(uri, "write")
        .args(["--bs=256k", "--iodepth=8"])
        .arg(format!("--size={size}"))
        .stdout(Stdio::null())
        .status();
}

/// Random 4 KiB requests for half a second; I/Os in a second.
pub(crate) fn fio(uri: &str, rw: &str, depth: u32, jobs: u32) -> Option<f64> {
    let out = base(uri, rw)
        .args([
            "--bs=4k",
            "--size=256m",
            "--norandommap",
            "--group_reporting",
        ])
        .args(["--time_based", "--runtime=500ms", "--ramp_time=100ms"])
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--numjobs={jobs}"))
        .output()
        .ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    // The engine greets in front of the JSON.
    let report: serde_json::Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let job = report.get("jobs")?.get(0)?;
    let iops = |kind: &str| job.get(kind)?.get("iops")?.as_f64();
    Some(iops("read")? + iops("write")?)
}

/// Copies an export to nowhere; MiB in a second.
pub(crate) fn copy(uri: &str) -> Option<f64> {
    let begun = Instant::now();
    let done = Command::new("nbdcopy")
        .args(["--connections=4", "--requests=64", uri, "null:"])
        .status()
        .ok()?;
    done.success()
        .then(|| 2048.0 / begun.elapsed().as_secs_f64())
}
