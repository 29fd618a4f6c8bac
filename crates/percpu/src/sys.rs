//! What needs the system beneath: restartable sequences, and a word from fork.
#![allow(
    unsafe_code,
    reason = "inline assembly of the sections, and calls into the C library"
)]

pub(crate) mod fork;
pub(crate) mod hint;

#[cfg(all(
    feature = "rseq",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri),
    not(loom)
))]
pub(crate) mod rseq;

/// Stands in where the sections cannot be built: never available.
#[cfg(not(all(
    feature = "rseq",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri),
    not(loom)
)))]
#[path = "sys/no_rseq.rs"]
pub(crate) mod rseq;
