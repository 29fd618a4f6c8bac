//! Real restartable sequences under everything that should restart them: forced moves between CPUs, more threads
//! than CPUs, timers and signals. And the same storm over a counter without the section, which must lose.
//!
//! `just soak percpu` runs the long forms.
#![cfg(all(
    not(loom),
    feature = "rseq",
    target_os = "linux",
    target_arch = "x86_64",
    not(miri)
))]
#![allow(
    unsafe_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test of what threads and signals do to each other"
)]

mod naked;
mod weather;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_percpu::{BackendKind, Batched, Counter, Gauge, rseq_available};

use crate::naked::Naked;
use crate::weather::{Storm, cpus};

/// One storm at a time: they bend the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Says why and gives true where there is nothing to test.
fn skip() -> bool {
    match rseq_available() {
        Ok(()) => false,
        Err(why) => {
            println!("skipped: {why}");
            true
        }
    }
}

fn counters(adds: u64) {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for kind in [BackendKind::RseqCpu, BackendKind::RseqCid] {
        let counter = &Counter::builder().backend(kind).build();
        let handled = Counter::builder().backend(kind).build();
        let seen = Storm::new(adds).run(|| {
            let handle = handled.handle();
            move || {
                counter.inc();
                handle.inc();
            }
        });
        assert!(seen.moves > 0, "{kind}: no storm");
        assert_eq!(counter.sum(), seen.adds, "{kind}: {seen:?}");
        assert_eq!(handled.sum(), seen.adds, "{kind}: {seen:?}");
        println!("{kind}: {seen:?}, 0 lost");
    }
}

#[test]
fn no_add_is_lost() {
    counters(50_000_000);
}

#[test]
#[ignore = "1e10 adds take a minute; just soak percpu"]
fn no_add_is_lost_in_a_long_storm() {
    counters(2_500_000_000);
}

fn batched(adds: u64) {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut counter = Batched::builder()
        .backend(BackendKind::RseqCpu)
        .batch(32)
        .unwrap()
        .writers(64)
        .build();
    let wrong = AtomicU64::new(0);
    let seen = Storm::new(adds).run(|| {
        let mut n = 0_i64;
        let (counter, wrong) = (&counter, &wrong);
        move || {
            // Up and down again, past the batch at times: 1, 2, ... 40, 1, ...
            n = n % 40 + 1;
            counter.add(n);
            if n == 40 {
                counter.add(-819);
                let (low, high) = counter.read_bounds();
                if low > high {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    assert_eq!(wrong.into_inner(), 0);
    for slot in counter.slots() {
        assert!(slot.pending.unsigned_abs() < 32, "{slot:?} {seen:?}");
    }
    let off = (counter.sum() - counter.read()).unsigned_abs();
    assert!(off <= counter.bound(), "{off} > {}", counter.bound());
    // Each worker ends somewhere in its round of 40, having added 1 for each full round.
    assert_eq!(counter.sum(), seen.expected_of_rounds(), "{seen:?}");
    counter.settle();
    assert_eq!(counter.read(), counter.sum());
    println!("batched: {seen:?}, 0 lost");
}

#[test]
fn no_batched_add_is_lost() {
    batched(20_000_000);
}

#[test]
#[ignore = "1e9 adds take a minute; just soak percpu"]
fn no_batched_add_is_lost_in_a_long_storm() {
    batched(1_000_000_000);
}

#[test]
fn a_gauge_stays_at_or_above_zero() {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let gauge = Gauge::builder().backend(BackendKind::RseqCpu).build();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let (gauge, done) = (&gauge, &done);
        let reader = s.spawn(move || {
            let mut lowest = i64::MAX;
            while !done.load(Ordering::Relaxed) {
                lowest = lowest.min(gauge.sum());
            }
            lowest
        });
        Storm::new(5_000_000).run(|| {
            move || {
                gauge.inc();
                gauge.dec();
            }
        });
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() >= 0);
    });
    assert_eq!(gauge.sum(), 0);
}

#[test]
fn slots_for_a_part_of_the_cpus_are_enough() {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let builder = Counter::builder().backend(BackendKind::RseqCpu);
    let counter = builder.max_slots(1).build();
    let seen = Storm::new(5_000_000).run(|| || counter.inc());
    assert_eq!(counter.sum(), seen.adds);
    // Where the process may run on one CPU only, nothing can move.
    let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    assert!(!several || counter.overflow_hits() > 0);
}

/// A handler that adds where the code it interrupts adds too: the signal restarts the section.
#[test]
fn adds_of_signal_handlers_are_counted() {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let counter = Counter::builder().backend(BackendKind::RseqCpu).build();
    let counter: &'static Counter = Box::leak(Box::new(counter));
    let seen = Storm::new(50_000_000)
        .signals_add(counter)
        .run(|| || counter.inc());
    assert!(seen.signals > 0, "{seen:?}");
    assert_eq!(counter.sum(), seen.adds + seen.signals, "{seen:?}");
}

/// The owned backend in the same storm: a handler must say that it is one.
#[test]
fn owned_slots_hold_in_the_storm_too() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let counter = Counter::builder().backend(BackendKind::Owned).build();
    let counter: &'static Counter = Box::leak(Box::new(counter));
    let seen = Storm::new(50_000_000)
        .signals_add_safely(counter)
        .run(|| || counter.inc());
    assert!(seen.signals > 0, "{seen:?}");
    assert_eq!(counter.sum(), seen.adds + seen.signals, "{seen:?}");
}

/// The mutant: the same steps, a gap between load and store as the self-test has, and no section around them.
/// If it did not lose counts, the storm would prove nothing.
#[test]
fn without_the_section_counts_are_lost() {
    if skip() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let naked = Naked::new(cpus());
    let seen = Storm::new(1_000_000).run(|| || naked.inc());
    let lost = seen.adds - naked.sum();
    println!("without the section {lost} of {} adds were lost", seen.adds);
    assert!(lost * 4 > seen.adds, "{lost} lost, {seen:?}");
}
