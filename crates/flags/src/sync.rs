//! The atomics this crate stands on: core's, portable-atomic's, or loom's for the models.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};

#[cfg(all(not(loom), feature = "portable-atomic"))]
pub(crate) use portable_atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(all(not(loom), not(feature = "portable-atomic"), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(all(not(loom), not(feature = "portable-atomic")))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize};

/// A full barrier: `fence(SeqCst)`.
#[cfg(any(loom, miri, not(target_arch = "x86_64")))]
#[inline(always)]
pub(crate) fn full_fence() {
    #[cfg(not(loom))]
    use core::sync::atomic::fence;
    fence(core::sync::atomic::Ordering::SeqCst);
}

/// A full barrier: `fence(SeqCst)`, as the cheaper of the two instruction sequences that give one.
///
/// `fence(SeqCst)` becomes `mfence`, which also drains what only non-temporal stores need and costs
/// up to twice a locked instruction. A locked no-op on the own stack orders all ordinary loads and
/// stores just as well (Intel SDM vol. 3, 9.2.3.9, and AMD APM vol. 2, 7.1.3: locked instructions
/// order memory like `mfence`); Linux builds its `smp_mb()` on it since 450cbdd0125c (2017).
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub(crate) fn full_fence() {
    let mut pad = core::mem::MaybeUninit::<u32>::uninit();
    // SAFETY: `pad` is this call's own memory, valid for a 4-byte write; or-ing 0 leaves it as it
    // was. Without `nomem` the compiler moves no memory access across the block.
    unsafe {
        core::arch::asm!("lock or dword ptr [{}], 0", in(reg) pad.as_mut_ptr(), options(nostack));
    }
}

/// Tells the core, or the model, that this thread only waits for another.
#[inline(always)]
pub(crate) fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}
