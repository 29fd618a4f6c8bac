//! A fence that costs the frequent side nothing.
//!
//! On Linux `membarrier(2)` makes every running thread of the process pass a full fence, so a
//! reader needs only to keep the compiler from swapping its store and load. Elsewhere, and where
//! the kernel refuses, both sides fence.

use crate::sync::{AtomicBool, Ordering, fence};

pub(crate) struct Barrier {
    /// Whether the kernel does the readers' fencing. Set before the first reader registers, once.
    asymmetric: AtomicBool,
    asked: AtomicBool,
}

impl Barrier {
    pub(crate) const fn new() -> Self {
        Self {
            asymmetric: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        }
    }

    /// Asks the kernel; every reader has come here before it reads.
    ///
    /// Threads that come here at the same time all ask, which does no harm. None waits for another: one
    /// that a fork left behind would never be done.
    pub(crate) fn prepare(&self) {
        if !self.asked.load(Ordering::Acquire) {
            if kernel::register() {
                self.asymmetric.store(true, Ordering::Relaxed);
            }
            // Release: whoever sees that the kernel was asked sees what it said.
            self.asked.store(true, Ordering::Release);
        }
    }

    /// The reader's side, between its announcement and its reads.
    #[inline]
    pub(crate) fn light(&self) {
        if self.asymmetric.load(Ordering::Relaxed) {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The writer's side; `false` if no fence could be had.
    pub(crate) fn heavy(&self) -> bool {
        self.prepare();
        fence(Ordering::SeqCst);
        !self.asymmetric.load(Ordering::Relaxed) || kernel::fence_all_threads()
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod kernel {
    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes three integers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn fence_all_threads() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod kernel {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn fence_all_threads() -> bool {
        false
    }
}
