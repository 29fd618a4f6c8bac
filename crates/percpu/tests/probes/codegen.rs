//! Functions whose machine code is looked at.

use cairn_percpu::{Batched, Counter, Gauge, Handle};

#[unsafe(no_mangle)]
pub fn probe_handle_inc(handle: &Handle<'static, 1, 1>) {
    handle.inc();
}

#[unsafe(no_mangle)]
pub fn probe_inc(counter: &Counter) {
    counter.inc();
}

#[unsafe(no_mangle)]
pub fn probe_add(counter: &Counter, n: u64) {
    counter.add(n);
}

#[unsafe(no_mangle)]
pub fn probe_gauge_dec(gauge: &Gauge) {
    gauge.dec();
}

#[unsafe(no_mangle)]
pub fn probe_batched(counter: &Batched, n: i64) {
    counter.add(n);
}

#[unsafe(no_mangle)]
pub fn probe_sync(counter: &Batched) {
    counter.sync();
}
