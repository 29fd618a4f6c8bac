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
    let mut take = |name: &str, text: &[u8]| {
        files.push((name.to_owned(), String::from_utf8(text.to_vec()).unwrap()));
    };
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

/// What a run came to, everything that was said, and every file that was handed over.
type All = (RunResult, Vec<String>, HashMap<String, Vec<u8>>);

fn run_with(stack: &str, line: &str) -> All {
    run_at(&Registry::default(), stack, line)
}

fn run_at(registry: &Registry, stack: &str, line: &str) -> All {
    let plan = cairn_fio::parse_command_line(line.split_whitespace()).unwrap();
    let (mut notes, mut files) = (Vec::new(), HashMap::new());
    let mut take = |name: &str, content: &[u8]| {
        files.insert(name.to_owned(), content.to_vec());
    };
    let options = FioOptions {
        stack: Some(stack.to_owned()),
        logs: Some(&mut take),
        ..FioOptions::default()
    };
    let result = run_fio(&plan, options, registry, &mut |n| notes.push(n.to_owned())).unwrap();
    (result, notes, files)
}

#[test]
fn a_job_waits_for_the_one_it_names_and_takes_others_along() {
    let line = "--filename=/dev/x --size=64k --bs=4k --name=first --rw=write --rate_iops=160 --write_iops_log=l \
                --name=second --rw=write --wait_for=first";
    let (result, _, _) = run_with("ram(1m)", line);
    let (first, second) = (&result.jobs[0], &result.jobs[1]);
    assert_eq!(
        first.directions.write.total_ios + second.directions.write.total_ios,
        32
    );
    // 16 I/Os at 160 a second; the second job's life begins where the first one's ends.
    assert!(first.job_runtime_ms >= 80, "{}", first.job_runtime_ms);
    let line = "--filename=/dev/x --size=64k --bs=4k --name=short --rw=read --exitall \
                --name=long --rw=read --time_based --runtime=60 --name=late --rw=read --wait_for=long";
    let (result, _, _) = run_with("ram(1m)", line);
    let ios: Vec<_> = result
        .jobs
        .iter()
        .map(|j| j.directions.read.total_ios)
        .collect();
    assert_eq!((ios[0], ios[2]), (16, 0), "{ios:?}");
    assert!(
        result
            .jobs
            .iter()
            .all(|j| j.error == 0 && j.job_runtime_ms < 30_000)
    );
}

#[test]
fn jobs_of_a_flow_share_by_weight() {
    let line = "--filename=/dev/x --size=1m --bs=4k --rw=randread --time_based --runtime=300ms \
                --name=one --flow=1 --name=three --flow=3";
    let (result, _, _) = run_with("delay(read=1ms)/ram(1m)", line);
    let ios = result.jobs.iter().map(|j| j.directions.read.total_ios);
    let ios: Vec<u64> = ios.collect();
    // A third; when one has ended the other goes on alone, so that no exact share is asked for here.
    assert!(ios[0] > 0 && 2 * ios[1] > 3 * ios[0], "{ios:?}");
}

#[test]
fn what_a_job_did_can_be_replayed() {
    let line = "--name=j --filename=/dev/x --size=256k --bs=4k --rw=randrw --fsync=8 --write_iolog=did.log";
    let (result, _, files) = run_with("ram(1m)", line);
    let folder = std::env::temp_dir().join(format!("cairn-iolog-{}", std::process::id()));
    std::fs::write(&folder, &files["did.log"]).unwrap();
    let again = format!(
        "--name=r --read_iolog={} --replay_no_stall=1",
        folder.display()
    );
    let (replayed, _, _) = run_with("ram(1m)", &again);
    std::fs::remove_file(&folder).unwrap();
    for (did, again) in [&result, &replayed]
        .map(|r| &r.jobs[0])
        .windows(2)
        .map(|w| (w[0], w[1]))
    {
        assert_eq!(did.error, 0);
        let ios = |j: &cairn_fio::output::JobResult| {
            (
                j.directions.read.total_ios,
                j.directions.write.total_ios,
                j.sync.stats.count(),
            )
        };
        assert_eq!(ios(did), ios(again));
        assert!(ios(did).2 > 0);
    }
}

#[test]
fn a_wrong_block_is_kept_beside_what_it_should_have_been() {
    let (registry, device) = kept(u64::MAX);
    let line = "--name=j --filename=/dev/x --size=64k --bs=4k --rw=write --verify=md5 --verify_dump=1 --do_verify=0 \
                --verify_state_save=0";
    let (result, _, files) = run_at(&registry, "kept", line);
    assert!(result.jobs[0].error == 0 && files.is_empty());
    device.below.write_at(&[7; 3], 8192 + 1000).unwrap();
    let (result, _, files) = run_at(&registry, "kept", &format!("{line} --verify_only"));
    assert_eq!(result.jobs[0].error, 84);
    let mut names: Vec<_> = files.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["x.8192.expected", "x.8192.received"]);
    let (expected, received) = (&files[names[0]], &files[names[1]]);
    let differ = expected.iter().zip(received).enumerate();
    let differ: Vec<usize> = differ.filter(|(_, (a, b))| a != b).map(|d| d.0).collect();
    assert!(
        !differ.is_empty() && differ.iter().all(|i| (1000..1003).contains(i)),
        "{differ:?}"
    );
}

#[test]
fn the_depth_that_keeps_a_latency_is_found_and_told() {
    // 8 lanes on a device that serves one at a time would be slower; this one serves all at once.
    let line = "--name=j --filename=/dev/x --size=1m --bs=4k --rw=randread --ioengine=libaio --iodepth=4 \
                --time_based --runtime=60 --latency_target=10s --latency_window=60ms";
    let (result, _, _) = run_with("delay(read=1ms)/ram(1m)", line);
    let job = &result.jobs[0];
    assert_eq!((job.error, job.latency_depth.depth), (0, 4));
    assert!(job.job_runtime_ms < 30_000);
    let (result, notes, _) = run_with(
        "delay(read=1ms)/ram(1m)",
        &line.replace("latency_target=10s", "latency_target=10us"),
    );
    assert_eq!(result.jobs[0].error, 110, "{notes:?}");
    let (result, notes, _) = run_with(
        "delay(read=2ms)/ram(1m)",
        "--name=j --filename=/dev/x --size=1m --bs=4k --rw=randread --max_latency=100us",
    );
    assert_eq!(result.jobs[0].error, 110);
    assert!(
        notes.iter().any(|n| n.contains("above max_latency")),
        "{notes:?}"
    );
}

#[test]
fn a_queue_is_filled_and_drained_as_asked() {
    let line = "--name=j --filename=/dev/x --size=512k --bs=4k --rw=randread --ioengine=libaio --iodepth=8 \
                --iodepth_batch=4 --iodepth_batch_complete=4 --iodepth_low=4 --serialize_overlap=1";
    let (result, notes, _) = run_with("delay(read=300us)/ram(1m)", line);
    let job = &result.jobs[0];
    assert_eq!((job.error, job.directions.read.total_ios), (0, 128));
    assert!(
        job.submit.counts[1] > job.submit.total / 2,
        "{:?}",
        job.submit
    );
    assert!(
        !notes.iter().any(|n| n.contains("iodepth_batch")),
        "{notes:?}"
    );
    let (_, notes, _) = run_with("ram(1m)", line);
    assert!(
        notes
            .iter()
            .any(|n| n.starts_with("iodepth_batch: no effect")),
        "{notes:?}"
    );
    // Handed to other threads, a call gets a queue too.
    let line = "--name=j --filename=/dev/x --size=64k --bs=4k --rw=read --iodepth=4 --io_submit_mode=offload";
    let (result, _, _) = run_with("ram(1m)", line);
    assert_eq!(result.jobs[0].depth.counts[2], 16);
}

#[test]
fn a_job_ends_when_it_has_become_steady() {
    let line = "--name=j --filename=/dev/x --size=1m --bs=4k --rw=randread --time_based --runtime=60 \
                --ss=iops:1000000000 --ss_dur=1s";
    let (result, _, _) = run_with("ram(1m)", line);
    let steady = result.jobs[0].steadystate.as_ref().unwrap();
    assert!(steady.attained && steady.iops.len() == 1 && steady.iops[0] > 0);
    assert!(result.jobs[0].job_runtime_ms < 30_000);
    let json = result.json(false).pretty();
    assert!(
        json.contains("\"ss\" : \"iops:1000000000.000000\""),
        "{json}"
    );
}

#[test]
fn a_cpu_is_kept_busy_until_the_others_have_ended() {
    let line = "--name=burn --ioengine=cpuio --cpuload=50 --cpuchunks=2000 --exit_on_io_done=1 \
                --name=io --filename=/dev/x --rw=read --bs=4k --size=16k --rate_iops=20";
    let (result, _, _) = run_with("ram(1m)", line);
    let (burn, io) = (&result.jobs[0], &result.jobs[1]);
    assert_eq!(
        (
            burn.error,
            burn.directions.read.total_ios,
            io.directions.read.total_ios
        ),
        (0, 0, 4)
    );
    assert!(burn.job_runtime_ms < 30_000);
}

#[test]
fn an_export_is_what_its_job_works_on() {
    use cairn_nbd::{Export, Listener, Server, ServerConfig};
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::unix(folder.path().join("nbd.sock")).unwrap();
    let uri = listener.uri("");
    let (_, device) = kept(u64::MAX);
    let export = Export::new("", Arc::clone(&device) as Device).unwrap();
    let server = Server::new(ServerConfig::new(), vec![export]).unwrap();
    let stop = server.stopper();
    let serving = std::thread::spawn(move || server.serve(&listener));
    let line = format!(
        "--name=n --ioengine=nbd --uri={uri} --rw=write --bs=4k --size=256k --verify=crc32c"
    );
    let (result, notes, _) = run_with("ram(1m)", &line);
    stop.stop();
    serving.join().unwrap().unwrap();
    assert_eq!(
        (
            result.jobs[0].error,
            result.jobs[0].directions.write.total_ios
        ),
        (0, 64)
    );
    assert_eq!(device.writes.load(Ordering::Relaxed), 64, "{notes:?}");
}
