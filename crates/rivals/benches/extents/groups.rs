//! The groups of arms, and the bars over them.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cairn_rivals::{Bar, Bench, Group};
use rangemap::RangeMap;

use crate::contenders::{
    ByHand, Cairn, Concurrent, Contender, Nodit, ParkingLot, Plain, SccTree, Std, extent, status,
};
use crate::workload::{Run, blocks, runs, with_random};

type Ranges = RangeMap<u32, (u64, bool)>;

const STD: &str = "std RwLock<RangeMap>";
const PARKING: &str = "parking_lot RwLock<RangeMap>";
const CAIRN: &str = "cairn lookup";

const LARGE: usize = 1_000_000;
const BATCHED: &str = "batched lookup, 1M";
const SEQUENTIAL: [(&str, u32); 2] = [
    ("sequential lookup, every block, 1M", 1),
    ("sequential lookup, every 16th block, 1M", 16),
];
const BESIDE: &str = "random lookup beside a writer, 1M";
const OVERRIDE: &str = "small override, 1M";
const PUNCH: &str = "wide punch of 4096 extents, 1M";

fn lookup_name(size: &str) -> String {
    format!("random lookup, {size}")
}

pub(crate) fn fill(bench: &mut Bench, huge_pages: bool) {
    let filter = bench.options().filter.clone().unwrap_or_default();
    let wanted = |group: &str| group.contains(&filter);
    for (name, n) in [("10k", 10_000), ("100k", 100_000)] {
        if wanted(&lookup_name(name)) {
            lookups(bench, name, &Set::new(n, huge_pages));
        }
    }
    let names = [
        &lookup_name("1M"),
        BATCHED,
        SEQUENTIAL[0].0,
        SEQUENTIAL[1].0,
        BESIDE,
    ];
    if names.into_iter().any(wanted) {
        let set = Set::new(LARGE, huge_pages);
        lookups(bench, "1M", &set);
        batches(bench, &set);
        sequences(bench, &set);
        beside_a_writer(bench, &set);
    }
    if wanted(OVERRIDE) {
        overrides(bench, LARGE, huge_pages);
    }
    if wanted(PUNCH) {
        punches(bench, LARGE, huge_pages);
    }
}

fn hit(found: Option<cairn_extents::Lookup>) -> Option<u64> {
    extent(found?.extent)
}

/// The same runs in every map.
struct Set {
    runs: Arc<Vec<Run>>,
    blocks: u32,
    cairn: Arc<Cairn>,
    std: Arc<Std<Ranges>>,
    parking: Arc<ParkingLot<Ranges>>,
}

fn filled<C: Contender>(contender: C, runs: &[Run]) -> Arc<C> {
    for &run in runs {
        contender.set(run);
    }
    Arc::new(contender)
}

fn std_lock<M: Plain>() -> Std<M> {
    Std(std::sync::RwLock::new(M::default()))
}

fn parking_lock<M: Plain>() -> ParkingLot<M> {
    ParkingLot(parking_lot::RwLock::new(M::default()))
}

impl Set {
    fn new(n: usize, huge_pages: bool) -> Self {
        let runs = runs(n);
        // Built in random order, as a file that was written so.
        let random = crate::workload::shuffled(&runs);
        let set = Self {
            blocks: blocks(&runs),
            cairn: filled(Cairn::new(huge_pages), &random),
            std: filled(std_lock(), &random),
            parking: filled(parking_lock(), &random),
            runs: Arc::new(runs),
        };
        set.compare();
        set
    }

    /// All give the same answers.
    fn compare(&self) {
        let mut sums = [0_u64; 3];
        for run in self.runs.iter().step_by(7) {
            let all: [&dyn Contender; 3] = [&*self.cairn, &*self.std, &*self.parking];
            for (sum, map) in sums.iter_mut().zip(all) {
                *sum += map.find(run.lblk + run.len / 2).expect("it is there");
            }
        }
        assert!(sums[0] == sums[1] && sums[1] == sums[2], "{sums:?}");
    }
}

/// An arm that asks for random blocks.
fn random_arm(
    group: &mut Group,
    name: &str,
    blocks: u32,
    find: impl Fn(u32) -> Option<u64> + Send + Sync + 'static,
) {
    group.arm(name, move |_, n| {
        with_random(|random| {
            for _ in 0..n {
                black_box(find(random.below(blocks)));
            }
        });
    });
}

fn lookups(bench: &mut Bench, name: &str, set: &Set) {
    let group_name = lookup_name(name);
    let group = bench.group(&group_name, &[1, 2]);
    let random = crate::workload::shuffled(&set.runs);
    let (std, parking, cairn) = (set.std.clone(), set.parking.clone(), set.cairn.clone());
    random_arm(group, STD, set.blocks, move |l| std.find(l));
    random_arm(group, PARKING, set.blocks, move |l| parking.find(l));
    let nodit: Arc<Std<Nodit>> = filled(std_lock(), &random);
    random_arm(group, "std RwLock<NoditMap>", set.blocks, move |l| {
        nodit.find(l)
    });
    let by_hand: Arc<Std<ByHand>> = filled(std_lock(), &random);
    random_arm(group, "std RwLock<BTreeMap>", set.blocks, move |l| {
        by_hand.find(l)
    });
    let scc = SccTree::of(&random);
    random_arm(group, "scc::TreeIndex", set.blocks, move |l| scc.find(l));
    let concurrent = Concurrent::of(&random);
    random_arm(group, "concurrent-map", set.blocks, move |l| {
        concurrent.find(l)
    });
    random_arm(group, CAIRN, set.blocks, move |l| cairn.find(l));
    let cairn = set.cairn.clone();
    random_arm(
        group,
        "cairn containing (not counted)",
        set.blocks,
        move |l| extent(cairn.map.containing(l)?),
    );
    let (cairn, blocks) = (set.cairn.clone(), set.blocks);
    group.arm("cairn reader (one pin for many)", move |_, n| {
        let reader = cairn.map.reader();
        with_random(|random| {
            for _ in 0..n {
                black_box(hit(reader.lookup(random.below(blocks))));
            }
        });
    });
    for rival in [STD, PARKING] {
        let what = format!("{name}: random lookup faster than {rival}");
        bench.bar(Bar::at_least(&what, 2.5, &group_name, rival, CAIRN).threads(1));
    }
    let what = format!("{name}: a look-up of each of two readers over one");
    bench.bar(
        Bar::at_most(&what, 1.1, &group_name, CAIRN, CAIRN)
            .threads(2)
            .over_threads(1),
    );
    let what = format!("{name}: the same of {STD} (shown)");
    bench.bar(
        Bar::at_most(&what, 1.1, &group_name, STD, STD)
            .threads(2)
            .over_threads(1),
    );
}

fn batches(bench: &mut Bench, set: &Set) {
    let name = BATCHED;
    let group = bench.group(name, &[1]);
    for (arm, map) in [
        (STD, set.std.clone() as Arc<dyn Contender>),
        (PARKING, set.parking.clone()),
        (CAIRN, set.cairn.clone()),
    ] {
        random_arm(group, arm, set.blocks, move |l| map.find(l));
    }
    let (cairn, blocks) = (set.cairn.clone(), set.blocks);
    group.arm("cairn lookup_many", move |_, n| {
        let mut asked = [0; 64];
        let mut found = [None; 64];
        with_random(|random| {
            let mut left = n as usize;
            while left > 0 {
                let part = left.min(64);
                for lblk in &mut asked[..part] {
                    *lblk = random.below(blocks);
                }
                cairn.map.lookup_many(&asked[..part], &mut found[..part]);
                for &answer in &found[..part] {
                    black_box(hit(answer));
                }
                left -= part;
            }
        });
    });
    for rival in [STD, PARKING] {
        let what = format!("batched faster than {rival}");
        bench.bar(Bar::at_least(&what, 5.0, name, rival, "cairn lookup_many"));
    }
}

/// An arm that goes through the file from front to back, each thread from where it was.
fn sequences(bench: &mut Bench, set: &Set) {
    for (name, step) in SEQUENTIAL {
        let blocks = set.blocks;
        let walk = move |at: &AtomicUsize, n: u64, mut find: Box<dyn FnMut(u32) + '_>| {
            let mut lblk = at.load(Ordering::Relaxed) as u32;
            for _ in 0..n {
                find(lblk);
                lblk += step;
                if lblk >= blocks {
                    lblk = 0;
                }
            }
            at.store(lblk as usize, Ordering::Relaxed);
        };
        let group = bench.group(name, &[1]);
        let (std, at) = (set.std.clone(), AtomicUsize::new(0));
        group.arm(STD, move |_, n| {
            walk(&at, n, Box::new(|l| _ = black_box(std.find(l))));
        });
        let (parking, at) = (set.parking.clone(), AtomicUsize::new(0));
        group.arm(PARKING, move |_, n| {
            walk(&at, n, Box::new(|l| _ = black_box(parking.find(l))));
        });
        let (cairn, at) = (set.cairn.clone(), AtomicUsize::new(0));
        group.arm(CAIRN, move |_, n| {
            walk(&at, n, Box::new(|l| _ = black_box(cairn.find(l))));
        });
        let (cairn, at) = (set.cairn.clone(), AtomicUsize::new(0));
        group.arm("cairn cursor", move |_, n| {
            let mut cursor = cairn.map.cursor();
            walk(&at, n, Box::new(|l| _ = black_box(hit(cursor.lookup(l)))));
        });
    }
    // The stride of 16 leaves most entries after one look-up: shown, and no bar.
    let name = SEQUENTIAL[0].0;
    for rival in [STD, PARKING] {
        let what = format!("sequential: cursor faster than {rival}");
        bench.bar(Bar::at_least(&what, 8.0, name, rival, "cairn cursor"));
    }
}

/// One reader is measured; the other thread keeps a pace of 100 000 steps a second, which are
/// updates or nothing.
fn beside_a_writer(bench: &mut Bench, set: &Set) {
    let name = BESIDE;
    let group = bench.group(name, &[2]);
    for (arm, updates, map) in [
        (
            "cairn, idle beside it",
            false,
            set.cairn.clone() as Arc<dyn Contender>,
        ),
        ("cairn, 100k updates/s beside it", true, set.cairn.clone()),
        ("RangeMap, idle beside it", false, set.std.clone()),
        ("RangeMap, 100k updates/s beside it", true, set.std.clone()),
    ] {
        let (blocks, runs) = (set.blocks, set.runs.clone());
        group
            .arm(arm, move |thread, n| {
                with_random(|random| {
                    if thread == 0 {
                        for _ in 0..n {
                            black_box(map.find(random.below(blocks)));
                        }
                        return;
                    }
                    for _ in 0..n {
                        let due = Instant::now() + Duration::from_micros(10);
                        if updates {
                            let at = random.below(runs.len() as u32) as usize;
                            touch(&*map, &runs, at);
                        }
                        while Instant::now() < due {
                            std::hint::spin_loop();
                        }
                    }
                });
            })
            .measure_first(1);
    }
    bench.bar(Bar::at_most(
        "readers beside 100k updates/s over none",
        1.05,
        name,
        "cairn, 100k updates/s beside it",
        "cairn, idle beside it",
    ));
}

/// Puts what is there in place again: the map stays as it is, but not for the readers.
fn touch(map: &dyn Contender, runs: &[Run], at: usize) {
    map.set(runs[at]);
}

/// Changes of a few blocks, in pairs that leave the map as it was.
fn overrides(bench: &mut Bench, n: usize, huge_pages: bool) {
    let runs = Arc::new(runs(n));
    let random = crate::workload::shuffled(&runs);
    let name = OVERRIDE;
    let group = bench.group(name, &[1]);
    let cairn = filled(Cairn::new(huge_pages), &random);
    let std: Arc<Std<Ranges>> = filled(std_lock(), &random);
    let parking: Arc<ParkingLot<Ranges>> = filled(parking_lock(), &random);
    let nodit: Arc<Std<Nodit>> = filled(std_lock(), &random);
    let by_hand: Arc<Std<ByHand>> = filled(std_lock(), &random);
    let arms: [(&str, Arc<dyn Contender>); 5] = [
        (STD, std),
        (PARKING, parking),
        ("std RwLock<NoditMap>", nodit),
        ("std RwLock<BTreeMap>", by_hand),
        ("cairn insert", cairn),
    ];
    for (arm, map) in arms {
        let runs = runs.clone();
        group.arm(arm, move |_, n| {
            with_random(|random| {
                for _ in 0..n / 2 {
                    let at = random.below(runs.len() as u32) as usize;
                    let whole = runs[at];
                    let from = random.below(whole.len);
                    let part = Run {
                        lblk: whole.lblk + from,
                        len: 1 + random.below(whole.len - from),
                        physical: 900_000_000 + u64::from(random.below(1000)),
                        written: true,
                    };
                    map.set(part);
                    map.set(Run {
                        lblk: part.lblk,
                        len: part.len,
                        physical: whole.physical + u64::from(from),
                        written: whole.written,
                    });
                }
            });
        });
    }
    for rival in [STD, PARKING] {
        let what = format!("small override no slower than {rival}");
        bench.bar(Bar::at_least(&what, 1.0, name, rival, "cairn insert"));
    }
}

/// Extents per punch.
const WIDE: usize = 4096;

/// Punches of many extents, one an operation. The map is filled again before each sample, untimed,
/// and a sample ends before it is used up.
fn punches(bench: &mut Bench, n: usize, huge_pages: bool) {
    let runs = Arc::new(runs(n));
    let name = PUNCH;
    let group = bench.group(name, &[1]);
    group.at_most(Duration::from_micros(300));
    let std: Arc<Std<Ranges>> = filled(std_lock(), &runs);
    let nodit: Arc<Std<Nodit>> = filled(std_lock(), &runs);
    let by_hand: Arc<Std<ByHand>> = filled(std_lock(), &runs);
    let cairn = filled(Cairn::new(huge_pages), &runs);
    let arms: [(&str, Arc<dyn Contender>); 3] = [
        ("std RwLock<RangeMap>", std),
        ("std RwLock<NoditMap>", nodit),
        ("std RwLock<BTreeMap>", by_hand),
    ];
    for (arm, map) in arms {
        let refill = map.clone();
        punch_arm(group, arm, &runs, map, move |runs| {
            runs.iter().for_each(|&run| refill.set(run));
        });
    }
    let refill = cairn.clone();
    punch_arm(group, "cairn remove", &runs, cairn, move |runs| {
        let leaf: Vec<_> = runs
            .iter()
            .map(|&run| (run.lblk, run.len, status(run)))
            .collect();
        let _ = refill.map.load_leaf(&leaf, 0..u32::MAX);
    });
    bench.bar(Bar::at_least(
        "wide punch faster than RangeMap",
        25.0,
        name,
        STD,
        "cairn remove",
    ));
}

fn punch_arm(
    group: &mut Group,
    arm: &str,
    runs: &Arc<Vec<Run>>,
    map: Arc<dyn Contender>,
    refill: impl Fn(&[Run]) + Send + Sync + 'static,
) {
    let refill = Arc::new(refill);
    let at = Arc::new(AtomicUsize::new(0));
    let restore = {
        let (runs, at, refill) = (runs.clone(), at.clone(), refill.clone());
        move || refill(&runs[..at.swap(0, Ordering::Relaxed)])
    };
    let runs = runs.clone();
    group
        .arm(arm, move |_, n| {
            let mut from = at.load(Ordering::Relaxed);
            for _ in 0..n {
                if from + WIDE > runs.len() {
                    // Used up within one sample; filling again counts against this arm.
                    refill(&runs[..from]);
                    from = 0;
                }
                let last = runs[from + WIDE - 1];
                map.cut(runs[from].lblk, last.lblk + last.len);
                from += WIDE;
            }
            at.store(from, Ordering::Relaxed);
        })
        .before(restore);
}
