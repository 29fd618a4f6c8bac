//! A child process counts on, and does not run out of ids.
#![cfg(all(unix, not(loom), not(miri)))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "forking is not safe code, and a test that fails may panic"
)]

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use cairn_percpu::{BackendKind, Batched, Counter, Gauge};

/// Whether `child`, run in a forked process, found everything right.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs code that takes no lock which another thread may have held.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = i32::from(!child());
        // SAFETY: leaves without the destructors of the parent's state.
        unsafe { libc::_exit(code) };
    }
    let until = Instant::now() + Duration::from_mins(1);
    let mut status = 0;
    // SAFETY: the status outlives the call.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > until {
            // SAFETY: the child is ours and not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_micros(200));
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn the_child_goes_on_from_the_parents_totals_and_can_forget_them() {
    for kind in [
        BackendKind::Owned,
        BackendKind::RseqCpu,
        BackendKind::Striped,
    ] {
        let mut counter = Counter::builder().backend(kind).build();
        let mut batched = Batched::builder().backend(kind).build();
        let mut gauge = Gauge::builder().backend(kind).build();
        counter.add(7);
        batched.add(100);
        gauge.inc();
        let right = forked(|| {
            counter.inc();
            batched.add(1);
            gauge.dec();
            let went_on = (counter.sum(), batched.sum(), gauge.sum()) == (8, 101, 0);
            counter.reset_after_fork();
            batched.reset_after_fork();
            gauge.reset_after_fork();
            counter.inc();
            batched.add(-2);
            went_on && (counter.sum(), batched.sum(), gauge.sum()) == (1, -2, 0)
        });
        assert!(right, "{kind}");
        assert_eq!((counter.sum(), batched.sum(), gauge.sum()), (7, 100, 1));
    }
}

/// Threads that do not come along leave their ids behind; the child must have them again.
#[test]
fn ids_of_vanished_threads_are_free_in_the_child() {
    const THREADS: usize = 40;
    let counter = Counter::builder()
        .backend(BackendKind::Owned)
        .slots(64)
        .build();
    let (ready, done) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    counter.inc();
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                counter.inc();
                ready.wait();
                done.wait();
            });
        }
        ready.wait();
        let right = forked(|| {
            let before = counter.sum();
            // A new thread in the child gets the lowest id that is free.
            let pid = std::process::id();
            thread::scope(|s| {
                s.spawn(|| (0..1000).for_each(|_| counter.inc()));
            });
            counter.inc();
            // Only the forking thread has kept one.
            let low = counter.slots().take(2).any(|slot| slot.value >= 1000);
            pid != 0 && counter.sum() == before + 1001 && low
        });
        // Let the threads go before anything can fail.
        done.wait();
        assert!(right, "the new thread of the child got no low id");
    });
    assert_eq!(counter.sum(), THREADS as u64 + 1);
}

/// A child forked while other threads build slots and claim ids does not wait for any of them.
#[test]
fn forks_in_the_middle_of_everything_do_not_hang() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let counter = Counter::new();
                    thread::scope(|inner| inner.spawn(|| counter.inc()).join()).unwrap();
                    assert_eq!(counter.sum(), 1);
                }
            });
        }
        let right = (0..50).filter(|_| {
            let counter = Counter::new();
            forked(|| {
                counter.inc();
                counter.sum() == 1
            })
        });
        let right = right.count();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(right, 50);
    });
}
