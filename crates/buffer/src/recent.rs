//! The buffers that a thread looked up last.
//!
//! A few buffers are looked up over and over: a file system's bitmaps, tables and directories. Finding one in the
//! index, and counting the reference, costs two writes of a line that all threads share. So each thread
//! remembers its last few buffers, as Linux does for each CPU (`bh_lru`, `fs/buffer.c`), and finds them
//! without writing anything that others read.
//!
//! What is remembered is only a guess: a buffer that was given up meanwhile says so (`detached`), and is looked
//! up in the index again. It keeps its head alive until then, but not its bytes.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cairn_flags::Probe;

use crate::head::Head;

/// Buffers that a thread remembers; Linux remembers 16 for each CPU.
const KEPT: usize = 8;

/// A buffer as a thread holds it.
pub(crate) struct Held<P: Probe> {
    pub(crate) key: usize,
    pub(crate) head: Arc<Head<P>>,
}

struct Recent {
    /// Cache and block of each; cache 0 is none.
    places: [(u64, u64); KEPT],
    held: [Option<Rc<dyn Any>>; KEPT],
    /// Which gives way next.
    next: usize,
}

thread_local! {
    static RECENT: RefCell<Recent> = const {
        RefCell::new(Recent {
            places: [(0, 0); KEPT],
            held: [const { None }; KEPT],
            next: 0,
        })
    };
}

/// The buffer of a block, if this thread remembers it and it is still good.
#[inline]
pub(crate) fn find<P: Probe>(cache: u64, block: u64) -> Option<Rc<Held<P>>> {
    let found = RECENT.try_with(|recent| {
        let recent = recent.try_borrow().ok()?;
        let at = recent
            .places
            .iter()
            .position(|place| *place == (cache, block))?;
        recent.held.get(at)?.clone()
    });
    // A thread that ends remembers nothing.
    let held = found.ok()??.downcast::<Held<P>>().ok()?;
    let good = !held.head.detached() && held.head.state().uptodate();
    good.then_some(held)
}

/// Remembers a buffer in the place of the one that was remembered first.
pub(crate) fn keep<P: Probe>(
    cache: u64,
    block: u64,
    key: usize,
    head: &Arc<Head<P>>,
) -> Rc<Held<P>> {
    let remembered = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let recent = &mut *recent;
        let known = recent.places.iter().position(|p| *p == (cache, block));
        let at = known.unwrap_or(recent.next);
        if known.is_none() {
            recent.next = (recent.next + 1) % KEPT;
        }
        let (place, slot) = (recent.places.get_mut(at)?, recent.held.get_mut(at)?);
        // The memory is used again if nobody holds what was there.
        let old = slot.take().and_then(|old| old.downcast::<Held<P>>().ok());
        let buffer = match old {
            Some(mut old) => {
                if let Some(unused) = Rc::get_mut(&mut old) {
                    unused.key = key;
                    unused.head = Arc::clone(head);
                    old
                } else {
                    fresh(key, head)
                }
            }
            None => fresh(key, head),
        };
        *place = (cache, block);
        *slot = Some(Rc::clone(&buffer) as Rc<dyn Any>);
        Some(buffer)
    });
    remembered
        .ok()
        .flatten()
        .unwrap_or_else(|| fresh(key, head))
}

fn fresh<P: Probe>(key: usize, head: &Arc<Head<P>>) -> Rc<Held<P>> {
    Rc::new(Held {
        key,
        head: Arc::clone(head),
    })
}

/// Forgets what this thread remembers of a cache. Other threads forget it as they look up others, and hold no
/// bytes until then.
pub(crate) fn forget(cache: u64) {
    let _ = RECENT.try_with(|recent| {
        let mut recent = recent.try_borrow_mut().ok()?;
        let recent = &mut *recent;
        for (place, held) in recent.places.iter_mut().zip(&mut recent.held) {
            if place.0 == cache {
                *place = (0, 0);
                *held = None;
            }
        }
        Some(())
    });
}
