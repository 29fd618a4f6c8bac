//! Models of every role, each with mutants that must fail.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p cairn-flags loom`
//!
//! Every actor is spawned and the main thread only spawns and joins: loom 0.7.3 misses executions
//! when the main thread takes part and a spawned thread starts with a load. The canaries assert the
//! whole set of outcomes of tiny models, so that a loom that misses executions is found out.

#![cfg(loom)]
#![allow(
    missing_docs,
    unsafe_code,
    clippy::unwrap_used,
    reason = "models: a failed join is a failed model, and the unsafe retract has one too"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::thread;

mod canary;
mod hint;
mod lock;
mod plain;
mod publish;
mod wait;
mod work;

/// Explores all executions with at most `preemptions` forced switches; `None`: all.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// The outcomes over all executions of a model.
fn outcomes<T: Ord + Send + 'static>(model: impl Fn() -> T + Sync + Send + 'static) -> BTreeSet<T> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let into = Arc::clone(&seen);
    loom::model(move || {
        let outcome = model();
        into.lock().unwrap().insert(outcome);
    });
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

/// Spawns one thread that shares `state`. The reference count is std's: loom's own would panic
/// once more, and abort, while a deadlock unwinds.
fn actor<S: Send + Sync + 'static, T: 'static>(
    state: &Arc<S>,
    run: impl FnOnce(&S) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let state = Arc::clone(state);
    thread::spawn(move || run(&state))
}
