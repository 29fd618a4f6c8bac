//! Queues, ramps, clocks, the end of a run, and its results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use cairn_block::{BlockDevice, Caps, Device, DeviceInfo, Node, ReqFlags, Shape};
use cairn_fio::output::{Json, RunResult};
use cairn_lab::{FioOptions, Progress, Registry, run_fio};

use crate::{kept_stack, own, run, run_with, total};

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
        // Each write is counted, then its bytes, and the two are read in this order too: between them workers go on.
        assert_eq!(writes.io_bytes % 4096, 0);
        assert!(writes.io_bytes / 4096 + 2 >= writes.total_ios);
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
    let writes = &result.jobs[0].directions.write;
    assert!(writes.total_ios > 0);
    assert_eq!(writes.io_bytes, writes.total_ios * 4096);
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
