//! Per-CPU counters beside a thread-local cell, one atomic, and the crates one would pick instead.
//!
//! `cargo bench -p cairn-rivals --bench percpu`

#![allow(
    clippy::inline_always,
    missing_docs,
    reason = "a bench: each arm must be one loop around the operation, and nothing is exported"
)]

use std::cell::Cell;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, compiler_fence};

use cairn_percpu::{BackendKind, Batched, Counter, Gauge, SharedCounter, counter_group};
use cairn_rivals::{Bar, Bench, repeat8};
use contatori::counters::Observable as _;
use contatori::counters::unsigned::Unsigned as Contatori;
use fast_counter::ConcurrentCounter as FastCounter;
use prometheus::IntCounter;
use thread_local::ThreadLocal;

/// A line of its own, with the prefetcher's neighbour.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

thread_local! {
    static CELL: Cell<u64> = const { Cell::new(0) };
}

fn counter(kind: BackendKind) -> Line<Counter> {
    Line(Counter::builder().backend(kind).build())
}

fn batched(kind: BackendKind, batch: u32) -> Line<Batched> {
    let builder = Batched::builder().backend(kind).batch(batch);
    Line(builder.expect("the batch is a constant above 0").build())
}

static OWNED: LazyLock<Line<Counter>> = LazyLock::new(|| counter(BackendKind::Owned));
static RSEQ: LazyLock<Line<Counter>> = LazyLock::new(|| counter(BackendKind::RseqCpu));
static CID: LazyLock<Line<Counter>> = LazyLock::new(|| counter(BackendKind::RseqCid));
static STRIPED: LazyLock<Line<Counter>> = LazyLock::new(|| counter(BackendKind::Striped));
static GAUGE: Line<Gauge> = Line(Gauge::new());
static OWNED_32: LazyLock<Line<Batched>> = LazyLock::new(|| batched(BackendKind::Owned, 32));
static OWNED_1024: LazyLock<Line<Batched>> = LazyLock::new(|| batched(BackendKind::Owned, 1024));
static RSEQ_32: LazyLock<Line<Batched>> = LazyLock::new(|| batched(BackendKind::RseqCpu, 32));
static RSEQ_1024: LazyLock<Line<Batched>> = LazyLock::new(|| batched(BackendKind::RseqCpu, 1024));
static SHARED: Line<SharedCounter> = Line(SharedCounter::new());
static CONTATORI: LazyLock<Line<Contatori>> = LazyLock::new(|| Line(Contatori::new()));
static FAST: LazyLock<Line<FastCounter>> = LazyLock::new(|| Line(FastCounter::new(16)));
static PROMETHEUS: LazyLock<Line<IntCounter>> =
    LazyLock::new(|| Line(IntCounter::new("ops", "operations").expect("a valid name")));
static LOCAL: LazyLock<Line<ThreadLocal<Cell<u64>>>> = LazyLock::new(Line::default);

counter_group! {
    struct Sixteen { a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p }
}
static GROUP: Line<Sixteen> = Line(Sixteen::new());

/// Keeps the compiler from adding eight increments up: what one add stores the next one loads. Every arm
/// has it, also those whose operations it cannot join anyway.
#[inline(always)]
fn apart() {
    compiler_fence(SeqCst);
}

/// An arm that repeats `body` on `$of`, whose address the loop does not know.
macro_rules! each {
    ($of:expr, |$c:ident| $body:expr) => {
        |_thread: usize, n: u64| {
            let $c = black_box(&$of.0);
            for _ in 0..n / 8 {
                repeat8!($body; apart());
            }
        }
    };
}

const ADD: &str = "add 1";
const CELL_ARM: &str = "thread-local Cell";
const HANDLE: &str = "cairn owned, handle";
const INDEX: &str = "cairn owned, by index";
const RSEQ_HANDLE: &str = "cairn rseq, handle";
const RSEQ_INDEX: &str = "cairn rseq, by index";
const CONTATORI_ARM: &str = "contatori";
const SHARED_ARM: &str = "one atomic (SharedCounter)";

fn adds(bench: &mut Bench) {
    bench
        .group(ADD, &[1, 2])
        .arm(CELL_ARM, |_, n| {
            CELL.with(|cell| {
                black_box(std::ptr::from_ref(cell));
            });
            for _ in 0..n / 8 {
                repeat8!(CELL.set(CELL.get().wrapping_add(1)); apart());
            }
        })
        .arm(HANDLE, |_, n| {
            let mine = black_box(&OWNED.0).handle();
            for _ in 0..n / 8 {
                repeat8!(mine.inc(); apart());
            }
        })
        .arm(INDEX, each!(OWNED, |c| c.inc()))
        .arm(
            "cairn owned, field of a group",
            each!(GROUP, |g| g.h().inc()),
        )
        .arm("cairn owned, gauge up and down", {
            |_, n| {
                let gauge = black_box(&GAUGE.0);
                for _ in 0..n / 16 {
                    repeat8!(gauge.inc(); apart(); gauge.dec(); apart());
                }
            }
        })
        .arm("cairn owned, batch 32", each!(OWNED_32, |c| c.inc()))
        .arm("cairn owned, batch 1024", each!(OWNED_1024, |c| c.inc()))
        .arm(RSEQ_HANDLE, |_, n| {
            let mine = black_box(&RSEQ.0).handle();
            for _ in 0..n / 8 {
                repeat8!(mine.inc(); apart());
            }
        })
        .arm(RSEQ_INDEX, each!(RSEQ, |c| c.inc()))
        .arm("cairn rseq-cid, handle", |_, n| {
            let mine = black_box(&CID.0).handle();
            for _ in 0..n / 8 {
                repeat8!(mine.inc(); apart());
            }
        })
        .arm("cairn rseq, batch 32", each!(RSEQ_32, |c| c.inc()))
        .arm("cairn rseq, batch 1024", each!(RSEQ_1024, |c| c.inc()))
        .arm("cairn striped", each!(STRIPED, |c| c.inc()))
        .arm(
            "thread_local crate, Cell",
            each!(LOCAL, |t| {
                let cell = t.get_or_default();
                cell.set(cell.get().wrapping_add(1));
            }),
        )
        .arm(CONTATORI_ARM, each!(CONTATORI, |c| c.add(1)))
        .arm("fast-counter", each!(FAST, |c| c.add(1)))
        .arm("prometheus IntCounter", each!(PROMETHEUS, |c| c.inc()))
        .arm(SHARED_ARM, each!(SHARED, |c| c.inc()));

    bench
        .bar(Bar::at_most("owned handle over a Cell", 1.05, ADD, HANDLE, CELL_ARM).threads(1))
        .bar(Bar::at_most("owned by index over a Cell", 1.3, ADD, INDEX, CELL_ARM).threads(1))
        .bar(Bar::at_most("rseq handle over a Cell", 2.2, ADD, RSEQ_HANDLE, CELL_ARM).threads(1))
        .bar(
            Bar::at_most(
                "rseq handle over contatori",
                0.35,
                ADD,
                RSEQ_HANDLE,
                CONTATORI_ARM,
            )
            .threads(1),
        )
        .bar(
            Bar::at_most(
                "rseq by index over contatori",
                0.35,
                ADD,
                RSEQ_INDEX,
                CONTATORI_ARM,
            )
            .threads(1),
        );
    for arm in [HANDLE, INDEX, RSEQ_HANDLE, RSEQ_INDEX] {
        let alone = format!("{arm}: two threads over one");
        bench.bar(
            Bar::at_most(&alone, 1.05, ADD, arm, arm)
                .threads(2)
                .over_threads(1),
        );
        let shared = format!("one atomic over {arm}, two threads");
        bench.bar(Bar::at_least(&shared, 15.0, ADD, SHARED_ARM, arm).threads(2));
    }
}

/// Slots of the summed counters.
const SLOTS: usize = 64;

/// As many words on lines of their own as a counter of that many slots has slots.
static LINES: LazyLock<Line<Vec<Line<AtomicU64>>>> =
    LazyLock::new(|| Line((0..SLOTS).map(|_| Line::default()).collect()));
static OWNED_64: LazyLock<Line<Counter>> = LazyLock::new(|| {
    let builder = Counter::builder().backend(BackendKind::Owned);
    Line(builder.slots(SLOTS).build())
});
static BATCHED_64: LazyLock<Line<Batched>> = LazyLock::new(|| {
    let builder = Batched::builder().backend(BackendKind::Owned);
    Line(builder.slots(SLOTS).build())
});

fn sums(bench: &mut Bench) {
    const SUM: &str = "sum 64 slots";
    bench
        .group(SUM, &[1])
        .arm(
            "64 padded lines",
            each!(LINES, |lines| {
                let sum = |sum: u64, line: &Line<AtomicU64>| sum.wrapping_add(line.0.load(Relaxed));
                black_box(lines.iter().fold(0, sum));
            }),
        )
        .arm(
            "cairn Counter::sum",
            each!(OWNED_64, |c| {
                black_box(c.sum());
            }),
        )
        .arm(
            "cairn Batched::sum",
            each!(BATCHED_64, |c| {
                black_box(c.sum());
            }),
        )
        .arm(
            "cairn Batched::read",
            each!(BATCHED_64, |c| {
                black_box(c.read());
            }),
        )
        .arm(
            "cairn Batched::compare, far off",
            each!(BATCHED_64, |c| {
                black_box(c.compare(i64::MAX));
            }),
        )
        .arm(
            "contatori, its 128 slots",
            each!(CONTATORI, |c| {
                black_box(c.value());
            }),
        )
        .arm(
            "fast-counter, its 16 cells",
            each!(FAST, |c| {
                black_box(c.sum());
            }),
        )
        .arm(
            "one atomic",
            each!(SHARED, |c| {
                black_box(c.sum());
            }),
        );
    bench.bar(Bar::at_most(
        "Counter::sum over the same padded lines",
        1.3,
        SUM,
        "cairn Counter::sum",
        "64 padded lines",
    ));
}

/// The bar that is a size and not a time.
fn memory() -> io::Result<()> {
    GROUP.0.a().inc();
    let (ours, theirs) = (GROUP.0.memory(), 16 * size_of::<Contatori>());
    let part = theirs as f64 / ours as f64;
    let holds = if part >= 100.0 { "holds" } else { "MISSED" };
    writeln!(
        io::stderr(),
        "memory: a group of 16 counters {ours} bytes, 16 of contatori {theirs}: 1/{part:.0} \
         (bar 1/100: {holds})"
    )?;
    writeln!(
        io::stderr(),
        "backends: {}; {}",
        OWNED.0.backend(),
        RSEQ.0.backend()
    )
}

fn main() -> ExitCode {
    if memory().is_err() {
        return ExitCode::from(2);
    }
    Bench::main("percpu", |bench| {
        adds(bench);
        sums(bench);
    })
}
