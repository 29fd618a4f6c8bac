//! The barrier of the models: loom knows no membarrier, so both sides fence; or, as a mutant that
//! must be found out, neither does.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::fence;

/// Leaves the readers' fence out. Not loom's: it is set before a model runs.
pub(crate) static NO_FENCE: AtomicBool = AtomicBool::new(false);

pub(crate) struct Barrier;

impl Barrier {
    pub(crate) const fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the face of the real one")]
    pub(crate) fn prepare(&self) {}

    #[expect(clippy::unused_self, reason = "the face of the real one")]
    pub(crate) fn light(&self) {
        if !NO_FENCE.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
        }
    }

    #[expect(clippy::unused_self, reason = "the face of the real one")]
    pub(crate) fn heavy(&self) -> bool {
        fence(Ordering::SeqCst);
        true
    }
}
