//! The atomics this crate stands on: core's, portable-atomic's, or loom's for the models.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::fence;

#[cfg(all(not(loom), feature = "portable-atomic"))]
pub(crate) use portable_atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(all(not(loom), not(feature = "portable-atomic"), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(all(not(loom), not(feature = "portable-atomic")))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};

/// Tells the core, or the model, that this thread only waits for another.
#[inline(always)]
pub(crate) fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}
