//! What the protocol of `stripes` is made of, in one place so that a model can put its own here.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use cairn_block::asymmetric;

/// Passes a moment: first the processor's, then also the scheduler's, for who is waited for may have lost
/// its processor.
pub(crate) fn wait_a_little(tries: u32) {
    if tries < 128 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
