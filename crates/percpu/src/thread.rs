//! Which slots the calling thread owns: one process-wide id per living thread.
//!
//! The id is a constant-initialised thread-local without a destructor, so reading it is one load and stays
//! possible to the last instruction of the thread. A second thread-local with a destructor gives the id back.
//! No counter is touched when a thread ends: its slots live in the counters and keep their totals.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::protocol::registry::Registry;
use crate::sys::fork;

/// Words of the id bitmap; 4096 threads at a time can own slots, the rest share overflow slots.
const WORDS: usize = 64;

/// Not asked yet. Like the others above every real id, so that the bounds check of a slot fails.
const UNCLAIMED: u32 = u32::MAX;
/// The thread's locals are being destroyed, and the id is given back.
const GONE: u32 = u32::MAX - 1;
/// All ids were in use when this thread asked.
const FULL: u32 = u32::MAX - 2;

static IDS: Registry<WORDS> =
    Registry::over([const { AtomicU64::new(0) }; WORDS], AtomicU32::new(0));

/// The next stripe hint.
static HINTS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static ID: Cell<u32> = const { Cell::new(UNCLAIMED) };
    /// Handles of this thread that still write to its slots.
    static LEASES: Cell<u32> = const { Cell::new(0) };
    /// The id that outlived `GUARD` because of leases.
    static LEASED: Cell<u32> = const { Cell::new(UNCLAIMED) };
    /// 0 before the first use.
    static HINT: Cell<u32> = const { Cell::new(0) };
    static GUARD: Guard = const { Guard };
}

/// Gives the id back when the thread ends.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let id = set(&ID, GONE);
        if get(&LEASES, 0) > 0 {
            set(&LEASED, id);
        } else {
            IDS.release(id);
        }
    }
}

/// Reads a local; `missing` where the platform has torn it down.
#[inline]
fn get(local: &'static std::thread::LocalKey<Cell<u32>>, missing: u32) -> u32 {
    local.try_with(Cell::get).unwrap_or(missing)
}

/// Replaces a local and gives its former value.
fn set(local: &'static std::thread::LocalKey<Cell<u32>>, new: u32) -> u32 {
    local.try_with(|cell| cell.replace(new)).unwrap_or(GONE)
}

/// The caller's id, or a number above every id. One load.
#[inline]
pub(crate) fn id() -> u32 {
    get(&ID, GONE)
}

/// The caller's id, claimed now if this is its first use.
#[cold]
pub(crate) fn claim() -> u32 {
    let known = id();
    if known != UNCLAIMED {
        return known;
    }
    // The guard first: an id that nobody would give back must not be taken.
    let id = if GUARD.try_with(|_| ()).is_ok() {
        fork::watch();
        IDS.claim().unwrap_or(FULL)
    } else {
        GONE
    };
    set(&ID, id);
    id
}

/// One more than the highest id ever given out in this process.
pub(crate) fn high_water() -> u32 {
    IDS.high_water()
}

/// A number that spreads threads over stripes; differs from thread to thread, never 0.
pub(crate) fn hint() -> u32 {
    let known = get(&HINT, 1);
    if known != 0 {
        return known;
    }
    let new = HINTS.fetch_add(1, Ordering::Relaxed).max(1);
    set(&HINT, new);
    new
}

/// In the child of a fork: the ids of the threads that did not come along are free.
pub(crate) fn after_fork_in_child() {
    let id = match id() {
        GONE if get(&LEASES, 0) > 0 => get(&LEASED, GONE),
        id => id,
    };
    IDS.keep_only(Some(id));
}

/// The right to write to the caller's slots, which keeps its id even past the end of the thread's locals.
///
/// Tied to the thread: neither `Send` nor `Sync`.
#[derive(Debug)]
pub(crate) struct Lease {
    thread: PhantomData<*const ()>,
}

impl Lease {
    /// A lease and the id it keeps, or none when the thread has none.
    pub(crate) fn take() -> Option<(Self, u32)> {
        let id = claim();
        if id >= FULL {
            return None;
        }
        let lease = Self {
            thread: PhantomData,
        };
        LEASES
            .try_with(|leases| leases.set(leases.get() + 1))
            .ok()?;
        Some((lease, id))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let left = get(&LEASES, 1) - 1;
        set(&LEASES, left);
        if left == 0 && id() == GONE {
            let id = set(&LEASED, UNCLAIMED);
            IDS.release(id);
        }
    }
}
