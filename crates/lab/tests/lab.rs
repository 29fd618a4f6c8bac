//! A lab from its start to its summary.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use cairn_block::{BlockDevice, Caps, Device, DeviceInfo, Node, ReqFlags, Shape};
use cairn_lab::{
    CellStatus, FioSource, Lab, Options, PolicyInfo, Registry, Sample, Scenario, Unit, WorkloadKind,
};

/// Longest wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(30);

fn quick() -> Options {
    Options {
        interval: Duration::from_millis(20),
        ..Options::default()
    }
}

fn small() -> Scenario {
    Scenario::parse(
        r#"
        name = "small"
        stack = "stats(sample=64)/ram(40m)"
        [[workload]]
        name = "write"
        kind = "fio"
        options = "--rw=randwrite --bs=4k --size=8m --numjobs=2 --norandommap --filename=/f"
        warmup = "0s"
        [[workload]]
        name = "files"
        kind = "aim7"
        tasks = 2
        warmup = "0s"
        "#,
        "small.toml",
    )
    .unwrap()
}

/// The first sample that is as wanted.
fn wait_for(
    samples: &Receiver<Arc<Sample>>,
    what: &str,
    wanted: impl Fn(&Sample) -> bool,
) -> Arc<Sample> {
    let until = Instant::now() + DEADLINE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let sample = samples
            .recv_timeout(left)
            .unwrap_or_else(|e| panic!("waiting for {what}: {e}"));
        if wanted(&sample) {
            return sample;
        }
    }
}

/// The first sample that was begun after this call.
fn fresh(samples: &Receiver<Arc<Sample>>) -> Arc<Sample> {
    samples.try_iter().for_each(drop);
    wait_for(samples, "the sample under way", |_| true);
    wait_for(samples, "the sample after it", |_| true)
}

#[test]
fn samples_show_the_whole_stack() {
    let lab = Lab::start(small(), &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    assert!(lab.take_samples().is_none(), "there is one reader");
    wait_for(&samples, "operations of both", |s| {
        s.seq > 3 && s.workloads.iter().all(|w| w.ops > 1000 && w.recent.n > 0)
    });
    // On a busy machine some threads may get no turn between two samples.
    let layer = |s: &Sample, name: &str| s.layers.iter().find(|l| &*l.name == name).cloned();
    let sample = wait_for(&samples, "all rates", |s| {
        let stats = layer(s, "stats").unwrap();
        let extents = s.extents.hits_per_s;
        let buffers = [s.buffers.dirties_per_s, s.buffers.lookups_per_s];
        let [requests, bytes] = [stats.per_s, stats.bytes_per_s].map(Option::unwrap);
        let rates = [requests, bytes, extents].into_iter().chain(buffers);
        rates.into_iter().all(|rate| rate > 0.0)
    });
    assert!(sample.running && sample.failure.is_none());
    // What belongs together is counted one after the other, so it is compared at rest.
    lab.stop_workload();
    let sample = fresh(&samples);
    let [write, files] = sample.workloads.as_slice() else {
        panic!("two workloads");
    };
    assert_eq!(
        (&*write.name, write.unit, write.workers),
        ("write", Unit::Io, 2)
    );
    assert_eq!(&*write.about, "fio randwrite 4 KiB");
    assert_eq!(
        (&*files.name, files.unit, files.bytes),
        ("files", Unit::Op, 0)
    );
    assert_eq!(write.bytes, write.ops * 4096);
    assert!(
        write.total.p50 > 0
            && write.total.p50 <= write.total.p99
            && write.total.p99 <= write.total.max
    );
    let names: Vec<_> = sample.layers.iter().map(|l| l.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "write",
            "files",
            "extent cache",
            "buffer cache",
            "stats",
            "ram"
        ]
    );
    // The media does not count what passes it, and says so rather than 0.
    let ram = layer(&sample, "ram").unwrap();
    assert_eq!((ram.per_s, ram.bytes_per_s), (None, None));
    assert_eq!(sample.extents.misses.exact, 0);
    let strip = sample.extents.strip.as_ref().unwrap();
    assert_eq!(
        (strip.blocks, strip.written, strip.cells.len()),
        (2048, 2048, 512)
    );
    assert!(
        strip
            .cells
            .iter()
            .all(|c| c.status == CellStatus::Written && !c.mixed)
    );
    assert_eq!(strip.extents, 32);
    let view = sample.extents.hits;
    assert!(view.exact.abs_diff(view.approx) <= view.bound, "{view:?}");
    // Check-first is the arm that the lab starts with, and the bits are set after the first file.
    assert!(sample.flags.probe && sample.flags.sets > 0);
    assert_eq!(sample.flags.sets, sample.flags.rmws + sample.flags.avoided);
    let bits = sample.flags.bits.iter().filter(|b| b.governed);
    let governed = bits.fold((0, 0), |(r, a), b| (r + b.rmws, a + b.avoided));
    assert_eq!(governed, (sample.flags.rmws, sample.flags.avoided));
    let dirty = sample.flags.bits.iter().find(|b| b.name == "DIRTY");
    assert!(
        !dirty.unwrap().governed,
        "it is tested first under every arm"
    );
    let blocks: Vec<_> = sample.flags.words.iter().map(|w| w.block).collect();
    assert_eq!(blocks, [1, 137, 145, 4247]);
    assert_eq!(sample.buffers.heads, 4);
    assert_eq!(sample.comparison.as_ref().map(|c| c.policy), None);
    let summary = lab.finish();
    assert!(summary.workloads[0].ops >= write.ops && summary.stuck_workers == 0);
}

#[test]
fn policies_flip_live_and_the_counters_show_it() {
    let lab = Lab::start(small(), &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let policies = lab.policies();
    let names: Vec<_> = policies
        .list()
        .iter()
        .map(|p| (p.name.as_str(), p.key))
        .collect();
    assert_eq!(
        names,
        [
            ("flag-set", 'c'),
            ("es-counters", 'p'),
            ("extent-cache", 'e'),
            ("batch", 'b'),
            ("backend", 'm'),
            ("extent-limit", 'n')
        ]
    );
    wait_for(&samples, "avoided sets", |s| {
        s.flags.avoided_per_s > 0.0 && s.flags.rmws_per_s == 0.0
    });
    policies.set(policies.by_key('c').unwrap(), 0).unwrap();
    let sample = wait_for(&samples, "read-modify-writes only", |s| {
        s.flags.rmws_per_s > 0.0 && s.flags.avoided_per_s == 0.0
    });
    assert_eq!(sample.arms[0], 0);
    wait_for(&samples, "counting slots", |s| !s.extents.slots.is_empty());
    policies.set_by_name("es-counters", "shared").unwrap();
    let before = wait_for(&samples, "the switch", |s| s.arms[1] == 0);
    let after = wait_for(&samples, "more hits", |s| {
        s.extents.hits.exact > before.extents.hits.exact + 2000
    });
    assert!(after.extents.hits_per_s > 0.0);
    let rows = after.extents.slots.iter();
    let sum = rows.fold((0, 0), |(h, m), row| (h + row.hits, m + row.misses));
    let views = (after.extents.hits.exact, after.extents.misses.exact);
    assert_eq!((sum.0.cast_signed(), sum.1.cast_signed()), views);
    let shared = after.extents.slots.iter().find(|r| &*r.label == "shared");
    assert!(shared.unwrap().hits >= 1000);
    policies.set_by_name("extent-cache", "off").unwrap();
    wait_for(&samples, "no look-ups", |s| {
        s.extents.hits_per_s + s.extents.misses_per_s == 0.0
    });
    policies.set_by_name("extent-cache", "on").unwrap();
    policies.set_by_name("batch", "256").unwrap();
    wait_for(&samples, "the batch", |s| s.extents.batch == 256);
    lab.finish();
}

#[test]
fn memory_pressure_shrinks_the_extent_cache_and_samples_show_it() {
    let mut scenario = Scenario::preset("fragmented").unwrap();
    scenario
        .policies
        .insert("extent-limit".into(), "1024".into());
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let sample = wait_for(&samples, "reclaimed extents and misses for it", |s| {
        s.extents.shrinks.reclaimed > 2048 && s.extents.misses.exact > 0
    });
    let shrinks = sample.extents.shrinks;
    assert_eq!(shrinks.limit, Some(1024));
    assert!(shrinks.scanned >= shrinks.reclaimed && shrinks.scans > 0);
    assert!(shrinks.last.is_some_and(|(_, last)| last.scanned > 0));
    let policies = lab.policies();
    policies.set_by_name("extent-limit", "none").unwrap();
    wait_for(&samples, "a cache that fills up again", |s| {
        s.extents.shrinks.limit.is_none() && s.extents.reclaimable.exact > 8192
    });
    lab.stop_workload();
    // The first shrink takes the marks off, the second the rest.
    let first = lab.shrink();
    let second = lab.shrink();
    assert!(first.scanned > 8192 && second.reclaimed == second.scanned);
    let sample = fresh(&samples);
    assert_eq!(sample.extents.reclaimable.exact, 0);
    let shrinks = sample.extents.shrinks;
    let strip = sample.extents.strip.as_ref().unwrap();
    assert!(
        strip.cells.iter().all(|c| c.status == CellStatus::Unknown),
        "what was reclaimed is not known"
    );
    let summary = lab.finish().shrinks;
    assert_eq!(summary.reclaimed, shrinks.reclaimed);
    assert!(summary.scanned >= first.scanned + second.scanned);
}

#[test]
fn the_settle_window_belongs_to_no_arm_and_both_arms_are_compared() {
    let lab = Lab::start(small(), &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    // More than two seconds, since a slice lasts until the first sample after its second.
    wait_for(&samples, "two slices of the first arm", |s| {
        s.elapsed > Duration::from_millis(3500)
    });
    lab.policies().set(0, 0).unwrap();
    let sample = wait_for(&samples, "the switch", |s| s.arms[0] == 0);
    assert!(sample.settling);
    let comparison = sample.comparison.as_ref().unwrap();
    assert_eq!(
        (
            comparison.policy,
            comparison.arms[0].arm,
            comparison.arms[1].arm
        ),
        (0, 0, 1)
    );
    assert_eq!(
        comparison.arms[0].slices, 0,
        "nothing settled was seen of the new arm"
    );
    assert!(comparison.arms[1].slices >= 2 && comparison.effect.is_none());
    assert!(comparison.estimator.contains("unpaired, time-confounded"));
    // The writer has no buffer heads, so it says nothing about this policy.
    assert_eq!(comparison.workload, Some(1));
    assert_eq!(&*comparison.metric, "throughput of files");
    assert!(comparison.reason.as_ref().unwrap().contains("two slices"));
    let sample = wait_for(&samples, "an effect", |s| {
        s.comparison.as_ref().is_some_and(|c| c.effect.is_some())
    });
    assert!(!sample.settling);
    let effect = sample.comparison.as_ref().unwrap().effect.unwrap();
    assert!(effect.lo <= effect.ratio && effect.ratio <= effect.hi);
    lab.finish();
}

#[test]
fn a_policy_that_nothing_uses_gets_no_verdict() {
    let mut scenario = small();
    scenario.workloads.truncate(1);
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    lab.policies()
        .set_by_name("flag-set", "always-rmw")
        .unwrap();
    let sample = wait_for(&samples, "some time under both arms", |s| {
        s.elapsed > Duration::from_millis(2500) && s.comparison.is_some()
    });
    let comparison = sample.comparison.as_ref().unwrap();
    assert_eq!((comparison.workload, comparison.effect), (None, None));
    assert_eq!(
        comparison.reason.as_deref(),
        Some("no workload here has buffer heads, which flag-set acts on")
    );
    assert_eq!(comparison.arms.each_ref().map(|a| a.slices), [0, 0]);
    lab.finish();
}

#[test]
fn workloads_stop_and_start_again_while_the_sampler_goes_on() {
    let lab = Lab::start(small(), &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    wait_for(&samples, "work", |s| s.workloads[0].ops > 1000);
    lab.stop_workload();
    let stopped = fresh(&samples);
    assert!(!stopped.running);
    let later = wait_for(&samples, "more rest", |s| s.seq > stopped.seq + 3);
    assert!(!later.running && later.workloads[0].ops_per_s == 0.0);
    assert_eq!(later.workloads[0].ops, stopped.workloads[0].ops);
    assert_eq!(
        later.workloads[0].total.n, later.workloads[0].ops,
        "each operation has its latency"
    );
    lab.start_workload().unwrap();
    lab.start_workload().unwrap();
    let again = wait_for(&samples, "work again", |s| {
        s.running && s.workloads[0].ops > stopped.workloads[0].ops
    });
    assert!(again.workloads[0].total.n >= stopped.workloads[0].total.n);
    lab.reset();
    // The reset comes before the next sample but one; then each workload must come to do something.
    fresh(&samples);
    wait_for(&samples, "work after a reset", |s| {
        s.workloads.iter().all(|w| w.total.n > 0)
    });
    let summary = lab.finish();
    for workload in &summary.workloads {
        assert!(workload.latency_ns.n > 0);
    }
}

#[test]
fn a_summary_holds_every_operation_once() {
    let lab = Lab::start(small(), &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    wait_for(&samples, "work", |s| s.workloads[0].ops > 1000);
    let summary = lab.finish();
    assert_eq!(
        (summary.scenario.as_str(), summary.stack.as_str()),
        ("small", "stats(sample=64)/ram(40m)")
    );
    assert_eq!(summary.schema_version, 1);
    let mut text = Vec::new();
    summary.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for start in [
        "throughput ",
        "latency p50 ",
        "policy flag-set check-first",
        "policy es-counters per-cpu",
        "policy extent-cache on",
        "policy batch 32",
        "counter hits exact ",
        "counter misses exact 0",
        "counter objects exact ",
        "counter reclaimable exact ",
        "shrinks scans 0, scanned 0, reclaimed 0, limit none",
        "flags sets ",
    ] {
        assert!(
            text.lines().any(|l| l.starts_with(start)),
            "{start}\n{text}"
        );
    }
    assert!(text.contains("kIOPS") && text.contains("ops/s"), "{text}");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["workloads"][0]["unit"], "io");
    assert_eq!(json["policies"][3]["arm"], "32");
}

#[test]
fn a_runtime_ends_a_workload_by_itself() {
    let mut scenario = small();
    for workload in &mut scenario.workloads {
        workload.runtime = Some(Duration::from_millis(100));
    }
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    wait_for(&samples, "the end", |s| !s.running && s.seq > 2);
    lab.finish();
}

#[test]
fn rates_are_over_the_time_that_a_workload_ran_itself() {
    let mut scenario = small();
    scenario.workloads[1].runtime = Some(Duration::from_millis(200));
    // Longer than the runtime, which begins after it.
    scenario.workloads[0].warmup = Duration::from_millis(400);
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    // However late the second was told to stop, and however late the warm-up was found to be over: the reset comes
    // after the first sample past it.
    let seen = std::cell::Cell::new(0);
    wait_for(&samples, "a long rest of the second", |s| {
        seen.set(seen.get() + u32::from(s.elapsed > Duration::from_millis(400)));
        seen.get() > 2
            && s.workloads[0].ran > Duration::from_millis(1500)
            && s.workloads[1].ops > 0
            && s.workloads[0].ran > s.workloads[1].ran * 3
    });
    let summary = lab.finish();
    let [write, files] = summary.workloads.as_slice() else {
        panic!("two workloads");
    };
    assert!(write.seconds > 1.4 && files.seconds < write.seconds / 2.0);
    assert!(files.ops > 0 && files.seconds > 0.0);
    let rate = files.ops as f64 / files.seconds;
    assert!((files.ops_per_s - rate).abs() < 1e-6 * rate);
    assert_eq!(summary.warmup_missed, None);
}

#[test]
fn a_rate_gives_times_from_the_schedule_too() {
    let mut scenario = Scenario::preset("randwrite").unwrap();
    let WorkloadKind::Fio(FioSource::Options(options)) = &mut scenario.workloads[0].kind else {
        panic!("options");
    };
    options.push_str(" --rate_iops=200");
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let sample = wait_for(&samples, "times from the schedule", |s| {
        s.workloads[0].response.is_some_and(|r| r.n > 20)
    });
    let w = &sample.workloads[0];
    let response = w.response.unwrap();
    assert!(
        response.mean >= w.total.mean * 0.99,
        "never shorter than the service time: {response:?} {:?}",
        w.total
    );
    lab.finish();
}

#[test]
fn a_warm_up_that_was_not_over_is_said() {
    let mut scenario = small();
    scenario.workloads[0].warmup = Duration::from_hours(1);
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    wait_for(&samples, "work", |s| s.workloads[0].ops > 100);
    let summary = lab.finish();
    assert_eq!(summary.warmup_missed, Some(3600.0));
    let mut text = Vec::new();
    summary.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("warm-up of 3600.00 s was not over"), "{text}");
}

#[test]
fn errors_of_the_warm_up_count_for_the_summary() {
    let mut scenario = small();
    // Laying the file out is 8 writes; then three fail and no more.
    scenario.stack = "error(op=write,skip=16,count=3)/ram(40m)".to_owned();
    scenario.workloads.truncate(1);
    // Long enough for a dozen writes on the busiest machine.
    let warmup = Duration::from_millis(2500);
    scenario.workloads[0].warmup = warmup;
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let seen = std::cell::Cell::new(0);
    let sample = wait_for(&samples, "measured work", |s| {
        // The reset comes after the first sample past the warm-up.
        seen.set(seen.get() + u32::from(s.elapsed > warmup));
        seen.get() > 2 && s.workloads[0].ops > 0
    });
    let w = &sample.workloads[0];
    assert_eq!((w.errors, w.errors_in_all), (0, 3));
    let first = sample.first_error.as_deref().unwrap();
    assert!(
        first.starts_with("write: write of 4096 bytes at "),
        "{first}"
    );
    let summary = lab.finish();
    let w = &summary.workloads[0];
    assert_eq!((w.errors, w.errors_measured), (3, 0));
    assert_eq!(summary.first_error.as_deref(), Some(first));
    let mut text = Vec::new();
    summary.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("errors 3, 3 before measuring began"),
        "{text}"
    );
}

#[test]
fn a_reader_that_sleeps_loses_samples_and_is_told() {
    let options = Options {
        interval: Duration::from_millis(1),
        probe: false,
        ..Options::default()
    };
    let mut scenario = small();
    scenario.workloads.remove(0);
    let lab = Lab::start(scenario, &Registry::default(), options).unwrap();
    let samples = lab.take_samples().unwrap();
    // The channel holds 256 samples; sooner or later more than that are due while nobody reads.
    let mut dropped = 0;
    let mut sleep = Duration::from_millis(400);
    while dropped == 0 && sleep < DEADLINE {
        std::thread::sleep(sleep);
        sleep *= 2;
        samples.try_iter().for_each(drop);
        dropped = wait_for(&samples, "one more", |_| true).dropped;
    }
    assert!(dropped > 0);
    let sample = wait_for(&samples, "one more", |_| true);
    assert!(!sample.flags.probe && sample.flags.sets == 0 && !sample.flags.words.is_empty());
    lab.finish();
}

#[test]
fn more_tasks_than_recorders_lose_no_count() {
    let mut scenario = small();
    scenario.workloads.remove(0);
    scenario.workloads[0].kind = cairn_lab::WorkloadKind::CreatClo { tasks: 200 };
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let sample = wait_for(&samples, "work", |s| s.workloads[0].ops > 10_000);
    assert_eq!(sample.workloads[0].workers, 200);
    let summary = lab.finish();
    let w = &summary.workloads[0];
    assert!(
        w.latency_ns.n > 0 && w.latency_ns.n <= w.ops,
        "{} of {}",
        w.latency_ns.n,
        w.ops
    );
}

/// A device that fails or panics on demand.
struct Moody {
    below: Device,
    panic: Arc<AtomicBool>,
}

impl BlockDevice for Moody {
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
        assert!(!self.panic.load(Ordering::Relaxed), "the stone broke");
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn describe(&self) -> Node {
        Node::new("moody")
    }

    fn children(&self) -> Vec<Device> {
        vec![Arc::clone(&self.below)]
    }
}

#[test]
fn a_panic_in_a_worker_stops_the_workload_and_nothing_else() {
    let panic = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&panic);
    let mut registry = Registry::default();
    registry.blocks().register(
        "moody",
        "breaks on demand",
        Shape::Layer,
        &[],
        move |site| {
            let below = site.below()?;
            let panic = Arc::clone(&switch);
            Ok(Arc::new(Moody { below, panic }))
        },
    );
    let mut scenario = small();
    scenario.stack = "moody/ram(40m)".to_owned();
    let lab = Lab::start(scenario, &registry, quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    wait_for(&samples, "work", |s| s.workloads[0].ops > 100);
    panic.store(true, Ordering::Relaxed);
    let sample = wait_for(&samples, "the failure", |s| {
        s.failure.is_some() && !s.running
    });
    assert_eq!(
        sample.failure.as_deref(),
        Some("write: a worker panicked: the stone broke")
    );
    panic.store(false, Ordering::Relaxed);
    lab.start_workload().unwrap();
    wait_for(&samples, "work again", |s| {
        s.running && s.failure.is_none() && s.workloads[0].ops_per_s > 0.0
    });
    let summary = lab.finish();
    assert_eq!(summary.failure, None);
}

#[test]
fn failed_ios_are_counted_and_the_workload_goes_on() {
    let mut scenario = small();
    scenario.stack = "error(op=write,rate=0.01,seed=3)/ram(40m)".to_owned();
    // The buffers of the pattern are read only here, and the file is laid out by writes that may fail.
    scenario.stack = scenario.stack.replace("rate=0.01", "rate=0.5,skip=64");
    scenario.workloads.truncate(1);
    let lab = Lab::start(scenario, &Registry::default(), quick()).unwrap();
    let samples = lab.take_samples().unwrap();
    let sample = wait_for(&samples, "errors", |s| {
        s.workloads[0].errors > 10 && s.workloads[0].ops > 10
    });
    assert!(sample.running && sample.failure.is_none());
    lab.finish();
}

#[test]
fn a_layers_own_policy_is_in_the_list() {
    let mut registry = Registry::default();
    let arm = Arc::new(AtomicUsize::new(9));
    let hook = Arc::clone(&arm);
    registry
        .register_policy(
            PolicyInfo::new(
                "faults",
                'f',
                &["off", "on"],
                "whether faults are injected",
                "moody",
            ),
            move |chosen| hook.store(chosen, Ordering::Relaxed),
        )
        .unwrap();
    let mut scenario = small();
    scenario
        .policies
        .insert("faults".to_owned(), "on".to_owned());
    let lab = Lab::start(scenario, &registry, quick()).unwrap();
    assert_eq!(arm.load(Ordering::Relaxed), 1);
    let policies = lab.policies();
    policies.set(policies.by_key('f').unwrap(), 0).unwrap();
    assert_eq!(arm.load(Ordering::Relaxed), 0);
    drop(lab);
}
