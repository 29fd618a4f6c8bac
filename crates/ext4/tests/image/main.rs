//! Whole images: what the layer writes, judged by e2fsck, by the kernel, and by a recomputation of every
//! checksum that shares nothing with the layer.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "tests say what went wrong by panicking; offsets are those of the format"
)]

mod corrupt;
mod counts;
mod damage;
mod data;
mod faults;
mod kernel;
mod names;
mod read;
mod sums;
mod support;
mod threads;
