//! The slots of a store, laid out for the add: the words it needs lie together, in the counter itself.
//!
//! The table of slots is built at the first use and set once. Its address, and the one number that tells
//! whether the caller may write there, are then copied into two words of the counter, so that an add of the
//! owned backend is: load the thread's offset, compare, add the address, increment. Under the other backends
//! that comparison always fails, and the next word says whether there are per-CPU slots.
#![allow(
    unsafe_code,
    reason = "an address and a limit that are published together, without a lock"
)]

use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicUsize, Ordering};

use crate::protocol::once::OnceBox;
use crate::protocol::view::View;
use crate::slot::Slot;
use crate::sys::hint::opaque;
use crate::sys::rseq::Words;
use crate::table::Table;
use crate::thread;

/// Owned tables with slots for all near threads are shown to the add; smaller ones, which take a builder to make,
/// are used the slow way.
const FLOOR: usize = thread::offset_of(thread::NEAR);

/// Nothing, then one table for as long as this lives.
pub(crate) struct Slots<const L: usize> {
    /// The slots that threads own, for offsets below their size in units of `size_of::<Slot<1>>()`. Nothing until
    /// there are slots, and under every backend but the owned one.
    owned: View<Slot<L>, FLOOR>,
    /// The slots of the CPUs, for ids below their number. Nothing under every backend but the rseq ones.
    cpus: View<Slot<L>, 1>,
    /// The offsets of the rseq area and of its id, set before `cpus` is.
    area: [AtomicIsize; 2],
    /// Keeps the slots that the two show.
    table: OnceBox<Table<L>>,
}

/// How an add may reach the caller's word at first sight.
pub(crate) enum Found<'a, const L: usize> {
    /// The caller owns the slot.
    Own(&'a Slot<L>),
    /// Each CPU has a slot.
    PerCpu(Words<'a, L>),
    /// There are no slots yet, the caller has no offset, or the backend is another.
    Neither,
}

impl<const L: usize> Slots<L> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self {
            owned: nothing(),
            cpus: nothing(),
            area: [const { AtomicIsize::new(0) }; 2],
            table: OnceBox::over(AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The table, if there is one.
    #[inline]
    pub(crate) fn table(&self) -> Option<&Table<L>> {
        self.table.get()
    }

    /// The table, for the only user.
    pub(crate) fn table_mut(&mut self) -> Option<&mut Table<L>> {
        self.table.get_mut()
    }

    /// Sets the table unless there is one, and gives the one there is.
    pub(crate) fn set(&self, built: Box<Table<L>>) -> &Table<L> {
        let table = self.table.set(built);
        let owned = table.owned();
        let before = owned.as_ptr().cast_mut().wrapping_sub(1);
        if before.addr() > thread::FAR_BELOW * L {
            self.owned.show(before, thread::offset_of(owned.len()));
        }
        if let Some((area, id)) = table.area_offsets() {
            let cpus = table.slots();
            self.area[0].store(area, Ordering::Relaxed);
            self.area[1].store(id, Ordering::Relaxed);
            self.cpus.show(cpus.as_ptr().cast_mut(), cpus.len());
        }
        table
    }

    /// Where the calling thread adds to `word`.
    #[inline(always)]
    pub(crate) fn find(&self, word: usize) -> Found<'_, L> {
        let owned = self.owned.address();
        let near = thread::near_offset().wrapping_mul(L);
        // The sum overflows exactly if there is nothing at `owned` (see `nowhere`) or the thread is not near. The
        // library marks that as unlikely, so that this is laid out straight.
        if owned.addr().checked_add(near).is_some() {
            // SAFETY: near offsets are below the floor.
            return Found::Own(unsafe { slot_at(owned, near) });
        }
        self.find_far(word)
    }

    /// The same for threads that are not near, and for slots that are not owned.
    #[inline(always)]
    fn find_far(&self, word: usize) -> Found<'_, L> {
        let cpus = self.cpus.address();
        if cpus.addr() != usize::MAX {
            let [area, id] = &self.area;
            let offsets = (area.load(Ordering::Relaxed), id.load(Ordering::Relaxed));
            // SAFETY: the view shows slots of the table, which lives as long as `self`, and only once the offsets
            // are those of an area which the C library registers in every thread.
            let words = unsafe { Words::of_slots(offsets, cpus, self.cpus.limit(), word) };
            return Found::PerCpu(words);
        }
        let owned = self.owned.address();
        let offset = thread::offset();
        if owned.addr() != usize::MAX && offset < self.owned.limit() {
            // SAFETY: there are slots, and the offset is below their limit.
            return Found::Own(unsafe { slot_at(owned, offset * L) });
        }
        Found::Neither
    }
}

/// The slot at an offset.
///
/// # Safety
/// `owned` is shown by a view of slots that live for `'a`, and `offset` is L times an offset of a thread below the
/// view's limit.
#[inline(always)]
unsafe fn slot_at<'a, const L: usize>(owned: *mut Slot<L>, offset: usize) -> &'a Slot<L> {
    // Not `byte_add`: the address is that of the slot before the first.
    let slot = opaque(owned.wrapping_byte_add(offset));
    // SAFETY: it points into an allocation.
    unsafe { std::hint::assert_unchecked(!slot.is_null()) };
    // SAFETY: offsets count from the address in units of `size_of::<Slot<1>>()` bytes, of which a slot has L, the
    // first being 1; below the limit they lead to a slot of the table, which is set before it is shown. Its
    // words are atomics.
    unsafe { &*slot }
}

/// The address that views start from: any offset of a thread added to it overflows, so that one addition both
/// makes the address of a slot and tells whether there is one.
const fn nowhere<T>() -> *mut T {
    ptr::without_provenance_mut(usize::MAX)
}

/// A view before there is anything to see.
const fn nothing<T, const FLOOR: usize>() -> View<T, FLOOR> {
    View::over(AtomicPtr::new(nowhere()), AtomicUsize::new(0))
}
