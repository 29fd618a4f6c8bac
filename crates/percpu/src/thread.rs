//! Which slots the calling thread owns: one process-wide id per living thread.
//!
//! The id is a constant-initialised thread-local without a destructor, so reading it is one load and stays
//! possible to the last instruction of the thread. A second thread-local with a destructor gives the id back.
//! No counter is touched when a thread ends: its slots live in the counters and keep their totals.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::protocol::registry::Registry;
use crate::slot::Slot;
use crate::sys::fork;

/// Words of the id bitmap; 4096 threads at a time can own slots, the rest share overflow slots.
const WORDS: usize = 64;

/// Bytes of one slot: ids are kept multiplied by it, which saves every add a shift.
const STRIDE: u32 = {
    assert!(size_of::<Slot<1>>() == 128);
    128
};

/// Not asked yet. Like the others above every real offset, so that the bounds check of a slot fails.
const UNCLAIMED: u32 = u32::MAX;
/// The thread's locals are being destroyed, and the id is given back.
const GONE: u32 = u32::MAX - 1;
/// All ids were in use when this thread asked.
const FULL: u32 = u32::MAX - 2;

static IDS: Registry<WORDS> =
    Registry::over([const { AtomicU64::new(0) }; WORDS], AtomicU32::new(0));

/// Threads with lower ids find their slots in the shortest way: no table that is shown has fewer.
pub(crate) const NEAR: usize = 16;

/// The near offset of a thread that has none. Added to the address of slots it overflows, as every offset does
/// when added to the address that stands for no slots, so that one addition answers both questions.
const FAR: usize = usize::MAX - FAR_BELOW + 1;

/// Slots at lower addresses than this, times their line pairs, would not make `FAR` overflow.
pub(crate) const FAR_BELOW: usize = 4096;

/// The next stripe hint.
static HINTS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The id plus 1, times `STRIDE`.
    static OFFSET: Cell<u32> = const { Cell::new(UNCLAIMED) };
    /// The same for ids below `NEAR`, else `FAR`.
    static NEAR_OFFSET: Cell<usize> = const { Cell::new(FAR) };
    /// Handles of this thread that still write to its slots.
    static LEASES: Cell<u32> = const { Cell::new(0) };
    /// The offset that outlived `GUARD` because of leases.
    static LEASED: Cell<u32> = const { Cell::new(UNCLAIMED) };
    /// 0 before the first use.
    static HINT: Cell<u32> = const { Cell::new(0) };
    static GUARD: Guard = const { Guard };
}

/// Gives the id back when the thread ends.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = NEAR_OFFSET.try_with(|near| near.set(FAR));
        let offset = set(&OFFSET, GONE);
        if get(&LEASES, 0) > 0 {
            set(&LEASED, offset);
        } else {
            IDS.release(id_at(offset));
        }
    }
}

/// Reads a local; `missing` where the platform has torn it down.
#[inline(always)]
fn get(local: &'static std::thread::LocalKey<Cell<u32>>, missing: u32) -> u32 {
    local.try_with(Cell::get).unwrap_or(missing)
}

/// Replaces a local and gives its former value.
fn set(local: &'static std::thread::LocalKey<Cell<u32>>, new: u32) -> u32 {
    local.try_with(|cell| cell.replace(new)).unwrap_or(GONE)
}

/// The offset of the owner of slot number `id`: never 0, so that it can be told from none by an addition.
pub(crate) const fn offset_of(id: usize) -> usize {
    (id + 1) * STRIDE as usize
}

/// The number of the slot at an offset; none has that of the numbers that are no offset.
fn id_at(offset: u32) -> u32 {
    offset / STRIDE - 1
}

/// The caller's offset if its id is near, else a number that overflows. One load.
#[inline(always)]
pub(crate) fn near_offset() -> usize {
    NEAR_OFFSET.try_with(Cell::get).unwrap_or(FAR)
}

/// Where the caller's slot is among slots of one line pair, or a number above all offsets. One load.
#[inline(always)]
pub(crate) fn offset() -> usize {
    get(&OFFSET, GONE) as usize
}

/// The number of the caller's slot, claimed now if this is its first use; above all numbers if it has none.
#[cold]
pub(crate) fn claim() -> usize {
    id_at(claim_offset()) as usize
}

fn claim_offset() -> u32 {
    let known = get(&OFFSET, GONE);
    if known != UNCLAIMED {
        return known;
    }
    // The guard first: an id that nobody would give back must not be taken.
    let offset = if GUARD.try_with(|_| ()).is_ok() {
        fork::watch();
        IDS.claim().map_or(FULL, |id| (id + 1) * STRIDE)
    } else {
        GONE
    };
    set(&OFFSET, offset);
    if (id_at(offset) as usize) < NEAR {
        let _ = NEAR_OFFSET.try_with(|near| near.set(offset as usize));
    }
    offset
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
#[cfg(all(unix, not(miri)))]
pub(crate) fn after_fork_in_child() {
    let offset = match get(&OFFSET, GONE) {
        GONE if get(&LEASES, 0) > 0 => get(&LEASED, GONE),
        offset => offset,
    };
    IDS.keep_only(Some(id_at(offset)));
}

/// The right to write to the caller's slots, which keeps its id even past the end of the thread's locals.
///
/// Tied to the thread: neither `Send` nor `Sync`.
#[derive(Debug)]
pub(crate) struct Lease {
    thread: PhantomData<*const ()>,
}

impl Lease {
    /// A lease and the number of the slots that it keeps, or none when the thread has none.
    pub(crate) fn take() -> Option<(Self, usize)> {
        let offset = claim_offset();
        if offset >= FULL {
            return None;
        }
        let lease = Self {
            thread: PhantomData,
        };
        LEASES
            .try_with(|leases| leases.set(leases.get() + 1))
            .ok()?;
        Some((lease, id_at(offset) as usize))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let left = get(&LEASES, 1) - 1;
        set(&LEASES, left);
        if left == 0 && get(&OFFSET, GONE) == GONE {
            IDS.release(id_at(set(&LEASED, UNCLAIMED)));
        }
    }
}
