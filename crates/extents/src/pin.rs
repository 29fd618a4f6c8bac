//! The calling thread's announcement that it reads.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use crate::reclaim::{Domain, Slot};

pub(crate) static DOMAIN: Domain = Domain::new();

thread_local! {
    /// The thread's slot, null before the first use and after the thread's end.
    static MINE: Cell<*const Slot> = const { Cell::new(ptr::null()) };
    /// Gives the slot back at the thread's end.
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

struct Lease(&'static Slot);

impl Drop for Lease {
    fn drop(&mut self) {
        MINE.set(ptr::null());
        self.0.unregister();
    }
}

/// While it lives, nothing that the thread can reach in any map is freed.
pub(crate) struct Pin {
    slot: &'static Slot,
    how: How,
    /// The slot belongs to the thread.
    not_send: PhantomData<*const ()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The outermost pin of the thread takes the announcement back.
    Outermost,
    Nested,
    /// The thread is ending and has no slot; this pin has one of its own.
    Alone,
}

/// Announces that the thread reads.
#[inline]
pub(crate) fn pin() -> Pin {
    let mine = MINE.get();
    // SAFETY: null, or a leaked slot of this thread.
    match unsafe { mine.as_ref() } {
        Some(slot) => enter(slot, How::Outermost),
        None => first(),
    }
}

#[inline]
fn enter(slot: &'static Slot, how: How) -> Pin {
    let outermost = slot.enter(&DOMAIN);
    Pin {
        slot,
        how: if outermost { how } else { How::Nested },
        not_send: PhantomData,
    }
}

#[cold]
#[inline(never)]
fn first() -> Pin {
    let slot = DOMAIN.register();
    // The lease cannot be kept while the thread's storage is being destroyed.
    match LEASE.try_with(|lease| lease.set(Some(Lease(slot)))) {
        Ok(()) => {
            MINE.set(slot);
            enter(slot, How::Outermost)
        }
        Err(_) => enter(slot, How::Alone),
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        match self.how {
            How::Outermost => self.slot.leave(),
            How::Nested => {}
            How::Alone => self.slot.unregister(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_the_epoch_back_until_the_outermost_is_dropped() {
        let outer = pin();
        let before = DOMAIN.advance();
        {
            let _inner = pin();
            assert!(DOMAIN.oldest() <= before);
        }
        assert!(
            DOMAIN.oldest() <= before,
            "the inner pin must not end the outer one"
        );
        drop(outer);
        // Other tests of this process may be pinned meanwhile.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while DOMAIN.oldest() <= before {
            assert!(std::time::Instant::now() < deadline, "the epoch is stuck");
            std::thread::yield_now();
        }
    }

    #[test]
    fn slots_are_used_again() {
        let addresses: std::collections::BTreeSet<usize> = (0..50)
            .map(|_| {
                std::thread::spawn(|| {
                    let pin = pin();
                    ptr::from_ref(pin.slot).addr()
                })
                .join()
                .expect("it only pins")
            })
            .collect();
        assert!(
            addresses.len() < 40,
            "{} slots for one thread at a time",
            addresses.len()
        );
    }
}
