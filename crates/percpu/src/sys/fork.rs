//! Asks to be told in the child of a fork.
//!
//! Ids of threads that did not come along would stay taken for ever. Only the surviving thread knows its own
//! id, and the handler of `pthread_atfork` runs in just that thread, before anything else of the child.
//! A child made without it (a raw `clone`) loses those ids and nothing else.

#[cfg(all(unix, not(miri)))]
mod unix {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::thread;

    type Handler = Option<extern "C" fn()>;

    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    static WATCHED: AtomicBool = AtomicBool::new(false);

    extern "C" fn child() {
        thread::after_fork_in_child();
    }

    /// Registers the handler once per process. It may fail for want of memory: then ids may be lost in a
    /// child, as the module says.
    pub(crate) fn watch() {
        if WATCHED.load(Ordering::Relaxed) || WATCHED.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: the handler is a function of this program that takes no lock, allocates nothing and does
        // not unwind: it reads thread-locals without destructors and changes atomics.
        unsafe { pthread_atfork(None, None, Some(child)) };
    }
}

#[cfg(all(unix, not(miri)))]
pub(crate) use unix::watch;

/// No fork here.
#[cfg(not(all(unix, not(miri))))]
pub(crate) fn watch() {}
