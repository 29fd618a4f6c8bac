//! What each type promises, under every backend that this machine has.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::cmp::Ordering;
use std::sync::Barrier;
use std::thread;

use cairn_percpu::{
    BackendKind, BatchError, Batched, Budget, BudgetError, Counter, CounterOps, Gauge, MAX_BATCH,
    SharedCounter, SlotLabel,
};

const KINDS: [BackendKind; 4] = [
    BackendKind::Owned,
    BackendKind::RseqCpu,
    BackendKind::RseqCid,
    BackendKind::Striped,
];
const THREADS: u64 = 8;
const ADDS: u64 = 20_000;
/// Slots for the threads of all tests that run at once.
const ENOUGH: usize = 512;

fn on_threads(work: impl Fn(u64) + Sync) {
    thread::scope(|s| {
        for t in 0..THREADS {
            let work = &work;
            s.spawn(move || work(t));
        }
    });
}

#[test]
fn a_counter_is_exact_after_join() {
    for kind in KINDS {
        let counter = Counter::builder().backend(kind).build();
        on_threads(|t| {
            for _ in 0..ADDS {
                counter.inc();
            }
            counter.add(t);
        });
        let expected = THREADS * ADDS + THREADS * (THREADS - 1) / 2;
        assert_eq!(counter.sum(), expected, "{kind}");
        let by_slot: u64 = counter.slots().map(|slot| slot.value).sum();
        assert_eq!(by_slot, expected, "{kind}");
    }
}

#[test]
fn a_handle_is_exact_too() {
    for kind in KINDS {
        let counter = Counter::builder().backend(kind).build();
        on_threads(|_| {
            let mine = counter.handle();
            (0..ADDS).for_each(|_| mine.inc());
        });
        assert_eq!(counter.sum(), THREADS * ADDS, "{kind}");
    }
}

#[test]
fn totals_wrap_modulo_2_to_the_64() {
    for kind in KINDS {
        let counter = Counter::builder().backend(kind).build();
        counter.add(u64::MAX);
        on_threads(|_| counter.add(u64::MAX));
        counter.add(2 * THREADS);
        assert_eq!(counter.sum(), THREADS - 1, "{kind}");
    }
}

#[test]
fn fewer_slots_than_threads_or_cpus_lose_nothing() {
    for kind in KINDS {
        let counter = Counter::builder().backend(kind).max_slots(1).build();
        let batched = Batched::builder().backend(kind).max_slots(1).build();
        let barrier = Barrier::new(8);
        on_threads(|_| {
            counter.inc();
            barrier.wait();
            for _ in 1..ADDS {
                counter.inc();
                batched.add(1);
            }
            batched.add(1);
        });
        assert_eq!(counter.sum(), THREADS * ADDS, "{kind}");
        assert_eq!(batched.sum().unsigned_abs(), THREADS * ADDS, "{kind}");
        if counter.backend().kind() == BackendKind::Owned {
            assert!(counter.overflow_hits() > 0, "{kind}");
        }
    }
}

#[test]
fn a_gauge_is_never_seen_below_zero() {
    for kind in KINDS {
        let gauge = Gauge::builder().backend(kind).build();
        on_threads(|t| {
            for _ in 0..ADDS {
                if t == 0 {
                    assert!(gauge.sum() >= 0, "{kind}");
                } else {
                    gauge.add(3);
                    gauge.sub(3);
                }
            }
        });
        assert_eq!(gauge.sum(), 0, "{kind}");
        gauge.inc();
        thread::scope(|s| s.spawn(|| gauge.dec()).join()).unwrap();
        assert_eq!(gauge.sum(), 0, "{kind}");
        assert_eq!(gauge.slots().map(|slot| slot.value).sum::<i64>(), 0);
    }
}

#[test]
fn a_batched_counter_reads_within_its_bound() {
    for kind in KINDS {
        let counter = Batched::builder()
            .backend(kind)
            .writers(10)
            .batch(32)
            .unwrap()
            .build();
        on_threads(|t| {
            for i in 0..ADDS {
                let n = i64::try_from(i % 41).unwrap() - 10;
                counter.add(if t % 2 == 0 { n } else { -n });
                let (low, high) = counter.read_bounds();
                assert!(low <= high);
            }
        });
        assert_eq!(counter.sum(), 0, "{kind}");
        let off = counter.read().unsigned_abs();
        assert!(
            off <= counter.bound(),
            "{kind}: {off} > {}",
            counter.bound()
        );
        let (low, high) = counter.read_bounds();
        assert!(low <= 0 && 0 <= high);
        let pending: i64 = counter.slots().map(|slot| slot.pending).sum();
        assert_eq!(counter.sum() - counter.read(), pending, "{kind}");
    }
}

#[test]
fn compare_agrees_with_the_exact_sum() {
    for kind in KINDS {
        let counter = Batched::builder().backend(kind).build();
        counter.add(31);
        for _ in 0..1000 {
            counter.inc();
        }
        for rhs in [i64::MIN, -1, 0, 1030, 1031, 1032, 1_000_000, i64::MAX] {
            assert_eq!(counter.compare(rhs), 1031.cmp(&rhs), "{kind} {rhs}");
        }
        let far = Batched::builder().backend(kind).build();
        far.add(i64::MIN);
        assert_eq!(far.compare(i64::MAX), Ordering::Less);
        assert_eq!(far.compare(i64::MIN), Ordering::Equal);
    }
}

#[test]
fn sync_and_settle_publish() {
    let mut counter = Batched::builder()
        .backend(BackendKind::Owned)
        .slots(ENOUGH)
        .batch(1000)
        .unwrap()
        .build();
    counter.add(5);
    assert_eq!((counter.read(), counter.sum()), (0, 5));
    counter.sync();
    assert_eq!((counter.read(), counter.sum()), (5, 5));
    thread::scope(|s| s.spawn(|| counter.add(7)).join()).unwrap();
    assert_eq!((counter.read(), counter.sum()), (5, 12));
    counter.settle();
    assert_eq!((counter.read(), counter.sum()), (12, 12));
    assert_eq!(counter.drain(), 12);
    assert_eq!((counter.read(), counter.sum()), (0, 0));
}

#[test]
fn the_bound_follows_a_live_change_of_the_batch() {
    for kind in KINDS {
        let mut counter = Batched::builder()
            .backend(kind)
            .batch(1000)
            .unwrap()
            .build();
        let off = |counter: &Batched| (counter.sum() - counter.read()).unsigned_abs();
        let (lowered, seen) = (Barrier::new(9), Barrier::new(9));
        let before = thread::scope(|s| {
            // The same threads before and after: new ones may get slots that were not used yet.
            for _ in 0..THREADS {
                s.spawn(|| {
                    (0..900).for_each(|_| counter.inc());
                    lowered.wait();
                    seen.wait();
                    (0..900).for_each(|_| counter.inc());
                });
            }
            lowered.wait();
            counter.set_batch(4).unwrap();
            let (off, bound) = (off(&counter), counter.bound());
            seen.wait();
            assert!(off <= bound, "{kind}: {off} > {bound}");
            bound
        });
        assert_eq!(counter.batch(), 4);
        // Every slot that is used again folds, and the bound comes down with it, never up. All owned ones were; those
        // that other tests have put to use meanwhile hold no more than the batch allows.
        let most = match counter.backend().kind() {
            BackendKind::Owned => 3 * counter.slots().count() as u64,
            _ => before,
        };
        let after = counter.bound();
        assert!(after <= most, "{kind}: {after}, {before} before");
        assert!(off(&counter) <= counter.bound(), "{kind}");
        counter.set_batch(64).unwrap();
        assert!(off(&counter) <= counter.bound(), "{kind}");
        counter.settle();
        assert_eq!((off(&counter), counter.bound() % 63), (0, 0), "{kind}");
    }
}

#[test]
fn a_lowered_batch_counts_what_is_left_until_it_is_folded() {
    let counter = Batched::builder()
        .backend(BackendKind::Owned)
        .slots(ENOUGH)
        .batch(1000)
        .unwrap()
        .build();
    (0..900).for_each(|_| counter.inc());
    counter.set_batch(2).unwrap();
    let held_back = counter.bound();
    assert!(held_back >= 900, "{held_back}");
    counter.inc();
    assert_eq!(counter.read(), 901);
    // One for each slot, of which other tests may have put some to use meanwhile.
    let left = counter.bound();
    assert!(left <= counter.slots().count() as u64, "{left}");
    assert!(left < held_back, "{left} >= {held_back}");
}

#[test]
fn bad_batches_and_budgets_are_refused_with_what_would_be_right() {
    let counter = Batched::new();
    assert_eq!(counter.set_batch(0), Err(BatchError::Zero));
    assert_eq!(
        counter.set_batch(u32::MAX).unwrap_err().to_string(),
        "batch 4294967295 is too large: it must be 1 to 1073741824"
    );
    assert_eq!(Batched::builder().batch(0).unwrap_err(), BatchError::Zero);
    assert_eq!(
        BatchError::Zero.to_string(),
        "batch 0 is no batch: it must be 1 to 1073741824"
    );
    assert!(counter.set_batch(MAX_BATCH).is_ok());
    assert_eq!(
        Budget::new(-1_i64).unwrap_err(),
        BudgetError::Negative { limit: -1 }
    );
    assert_eq!(
        Budget::new(1_u64 << 63).unwrap_err().to_string(),
        "a budget of 9223372036854775808 is too large: it must be 0 to 9223372036854775807"
    );
    assert!(Budget::new(i64::MAX).is_ok());
}

#[test]
fn a_budget_is_never_overdrawn_and_refuses_exactly() {
    for kind in KINDS {
        let budget = Budget::with_slots_of(10_000_u32, Counter::builder().backend(kind)).unwrap();
        let taken = Counter::new();
        on_threads(|_| {
            for _ in 0..ADDS {
                if budget.try_take(3) {
                    taken.add(3);
                }
            }
        });
        assert_eq!(taken.sum(), 9_999, "{kind}");
        assert_eq!(budget.available(), 1, "{kind}");
        assert!(!budget.try_take(2));
        assert!(budget.try_take(1));
        budget.give(10_000);
        assert_eq!((budget.used(), budget.available()), (0, 10_000));
        on_threads(|_| {
            for i in 0..ADDS {
                let n = i % 50;
                if budget.try_take(n) {
                    budget.give(n);
                }
            }
        });
        assert_eq!(budget.available(), 10_000, "{kind}");
        assert!(budget.try_take(10_000), "{kind}");
        assert!(!budget.try_take(1), "{kind}");
        assert!(budget.try_take(0), "{kind}");
    }
}

#[test]
fn rows_are_labelled_as_they_are() {
    let owned = Counter::builder().backend(BackendKind::Owned).build();
    owned.inc();
    let labels: Vec<_> = owned.slots().map(|slot| slot.label).collect();
    assert_eq!(labels.first(), Some(&SlotLabel::Thread(0)));
    assert_eq!(labels.last(), Some(&SlotLabel::Overflow(0)));
    assert_eq!(labels.first().unwrap().to_string(), "thread 0");
    let cpu = Counter::builder().backend(BackendKind::RseqCpu).build();
    cpu.inc();
    if cpu.backend().kind() == BackendKind::RseqCpu {
        assert_eq!(cpu.slots().next().unwrap().label.to_string(), "cpu 0");
    }
}

#[test]
fn the_shared_arm_is_one_word_behind_the_same_trait() {
    fn twice(counter: &impl CounterOps) -> u64 {
        counter.inc();
        counter.add(1);
        counter.sum()
    }
    let shared = SharedCounter::new();
    assert_eq!(size_of_val(&shared), 8);
    assert_eq!(twice(&shared), 2);
    assert_eq!(twice(&Counter::new()), 2);
    assert_eq!(twice(&Batched::new()), 2);
    shared.add_i64(-5);
    assert_eq!(shared.sum_i64(), -3);
}

#[test]
fn a_cold_counter_gets_slots_when_a_second_thread_comes() {
    let counter = Counter::cold();
    counter.add(5);
    counter.inc();
    assert_eq!(counter.memory(), size_of::<Counter>());
    on_threads(|_| (0..ADDS).for_each(|_| counter.inc()));
    assert!(counter.memory() > size_of::<Counter>());
    assert_eq!(counter.sum(), 6 + THREADS * ADDS);
    let by_slot: u64 = counter.slots().map(|slot| slot.value).sum();
    assert_eq!(by_slot, counter.sum());
}

#[test]
fn drained_and_reset_counters_start_at_zero() {
    let mut counter = Counter::new();
    counter.add_signal_safe(2);
    counter.add(3);
    counter.add_signal_safe(4);
    assert_eq!(counter.drain(), 9);
    assert_eq!(counter.sum(), 0);
    counter.add(1);
    counter.reset_after_fork();
    assert_eq!(counter.sum(), 0);
    let mut gauge = Gauge::new();
    gauge.add_signal_safe(2);
    gauge.sub_signal_safe(1);
    gauge.add(3);
    gauge.sub_signal_safe(1);
    assert_eq!(gauge.slots().map(|slot| slot.value).sum::<i64>(), 3);
    assert_eq!(gauge.drain(), 3);
    assert_eq!(gauge.sum(), 0);
    let batched = Batched::new();
    batched.add_signal_safe(2);
    assert_eq!((batched.read(), batched.sum()), (2, 2));
    batched.add_signal_safe(3);
    batched.add(1);
    batched.add_signal_safe(4);
    assert_eq!(batched.sum(), 10);
}
