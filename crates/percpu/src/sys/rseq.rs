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

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::backend::Refusal;
use crate::protocol::batch::{Below, Sections};
use crate::slot::Slot;

#[cfg(any(test, target_arch = "aarch64"))]
mod aarch64_text;
#[cfg_attr(target_arch = "x86_64", path = "rseq/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "rseq/aarch64.rs")]
mod arch;
mod libc_area;
mod self_test;

/// Byte offsets in the area, as the kernel's `struct rseq` lays it out (include/uapi/linux/rseq.h).
const CPU_ID: isize = 4;
const CONCURRENCY_ID: isize = 24;

/// Where a thread finds its ids: the same offsets from the thread pointer in every thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    /// Of the area.
    area: isize,
    /// Of the id that picks the slot.
    id: isize,
}

/// The area with CPU ids, once the self-test has passed.
pub(crate) fn cpu_area() -> Result<Area, Refusal> {
    static TESTED: OnceLock<Result<Area, Refusal>> = OnceLock::new();
    TESTED
        .get_or_init(|| {
            let area = Area::with_id(libc_area::offset()?, CPU_ID);
            arch::proven()?;
            self_test::run(area)?;
            Ok(area)
        })
        .clone()
}

/// The area with concurrency ids, if the kernel fills them in.
pub(crate) fn cid_area() -> Result<Area, Refusal> {
    let cpu = cpu_area()?;
    libc_area::has_concurrency_id()?;
    Ok(Area::with_id(cpu.area, CONCURRENCY_ID))
}

impl Area {
    fn with_id(area: isize, field: isize) -> Self {
        Self {
            area,
            id: area + field,
        }
    }

    /// `slots[id].word += n`; false if the id has no slot.
    #[inline]
    pub(crate) fn add<const L: usize>(self, slots: &[Slot<L>], word: usize, n: u64) -> bool {
        let first = Words::of(slots, word);
        // SAFETY: an Area exists only where the C library has registered one at these offsets, and `first`
        // is word 0 of `len` slots, `1 << SHIFT` bytes apart.
        unsafe { first.add(self, n) }
    }

    /// The same, with a store that releases what the thread wrote before.
    #[inline]
    pub(crate) fn add_release<const L: usize>(
        self,
        slots: &[Slot<L>],
        word: usize,
        n: u64,
    ) -> bool {
        let first = Words::of(slots, word);
        // SAFETY: as in `add`.
        unsafe { first.add_release(self, n) }
    }

    /// The words of a batched counter in each of `slots`.
    #[inline]
    pub(crate) fn pair<const L: usize>(self, slots: &[Slot<L>], word: usize) -> Pair<'_, L> {
        Pair {
            area: self,
            first: Words::of(slots, word),
        }
    }

    /// The id now: a hint, stale as soon as it is read.
    pub(crate) fn index(self) -> u32 {
        // SAFETY: as in `add`.
        unsafe { arch::id(self.id) }
    }
}

/// One word, and those after it, in each of a run of slots.
#[derive(Clone, Copy, Debug)]
struct Words<'a, const L: usize> {
    first: &'a AtomicU64,
    len: u32,
}

impl<'a, const L: usize> Words<'a, L> {
    /// Bits to shift an id by to get the offset of its slot.
    const SHIFT: u32 = {
        assert!(size_of::<Slot<L>>().is_power_of_two());
        size_of::<Slot<L>>().trailing_zeros()
    };

    /// Nothing to write where there are no slots: every id is then out of range.
    #[inline]
    fn of(slots: &'a [Slot<L>], word: usize) -> Self {
        static NOWHERE: AtomicU64 = AtomicU64::new(0);
        Self {
            first: slots.first().map_or(&NOWHERE, |slot| slot.word(word)),
            len: u32::try_from(slots.len()).unwrap_or(u32::MAX),
        }
    }

    /// # Safety
    /// The thread has a registered area at `area`, and `self` came from [`of`](Self::of).
    #[inline]
    unsafe fn add(self, area: Area, n: u64) -> bool {
        // SAFETY: the caller's.
        unsafe { arch::add::<L>(area, self, n) }
    }

    /// # Safety
    /// As [`add`](Self::add).
    #[inline]
    unsafe fn add_release(self, area: Area, n: u64) -> bool {
        // SAFETY: the caller's.
        unsafe { arch::add_release::<L>(area, self, n) }
    }
}

/// Total and published part of a batched counter, one word after the other, in each of a run of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a, const L: usize> {
    area: Area,
    first: Words<'a, L>,
}

impl<const L: usize> Sections for Pair<'_, L> {
    #[inline]
    fn add_below(&self, n: i64, batch: u32) -> Below {
        let limit = u64::from(batch) - 1;
        // SAFETY: an Area exists only where the C library has registered one, and the pair came from slots in
        // which the word after `first` belongs to the same counter.
        unsafe { arch::add_below::<L>(self.area, self.first, n, limit) }
    }

    fn publish(&self) -> Option<i64> {
        // SAFETY: as above.
        unsafe { arch::publish::<L>(self.area, self.first) }
    }
}
