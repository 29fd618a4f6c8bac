//! Bytes per extent, counted at the allocator: everything that a map asked for and still holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_rivals::Options;
use rangemap::RangeMap;

use crate::contenders::{ByHand, Cairn, Contender as _, Nodit, Plain};
use crate::workload::{Run, runs, shuffled};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SWITCH: &str = "CAIRN_BENCH_HUGE";
const TUNABLE: &str = "glibc.malloc.hugetlb=1";

/// Starts the bench again with huge pages for all memory, unless it runs so already or they are
/// switched off. Whether they are on.
pub(crate) fn with_huge_pages() -> bool {
    if std::env::var_os(SWITCH).is_some_and(|v| v == "0") {
        return false;
    }
    let tunables = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
    if tunables.contains(TUNABLE) {
        return true;
    }
    let mut args = std::env::args_os();
    let error = std::process::Command::new(args.next().unwrap_or_default())
        .args(args)
        .env("GLIBC_TUNABLES", TUNABLE)
        .exec();
    let _ = writeln!(io::stderr(), "note: no huge pages: {error}");
    false
}

/// Bytes held after `build`, per extent.
fn held<M>(extents: usize, build: impl FnOnce() -> M) -> (f64, M) {
    let before = HELD.load(Ordering::Relaxed);
    let map = build();
    let bytes = HELD.load(Ordering::Relaxed).saturating_sub(before);
    (bytes as f64 / extents as f64, map)
}

fn plain<M: Plain>(runs: &[Run]) -> f64 {
    let build = || {
        let mut map = M::default();
        runs.iter().for_each(|&run| map.set(run));
        map
    };
    held(runs.len(), build).0
}

/// Prints the table and its two bars.
pub(crate) fn report(huge_pages: bool, options: &Options) {
    if options.filter.is_some() {
        return;
    }
    let extents = if options.rounds < 10 {
        50_000
    } else {
        1_000_000
    };
    let appended = runs(extents);
    let random = shuffled(&appended);
    let cairn = |runs: &[Run]| {
        let (bytes, cairn) = held(extents, || {
            let cairn = Cairn::new(huge_pages);
            runs.iter().for_each(|&run| cairn.set(run));
            cairn.cache.flush();
            cairn
        });
        (bytes, cairn.cache.memory())
    };
    let (by_random, memory) = cairn(&random);
    let (by_append, _) = cairn(&appended);
    let rows = [
        ("cairn", by_random, by_append),
        (
            "RangeMap",
            plain::<RangeMap<u32, (u64, bool)>>(&random),
            plain::<RangeMap<u32, (u64, bool)>>(&appended),
        ),
        (
            "NoditMap",
            plain::<Nodit>(&random),
            plain::<Nodit>(&appended),
        ),
        (
            "BTreeMap",
            plain::<ByHand>(&random),
            plain::<ByHand>(&appended),
        ),
    ];
    let mut out = io::stdout().lock();
    let _ = writeln!(
        out,
        "bytes per extent, {extents} extents, all that is held   random  appended"
    );
    for (name, random, appended) in rows {
        let _ = writeln!(out, "  {name:<50} {random:>8.2} {appended:>8.2}");
    }
    let _ = writeln!(
        out,
        "  cairn, random, of that: nodes {:.2}, free {:.2}, retired {:.2}",
        memory.live as f64 / extents as f64,
        memory.free as f64 / extents as f64,
        memory.retired as f64 / extents as f64,
    );
    for (what, value, most) in [
        ("random-built", by_random, 18.0),
        ("appended", by_append, 13.0),
    ] {
        let verdict = if value <= most { "holds" } else { "MISSED" };
        let _ = writeln!(
            out,
            "  bar: {what}, at most {most} bytes an extent: {value:.2} {verdict}"
        );
    }
    let _ = writeln!(out);
}
