//! Plans in fio's language, run on stacks.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::sync::Arc;

use cairn_block::{Device, Shape};
use cairn_fio::output::{JobResult, Json, RunResult};
use cairn_lab::{FioError, FioOptions, Registry, run_fio};

mod places;
mod running;

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
