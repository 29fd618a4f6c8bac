//! The programs that ask.

use std::process::{Command, Stdio};
use std::time::Instant;

use cairn_block::{BlockDeviceExt as _, Registry};

/// Bytes of one request of a pass over an export.
const PIECE: usize = 1 << 20;

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

/// Writes every byte of an export and reads it again: memory that nobody used for a while is slow at its first
/// touch in a virtual machine, whoever has it.
pub(crate) fn warm(uri: &str) -> Result<(), String> {
    let mut registry = Registry::new();
    cairn_nbd::register(&mut registry);
    let stack = registry
        .open(&format!("nbd({uri})"))
        .map_err(|e| e.to_string())?;
    let disk = stack.device();
    let mut buf = vec![0xA5; PIECE];
    for at in (0..disk.info().len).step_by(PIECE) {
        disk.write_at(&buf, at).map_err(|e| e.to_string())?;
    }
    for at in (0..disk.info().len).step_by(PIECE) {
        disk.read_at(&mut buf, at).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Random 4 KiB requests for a moment to one server after the other; I/Os in a second of each.
pub(crate) fn fio(uris: &[String], rw: &str, depth: u32, jobs: u32) -> Vec<Option<f64>> {
    let mut fio = Command::new("fio");
    fio.args(["--ioengine=nbd", "--output-format=json", "--bs=4k"])
        .args(["--norandommap", "--group_reporting"])
        .args(["--time_based", "--runtime=300ms"])
        .arg(format!("--rw={rw}"))
        .arg(format!("--size={}", crate::SMALL))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--numjobs={jobs}"))
        .stderr(Stdio::null());
    for (i, uri) in uris.iter().enumerate() {
        fio.arg(format!("--name=turn{i}"))
            .arg(format!("--uri={uri}"));
        if i > 0 {
            fio.arg("--stonewall");
        }
    }
    let text = fio.output().ok().map(|o| o.stdout);
    let text = text
        .and_then(|t| String::from_utf8(t).ok())
        .unwrap_or_default();
    // The engine greets in front of the JSON.
    let report: Option<serde_json::Value> = text
        .find('{')
        .and_then(|at| serde_json::from_str(text.get(at..)?).ok());
    let seen = |i| {
        let report = report.as_ref()?;
        let job = report.get("jobs")?.get(i)?;
        let iops = |kind: &str| job.get(kind)?.get("iops")?.as_f64();
        Some(iops("read")? + iops("write")?)
    };
    (0..uris.len()).map(seen).collect()
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
