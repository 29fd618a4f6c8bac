//! Flag words beside plain atomics, a mutex and the crates one would pick instead.
//!
//! `cargo bench -p cairn-rivals --bench flags`

#![allow(
    clippy::inline_always,
    missing_docs,
    reason = "a bench: each arm must be one loop around the operation, and nothing is exported"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use cairn_flags::{PolicyCell, SetPolicy, state_bits, tally_probe};
use cairn_rivals::{Bar, Bench, repeat8};

state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(0);
        const DIRTY = work(1);
        const LOCK = lock(2, waiters = 3);
    }
}

const VERIFIED: u32 = 1;
const LOCK: u32 = 1 << 2;
const WAITERS: u32 = 1 << 3;

bitflags::bitflags! {
    #[derive(Clone, Copy)]
    struct Rival: u32 {
        const VERIFIED = 1;
    }
}

tally_probe! {
    /// The probe that counts, as a user has it.
    struct Counting;
}

/// A line of its own, with the prefetcher's neighbour.
#[repr(align(128))]
struct Line<T>(T);

static PLAIN: Line<AtomicU32> = Line(AtomicU32::new(VERIFIED));
static WORD: Line<AtomicState> = Line(AtomicState::with(State::VERIFIED.union(State::DIRTY)));
static PROBED: Line<AtomicState<Counting>> = Line(AtomicState::probed_with(State::VERIFIED));
static POLICY: Line<PolicyCell> = Line(PolicyCell::new(SetPolicy::CheckFirst));
static RIVAL: Line<atomic_bitflags::AtomicFlags<Rival>> = Line(
    atomic_bitflags::AtomicFlags::from_storage(AtomicU32::new(VERIFIED)),
);
static PORTABLE: Line<portable_atomic::AtomicU32> = Line(portable_atomic::AtomicU32::new(VERIFIED));
static MUTEX: Line<Mutex<u32>> = Line(Mutex::new(VERIFIED));
static LOCKS: Line<AtomicState> = Line(AtomicState::new());
static RAW_LOCK: Line<AtomicU32> = Line(AtomicU32::new(0));

/// What a branch that is never taken would lead to.
#[cold]
#[inline(never)]
fn not_set() {
    black_box(());
}

/// An arm that repeats `body` on `$word`, whose address the loop does not know.
macro_rules! each {
    ($word:expr, |$w:ident| $body:expr) => {
        |_thread: usize, n: u64| {
            let $w = black_box(&$word.0);
            for _ in 0..n / 8 {
                repeat8!($body);
            }
        }
    };
}

#[inline(always)]
fn load_test_branch(word: &AtomicU32) {
    if word.load(Relaxed) & VERIFIED == 0 {
        not_set();
    }
}

fn set_when_set(bench: &mut Bench) {
    bench
        .group("set a bit that is set", &[1, 2])
        .arm("load, test, branch", each!(PLAIN, |w| load_test_branch(w)))
        .arm(
            "relaxed load",
            each!(PLAIN, |w| {
                black_box(w.load(Relaxed));
            }),
        )
        .arm(
            "cairn, check-first",
            each!(WORD, |w| {
                w.set_verified();
            }),
        )
        .arm("cairn, policy says check-first", {
            |_thread: usize, n: u64| {
                let (w, policy) = (black_box(&WORD.0), black_box(&POLICY.0));
                for _ in 0..n / 8 {
                    repeat8!(w.set_verified_with(policy.get()));
                }
            }
        })
        .arm(
            "cairn, check-first, probe counting",
            each!(PROBED, |w| {
                w.set_verified();
            }),
        )
        .arm(
            "cairn, always-rmw",
            each!(WORD, |w| w.set_verified_always()),
        )
        .arm(
            "fetch_or alone",
            each!(PLAIN, |w| {
                w.fetch_or(VERIFIED, Relaxed);
            }),
        )
        .arm(
            "cairn, test_and_set (lock bts)",
            each!(WORD, |w| {
                black_box(w.as_raw().test_and_set::<0>(Relaxed));
            }),
        )
        .arm(
            "atomic-bitflags, set",
            each!(RIVAL, |w| {
                w.set(Rival::VERIFIED, Relaxed);
            }),
        )
        .arm(
            "portable-atomic, bit_set",
            each!(PORTABLE, |w| {
                black_box(w.bit_set(0, Relaxed));
            }),
        )
        .arm(
            "Mutex<u32>",
            each!(MUTEX, |w| {
                if let Ok(mut word) = w.lock() {
                    *word |= VERIFIED;
                }
            }),
        );
}

fn reader_beside(bench: &mut Bench) {
    bench
        .group("a reader beside another thread", &[2])
        .arm("idle", |thread, n| {
            if thread == 0 {
                (each!(PLAIN, |w| load_test_branch(w)))(thread, n);
            } else {
                (each!(RAW_LOCK, |w| load_test_branch(w)))(thread, n);
            }
        })
        .measure_first(1)
        .arm("cairn, check-first", |thread, n| {
            if thread == 0 {
                (each!(WORD, |w| {
                    if !w.verified() {
                        not_set();
                    }
                }))(thread, n);
            } else {
                (each!(WORD, |w| {
                    w.set_verified();
                }))(thread, n);
            }
        })
        .measure_first(1)
        .arm("cairn, always-rmw", |thread, n| {
            if thread == 0 {
                (each!(WORD, |w| {
                    if !w.verified() {
                        not_set();
                    }
                }))(thread, n);
            } else {
                (each!(WORD, |w| w.set_verified_always()))(thread, n);
            }
        })
        .measure_first(1);
}

fn marks(bench: &mut Bench) {
    bench
        .group("mark work that is marked", &[1, 2])
        .arm(
            "fetch_or alone",
            each!(PLAIN, |w| {
                w.fetch_or(VERIFIED, Relaxed);
            }),
        )
        .arm(
            "cairn, mark (fenced)",
            each!(WORD, |w| {
                w.mark_dirty();
            }),
        )
        .arm(
            "cairn, mark always",
            each!(WORD, |w| {
                w.mark_dirty_always();
            }),
        )
        .arm(
            "fence(SeqCst), load, test, branch",
            each!(PLAIN, |w| {
                fence(SeqCst);
                load_test_branch(w);
            }),
        );
}

/// The lock half is the same in each pair, so the ratio is that of the unlock half, softened.
fn unlocks(bench: &mut Bench) {
    bench
        .group("unlock, nobody waiting", &[1])
        .arm(
            "store, then lock and",
            each!(RAW_LOCK, |w| {
                w.store(LOCK, Relaxed);
                w.fetch_and(!LOCK, Release);
            }),
        )
        .arm(
            "store, then lock xadd that learns of waiters",
            each!(RAW_LOCK, |w| {
                w.store(LOCK, Relaxed);
                if w.fetch_sub(LOCK, Release) & WAITERS != 0 {
                    not_set();
                }
            }),
        );
    bench
        .group("lock and unlock, nobody waiting", &[1])
        .arm(
            "bts, lock and",
            each!(LOCKS, |w| {
                if !w.as_raw().test_and_set::<2>(Acquire) {
                    w.as_raw().clear(State::LOCK, Release);
                }
            }),
        )
        .arm(
            "cairn, try_lock and guard",
            each!(LOCKS, |w| {
                drop(w.try_lock());
            }),
        )
        .arm(
            "cairn, lock and guard",
            each!(LOCKS, |w| {
                drop(w.lock());
            }),
        )
        .arm(
            "Mutex<u32>",
            each!(MUTEX, |w| {
                drop(w.lock());
            }),
        );
}

fn flips(bench: &mut Bench) {
    bench
        .group("clear and set: the bit really flips", &[1, 2])
        .arm(
            "always-rmw",
            each!(WORD, |w| {
                w.clear_verified();
                w.set_verified_always();
            }),
        )
        .arm(
            "check-first",
            each!(WORD, |w| {
                w.clear_verified();
                w.set_verified();
            }),
        )
        .before(|| {
            WORD.0.set_verified();
        });
}

fn bars(bench: &mut Bench) {
    let set = "set a bit that is set";
    let (test, check) = ("load, test, branch", "cairn, check-first");
    let reader = "a reader beside another thread";
    bench
        .bar(
            Bar::at_most(
                "set when set, over load, test, branch",
                1.05,
                set,
                check,
                test,
            )
            .threads(1),
        )
        .bar(
            Bar::at_least(
                "fetch_or over set when set",
                10.0,
                set,
                "fetch_or alone",
                check,
            )
            .threads(1),
        )
        .bar(
            Bar::at_least(
                "the same, two threads on the word",
                5.0,
                set,
                "fetch_or alone",
                check,
            )
            .threads(2),
        )
        .bar(
            Bar::at_least(
                "goal: the same, two threads",
                30.0,
                set,
                "fetch_or alone",
                check,
            )
            .threads(2),
        )
        .bar(Bar::at_most(
            "reader beside a check-first setter, over idle",
            1.1,
            reader,
            check,
            "idle",
        ))
        .bar(
            Bar::at_most(
                "fenced mark over fetch_or alone",
                1.1,
                "mark work that is marked",
                "cairn, mark (fenced)",
                "fetch_or alone",
            )
            .threads(1),
        )
        .bar(
            Bar::at_least(
                "goal: fetch_or over fenced mark, two threads",
                4.0,
                "mark work that is marked",
                "fetch_or alone",
                "cairn, mark (fenced)",
            )
            .threads(2),
        )
        .bar(Bar::at_most(
            "unlock that learns of waiters, over lock and",
            1.1,
            "unlock, nobody waiting",
            "store, then lock xadd that learns of waiters",
            "store, then lock and",
        ))
        .bar(
            Bar::at_most(
                "goal: counting probe, over none",
                2.2,
                set,
                "cairn, check-first, probe counting",
                check,
            )
            .threads(1),
        );
}

fn main() -> ExitCode {
    Bench::main("flags", |bench| {
        set_when_set(bench);
        reader_beside(bench);
        marks(bench);
        unlocks(bench);
        flips(bench);
        bars(bench);
    })
}
