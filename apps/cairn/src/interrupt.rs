//! SIGINT and SIGTERM during a run without a screen: the run ends early, its results so far are
//! printed, and the exit code names the signal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Watches for the two signals from its making on. A second signal ends the program at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    seen: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Begins to watch.
    pub(crate) fn watch() -> io::Result<Self> {
        let interrupt = Self {
            seen: Arc::default(),
            number: Arc::default(),
        };
        for (signal, number) in [(SIGINT, 2), (SIGTERM, 15)] {
            // Acts only when the flag stands already, so it must be registered before what sets it.
            flag::register_conditional_default(signal, Arc::clone(&interrupt.seen))?;
            flag::register_usize(signal, Arc::clone(&interrupt.number), number)?;
            flag::register(signal, Arc::clone(&interrupt.seen))?;
        }
        Ok(interrupt)
    }

    /// True once a signal has come.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.seen)
    }

    /// The exit code, if a signal has come.
    pub(crate) fn code(&self) -> Option<u8> {
        // Relaxed: the number stands alone, nothing is read through it.
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => u8::try_from(128 + number).ok(),
        }
    }
}
