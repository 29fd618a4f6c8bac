//! One buffer: a state word, and the bytes of a block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cairn_flags::{NoProbe, Probe};

use crate::state::AtomicBhState;

/// On lines of its own (a pair, since the prefetcher of x86 fetches two).
#[repr(align(128))]
#[derive(Debug)]
struct Alone<T>(T);

/// A buffer head.
///
/// Three things lie on lines of their own, since they are used differently: the state word, which all
/// who touch the buffer may write; what is read only; and the lock of the data with the data.
#[derive(Debug)]
pub struct Head<P: Probe = NoProbe> {
    state: Alone<AtomicBhState<P>>,
    fixed: Alone<Fixed>,
    data: Alone<RwLock<Vec<u8>>>,
}

#[derive(Debug)]
struct Fixed {
    block: u64,
    /// Looked up since the clock hand last came by.
    touched: AtomicBool,
    /// No longer in the index; whoever still holds it must look the block up again.
    detached: AtomicBool,
}

impl<P: Probe> Head<P> {
    pub(crate) fn new(block: u64) -> Self {
        Self {
            state: Alone(AtomicBhState::probed()),
            fixed: Alone(Fixed {
                block,
                touched: AtomicBool::new(false),
                detached: AtomicBool::new(false),
            }),
            data: Alone(RwLock::new(Vec::new())),
        }
    }

    /// Number of its block.
    #[inline]
    pub const fn block(&self) -> u64 {
        self.fixed.0.block
    }

    /// Its state word.
    #[inline]
    pub const fn state(&self) -> &AtomicBhState<P> {
        &self.state.0
    }

    #[inline]
    pub(crate) fn touch(&self) {
        // Looked at first: a buffer that all threads touch must not have its line passed around.
        if !self.fixed.0.touched.load(Ordering::Relaxed) {
            self.fixed.0.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was touched since the last call.
    pub(crate) fn take_touched(&self) -> bool {
        let touched = self.fixed.0.touched.load(Ordering::Relaxed);
        if touched {
            self.fixed.0.touched.store(false, Ordering::Relaxed);
        }
        touched
    }

    /// Decided under the data lock, so who holds that lock and finds it false may go on.
    #[inline]
    pub(crate) fn detached(&self) -> bool {
        self.fixed.0.detached.load(Ordering::Acquire)
    }

    /// The caller holds the data lock for writing.
    pub(crate) fn detach(&self) {
        self.fixed.0.detached.store(true, Ordering::Release);
    }

    // A closure that panics in the middle of a change leaves bytes that are its own business; the
    // lock itself guards no invariant.

    pub(crate) fn data(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.data.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn data_mut(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.data.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_data(&self) -> Option<RwLockReadGuard<'_, Vec<u8>>> {
        match self.data.0.try_read() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn try_data_mut(&self) -> Option<RwLockWriteGuard<'_, Vec<u8>>> {
        match self.data.0.try_write() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}
