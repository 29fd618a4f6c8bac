//! Options of fio that pace, check, skew, place and log.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here is the test's own"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cairn_block::{
    BlockDevice, BlockDeviceExt as _, Caps, Device, DeviceInfo, Node, ReqFlags, Shape,
};
use cairn_fio::output::{Json, RunResult};
use cairn_lab::{FioError, FioOptions, Registry, run_fio};

/// A ram that outlives the run, and stalls once at the write of a number.
struct Kept {
    below: Device,
    writes: AtomicU64,
    stall_at: u64,
    offsets: std::sync::Mutex<HashMap<u64, u64>>,
}

impl BlockDevice for Kept {
    fn info(&self) -> DeviceInfo {
        self.below.info()
    }

    fn caps(&self) -> Caps {
        Caps::WRITE | Caps::FLUSH
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [std::io::IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> cairn_block::Result<()> {
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(
        &self,
        bufs: &[std::io::IoSlice<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> cairn_block::Result<()> {
        let n = self.writes.fetch_add(1, Ordering::Relaxed);
        *self.offsets.lock().unwrap().entry(off).or_default() += 1;
        if n == self.stall_at {
            std::thread::sleep(Duration::from_millis(150));
        }
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> cairn_block::Result<()> {
        self.below.flush()
    }

    fn describe(&self) -> Node {
        Node::new("kept")
    }

    fn children(&self) -> Vec<Device> {
        Vec::new()
    }
}

/// A registry whose `kept` is the same 4 MiB in every run.
fn kept(stall_at: u64) -> (Registry, Arc<Kept>) {
    let stack = Registry::default()
        .block_registry()
        .open("ram(4m)")
        .unwrap();
    let device = Arc::new(Kept {
        below: Arc::clone(stack.device()),
        writes: AtomicU64::new(0),
        stall_at,
        offsets: std::sync::Mutex::default(),
    });
    let mut registry = Registry::default();
    let again = Arc::clone(&device);
    registry
        .blocks()
        .register("kept", "outlives the run", Shape::Leaf, &[], move |_| {
            Ok(Arc::clone(&again) as Device)
        });
    (registry, device)
}

fn run_on(registry: &Registry, line: &str) -> Result<(RunResult, Vec<String>), FioError> {
    let plan = cairn_fio::parse_command_line(line.split_whitespace()).unwrap();
    let mut notes = Vec::new();
    let options = FioOptions {
        stack: Some("kept".to_owned()),
        ..FioOptions::default()
    };
    let result = run_fio(&plan, options, registry, &mut |n| notes.push(n.to_owned()))?;
    Ok((result, notes))
}

fn inside<'j>(of: &'j [(String, Json)], path: &[&str]) -> &'j Json {
    let (first, rest) = path.split_first().unwrap();
    let value = &of.iter().find(|(key, _)| key == first).unwrap().1;
    match value {
        Json::Object(members) if !rest.is_empty() => inside(members, rest),
        value => value,
    }
}

fn int(of: &[(String, Json)], path: &[&str]) -> i128 {
    match inside(of, path) {
        Json::Int(n) => *n,
        other => panic!("{path:?}: {other:?}"),
    }
}

const DEVICE: &str = "--name=j --filename=/dev/x --bs=4k --size=4m";

#[test]
fn a_stall_delays_everything_that_was_due_meanwhile() {
    let (registry, _) = kept(300);
    let line = format!("{DEVICE} --rw=randwrite --rate_iops=1000 --number_ios=900");
    let (result, notes) = run_on(&registry, &line).unwrap();
    let job = &result.jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (0, 900));
    let at = |kind, p| int(&job.own, &["rate", "write", kind, p]);
    // The 150 that were due during the stall are more than a hundredth; the one that stalled is not.
    assert!(
        at("resp_ns", "p99") > 50_000_000,
        "{}",
        at("resp_ns", "p99")
    );
    assert!(at("svc_ns", "p99") < at("resp_ns", "p99"));
    assert!(at("svc_ns", "max") >= 150_000_000 && at("resp_ns", "max") >= 150_000_000);
    assert!(int(&job.own, &["rate", "late_ios"]) >= 100);
    assert!(int(&job.own, &["rate", "largest_backlog_ns"]) >= 100_000_000);
    assert!(job.job_runtime_ms >= 890, "{}", job.job_runtime_ms);
    assert!(
        notes.iter().any(|n| n.contains("from the intended start")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|n| n.contains("started more than 1 ms late")),
        "{notes:?}"
    );
}

#[test]
fn thinking_and_rates_take_their_time_and_a_floor_is_kept() {
    let (registry, _) = kept(u64::MAX);
    let line = format!("{DEVICE} --rw=write --number_ios=20 --thinktime=10ms --thinktime_blocks=2");
    let (result, _) = run_on(&registry, &line).unwrap();
    assert!(result.jobs[0].job_runtime_ms >= 100);
    let line = format!("{DEVICE} --rw=write --rate=4m --io_size=1m");
    let (result, _) = run_on(&registry, &line).unwrap();
    let ms = result.jobs[0].job_runtime_ms;
    assert!(
        ms >= 245,
        "a quarter of a second but for the last block: {ms}"
    );
    let line = format!(
        "{DEVICE} --rw=write --rate_iops=100 --rate_iops_min=5000 --rate_cycle=200 --time_based --runtime=60"
    );
    let (result, notes) = run_on(&registry, &line).unwrap();
    assert_eq!(result.jobs[0].error, 5);
    assert!(
        notes.iter().any(|n| n.contains("below rate_iops_min=5000")),
        "{notes:?}"
    );
}

#[test]
fn what_was_written_is_read_back_and_a_wrong_byte_is_named() {
    for kind in ["md5", "crc32c", "sha256", "xxhash", "meta"] {
        let (registry, device) = kept(u64::MAX);
        let line = format!("{DEVICE} --rw=randwrite --verify={kind}");
        let (result, _) = run_on(&registry, &line).unwrap();
        let d = &result.jobs[0].directions;
        assert_eq!(
            (result.jobs[0].error, d.write.total_ios, d.read.total_ios),
            (0, 1024, 1024),
            "{kind}"
        );
        assert_eq!(d.read.clat.stats.count(), 1024);
        let offsets = device.offsets.lock().unwrap();
        assert!(
            offsets.len() == 1024 && offsets.values().all(|n| *n == 1),
            "each block once"
        );
        drop(offsets);
        // A later run knows what must be there, and finds the one byte that is not.
        let mut byte = [0; 1];
        device.read_at(&mut byte, 8192 + 20).unwrap();
        device.write_at(&[byte[0] ^ 1], 8192 + 20).unwrap();
        let line = format!("{DEVICE} --rw=read --verify={kind}");
        let (result, notes) = run_on(&registry, &line).unwrap();
        assert_eq!(result.jobs[0].error, 84, "{kind}");
        let told = notes
            .iter()
            .find(|n| n.contains("verify: at 8192: "))
            .unwrap();
        assert!(
            told.contains("expected ") && told.contains("found "),
            "{told}"
        );
        assert_eq!(
            result.jobs[0].directions.read.total_ios, 1024,
            "the rest is checked too"
        );
        let line = format!("{DEVICE} --rw=write --verify={kind} --verify_only --verify_fatal=1");
        let writes = device.writes.load(Ordering::Relaxed);
        let (result, _) = run_on(&registry, &line).unwrap();
        assert_eq!(
            (
                result.jobs[0].error,
                result.jobs[0].directions.read.total_ios
            ),
            (84, 3)
        );
        assert_eq!(device.writes.load(Ordering::Relaxed), writes);
        let line = format!("{DEVICE} --rw=read --verify={kind} --continue_on_error=verify");
        let (result, _) = run_on(&registry, &line).unwrap();
        assert_eq!(
            (result.jobs[0].error, result.jobs[0].errors),
            (0, Some((1, 84)))
        );
    }
}

#[test]
fn a_backlog_is_checked_as_it_grows_and_patterns_hold() {
    let (registry, _) = kept(u64::MAX);
    let line = format!("{DEVICE} --rw=write --verify=crc32 --verify_backlog=100");
    let (result, _) = run_on(&registry, &line).unwrap();
    assert_eq!(
        (
            result.jobs[0].error,
            result.jobs[0].directions.read.total_ios
        ),
        (0, 1024)
    );
    let line = format!("{DEVICE} --rw=randwrite --verify_pattern=0xdeadbeef --bs=4k,8k");
    let (result, _) = run_on(&registry, &line).unwrap();
    assert_eq!(result.jobs[0].error, 0);
    assert!(result.jobs[0].directions.read.total_ios > 0);
    // Time ends the writing, not the checking.
    let line = format!(
        "{DEVICE} --rw=randwrite --norandommap --verify=crc32c --time_based --runtime=300ms"
    );
    let (result, _) = run_on(&registry, &line).unwrap();
    let d = &result.jobs[0].directions;
    assert_eq!(result.jobs[0].error, 0);
    assert!(d.read.total_ios > 0 && d.read.total_ios <= 1024);
}

#[test]
fn skewed_offsets_go_where_they_should() {
    let (registry, device) = kept(u64::MAX);
    let line =
        format!("{DEVICE} --rw=randwrite --io_size=16m --random_distribution=zoned:90/10:10/90");
    let (result, _) = run_on(&registry, &line).unwrap();
    assert_eq!(result.jobs[0].directions.write.total_ios, 4096);
    let offsets = device.offsets.lock().unwrap();
    let busy: u64 = offsets
        .iter()
        .filter(|(at, _)| **at < (4 << 20) / 10)
        .map(|(_, n)| n)
        .sum();
    assert!(
        (3500..3850).contains(&busy),
        "{busy} of 4096 in the first tenth"
    );
    drop(offsets);
    for distribution in ["zipf:1.2", "pareto:0.2", "normal:10"] {
        let line = format!("{DEVICE} --rw=randwrite --random_distribution={distribution}");
        let (result, _) = run_on(&registry, &line).unwrap();
        assert_eq!(
            (
                result.jobs[0].error,
                result.jobs[0].directions.write.total_ios
            ),
            (0, 1024)
        );
    }
}

#[test]
fn logs_hold_each_io_and_go_to_whoever_asked() {
    let plan = cairn_fio::parse_command_line(
        "--name=j --numjobs=2 --rw=write --bs=4k --size=64k --write_lat_log=run --write_bw_log=run --log_offset=1"
            .split_whitespace(),
    )
    .unwrap();
    let mut files: Vec<(String, String)> = Vec::new();
    let mut take = |name: &str, text: &str| files.push((name.to_owned(), text.to_owned()));
    let options = FioOptions {
        logs: Some(&mut take),
        ..FioOptions::default()
    };
    run_fio(&plan, options, &Registry::default(), &mut |_| {}).unwrap();
    files.sort();
    let names: Vec<_> = files.iter().map(|f| f.0.as_str()).collect();
    let want = [
        "run_bw.1.log",
        "run_bw.2.log",
        "run_clat.1.log",
        "run_clat.2.log",
        "run_lat.1.log",
        "run_lat.2.log",
    ];
    assert_eq!(names, want);
    for (name, text) in &files {
        assert_eq!(text.lines().count(), 16, "{name}");
        assert!(
            text.lines().all(|l| l.split(", ").count() == 6),
            "{name}: {text}"
        );
    }
}

#[test]
fn threads_run_where_they_may() {
    let (registry, _) = kept(u64::MAX);
    let (result, _) = run_on(&registry, &format!("{DEVICE} --rw=write --cpus_allowed=0")).unwrap();
    assert_eq!(result.jobs[0].error, 0);
    let (result, notes) = run_on(
        &registry,
        &format!("{DEVICE} --rw=write --cpus_allowed=1000"),
    )
    .unwrap();
    assert_eq!(result.jobs[0].error, 22);
    assert!(
        notes.iter().any(|n| n.contains("cpus_allowed")),
        "{notes:?}"
    );
}

#[test]
fn latencies_may_be_sampled_and_counts_stay_exact() {
    let (registry, _) = kept(u64::MAX);
    let plan = cairn_fio::parse_command_line(
        format!("{DEVICE} --rw=randwrite --io_size=64m").split_whitespace(),
    );
    let options = FioOptions {
        stack: Some("kept".to_owned()),
        sample: 16,
        ..FioOptions::default()
    };
    let result = run_fio(&plan.unwrap(), options, &registry, &mut |_| {}).unwrap();
    let write = &result.jobs[0].directions.write;
    assert_eq!(write.total_ios, 16_384);
    let timed = write.clat.stats.count();
    assert!((700..1400).contains(&timed), "{timed} timed of 16384");
}

#[test]
fn traces_of_three_kinds_are_replayed() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = temp.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let log = path(
        "log",
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 0 4096\nwait 60000\n/dev/x write 8192 4096\n/dev/x sync\n/dev/x close\n",
    );
    let blk = path(
        "blk",
        "8,0 0 1 0.000000000 1 D W 8 + 8 [x]\n8,0 0 2 0.010000000 1 D R 8 + 16 [x]\n",
    );
    let msr = path(
        "msr",
        "10,usr,0,Write,4096,512,1\n20,usr,0,Read,0,1024,1\n30,usr,0,Write,0,512,1\n",
    );
    let (registry, device) = kept(u64::MAX);
    let (result, _) = run_on(&registry, &format!("--name=j --read_iolog={log}")).unwrap();
    let job = &result.jobs[0];
    assert_eq!(
        (
            job.error,
            job.directions.write.total_ios,
            job.sync.stats.count()
        ),
        (0, 2, 1)
    );
    assert!(
        job.job_runtime_ms >= 55,
        "as long as the log: {}",
        job.job_runtime_ms
    );
    let mut offsets: Vec<u64> = device.offsets.lock().unwrap().keys().copied().collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 8192]);
    let (result, _) = run_on(
        &registry,
        &format!("--name=j --read_iolog={blk} --replay_no_stall=1"),
    )
    .unwrap();
    let d = &result.jobs[0].directions;
    assert_eq!((d.write.io_bytes, d.read.io_bytes), (4096, 8192));
    let (result, _) = run_on(
        &registry,
        &format!("--name=j --read_iolog={msr} --replay_skip=read"),
    )
    .unwrap();
    let d = &result.jobs[0].directions;
    assert_eq!((d.write.total_ios, d.read.total_ios), (2, 0));
}
