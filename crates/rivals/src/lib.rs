#![doc = include_str!("../README.md")]
#![allow(
    unsafe_code,
    reason = "system calls to pin threads, to ask for SCHED_FIFO and to count context switches"
)]

mod args;
mod bar;
mod bench;
mod machine;
mod report;
mod stats;
mod system;
mod worker;

pub use args::Options;
pub use bar::{Bar, Bound};
pub use bench::{Bench, Group};
pub use stats::Spread;
pub use worker::Placement;

/// Repeats a statement eight times, so that the loop around it costs little.
///
/// ```
/// let mut n = 0;
/// cairn_rivals::repeat8!(n += 1);
/// assert_eq!(n, 8);
/// ```
#[macro_export]
macro_rules! repeat8 {
    ($($body:tt)*) => {
        $($body)*; $($body)*; $($body)*; $($body)*;
        $($body)*; $($body)*; $($body)*; $($body)*;
    };
}
