//! Blocks of file data that were written and wait to be written back.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cairn_buffer::AtomicBhState;
use cairn_flags::Probe;

/// What the block of a page is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing yet; one block of space is claimed for it.
    Delayed,
    /// Allocated, but reads as zeros.
    Unwritten,
    /// Written.
    Written,
}

/// One block of data, with the state word of a buffer head.
pub(crate) struct Page<P: Probe> {
    pub(crate) data: Box<[u8]>,
    state: AtomicBhState<P>,
}

impl<P: Probe> Page<P> {
    /// A dirty page for a block in `place`, with the bits that a delayed write of Linux sets.
    pub(crate) fn new(data: Box<[u8]>, place: Place) -> Self {
        let state = AtomicBhState::<P>::probed();
        state.set_mapped(Ordering::Relaxed);
        match place {
            Place::Delayed => {
                state.set_fresh(Ordering::Relaxed);
                state.set_delay(Ordering::Relaxed);
            }
            Place::Unwritten => {
                state.set_fresh(Ordering::Relaxed);
                state.set_unwritten(Ordering::Relaxed);
            }
            Place::Written => {}
        }
        state.publish_uptodate();
        state.mark_dirty();
        Self { data, state }
    }

    /// Notes one more change: the bit is set already, and a look suffices.
    pub(crate) fn again(&self) {
        self.state.mark_dirty();
    }

    pub(crate) fn delayed(&self) -> bool {
        self.state.delay(Ordering::Relaxed)
    }

    /// The block has a place now.
    pub(crate) fn mapped(&self) {
        self.state.clear_delay_if_set(Ordering::Relaxed);
        self.state.clear_fresh_if_set(Ordering::Relaxed);
    }
}

/// The dirty pages of a file by logical block.
pub(crate) type Pages<P> = BTreeMap<u32, Page<P>>;
