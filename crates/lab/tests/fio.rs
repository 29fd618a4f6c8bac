//! Plans in fio's language, run on stacks.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use cairn_block::{BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Node, ReqFlags, Shape};
use cairn_fio::output::{JobResult, Json, RunResult};
use cairn_lab::{FioError, FioOptions, On, Progress, Registry, run_fio};

fn run_with(options: FioOptions<'_>, words: &[&str]) -> Result<(RunResult, Vec<String>), FioError> {
    let plan = cairn_fio::parse_command_line(words).unwrap();
    let mut notes = Vec::new();
    let result = run_fio(&plan, options, &Registry::default(), &mut |n| {
        notes.push(n.to_owned());
    })?;
    Ok((result, notes))
}

fn run(words: &[&str]) -> RunResult {
    run_with(FioOptions::default(), words).unwrap().0
}

fn refused(words: &[&str]) -> String {
    let error = run_with(FioOptions::default(), words).unwrap_err();
    assert!(error.is_usage(), "{error}");
    error.to_string()
}

/// A registry with a device `kept` that can be looked at afterwards.
fn kept(bytes: u64) -> (Registry, Device) {
    kept_stack(&format!("ram({bytes})"))
}

fn kept_stack(spec: &str) -> (Registry, Device) {
    let mut registry = Registry::default();
    let stack = registry.block_registry().open(spec).unwrap();
    let device = Arc::clone(stack.device());
    let mine = Arc::clone(&device);
    registry.blocks().register(
        "kept",
        "a device that outlives its run",
        Shape::Leaf,
        &[],
        move |_| Ok(Arc::clone(&mine)),
    );
    (registry, device)
}

fn total(job: &JobResult) -> u64 {
    let d = &job.directions;
    d.read.total_ios + d.write.total_ios + d.trim.total_ios
}

/// The value under a path of keys of what Cairn adds.
fn own<'a>(result: &'a RunResult, path: &[&str]) -> &'a Json {
    let (first, rest) = path.split_first().unwrap();
    let mut value = &result.own.iter().find(|(k, _)| k == first).unwrap().1;
    for key in rest {
        value = value.get(key).unwrap();
    }
    value
}

#[test]
fn the_published_command_runs_and_looks_up_twice_for_each_write() {
    let (result, notes) = run_with(
        FioOptions::default(),
        &[
            "-name=randwrite",
            "-numjobs=8",
            "-filename=/mnt/test1",
            "-rw=randwrite",
            "-ioengine=libaio",
            "-direct=1",
            "-iodepth=64",
            "-sync=0",
            "-norandommap",
            "-group_reporting",
            "-runtime=1",
            "-time_based",
            "-bs=4k",
            "-size=16M",
        ],
    )
    .unwrap();
    assert!(
        notes.iter().any(|n| n.starts_with("file layer: ext4")),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|n| n.contains("completes inline")),
        "{notes:?}"
    );
    let [job] = result.jobs.as_slice() else {
        panic!("one report for the group");
    };
    assert_eq!((job.members, job.error), (8, 0));
    let writes = &job.directions.write;
    assert!(writes.total_ios > 100);
    assert_eq!(writes.io_bytes, writes.total_ios * 4096);
    assert_eq!(writes.clat.stats.count(), writes.total_ios);
    assert_eq!(writes.lat.stats.count(), writes.total_ios);
    assert_eq!(
        writes.clat.histogram.as_ref().unwrap().count(),
        writes.total_ios
    );
    assert_eq!(
        writes.slat.stats.count(),
        0,
        "nothing is submitted apart from the call"
    );
    assert!(writes.runtime_ms >= 990, "{}", writes.runtime_ms);
    assert!(writes.bw.count() >= 8, "a sample each half second and job");
    assert_eq!(job.depth.counts, [writes.total_ios, 0, 0, 0, 0, 0, 0]);
    assert_eq!(job.complete.counts[1], writes.total_ios);
    let hits = Json::Int(i128::from(writes.total_ios * 2));
    assert_eq!(own(&result, &["extent_cache", "hits", "exact"]), &hits);
    assert_eq!(
        own(&result, &["extent_cache", "misses", "exact"]),
        &Json::Int(0)
    );
    assert_eq!(
        result.disk_util.as_ref().unwrap()[0].ios[1],
        writes.total_ios
    );
}

#[test]
fn fixed_sizes_give_fixed_numbers_of_ios() {
    for (words, reads, writes) in [
        (
            &["--name=j", "--rw=write", "--bs=4k", "--size=1m"][..],
            0,
            256,
        ),
        (
            &["--name=j", "--rw=randread", "--bs=8k", "--size=1m"],
            128,
            0,
        ),
        (
            &[
                "--name=j",
                "--rw=write",
                "--bs=4k",
                "--size=1m",
                "--loops=3",
            ],
            0,
            768,
        ),
        (
            &[
                "--name=j",
                "--rw=write",
                "--bs=4k",
                "--size=1m",
                "--io_size=64k",
            ],
            0,
            16,
        ),
        (
            &[
                "--name=j",
                "--rw=write",
                "--bs=4k",
                "--size=1m",
                "--io_size=2m",
            ],
            0,
            512,
        ),
        (
            &[
                "--name=j",
                "--rw=read",
                "--bs=64k",
                "--size=1m",
                "--number_ios=3",
            ],
            3,
            0,
        ),
        (
            &[
                "--name=j",
                "--rw=write",
                "--bs=4k",
                "--size=1m",
                "--nrfiles=4",
            ],
            0,
            256,
        ),
        (
            &[
                "--name=j",
                "--rw=write",
                "--bs=4k",
                "--size=1m",
                "--numjobs=2",
                "--group_reporting",
            ],
            0,
            512,
        ),
        (
            &[
                "--name=j",
                "--rw=read",
                "--bs=4k",
                "--filesize=8k",
                "--nrfiles=3",
            ],
            6,
            0,
        ),
    ] {
        let result = run(words);
        let d = &result.jobs[0].directions;
        assert_eq!(
            (d.read.total_ios, d.write.total_ios),
            (reads, writes),
            "{words:?}"
        );
        assert_eq!(result.jobs[0].error, 0);
    }
}

#[test]
fn a_mix_moves_its_size_once() {
    let result = run(&[
        "--name=j",
        "--rw=randrw",
        "--bs=4k",
        "--size=4m",
        "--rwmixread=75",
    ]);
    let d = &result.jobs[0].directions;
    assert_eq!(d.read.total_ios + d.write.total_ios, 1024);
    assert!(
        (650..=890).contains(&d.read.total_ios),
        "{}",
        d.read.total_ios
    );
}

#[test]
fn reports_follow_groups_and_stonewalls() {
    let result = run(&[
        "--bs=4k",
        "--size=64k",
        "--rw=write",
        "--group_reporting",
        "--name=a",
        "--numjobs=2",
        "--name=b",
        "--stonewall",
    ]);
    let shape: Vec<_> = result
        .jobs
        .iter()
        .map(|j| (j.jobname.as_str(), j.groupid, j.members, total(j)))
        .collect();
    assert_eq!(shape, [("a", 0, 2, 32), ("b", 1, 1, 16)]);
    let apart = run(&[
        "--name=a",
        "--numjobs=2",
        "--bs=4k",
        "--size=64k",
        "--rw=write",
    ]);
    assert_eq!(apart.jobs.len(), 2);
}

#[test]
fn what_is_written_reaches_the_device() {
    let (registry, device) = kept(4 << 20);
    let run = |words: &[&str]| {
        let plan = cairn_fio::parse_command_line(words).unwrap();
        let options = FioOptions {
            stack: Some("kept".to_owned()),
            ..FioOptions::default()
        };
        run_fio(&plan, options, &registry, &mut |_| {}).unwrap()
    };
    let all = || device.read_vec(0, 4 << 20).unwrap();
    // A file of 2 MiB in the first half of the device; each piece of 512 bytes says where in the file
    // it belongs.
    let words = [
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=2m",
        "--filename=/f",
        "--end_fsync=1",
    ];
    let result = run(&words);
    assert_eq!(result.jobs[0].sync.stats.count(), 1);
    let bytes = all();
    let mut seen: Vec<u64> = bytes[..2 << 20]
        .chunks(512)
        .map(|piece| u64::from_le_bytes(*piece.first_chunk().unwrap()))
        .collect();
    seen.sort_unstable();
    let want: Vec<u64> = (0..4096).map(|i| i * 512).collect();
    assert_eq!(seen, want, "each block once");
    assert!(
        bytes[2 << 20..].iter().all(|b| *b == 0),
        "nothing outside the window"
    );
    // As a window of the device, offsets are those of the device.
    let words = [
        "--name=j",
        "--rw=write",
        "--bs=4k",
        "--size=64k",
        "--offset=1m",
        "--filename=/dev/x",
        "--buffer_pattern=0xabcd",
    ];
    run(&words);
    let bytes = all();
    let window = &bytes[1 << 20..(1 << 20) + 65536];
    assert!(window.chunks(2).all(|pair| pair == [0xab, 0xcd]));
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let bytes = |seed, words: &[&str]| {
        let (registry, device) = kept(1 << 20);
        let plan = cairn_fio::parse_command_line(words).unwrap();
        let options = FioOptions {
            stack: Some("kept".to_owned()),
            seed,
            ..FioOptions::default()
        };
        run_fio(&plan, options, &registry, &mut |_| {}).unwrap();
        device.read_vec(0, 1 << 20).unwrap()
    };
    let words = [
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1m",
        "--refill_buffers",
        "--filename=/f",
    ];
    let first = bytes(1, &words);
    assert!(first == bytes(1, &words));
    assert!(first != bytes(2, &words));
}

#[test]
fn a_device_that_is_too_short_is_named_with_both_sizes() {
    let options = FioOptions {
        stack: Some("ram(1m)".to_owned()),
        ..FioOptions::default()
    };
    let error = run_with(options, &["--name=j", "--rw=write", "--size=2m"]).unwrap_err();
    assert!(matches!(
        error,
        FioError::DeviceTooShort {
            need: 2_097_152,
            have: 1_048_576,
            ..
        }
    ));
    assert!(error.is_usage());
    let text = error.to_string();
    assert!(
        text.contains("2097152") && text.contains("1048576"),
        "{text}"
    );
}

#[test]
fn what_does_not_act_is_refused_by_name() {
    for (word, option) in [
        ("--fill_device=1", "fill_device"),
        ("--verify_state_load=1", "verify_state_load"),
        ("--file_append=1", "file_append"),
        ("--opendir=/tmp", "opendir"),
    ] {
        let text = refused(&["--name=j", "--rw=write", "--size=1m", word]);
        assert!(text.contains(&format!("`{option}`")), "{word}: {text}");
    }
    let text = refused(&["--name=j", "--rw=write"]);
    assert!(text.contains("`size`"), "{text}");
    let text = refused(&["--name=j", "--rw=write", "--size=1k", "--bs=4k"]);
    assert!(text.contains("below one block"), "{text}");
    let text = refused(&["--name=j", "--rw=write", "--size=50%"]);
    assert!(text.contains("device of known size"), "{text}");
}

#[test]
fn stacks_that_cannot_be_had_are_refused() {
    let with = |stack: &str| {
        let options = FioOptions {
            stack: Some(stack.to_owned()),
            ..FioOptions::default()
        };
        run_with(options, &["--name=j", "--rw=write", "--size=1m"])
            .unwrap_err()
            .to_string()
    };
    assert!(with("rum(1m)").contains("rum"));
    let text = refused(&["--name=j", "--rw=write", "--size=100t"]);
    assert!(text.contains("109951162777600 bytes"), "{text}");
}

#[test]
fn paths_go_where_they_are_mapped() {
    let options = FioOptions {
        map: vec![
            ("/data".to_owned(), "ram(1m)".to_owned()),
            ("/dev/nvme0n1".to_owned(), "stats/ram(2m)".to_owned()),
        ],
        ..FioOptions::default()
    };
    let (result, notes) = run_with(
        options,
        &[
            "--rw=write",
            "--bs=4k",
            "--name=a",
            "--filename=/data/x",
            "--size=1m",
            "--name=b",
            "--filename=/dev/nvme0n1",
            "--name=c",
            "--filename=/tmp/y",
            "--size=64k",
        ],
    )
    .unwrap();
    let sizes: Vec<_> = result.jobs.iter().map(total).collect();
    assert_eq!(sizes, [256, 512, 16], "without a size, the whole device");
    assert!(
        notes
            .iter()
            .any(|n| n.contains("/data/x: file of 1048576 bytes on ram(1m)")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|n| n.contains("/dev/nvme0n1: device window")),
        "{notes:?}"
    );
    let util = result.disk_util.unwrap();
    assert_eq!(util.len(), 3);
}

#[test]
fn trims_need_a_device() {
    let words = [
        "--name=j",
        "--rw=trim",
        "--bs=4k",
        "--size=64k",
        "--filename=/f",
    ];
    let result = run(&words);
    assert_eq!(result.jobs[0].error, 95);
    let options = FioOptions {
        on: Some(On::Device),
        ..FioOptions::default()
    };
    let (result, _) = run_with(options, &words).unwrap();
    assert_eq!(
        (
            result.jobs[0].error,
            result.jobs[0].directions.trim.total_ios
        ),
        (0, 16)
    );
}

#[test]
fn errors_end_a_job_or_are_counted() {
    let with = |more: &[&str]| {
        let options = FioOptions {
            stack: Some("error(op=write,count=1,skip=3)/ram(1m)".to_owned()),
            ..FioOptions::default()
        };
        let mut words = vec![
            "--name=j",
            "--rw=write",
            "--bs=4k",
            "--size=64k",
            "--filename=/dev/f",
        ];
        words.extend(more);
        run_with(options, &words).unwrap().0
    };
    let job = &with(&[]).jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (5, 3));
    assert!(job.own.iter().any(|(k, _)| k == "failure"));
    let job = &with(&["--continue_on_error=all"]).jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (0, 15));
    assert_eq!(job.errors.unwrap().0, 1);
}

/// A layer that answers no write before sixteen are in flight at once.
struct Crowd {
    below: Device,
    inside: Mutex<(usize, usize)>,
    more: Condvar,
}

impl BlockDevice for Crowd {
    fn info(&self) -> DeviceInfo {
        self.below.info()
    }

    fn caps(&self) -> Caps {
        Caps::WRITE
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
        let mut inside = self.inside.lock().unwrap();
        inside.0 += 1;
        inside.1 = inside.1.max(inside.0);
        self.more.notify_all();
        let (mut inside, _) = self
            .more
            .wait_timeout_while(inside, Duration::from_secs(20), |(_, most)| *most < 16)
            .unwrap();
        inside.0 -= 1;
        drop(inside);
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn describe(&self) -> Node {
        Node::new("delay")
    }

    fn children(&self) -> Vec<Device> {
        vec![Arc::clone(&self.below)]
    }
}

#[test]
fn a_stack_with_latency_gets_a_real_queue() {
    let seen: Arc<OnceLock<Arc<Crowd>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let mut registry = Registry::default();
    registry.blocks().register(
        "delay",
        "waits for a crowd",
        Shape::Layer,
        &[],
        move |site| {
            let crowd = Arc::new(Crowd {
                below: site.below()?,
                inside: Mutex::default(),
                more: Condvar::new(),
            });
            Ok(Arc::clone(keep.get_or_init(|| crowd)) as Device)
        },
    );
    let plan = cairn_fio::parse_command_line([
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=512k",
        "--ioengine=libaio",
        "--iodepth=16",
        "--filename=/dev/x",
    ])
    .unwrap();
    let options = FioOptions {
        stack: Some("delay/ram(1m)".to_owned()),
        ..FioOptions::default()
    };
    let mut notes = Vec::new();
    let result = run_fio(&plan, options, &registry, &mut |n| notes.push(n.to_owned())).unwrap();
    let most = seen.get().unwrap().inside.lock().unwrap().1;
    assert_eq!(most, 16);
    let job = &result.jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (0, 128));
    assert_eq!(job.depth.counts, [0, 0, 0, 0, 128, 0, 0]);
    assert!(!notes.iter().any(|n| n.contains("inline")), "{notes:?}");
}

#[test]
fn a_ramp_is_left_out_of_the_figures() {
    let (registry, device) = kept_stack("stats/ram(1m)");
    let plan = cairn_fio::parse_command_line([
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--norandommap",
        "--time_based",
        "--runtime=1s",
        "--ramp_time=300ms",
        "--filename=/dev/x",
    ])
    .unwrap();
    let options = FioOptions {
        stack: Some("kept".to_owned()),
        ..FioOptions::default()
    };
    let result = run_fio(&plan, options, &registry, &mut |_| {}).unwrap();
    let writes = &result.jobs[0].directions.write;
    assert_eq!(writes.clat.stats.count(), writes.total_ios);
    let done = device.stats().get("writes").unwrap();
    assert!(
        writes.total_ios > 0 && writes.total_ios < done,
        "{} of {done} are shown",
        writes.total_ios
    );
}

#[test]
fn without_clocks_there_are_no_latencies_but_all_counts() {
    let result = run(&[
        "--name=j",
        "--rw=write",
        "--bs=4k",
        "--size=1m",
        "--gtod_reduce=1",
    ]);
    let writes = &result.jobs[0].directions.write;
    assert_eq!((writes.total_ios, writes.clat.stats.count()), (256, 0));
    assert!(writes.clat.histogram.is_none());
}

#[test]
fn the_null_engine_needs_no_stack() {
    let result = run(&[
        "--name=j",
        "--rw=randrw",
        "--bs=4k",
        "--size=4m",
        "--ioengine=null",
    ]);
    assert_eq!(total(&result.jobs[0]), 1024);
    assert_eq!(own(&result, &["stacks"]), &Json::List(Vec::new()));
}

#[test]
fn preallocated_files_are_converted_as_they_are_written() {
    let result = run(&[
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1m",
        "--fallocate=posix",
        "--filename=/f",
    ]);
    assert_eq!((result.jobs[0].error, total(&result.jobs[0])), (0, 256));
    let hits = own(&result, &["extent_cache", "hits", "exact"]);
    assert_eq!(hits, &Json::Int(512));
}

#[test]
fn a_run_can_be_broken_off_and_tells_how_it_goes() {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut seen: Vec<Progress> = Vec::new();
    let stop = Arc::clone(&cancel);
    let mut progress = |p: &Progress| {
        seen.push(p.clone());
        // On a busy machine the second job may begin after the first line.
        if p.line.to_string().starts_with("Jobs: 2 (f=2): [w(2)]") {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let mut statuses = 0;
    let mut status = |r: RunResult| {
        statuses += 1;
        let writes = &r.jobs[0].directions.write;
        assert_eq!(writes.io_bytes, writes.total_ios * 4096);
    };
    let options = FioOptions {
        cancel: Some(cancel),
        progress: Some(&mut progress),
        status: Some(&mut status),
        status_interval: Duration::from_millis(100),
        ..FioOptions::default()
    };
    let words = [
        "--name=j",
        "--numjobs=2",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1m",
        "--time_based",
        "--runtime=60",
    ];
    let (result, _) = run_with(options, &words).unwrap();
    assert!(total(&result.jobs[0]) > 0);
    let last = seen.last().unwrap();
    assert!(last.line.to_string().contains("w="), "{}", last.line);
    assert!(last.line.iops.write > 0 && last.line.eta_s.unwrap() > 30);
    assert!(statuses >= 1);
}

#[test]
fn policies_are_set_by_name() {
    let with = |policy: &str, arm: &str| {
        let options = FioOptions {
            policies: vec![(policy.to_owned(), arm.to_owned())],
            ..FioOptions::default()
        };
        run_with(
            options,
            &["--name=j", "--rw=write", "--bs=4k", "--size=64k"],
        )
    };
    let (result, _) = with("extent-cache", "off").unwrap();
    assert_eq!(
        own(&result, &["extent_cache", "hits", "exact"]),
        &Json::Int(0)
    );
    assert_eq!(
        own(&result, &["policies", "extent-cache"]),
        &Json::Text("off".to_owned())
    );
    let text = with("es-counters", "none").unwrap_err().to_string();
    assert!(text.contains("shared, per-cpu"), "{text}");
}

#[test]
fn results_print_in_every_format() {
    let result = run(&[
        "--name=j",
        "--rw=randrw",
        "--bs=4k",
        "--size=1m",
        "--fsync=32",
    ]);
    let syncs = result.jobs[0].sync.stats.count();
    assert!(syncs >= 2, "{syncs}");
    assert_eq!(
        result.jobs[0].sync.histogram.as_ref().unwrap().count(),
        syncs
    );
}
