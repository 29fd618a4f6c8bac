//! The atomics that the protocols are written against.
//!
//! The files under `protocol` name this module and nothing else of the crate, so that the model tests can
//! compile the very same files against the atomics of loom or shuttle. The crate itself always runs on
//! those of the standard library, under `cfg(loom)` too: a counter is statistics, and would make the models
//! of the crates that use it explode.

pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
