//! The extent map beside the interval maps and concurrent maps one would pick instead.
//!
//! `cargo bench -p cairn-rivals --bench extents`
//!
//! All arms run with transparent huge pages, also the rivals' memory: the bench starts itself
//! again with glibc's malloc told so. `CAIRN_BENCH_HUGE=0` runs all without.

#![allow(
    missing_docs,
    unsafe_code,
    reason = "a bench: nothing is exported, and a counting allocator cannot be written without"
)]

mod contenders;
mod groups;
mod memory;
mod workload;

use std::process::ExitCode;

use cairn_rivals::Bench;

fn main() -> ExitCode {
    let huge_pages = memory::with_huge_pages();
    Bench::main("extents", |bench| {
        memory::report(huge_pages, bench.options());
        groups::fill(bench, huge_pages);
    })
}
