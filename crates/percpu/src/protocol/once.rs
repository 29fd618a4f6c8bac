//! A pointer that is set once: counters start without slots, and publish them when first used.
//!
//! `OnceLock` would do, but it makes latecomers wait for a builder at work, and a builder that a fork left
//! behind never ends. Here each builds its own, one exchange decides, and the loser drops what it built.
//!
//! *Ordering*: the exchange releases what was built, and each look acquires it. Relaxed, a thread could see
//! the pointer before the slots behind it.
#![allow(
    unsafe_code,
    reason = "a pointer to the heap that is set once and read without a lock"
)]

use std::marker::PhantomData;
use std::ptr;

use crate::sync::{AtomicPtr, Ordering};

/// Empty, then one box for as long as this lives.
pub(crate) struct OnceBox<T> {
    /// Null, or from `Box::into_raw`; changes once, from the first to the second.
    at: AtomicPtr<T>,
    /// A box of `T`, for the drop checker and for `Send` and `Sync`.
    owns: PhantomData<Option<Box<T>>>,
}

impl<T: Send + Sync> OnceBox<T> {
    /// An empty one over a null pointer, which comes from the caller since not every kind of atomic can be
    /// made in a constant.
    pub(crate) const fn over(null: AtomicPtr<T>) -> Self {
        Self {
            at: null,
            owns: PhantomData,
        }
    }

    /// What was set, if anything was.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.get_as(Ordering::Acquire)
    }

    /// [`get`](Self::get) with the ordering that takes over what was built.
    #[inline]
    pub(crate) fn get_as(&self, look: Ordering) -> Option<&T> {
        let at = self.at.load(look);
        // SAFETY: `at` is null or came from `Box::into_raw` in `set`, which published it with release; the
        // box is freed only in `drop`, which has `&mut self`, so it outlives this borrow.
        unsafe { at.as_ref() }
    }

    /// Sets `built` unless another was faster, and gives what is set.
    pub(crate) fn set(&self, built: Box<T>) -> &T {
        let mine = Box::into_raw(built);
        let set =
            self.at
                .compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Acquire);
        let at = match set {
            Ok(_) => mine,
            Err(theirs) => {
                // SAFETY: `mine` came from `Box::into_raw` above and was not published.
                drop(unsafe { Box::from_raw(mine) });
                theirs
            }
        };
        // SAFETY: as in `get_as`; the failed exchange acquired the other's box.
        unsafe { &*at }
    }

    /// What was set, else what `build` makes. Whoever comes at the same time builds as well, and all of them
    /// get the first that was set.
    pub(crate) fn get_or_build(&self, build: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(set) => set,
            None => self.set(Box::new(build())),
        }
    }

    /// What was set, for the only user.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let at = self.at.load(Ordering::Acquire);
        // SAFETY: as in `get_as`, and `&mut self` shows that nobody else borrows it.
        unsafe { at.as_mut() }
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        let at = self.at.load(Ordering::Acquire);
        if !at.is_null() {
            // SAFETY: it came from `Box::into_raw` in `set`, and `&mut self` shows that no borrow is left.
            drop(unsafe { Box::from_raw(at) });
        }
    }
}
