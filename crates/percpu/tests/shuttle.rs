//! The protocols under shuttle: many random schedules, and those with few preemptions at bad places.
//!
//! Shuttle runs sequentially consistent executions only, so the mutants here are those of structure; the mutants
//! of memory order are loom's.
#![cfg(not(loom))]
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::inline_always,
    reason = "files of the crate, compiled a second time for the models, which use a part of them"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::Ordering;

mod models;

#[path = "../src/protocol/batch.rs"]
mod batch;
#[path = "../src/protocol/credit.rs"]
mod credit;
#[path = "../src/protocol/owner.rs"]
mod owner;
#[path = "../src/protocol/registry.rs"]
mod registry;

mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

mod thread {
    pub(crate) use shuttle::thread::spawn;
}

/// Schedules per model and scheduler.
const SCHEDULES: usize = 2_000;
/// Preemptions of the second scheduler.
const DEPTH: usize = 3;

fn holds(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, DEPTH);
}

fn fails(model: impl Fn() + Send + Sync + 'static) {
    let run = catch_unwind(AssertUnwindSafe(|| {
        shuttle::check_random(model, SCHEDULES);
    }));
    assert!(run.is_err(), "the mutant passed every schedule");
}

#[test]
fn hand_over() {
    holds(|| models::hand_over(Ordering::Acquire, Ordering::Release));
}

#[test]
fn gauge() {
    holds(|| models::gauge(Ordering::Release, models::Gauge::right));
    holds(|| models::gauge_across(Ordering::Release, models::Gauge::right));
    fails(|| models::gauge(Ordering::Release, models::Gauge::ups_first));
    fails(|| models::gauge_across(Ordering::Release, models::Gauge::slot_by_slot));
}

#[test]
fn batched() {
    holds(models::batched_writers);
    holds(models::batched_reader);
    holds(models::striped_writers);
    fails(models::batched_reader_of_swapped_slots);
}

#[test]
fn budget() {
    holds(|| models::budget(models::Budget::right));
    holds(models::budget_returned);
    fails(|| models::budget(models::Budget::look_then_take));
}

/// The right reader of the model of many writers: exactness at rest with more threads than loom can bear.
#[test]
fn many_writers() {
    holds(|| {
        let state = models::Batch::new();
        let threads: Vec<_> = (0..6)
            .map(|i| {
                let state = std::sync::Arc::clone(&state);
                shuttle::thread::spawn(move || {
                    for n in 0..4 {
                        state.add_to_stripe(if i % 2 == 0 { 1 } else { -1 });
                        state.add_past_or_stripe(n);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        state.check_at_rest(36);
    });
}
