//! Threads come, go, are more than there are slots, and count while they are being torn down.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::cell::{Cell, RefCell};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use cairn_percpu::{BackendKind, Batched, Counter, Handle, counter_group};

/// For tests with hundreds of threads, and those that would run out of slots beside them: one at a time.
fn crowd() -> MutexGuard<'static, ()> {
    static CROWD: Mutex<()> = Mutex::new(());
    CROWD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn owned() -> Counter {
    Counter::builder().backend(BackendKind::Owned).build()
}

#[test]
fn totals_outlive_their_threads() {
    let counter = owned();
    for _ in 0..500 {
        thread::scope(|s| {
            s.spawn(|| counter.inc());
            s.spawn(|| counter.inc());
        });
    }
    assert_eq!(counter.sum(), 1000);
}

#[test]
fn ids_are_used_again_so_few_slots_serve_many_short_threads() {
    let _alone = crowd();
    let counter = Counter::builder()
        .backend(BackendKind::Owned)
        .slots(256)
        .build();
    for _ in 0..2000 {
        thread::scope(|s| s.spawn(|| counter.inc()).join()).unwrap();
    }
    assert_eq!((counter.sum(), counter.overflow_hits()), (2000, 0));
    let used = counter.slots().filter(|slot| slot.value > 0).count();
    assert!(used < 256, "{used} slots for threads that came one by one");
}

#[test]
fn more_threads_than_slots_share_the_overflow() {
    const THREADS: usize = 100;
    let _alone = crowd();
    // As many as a small machine has without being told.
    let counter = Counter::builder()
        .backend(BackendKind::Owned)
        .max_slots(16)
        .build();
    let batched = Batched::builder().backend(BackendKind::Owned).build();
    let all_here = Barrier::new(THREADS);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                counter.inc();
                batched.add(1);
                all_here.wait();
                for _ in 0..1000 {
                    counter.inc();
                    batched.add(-1);
                }
            });
        }
    });
    assert_eq!(counter.sum(), 100 * 1001);
    assert_eq!(batched.sum(), 100 - 100 * 1000);
    assert!((batched.sum() - batched.read()).unsigned_abs() <= batched.bound());
    assert!(counter.overflow_hits() > 0);
}

static LATE: Counter = Counter::new();
static LATE_BATCHED: Batched = Batched::new();

/// Counts when the thread's locals are destroyed, before and after those of the counters.
struct AtTheEnd(Cell<u64>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        LATE.add(self.0.get());
        LATE_BATCHED.add(1);
    }
}

thread_local! {
    static FIRST: AtTheEnd = const { AtTheEnd(Cell::new(0)) };
    static LAST: AtTheEnd = const { AtTheEnd(Cell::new(0)) };
}

#[test]
fn adds_of_destructors_of_thread_locals_are_counted() {
    for round in 0..200 {
        thread::spawn(move || {
            if round % 2 == 0 {
                FIRST.with(|at_end| at_end.0.set(1));
            }
            if round % 3 > 0 {
                LATE.add(10);
            }
            LAST.with(|at_end| at_end.0.set(100));
        })
        .join()
        .unwrap();
    }
    let added = (0..200_u64).filter(|round| round % 3 > 0).count() as u64;
    assert_eq!(LATE.sum(), 100 + 10 * added + 100 * 200);
    assert_eq!(LATE_BATCHED.sum(), 300);
}

static HANDLED: Counter = Counter::new();

thread_local! {
    /// A handle that outlives the thread's claim on its id.
    static KEPT: RefCell<Option<Handle<'static, 1, 1>>> = const { RefCell::new(None) };
    static ADDS_LATE: AddsLate = const { AddsLate };
}

struct AddsLate;

impl Drop for AddsLate {
    fn drop(&mut self) {
        // If the slot had gone to another thread by now, this would take an add from it, or it one from us.
        for _ in 0..1000 {
            HANDLED.inc();
        }
        let _ = KEPT.try_with(|kept| {
            let kept = kept.borrow();
            if let Some(handle) = kept.as_ref() {
                (0..1000).for_each(|_| handle.inc());
            }
        });
    }
}

#[test]
fn a_handle_keeps_its_slot_to_the_end() {
    const THREADS: u64 = 400;
    let _alone = crowd();
    // Whichever order the locals are destroyed in: of 1000 adds by handle all or, if it is gone, none. Joined by their
    // handles, since the end of a scope does not wait for the destructors of thread locals.
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            thread::spawn(move || {
                if i % 2 == 0 {
                    ADDS_LATE.with(|_| ());
                    KEPT.with(|kept| *kept.borrow_mut() = Some(HANDLED.handle()));
                } else {
                    KEPT.with(|kept| *kept.borrow_mut() = Some(HANDLED.handle()));
                    ADDS_LATE.with(|_| ());
                }
                KEPT.with(|kept| kept.borrow().as_ref().unwrap().inc());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let rest = HANDLED.sum() - THREADS * 1001;
    assert_eq!(rest % 1000, 0, "{rest}");
}

counter_group! {
    /// As many words as two line pairs hold, and one more.
    struct Wide {
        batched a, batched b, batched c, batched d, batched e, batched f, batched g, batched h,
        i, j, k, l, m, n, o, p, q,
    }
}

#[test]
fn a_wide_group_keeps_its_fields_apart() {
    for kind in [
        BackendKind::Owned,
        BackendKind::RseqCpu,
        BackendKind::Striped,
    ] {
        let mut group: Wide = Wide::builder().backend(kind).batch(7).unwrap().build();
        thread::scope(|s| {
            for _ in 0..6 {
                s.spawn(|| {
                    for _ in 0..1000 {
                        group.a().add(1);
                        group.h().add(-8);
                        group.i().inc();
                        group.q().add(17);
                    }
                });
            }
        });
        let sums = group.snapshot();
        let expected = WideSnapshot {
            a: 6000,
            h: -48_000,
            i: 6000,
            q: 102_000,
            ..WideSnapshot::default()
        };
        assert_eq!(sums, expected, "{kind}");
        assert_eq!(sums.named()[16], ("q", 102_000));
        assert_eq!(sums.since(&expected), WideSnapshot::default());
        let by_slot: i64 = group.a().slots().map(|slot| slot.value).sum();
        assert_eq!(by_slot, 6000);
        assert_eq!(group.drain(), expected);
        assert_eq!(group.snapshot(), WideSnapshot::default());
    }
}

counter_group! {
    struct Sixteen { a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p }
}

#[test]
fn sixteen_counters_take_a_line_pair_per_slot() {
    let group: Sixteen = Sixteen::builder()
        .backend(BackendKind::Owned)
        .max_slots(16)
        .build();
    group.p().inc();
    // 16 slots and an overflow slot of 128 bytes, and what leads to them.
    let memory = group.memory();
    assert!((17 * 128..17 * 128 + 400).contains(&memory), "{memory}");
    assert_eq!(group.snapshot().p, 1);
}
