//! Fixed scenes: runs that never happened, the same each time, for pictures and snapshots.

use std::sync::Arc;
use std::time::Duration;

use cairn_lab::{
    ArmSample, AutoSample, BitSample, Buckets, BufferSample, Cell, CellStatus, Check, Checks,
    Comparison, CounterView, Effect, ExtentSample, FlagSample, HeadSample, Latency, LayerSample,
    Mechanism, PolicyInfo, Sample, Shrink, ShrinkSample, SlotSample, Strip, Unit, Weather,
    WorkloadSample,
};
use cairn_tui::tui::model::{Model, Saved, Setup};
use cairn_tui::tui::theme::{ColorDepth, Theme};
use cairn_tui::tui::update::{Msg, update};
use cairn_tui::tui::view;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// True colour, Unicode.
pub(crate) const COLOUR: Theme = Theme {
    depth: ColorDepth::True,
    ascii: false,
};
/// No colours, Unicode.
pub(crate) const MONO: Theme = Theme {
    depth: ColorDepth::None,
    ascii: false,
};
/// No colours, ASCII.
pub(crate) const ASCII: Theme = Theme {
    depth: ColorDepth::None,
    ascii: true,
};

const FLAG_SET: usize = 0;
const ES_COUNTERS: usize = 1;

/// Noise that is the same each time, in -1..1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1u32 << 30) - 1.0
    }
}

fn policies() -> Vec<PolicyInfo> {
    let policy = |name: &str, key, arms: &[&str], about: &str| PolicyInfo {
        name: name.to_owned(),
        key,
        arms: arms.iter().map(|a| (*a).to_owned()).collect(),
        about: about.to_owned(),
        owner: "lab".to_owned(),
    };
    vec![
        policy(
            "flag-set",
            'c',
            &["always-rmw", "check-first"],
            "how a hint bit that may be set already is set",
        ),
        policy(
            "es-counters",
            'p',
            &["shared", "per-cpu"],
            "one shared counter each, or one slot per CPU",
        ),
        policy(
            "extent-cache",
            'e',
            &["off", "on"],
            "look-ups answered by the cache or by the mapping below",
        ),
        policy(
            "batch",
            'b',
            &["32", "64", "128", "256"],
            "batch of the per-CPU counters",
        ),
        policy(
            "backend",
            'm',
            &["rseq", "owned", "striped"],
            "how the per-CPU counters find a slot",
        ),
        policy(
            "extent-limit",
            'n',
            &["none", "16384", "4096", "1024"],
            "reclaimable entries above which the cache is shrunk",
        ),
    ]
}

/// The dashboard before the first sample.
pub(crate) fn empty(theme: Theme, size: (u16, u16)) -> Model {
    Model::new(Setup {
        scenario: "mixed".to_owned(),
        stack: "stats/ram(1g)".to_owned(),
        recorded: None,
        seed: 42,
        workloads: vec![
            (
                "randwrite".to_owned(),
                "--rw=randwrite --bs=4k --size=128m".to_owned(),
            ),
            ("creat-clo".to_owned(), "tasks=2".to_owned()),
        ],
        policies: policies(),
        settings: vec![("configuration".to_owned(), "none".to_owned())],
        arms: vec![1, 1, 1, 2, 0, 3],
        interval: Duration::from_millis(100),
        theme,
        hz: 10,
        size,
    })
}

/// The run of the pictures: the counters were switched to `shared` and back.
pub(crate) fn mixed(theme: Theme, size: (u16, u16)) -> Model {
    let mut model = empty(theme, size);
    let mut noise = Noise(7);
    for seq in 0..240 {
        let arms = vec![1, usize::from(!(140..=195).contains(&seq)), 1, 2, 0, 3];
        let settling = (140..142).contains(&seq) || (196..198).contains(&seq);
        let comparison = (seq >= 145).then(|| comparison(seq));
        let sample = sample(seq, arms, settling, comparison, &mut noise);
        update(&mut model, Msg::Sample(Arc::new(sample)));
    }
    for _ in 0..20 {
        model.meter.drawn(Duration::from_micros(640), 2_100);
    }
    model.meter.fps = Some(10.0);
    model.meter.cpu = Some(0.008);
    model
}

fn latency(n: u64, p50: u64) -> Latency {
    Latency {
        n,
        min: p50 / 3,
        p50,
        p90: p50 * 13 / 10,
        p99: p50 * 29 / 10,
        p999: p50 * 16,
        p9999: p50 * 31,
        max: p50 * 52,
        mean: p50 as f64 * 1.07,
    }
}

fn comparison(seq: u64) -> Comparison {
    let arm = |arm, slices, mean, sd, p50| ArmSample {
        arm,
        slices,
        mean,
        sd,
        latency: latency(slices * 19_000, p50),
        buckets: buckets(slices * 19_000, p50),
    };
    Comparison {
        policy: ES_COUNTERS,
        metric: "throughput of randwrite".into(),
        workload: Some(0),
        arms: [
            arm(0, (seq - 142).min(54), 184_320.0, 4_100.0, 9_100),
            arm(1, 140 + seq.saturating_sub(198), 201_640.0, 4_400.0, 8_300),
        ],
        effect: Some(Effect {
            ratio: 0.094,
            lo: 0.086,
            hi: 0.102,
        }),
        reason: None,
        estimator: "log ratio of means of 1 s slices, delta method, Welch; unpaired, time-confounded",
        mechanism: Some(Mechanism {
            name: "shared adds per look-up",
            a: Some(1.0),
            b: Some(0.0),
        }),
    }
}

fn sample(
    seq: u64,
    arms: Vec<usize>,
    settling: bool,
    comparison: Option<Comparison>,
    noise: &mut Noise,
) -> Sample {
    let fio = if arms[ES_COUNTERS] == 1 {
        201_600.0
    } else {
        184_300.0
    } + noise.next() * 3_200.0;
    let clo = if arms[FLAG_SET] == 1 {
        38_900.0
    } else {
        37_100.0
    } + noise.next() * 420.0;
    let t = seq + 1;
    let shared = arms[ES_COUNTERS] == 0;
    Sample {
        seq,
        elapsed: Duration::from_millis(100 * t),
        interval: Duration::from_millis(100),
        late: Duration::from_micros(if seq % 97 == 13 {
            310
        } else {
            60 + seq % 7 * 11
        }),
        dropped: 0,
        running: true,
        settling,
        failure: None,
        first_error: None,
        workloads: vec![
            WorkloadSample {
                name: "randwrite".into(),
                about: "fio randwrite 4 KiB".into(),
                workers: 2,
                unit: Unit::Io,
                ops: 20_160 * t,
                bytes: 20_160 * 4_096 * t,
                errors: 0,
                errors_in_all: 0,
                ran: Duration::from_millis(100 * t),
                ops_per_s: fio,
                bytes_per_s: fio * 4_096.0,
                recent: latency(20_160, 8_300),
                buckets: buckets(20_160, 8_300),
                total: latency(20_160 * t, 8_600),
                response: None,
            },
            WorkloadSample {
                name: "creat-clo".into(),
                about: "create-close-unlink on buffers".into(),
                workers: 2,
                unit: Unit::Op,
                ops: 3_890 * t,
                bytes: 0,
                errors: 0,
                errors_in_all: 0,
                ran: Duration::from_millis(100 * t),
                ops_per_s: clo,
                bytes_per_s: 0.0,
                recent: latency(3_890, 23_400),
                buckets: buckets(3_890, 23_400),
                total: latency(3_890 * t, 23_900),
                response: None,
            },
        ],
        arms,
        layers: layers(fio, clo),
        extents: extents(t, fio, shared),
        flags: flags(t, clo),
        buffers: BufferSample {
            heads: 4,
            dirty: 4,
            lookups_per_s: clo * 14.0,
            dirties_per_s: clo * 14.0,
            writebacks_per_s: 0.0,
        },
        comparison,
        auto: None,
        checks: Checks {
            extents: Check::Held(412),
            references: Check::Held(77),
            sums: Check::Held(5),
        },
        machine: Some(Weather {
            seconds: 1.0,
            others: 0.01,
            steal: 0.002,
            load: 2.1,
            cpu_seconds: 1.9,
            switches: 240,
            faults: [0, 0],
        }),
    }
}

/// Operations by size about a median.
fn buckets(n: u64, p50: u64) -> Arc<Buckets> {
    let mut buckets = Buckets::default();
    for (part, of) in [
        (1, 3),
        (5, 5),
        (20, 8),
        (50, 10),
        (40, 13),
        (12, 18),
        (3, 29),
    ] {
        buckets.add(p50 * of / 10, n * part / 131);
    }
    buckets.add(p50 * 16, n / 1000);
    buckets.add(p50 * 52, 1);
    Arc::new(buckets)
}

/// As [`mixed`], with the counters' arms compared interleaved, 17 of 24 pairs done.
pub(crate) fn auto(theme: Theme, size: (u16, u16)) -> Model {
    let mut model = mixed(theme, size);
    let first = Sample::clone(model.live.latest.as_ref().unwrap());
    for step in 1..=60 {
        let mut sample = first.clone();
        sample.seq += step;
        sample.elapsed += Duration::from_millis(100 * step);
        let arm = usize::from(matches!(step / 12 % 4, 1 | 2));
        sample.settling = step % 12 < 2 && step / 12 % 2 == 1;
        sample.arms[ES_COUNTERS] = arm;
        sample.workloads[0].ops_per_s = if arm == 1 { 201_600.0 } else { 184_300.0 };
        sample.auto = Some(AutoSample {
            policy: ES_COUNTERS,
            arms: [0, 1],
            pairs: 17,
            wanted: 24,
            rejected: 1,
            running: true,
            slice: Duration::from_secs(1),
            rate: sample.comparison.as_ref().unwrap().effect,
            p99: Some(Effect {
                ratio: -0.076,
                lo: -0.098,
                hi: -0.053,
            }),
            resolution: Some(0.009),
            drift: Some(0.004),
            more: None,
        });
        let c = sample.comparison.as_mut().unwrap();
        c.estimator = "mean log ratio of neighbouring slices A B B A, paired t";
        update(&mut model, Msg::Sample(Arc::new(sample)));
    }
    model
}

fn layers(fio: f64, clo: f64) -> Vec<LayerSample> {
    let layer = |name: &str, per_s: f64, bytes: Option<f64>, facts: &[&str]| LayerSample {
        name: name.into(),
        per_s: Some(per_s),
        bytes_per_s: bytes,
        facts: facts.iter().map(|f| (*f).to_owned()).collect(),
    };
    let bytes = Some(fio * 4_096.0);
    vec![
        layer(
            "randwrite",
            fio,
            bytes,
            &["fio randwrite 4 KiB", "2 workers"],
        ),
        layer(
            "creat-clo",
            clo,
            None,
            &["create-close-unlink", "2 workers"],
        ),
        layer(
            "extent cache",
            fio * 2.0,
            None,
            &["1120 extents, limit 1024", "hit 93.1 %"],
        ),
        layer("buffer cache", clo * 14.0, None, &["4 heads, 4 dirty"]),
        layer("stats", fio, bytes, &["in flight 2", "write p50 4.1 us"]),
        layer("ram", fio, bytes, &["allocated 128.0 MiB"]),
    ]
}

fn extents(t: u64, fio: f64, shared: bool) -> ExtentSample {
    let n = i64::try_from(t).unwrap();
    let view = |exact: i64, differ: i64, bound| CounterView {
        exact,
        approx: exact - differ,
        bound,
    };
    let runs = [
        (CellStatus::Written, 150),
        (CellStatus::Delayed, 34),
        (CellStatus::Written, 92),
        (CellStatus::Unwritten, 60),
        (CellStatus::Hole, 44),
        (CellStatus::Written, 70),
        (CellStatus::Unknown, 20),
        (CellStatus::Unwritten, 42),
    ];
    let cells = runs.iter().flat_map(|(status, n)| {
        (0..*n).map(move |i| Cell {
            status: *status,
            mixed: i == 0 && *status != CellStatus::Unknown,
        })
    });
    ExtentSample {
        hits: view(37_532 * n, 102, 1_016),
        misses: view(2_781 * n, -3, 1_016),
        objects: view(1_120, 0, 254),
        reclaimable: view(988, 2, 254),
        hits_per_s: fio * 2.0 * 0.931,
        misses_per_s: fio * 2.0 * 0.069,
        slots: (0..2)
            .map(|cpu| SlotSample {
                label: format!("cpu {cpu}").into(),
                hits: (18_900 - 268 * cpu) * t,
                misses: (1_381 + 19 * cpu) * t,
            })
            .collect(),
        shared,
        backend: "rseq",
        batch: 128,
        shrinks: ShrinkSample {
            limit: Some(1024),
            scans: 9 * t,
            scanned: 1_131 * t,
            reclaimed: 540 * t,
            reclaimed_per_s: 5_400.0,
            longest_us: 14,
            last: Some((
                Duration::from_millis(40),
                Shrink {
                    scans: 2,
                    scanned: 226,
                    reclaimed: 108,
                    left: 988,
                },
            )),
        },
        strip: Some(Strip {
            path: "/mnt/test1".into(),
            file: (0, 2),
            ino: 12,
            blocks: 65_536,
            block_size: 4_096,
            extents: 412,
            written: 39_900,
            unwritten: 12_980,
            delayed: 4_352,
            holes: 5_632,
            from: 0,
            shown: 65_536,
            cells: cells.collect(),
        }),
    }
}

fn flags(t: u64, clo: f64) -> FlagSample {
    let bit = |name, rmws: u64, avoided: u64| BitSample {
        name,
        rmws: rmws * t,
        avoided: avoided * t,
        governed: name != "DIRTY",
    };
    let words = [0x601b, 0x601b, 0x601b, 0x6019];
    let words = (32..)
        .zip(words)
        .map(|(block, bits)| HeadSample { block, bits });
    FlagSample {
        probe: true,
        sets_per_s: clo * 56.0,
        rmws_per_s: clo * 14.0,
        avoided_per_s: clo * 42.0,
        sets: 217_840 * t,
        rmws: 54_460 * t,
        avoided: 163_380 * t,
        bits: vec![
            bit("UPTODATE", 12, 54_448),
            bit("DIRTY", 54_012, 448),
            bit("META", 12, 54_448),
            bit("PRIO", 12, 54_448),
        ],
        words: words.collect(),
    }
}

/// As [`mixed`], with a few hundred buffer heads in many states.
pub(crate) fn many_heads(theme: Theme, size: (u16, u16)) -> Model {
    let mut model = mixed(theme, size);
    let mut sample = Sample::clone(model.live.latest.as_ref().unwrap());
    sample.seq += 1;
    sample.buffers.heads = 1_024;
    let mut noise = Noise(3);
    let words = (0..256).map(|block| {
        let mut bits = 0b1_0001;
        for (place, chance) in [(1, -0.7), (3, 0.1), (13, -0.2), (14, -0.3)] {
            if noise.next() < chance {
                bits |= 1 << place;
            }
        }
        HeadSample { block, bits }
    });
    sample.flags.words = words.collect();
    update(&mut model, Msg::Sample(Arc::new(sample)));
    model
}

/// A recorded run to compare with.
pub(crate) fn saved() -> Saved {
    let latency = serde_json::json!({
        "n": 4_000_000, "min": 3_000, "p50": 9_100, "p90": 11_900, "p99": 26_400, "p999": 146_000,
        "p9999": 300_000, "max": 473_000, "mean": 9_740.0
    });
    let workload = |name: &str, unit: &str, rate: f64| {
        serde_json::json!({
            "name": name, "about": "", "workers": 2, "unit": unit, "ops": 1, "bytes": 0, "errors": 0,
            "errors_measured": 0, "seconds": 30.0, "ops_per_s": rate, "bytes_per_s": 0.0,
            "latency_ns": latency
        })
    };
    let arm = |name: &str, arm: &str| serde_json::json!({"name": name, "arm": arm});
    let summary = serde_json::json!({
        "schema_version": 1, "scenario": "mixed", "stack": "stats/ram(1g)", "seed": 42, "seconds": 30.0,
        "workloads": [workload("randwrite", "io", 184_300.0), workload("creat-clo", "op", 37_900.0)],
        "policies": [
            arm("flag-set", "check-first"), arm("es-counters", "shared"), arm("extent-cache", "on"),
            arm("batch", "128"), arm("backend", "rseq"), arm("extent-limit", "1024")
        ],
        "counters": [], "flags": {"counted": false, "sets": 0, "rmws": 0, "avoided": 0},
        "warmup_missed": null, "samples_dropped": 0, "first_error": null, "failure": null, "stuck_workers": 0
    });
    Saved {
        folder: "runs/a".to_owned(),
        summary: serde_json::from_value(summary).unwrap(),
    }
}

/// The screen of a model.
pub(crate) fn draw(model: &Model) -> Buffer {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buf = Buffer::empty(area);
    view::render(model, area, &mut buf);
    buf
}

/// The characters of a screen, lines without trailing blanks.
pub(crate) fn text(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        let line: String = (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
