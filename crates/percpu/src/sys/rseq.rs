//! Restartable sequences: per-CPU slots written without a locked instruction.
//!
//! A section arms a descriptor in the thread's rseq area, reads the CPU id, and ends with one store. If the
//! thread is preempted, moved or interrupted by a signal before that store, the kernel sends it back to the
//! start, so the store always hits the slot of the CPU that it runs on, and nobody else runs there meanwhile.
//!
//! The area is the C library's. This module never registers one, never writes the id fields, and leaves the
//! descriptor armed after a section: it is constant data of the program's image, and the kernel looks at it
//! only to see that the thread is no longer inside. (That is why a shared object with these sections must
//! not be unloaded while threads that used them live.)

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::backend::Refusal;
use crate::protocol::batch::{Below, Sections};
use crate::protocol::once::OnceBox;
use crate::slot::Slot;

#[cfg(test)]
mod aarch64_tests;
#[cfg(any(test, target_arch = "aarch64"))]
mod aarch64_text;
#[cfg_attr(target_arch = "x86_64", path = "rseq/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "rseq/aarch64.rs")]
mod arch;
mod libc_area;
mod self_test;

/// Where the ids are in the area, as the kernel's `struct rseq` lays it out (include/uapi/linux/rseq.h).
const CPU_ID: isize = 4;
const CONCURRENCY_ID: isize = 24;

/// Where a thread finds its area and the id that picks its slot: the same offsets from the thread pointer in
/// every thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    offset: isize,
    id: isize,
}

/// The area with CPU ids, once the self-test has passed.
pub(crate) fn cpu_area() -> Result<Area, Refusal> {
    static TESTED: OnceBox<Result<Area, Refusal>> = OnceBox::over(AtomicPtr::new(ptr::null_mut()));
    let test = || {
        let area = Area::with_id(libc_area::offset()?, CPU_ID);
        arch::proven()?;
        self_test::run(area)?;
        Ok(area)
    };
    TESTED.get_or_build(test).clone()
}

/// The area with concurrency ids, if the kernel fills them in.
pub(crate) fn cid_area() -> Result<Area, Refusal> {
    let cpu = cpu_area()?;
    libc_area::has_concurrency_id()?;
    Ok(Area::with_id(cpu.offset, CONCURRENCY_ID))
}

impl Area {
    fn with_id(offset: isize, id: isize) -> Self {
        Self {
            offset,
            id: offset + id,
        }
    }

    /// The two offsets as numbers.
    pub(crate) fn offsets(self) -> (isize, isize) {
        (self.offset, self.id)
    }

    /// One word of each of `slots`, or none if there are no slots.
    pub(crate) fn words<const L: usize>(
        self,
        slots: &[Slot<L>],
        word: usize,
    ) -> Option<Words<'_, L>> {
        Some(Words {
            area: self,
            first: slots.first()?.word(word),
            len: slots.len(),
        })
    }

    /// The id now: a hint, stale as soon as it is read.
    pub(crate) fn id_now(self) -> u32 {
        // SAFETY: an Area exists only where the C library has registered one.
        unsafe { arch::id(self.id) }
    }
}

/// The same word, and those after it, in each of a run of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a, const L: usize> {
    area: Area,
    first: &'a AtomicU64,
    /// How many slots: at least 1.
    len: usize,
}

impl<const L: usize> Words<'_, L> {
    /// Bits to shift an id by to get the offset of its slot.
    const SHIFT: u32 = {
        assert!(size_of::<Slot<L>>().is_power_of_two());
        size_of::<Slot<L>>().trailing_zeros()
    };

    /// One word of the slots at `at`.
    ///
    /// # Safety
    /// `offsets` are those of an area which the C library registers in every thread, and `at` is the first of
    /// `len` slots that live for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn of_slots(
        offsets: (isize, isize),
        at: *const Slot<L>,
        len: usize,
        word: usize,
    ) -> Self {
        let (offset, id) = offsets;
        // SAFETY: the caller's.
        let first = unsafe { &*at };
        Self {
            area: Area { offset, id },
            first: first.word(word),
            len,
        }
    }

    /// `slots[id].word += n`; false if the id has no slot.
    #[inline(always)]
    pub(crate) fn add(self, n: u64) -> bool {
        // SAFETY: an Area exists only where the C library has registered one, and both constructors take
        // `first` and `len` from the same slots.
        unsafe { arch::add(self, n) }
    }

    /// The same, with a store that releases what the thread wrote before.
    #[inline(always)]
    pub(crate) fn add_release(self, n: u64) -> bool {
        // SAFETY: as in `add`.
        unsafe { arch::add_release(self, n) }
    }

    /// One or the other.
    pub(crate) fn add_as(self, n: u64, order: Ordering) -> bool {
        if order == Ordering::Relaxed {
            self.add(n)
        } else {
            self.add_release(n)
        }
    }
}

/// The word is a batched counter's total, and the next one its published part.
impl<const L: usize> Sections for Words<'_, L> {
    #[inline(always)]
    fn add_below(&self, n: i64, batch: u32) -> Below {
        // SAFETY: as in `add`; and the word after a batched counter's total belongs to it.
        unsafe { arch::add_below(*self, n, u64::from(batch) - 1) }
    }

    fn publish(&self) -> Option<i64> {
        // SAFETY: as above.
        unsafe { arch::publish(*self) }
    }
}
