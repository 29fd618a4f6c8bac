//! The sequence number that tells a caller whether an answer is still good.
//!
//! The word is `2 * changes`, plus 1 while a change is being made. A cookie is the number of
//! changes *finished* when it was taken; it is current as long as no further change has *begun*.
//! So a cookie never outlives the first moment at which a reader could see the change, whichever
//! of the two words such a reader looks at first.

use crate::sync::{AtomicU64, Ordering, fence};

pub(crate) struct Seq(AtomicU64);

impl Seq {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Changes finished. Acquire: what is read afterwards is at least as new.
    #[inline]
    pub(crate) fn cookie(&self) -> u64 {
        self.0.load(Ordering::Acquire) >> 1
    }

    /// Whether no change has begun since `cookie`. The fence keeps reads of the map made before
    /// the call from moving behind it.
    pub(crate) fn is_current(&self, cookie: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == cookie << 1
    }

    /// Announces a change. Only under the writer lock.
    pub(crate) fn begin(&self) {
        let word = self.0.load(Ordering::Relaxed);
        // Release, though nothing is changed yet: whoever takes its cookie from this word must see
        // all of the changes that the cookie counts.
        self.0.store(word | 1, Ordering::Release);
        // Whoever sees the change also sees the announcement.
        fence(Ordering::Release);
    }

    /// Ends a change that happened: one more.
    pub(crate) fn commit(&self) {
        let word = self.0.load(Ordering::Relaxed);
        self.0.store((word | 1) + 1, Ordering::Release);
    }

    /// Ends a change that was refused: as before.
    pub(crate) fn abort(&self) {
        let word = self.0.load(Ordering::Relaxed);
        self.0.store(word & !1, Ordering::Release);
    }
}
