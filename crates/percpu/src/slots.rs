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
use crate::sys::opaque;
use crate::sys::rseq::Words;
use crate::table::Table;

/// Nothing, then one table for as long as this lives.
pub(crate) struct Slots<const L: usize> {
    /// The slots that threads own, for offsets below their size in units of `size_of::<Slot<1>>()`. Empty until
    /// there are slots, and under every backend but the owned one.
    owned: View<Slot<L>>,
    /// The slots of the CPUs, for ids below their number. Empty under every backend but `RseqCpu`.
    cpus: View<Slot<L>>,
    /// The rseq area's offset, set before `cpus` is.
    area: AtomicIsize,
    /// Keeps the slots that the two show.
    table: OnceBox<Table<L>>,
}

impl<const L: usize> Slots<L> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        const fn nothing<T>() -> View<T> {
            View::over(AtomicPtr::new(ptr::null_mut()), AtomicUsize::new(0))
        }
        Self {
            owned: nothing(),
            cpus: nothing(),
            area: AtomicIsize::new(0),
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
        self.owned.show(
            owned.as_ptr().cast_mut(),
            owned.len() * size_of::<Slot<1>>(),
        );
        if let Some(area) = table.cpu_area() {
            let cpus = table.slots();
            self.area.store(area, Ordering::Relaxed);
            self.cpus.show(cpus.as_ptr().cast_mut(), cpus.len());
        }
        table
    }

    /// The slot that the thread with this offset owns.
    #[inline(always)]
    pub(crate) fn own(&self, offset: usize) -> Option<&Slot<L>> {
        let at = self.owned.below(offset)?;
        // SAFETY: `at` is the first of as many slots as the limit says, of `size_of::<Slot<1>>()` bytes each times
        // L, and offsets are multiples of that size.
        let slot = opaque(unsafe { at.byte_add(offset * L) });
        // SAFETY: it points into an allocation.
        unsafe { std::hint::assert_unchecked(!slot.is_null()) };
        // SAFETY: the slot belongs to the table, which is set before it is shown and lives as long as `self`;
        // its words are atomics.
        Some(unsafe { &*slot })
    }

    /// One word of the slots of all CPUs, under that backend.
    #[inline(always)]
    pub(crate) fn per_cpu(&self, word: usize) -> Option<Words<'_, L>> {
        let (at, len) = self.cpus.all()?;
        let area = self.area.load(Ordering::Relaxed);
        // SAFETY: the view shows slots of the table, which lives as long as `self`, and only once `area` is that
        // of an area which the C library registers in every thread.
        Some(unsafe { Words::of_cpus(area, at, len, word) })
    }
}
