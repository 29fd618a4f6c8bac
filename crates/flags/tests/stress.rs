//! More threads than cores on one word: exclusion holds, and nobody sleeps through a wake-up.
//!
//! A wait that should end within microseconds is given [`PATIENCE`]; if it runs out, a wake-up was
//! lost. Nothing depends on how fast the machine is.

#![cfg(all(feature = "std", not(any(loom, miri))))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

use cairn_flags::state_bits;

state_bits! {
    /// Sleeps in the futex, on Linux.
    struct Narrow: u32 {
        const LOCK = lock(0, waiters = 1);
        const NOISE = hint(2);
        const PING = plain(3);
        const PING_WAITERS = plain(4);
        const PONG = plain(5);
        const PONG_WAITERS = plain(6);
    }
}

state_bits! {
    /// Sleeps in the portable table, everywhere.
    struct Wide: u64 {
        const LOCK = lock(0, waiters = 63);
        const NOISE = hint(2);
        const PING = plain(3);
        const PING_WAITERS = plain(40);
        const PONG = plain(5);
        const PONG_WAITERS = plain(41);
    }
}

/// How long a wait may take before a wake-up counts as lost.
const PATIENCE: Duration = Duration::from_mins(1);

/// Hand-overs of the default run, and of the long one.
const SHORT: u64 = 100_000;
const LONG: u64 = 10_000_000;

fn threads() -> usize {
    4 * thread::available_parallelism()
        .map_or(2, usize::from)
        .max(2)
}

/// A counter that only exclusion keeps right, and the thread that had the lock last.
struct Guarded {
    counter: AtomicU64,
    owner: AtomicUsize,
    handed_over: AtomicU64,
}

impl Guarded {
    fn new() -> Self {
        Self {
            counter: AtomicU64::new(0),
            owner: AtomicUsize::new(usize::MAX),
            handed_over: AtomicU64::new(0),
        }
    }

    /// Counts, in the lock, by loads and stores alone.
    fn count(&self, me: usize) {
        let seen = self.counter.load(Relaxed);
        if self.owner.swap(me, Relaxed) != me {
            let handed_over = self.handed_over.load(Relaxed) + 1;
            self.handed_over.store(handed_over, Relaxed);
            if handed_over.is_multiple_of(64) {
                // Others find the lock held for long and go to sleep.
                thread::yield_now();
            }
        }
        for _ in 0..20 {
            std::hint::spin_loop();
        }
        self.counter.store(seen + 1, Relaxed);
    }

    fn goes_on(&self, until: u64) -> bool {
        self.handed_over.load(Relaxed) < until
    }
}

/// Where one thread gets its turns: who had the lock passes its turn on and sleeps here, so that it
/// cannot take the lock again and again before a sleeper has woken.
struct Seat {
    turns: AtomicU64,
    called: AtomicNarrow,
}

impl Seat {
    fn new(turns: u64) -> Self {
        Self {
            turns: AtomicU64::new(turns),
            called: AtomicNarrow::new(),
        }
    }

    fn give(&self) {
        self.turns.fetch_add(1, SeqCst);
        self.called.as_raw().set_and_wake::<3, 4>(SeqCst);
    }

    /// The turns are looked at again after the bell is reset: whoever gives one rings after that.
    fn take(&self) {
        while self.turns.load(SeqCst) == 0 {
            self.called.clear_ping(SeqCst);
            if self.turns.load(SeqCst) == 0 {
                let called = self.called.as_raw().wait_set_timeout::<3, 4>(PATIENCE);
                assert!(called, "lost wake-up");
            }
        }
        self.turns.fetch_sub(1, SeqCst);
    }
}

macro_rules! storms {
    ($Flags:ident, $Word:ident, $ping:literal, $pong:literal, $lock_storm:ident, $event_storm:ident) => {
        /// Lockers of every kind; returns hand-overs.
        fn $lock_storm(until: u64) -> u64 {
            let word = $Word::new();
            let guarded = Guarded::new();
            // Half of the threads have a turn: they contend for the lock.
            let seats: Vec<Seat> = (0..threads()).map(|i| Seat::new(i as u64 % 2)).collect();
            let lock = |me: usize| match me / 2 % 3 {
                // Gives up all the time, between others that do not.
                0 => word.lock_timeout(Duration::from_micros(20)),
                1 => {
                    assert!(word.wait_lock_timeout(PATIENCE), "lost wake-up");
                    word.set_noise();
                    word.clear_noise();
                    word.try_lock()
                }
                _ => {
                    let guard = word.lock_timeout(PATIENCE);
                    assert!(guard.is_some(), "lost wake-up");
                    guard
                }
            };
            let run = |me: usize| {
                let mut counted = 0;
                loop {
                    seats[me].take();
                    while guarded.goes_on(until) {
                        let Some(guard) = lock(me) else { continue };
                        guarded.count(me);
                        counted += 1;
                        if counted % 16 == 0 {
                            guard.leak();
                            word.release_lock();
                        }
                        break;
                    }
                    let next = &seats[(me + 1) % seats.len()];
                    next.give();
                    if !guarded.goes_on(until) {
                        // One more, now that it is over: the first may have been taken before.
                        next.give();
                        return counted;
                    }
                }
            };
            let counts: Vec<u64> = thread::scope(|scope| {
                let actors: Vec<_> = (0..seats.len())
                    .map(|me| {
                        let run = &run;
                        scope.spawn(move || run(me))
                    })
                    .collect();
                actors.into_iter().map(|a| a.join().unwrap()).collect()
            });
            assert_eq!(
                guarded.counter.into_inner(),
                counts.iter().sum::<u64>(),
                "not exclusive"
            );
            assert!(!word.lock_held());
            drop(word.lock());
            let left = word.snapshot();
            assert!(left.is_empty(), "left in the word at rest: {left:?}");
            guarded.handed_over.into_inner()
        }

        /// Pairs of threads that wait for each other's bits in turn.
        fn $event_storm(rounds: u64) {
            let words: Vec<$Word> = (0..threads() / 2).map(|_| $Word::new()).collect();
            thread::scope(|scope| {
                for word in &words {
                    let raw = word.as_raw();
                    scope.spawn(move || {
                        for round in 0..rounds {
                            raw.set_and_wake::<3, $ping>(Release);
                            let wait = raw.wait_set_timeout::<5, $pong>(PATIENCE);
                            assert!(wait, "lost wake-up in round {round}");
                            raw.clear_and_wake::<5, $pong>(Release);
                        }
                    });
                    scope.spawn(move || {
                        for round in 0..rounds {
                            let wait = raw.wait_set_timeout::<3, $ping>(PATIENCE);
                            assert!(wait, "lost wake-up in round {round}");
                            raw.clear($Flags::PING, Release);
                            raw.set_and_wake::<5, $pong>(Release);
                            let wait = raw.wait_clear_timeout::<5, $pong>(PATIENCE);
                            assert!(wait, "lost wake-up in round {round}");
                        }
                    });
                }
            });
        }
    };
}

storms!(Narrow, AtomicNarrow, 4, 6, narrow_locks, narrow_events);
storms!(Wide, AtomicWide, 40, 41, wide_locks, wide_events);

#[test]
fn lock_storm_on_the_futex() {
    assert!(narrow_locks(SHORT) >= SHORT);
}

#[test]
fn lock_storm_in_the_table() {
    assert!(wide_locks(SHORT) >= SHORT);
}

#[test]
fn event_storm_on_the_futex() {
    narrow_events(SHORT / 10);
}

#[test]
fn event_storm_in_the_table() {
    wide_events(SHORT / 10);
}

#[test]
#[ignore = "minutes; just soak flags"]
fn long_lock_storm_on_the_futex() {
    assert!(narrow_locks(LONG) >= LONG);
}

#[test]
#[ignore = "minutes; just soak flags"]
fn long_lock_storm_in_the_table() {
    assert!(wide_locks(LONG / 10) >= LONG / 10);
}

#[test]
#[ignore = "minutes; just soak flags"]
fn long_event_storms() {
    narrow_events(LONG / 10);
    wide_events(LONG / 100);
}
