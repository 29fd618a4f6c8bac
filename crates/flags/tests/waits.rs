//! Blocking, timeouts, and what debug builds catch.

#![cfg(all(feature = "std", not(any(loom, miri))))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use cairn_flags::state_bits;

state_bits! {
    struct State: u32 {
        const LOCK = lock(2, waiters = 3);
        const READY = plain(4);
        const READY_WAITERS = plain(5);
        const UPTODATE = publish(6);
    }
}

state_bits! {
    struct Wide: u64 {
        const LOCK = lock(33, waiters = 34);
    }
}

const SHORT: Duration = Duration::from_millis(20);
/// A wait that ends earlier by itself; long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_timeout_comes_and_not_too_early() {
    let word = AtomicState::new();
    let wide = AtomicWide::new();
    let (_a, _b) = (word.lock(), wide.lock());
    let waits: [&dyn Fn() -> bool; 5] = [
        &|| word.lock_timeout(SHORT).is_some(),
        &|| wide.lock_timeout(SHORT).is_some(),
        &|| word.wait_lock_timeout(SHORT),
        &|| word.as_raw().wait_set_timeout::<4, 5>(SHORT),
        &|| wide.wait_lock_timeout(SHORT),
    ];
    for wait in waits {
        let start = Instant::now();
        assert!(!wait());
        assert!(start.elapsed() >= SHORT);
    }
}

#[test]
fn no_time_is_one_attempt() {
    let word = AtomicState::new();
    assert!(word.lock_timeout(Duration::ZERO).is_some());
    assert!(word.wait_lock_timeout(Duration::ZERO));
    let _guard = word.lock();
    assert!(word.lock_timeout(Duration::ZERO).is_none());
    assert!(!word.wait_lock_timeout(Duration::ZERO));
}

#[test]
fn a_timeout_beyond_the_clock_waits_on() {
    let word = AtomicState::new();
    word.lock().leak();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| word.lock_timeout(Duration::MAX).is_some());
        // The waiter sleeps, or will find the lock free.
        while word.snapshot().contains(State::LOCK_WAITERS) == waiter.is_finished() {
            thread::yield_now();
        }
        word.release_lock();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_guard_may_be_dropped_by_another_thread() {
    let word = AtomicState::new();
    let guard = word.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| word.lock_timeout(LONG).is_some());
        scope.spawn(move || drop(guard));
        assert!(waiter.join().unwrap());
    });
    assert!(!word.lock_held());
}

#[test]
fn an_event_wakes_all_its_waiters() {
    let word = AtomicState::new();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| word.as_raw().wait_set_timeout::<4, 5>(LONG)))
            .collect();
        word.as_raw().set_and_wake::<4, 5>(Release);
        for waiter in waiters {
            assert!(waiter.join().unwrap());
        }
    });
    word.as_raw().wait_set::<4, 5>();
    assert!(word.ready(Relaxed));
    word.as_raw().clear_and_wake::<4, 5>(Release);
    word.as_raw().wait_clear::<4, 5>();
}

/// A waiters bit that nobody needs any more costs the next owner one wake-up and is gone.
#[test]
fn a_stale_waiters_bit_goes_with_the_next_unlock() {
    let word = AtomicState::with(State::LOCK_WAITERS);
    drop(word.lock());
    assert_eq!(word.snapshot(), State::empty());
    word.lock().leak();
    assert!(word.lock_timeout(SHORT).is_none());
    assert_eq!(word.snapshot(), State::LOCK | State::LOCK_WAITERS);
    word.release_lock();
    assert_eq!(word.snapshot(), State::empty());
}

#[test]
fn unlocking_keeps_the_other_bits() {
    let all = State::all().difference(State::LOCK | State::LOCK_WAITERS);
    let word = AtomicState::with(all);
    drop(word.lock());
    assert_eq!(word.snapshot(), all);
}

#[cfg(debug_assertions)]
fn panic_of(run: impl FnOnce()) -> String {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[cfg(debug_assertions)]
#[test]
fn releasing_a_lock_not_held_panics_with_its_name() {
    let word = AtomicState::with(State::UPTODATE);
    let message = panic_of(|| word.release_lock());
    assert_eq!(message, "lock bit `LOCK` is released but not held");
    assert_eq!(word.snapshot(), State::UPTODATE);

    let guard = word.lock();
    word.as_raw().clear(State::LOCK, Relaxed);
    let message = panic_of(|| drop(guard));
    assert_eq!(message, "lock bit `LOCK` is released but not held");
    assert_eq!(word.snapshot(), State::UPTODATE);
}

/// In a release build it does nothing worse than nothing.
#[cfg(not(debug_assertions))]
#[test]
fn releasing_a_lock_not_held_keeps_the_word() {
    let word = AtomicState::with(State::UPTODATE);
    word.release_lock();
    assert_eq!(word.snapshot(), State::UPTODATE);
}
