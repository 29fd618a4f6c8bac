//! Atomics and locks by one name: the standard library's, or loom's in its models.
//!
//! `Arc` is the standard library's in both: what it counts is not what the models are about.

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence,
    };
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::yield_now;
}

#[cfg(loom)]
mod imp {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence,
    };
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;
}

pub(crate) use imp::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence, yield_now,
};
pub(crate) use std::sync::{Arc, Weak};

use std::sync::{PoisonError, TryLockError};

/// The lock, whether or not a holder panicked: what it guards is changed in steps that are each
/// complete.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
