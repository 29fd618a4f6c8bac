//! An add, and a sum, beside one atomic. The bars and the other crates are in `crates/rivals`.
#![allow(
    missing_docs,
    reason = "criterion's macros make the functions of a bench"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_percpu::{BackendKind, Batched, Counter};
use criterion::{Criterion, criterion_group, criterion_main};

fn adds(c: &mut Criterion) {
    let mut group = c.benchmark_group("add");
    let atomic = AtomicU64::new(0);
    group.bench_function("AtomicU64", |b| {
        b.iter(|| black_box(&atomic).fetch_add(1, Ordering::Relaxed));
    });
    for kind in [
        BackendKind::Owned,
        BackendKind::RseqCpu,
        BackendKind::Striped,
    ] {
        let counter = Counter::builder().backend(kind).build();
        group.bench_function(format!("Counter, {kind}"), |b| {
            b.iter(|| black_box(&counter).inc());
        });
        let batched = Batched::builder().backend(kind).build();
        group.bench_function(format!("Batched, {kind}"), |b| {
            b.iter(|| black_box(&batched).inc());
        });
    }
    group.finish();
}

fn reads(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    let atomic = AtomicU64::new(0);
    group.bench_function("AtomicU64", |b| {
        b.iter(|| black_box(&atomic).load(Ordering::Relaxed));
    });
    let counter = Counter::builder().backend(BackendKind::Owned).build();
    group.bench_function("Counter::sum", |b| b.iter(|| black_box(&counter).sum()));
    let batched = Batched::builder().backend(BackendKind::Owned).build();
    group.bench_function("Batched::read", |b| b.iter(|| black_box(&batched).read()));
    group.bench_function("Batched::sum", |b| b.iter(|| black_box(&batched).sum()));
    group.finish();
}

criterion_group!(benches, adds, reads);
criterion_main!(benches);
