//! The pin of the models: the domain and the thread's slot are made anew for each execution.

use std::cell::Cell;

use crate::reclaim::{Domain, Slot};

loom::lazy_static! {
    pub(crate) static ref DOMAIN: Domain = Domain::new();
}

loom::thread_local! {
    static MINE: Cell<Option<&'static Slot>> = Cell::new(None);
}

pub(crate) struct Pin {
    slot: &'static Slot,
    outermost: bool,
}

pub(crate) fn pin() -> Pin {
    let slot = MINE.with(|mine| {
        let slot = mine.get().unwrap_or_else(|| DOMAIN.register());
        mine.set(Some(slot));
        slot
    });
    Pin {
        slot,
        outermost: slot.enter(&DOMAIN),
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.outermost {
            self.slot.leave();
        }
    }
}
