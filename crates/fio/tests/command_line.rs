//! The command lines of published benchmarks are read as fio reads them.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's own")]

use cairn_fio::job::{IoEngine, RwMode, SyncIo};
use cairn_fio::{Parser, parse_command_line};

#[test]
fn the_percpu_counter_benchmark() {
    let line = "-name=randwrite -numjobs=8 -filename=/mnt/test1 -rw=randwrite -ioengine=libaio -direct=1 \
                -iodepth=64 -sync=0 -norandommap -group_reporting -runtime=120 -time_based -bs=4k -size=5G";
    let plan = parse_command_line(line.split_whitespace()).unwrap();
    let job = plan.jobs.first().unwrap();
    assert_eq!(job.name, "randwrite");
    assert_eq!(job.control.numjobs, 8);
    assert_eq!(job.files.names, ["/mnt/test1"]);
    assert_eq!(job.access.rw, RwMode::RandWrite);
    assert_eq!(job.queue.ioengine, IoEngine::Libaio);
    assert!(job.queue.direct && job.random.norandommap && job.report.group_reporting);
    assert_eq!(job.queue.iodepth, 64);
    assert_eq!(job.durability.sync, SyncIo::None);
    assert_eq!(job.control.runtime.as_secs(), 120);
    assert!(job.control.time_based);
    assert_eq!(job.min_block(), 4096);
    assert_eq!(plan.clones().iter().map(|c| c.report).max(), Some(0));
    // fio leaves flags that stand alone out of "job options".
    assert!(
        job.json_options()
            .iter()
            .all(|(key, _)| key != "norandommap")
    );
}

#[test]
fn both_dashes_values_apart_and_prefixes() {
    let plan = Parser::new()
        .command_line([
            "--name",
            "a",
            "-bs",
            "8k",
            "--ioeng=null",
            "--direct",
            "--rw=read",
        ])
        .unwrap();
    let job = plan.jobs.first().unwrap();
    assert_eq!(
        (job.max_block(), job.queue.ioengine, job.queue.direct),
        (8192, IoEngine::Null, true)
    );
}
