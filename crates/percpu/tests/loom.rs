//! The protocols under loom: every execution that the memory model allows, for a few operations.
#![cfg(loom)]
#![allow(
    dead_code,
    unreachable_pub,
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::inline_always,
    reason = "files of the crate, compiled a second time for the models, which use a part of them"
)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex};

use loom::cell::UnsafeCell;

use crate::once::OnceBox;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::view::View;

mod models;

#[path = "../src/protocol/batch.rs"]
mod batch;
#[path = "../src/protocol/credit.rs"]
mod credit;
#[path = "../src/protocol/once.rs"]
mod once;
#[path = "../src/protocol/owner.rs"]
mod owner;
#[path = "../src/protocol/registry.rs"]
mod registry;
#[path = "../src/protocol/view.rs"]
mod view;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

mod thread {
    pub(crate) use loom::thread::spawn;
}

/// The mutant must fail in some execution.
fn fails(model: impl Fn() + Sync + Send + 'static) {
    let run = catch_unwind(AssertUnwindSafe(|| loom::model(model)));
    assert!(run.is_err(), "the mutant passed every execution");
}

#[test]
fn loom_hand_over() {
    loom::model(|| models::hand_over(Ordering::Acquire, Ordering::Release));
}

#[test]
fn loom_mutants_of_hand_over() {
    fails(|| models::hand_over(Ordering::Acquire, Ordering::Relaxed));
    fails(|| models::hand_over(Ordering::Relaxed, Ordering::Release));
}

#[test]
fn loom_gauge() {
    loom::model(|| models::gauge(Ordering::Release, models::Gauge::right));
}

#[test]
fn loom_gauge_across_threads() {
    loom::model(|| models::gauge_across(Ordering::Release, models::Gauge::right));
}

#[test]
fn loom_mutants_of_gauge() {
    fails(|| models::gauge(Ordering::Relaxed, models::Gauge::right));
    fails(|| models::gauge(Ordering::Release, models::Gauge::ups_first));
    fails(|| models::gauge_across(Ordering::Release, models::Gauge::slot_by_slot));
}

#[test]
fn loom_batched() {
    loom::model(models::batched_writers);
    loom::model(models::batched_reader);
}

#[test]
fn loom_striped() {
    loom::model(models::striped_writers);
}

#[test]
fn loom_mutant_of_striped() {
    fails(models::striped_writers_with_a_relaxed_look);
}

#[test]
fn loom_mutant_of_the_fold() {
    fails(models::batched_reader_of_swapped_slots);
}

#[test]
fn loom_budget() {
    loom::model(|| models::budget(models::Budget::right));
    loom::model(models::budget_returned);
}

#[test]
fn loom_mutant_of_the_budget() {
    fails(|| models::budget(models::Budget::look_then_take));
}

/// One thread promotes a counter, the other adds where it finds it; the number behind the pointer is plain
/// memory, which loom lets no one read who has not acquired it.
fn promotion(look: Ordering) {
    struct Slots {
        built: UnsafeCell<u64>,
        word: AtomicU64,
    }
    struct Counter {
        early: AtomicU64,
        slots: OnceBox<Slots>,
    }
    // SAFETY: `built` is written before the box is shared, and then only read.
    unsafe impl Send for Slots {}
    // SAFETY: as above.
    unsafe impl Sync for Slots {}
    let counter = Arc::new(Counter {
        early: AtomicU64::new(0),
        slots: OnceBox::over(AtomicPtr::new(ptr::null_mut())),
    });
    let adder = {
        let counter = Arc::clone(&counter);
        loom::thread::spawn(move || match counter.slots.get_as(look) {
            None => _ = counter.early.fetch_add(1, Ordering::Relaxed),
            Some(slots) => {
                // SAFETY: loom checks that nobody writes.
                assert_eq!(slots.built.with(|built| unsafe { *built }), 7);
                slots.word.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let promoter = {
        let counter = Arc::clone(&counter);
        loom::thread::spawn(move || {
            let slots = counter.slots.set(Box::new(Slots {
                built: UnsafeCell::new(7),
                word: AtomicU64::new(0),
            }));
            slots.word.fetch_add(1, Ordering::Relaxed);
        })
    };
    adder.join().unwrap();
    promoter.join().unwrap();
    let slots = counter.slots.get().unwrap().word.load(Ordering::Relaxed);
    assert_eq!(counter.early.load(Ordering::Relaxed) + slots, 2);
}

#[test]
fn loom_promotion() {
    loom::model(|| promotion(Ordering::Acquire));
}

#[test]
fn loom_mutant_of_promotion() {
    fails(|| promotion(Ordering::Relaxed));
}

/// One thread shows an address, another follows it as soon as it may.
fn shown(look: Ordering) {
    struct Plain(UnsafeCell<u64>);
    // SAFETY: written before it is shared, and then only read.
    unsafe impl Sync for Plain {}
    // SAFETY: as above.
    unsafe impl Send for Plain {}
    let view = Arc::new(View::<Plain, 1>::over(
        AtomicPtr::new(ptr::null_mut()),
        AtomicUsize::new(0),
    ));
    let shower = {
        let view = Arc::clone(&view);
        loom::thread::spawn(move || {
            let plain = Box::into_raw(Box::new(Plain(UnsafeCell::new(7))));
            view.show(plain, 2);
            plain as usize
        })
    };
    let looker = {
        let view = Arc::clone(&view);
        loom::thread::spawn(move || {
            let at = view.address_as(look);
            if !at.is_null() {
                assert_eq!(view.limit(), 2, "the address was seen before the limit");
                // SAFETY: the box is freed after both threads are joined.
                let plain = unsafe { &*at };
                // SAFETY: loom checks that nobody writes.
                assert_eq!(plain.0.with(|seven| unsafe { *seven }), 7);
            }
        })
    };
    looker.join().unwrap();
    let plain = shower.join().unwrap() as *mut Plain;
    // SAFETY: from `Box::into_raw` above.
    drop(unsafe { Box::from_raw(plain) });
}

#[test]
fn loom_view() {
    loom::model(|| shown(Ordering::Acquire));
}

#[test]
fn loom_mutant_of_view() {
    fails(|| shown(Ordering::Relaxed));
}

/// The canary: loom must show exactly these pairs of sums to a reader of one writer's two adds.
#[test]
fn loom_shows_every_outcome() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = Arc::clone(&seen);
    loom::model(move || {
        let slot = Arc::new(AtomicU64::new(0));
        let writer = {
            let slot = Arc::clone(&slot);
            loom::thread::spawn(move || (0..2).for_each(|_| owner::add(&slot, 1)))
        };
        let reader = {
            let slot = Arc::clone(&slot);
            loom::thread::spawn(move || {
                let sum = || owner::sum(std::iter::once(&*slot));
                (sum(), sum())
            })
        };
        writer.join().unwrap();
        all.lock().unwrap().insert(reader.join().unwrap());
    });
    let expected = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from(expected));
}
