//! No restartable sequences in this build.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use crate::backend::Refusal;
use crate::protocol::batch::{Below, Sections};
use crate::slot::Slot;

/// Cannot exist: nothing registers an area.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Area {}

/// Why there is none.
pub(crate) fn cpu_area() -> Result<Area, Refusal> {
    Err(Refusal::NotBuilt)
}

/// Why there is none.
pub(crate) fn cid_area() -> Result<Area, Refusal> {
    Err(Refusal::NotBuilt)
}

impl Area {
    pub(crate) fn words<const L: usize>(self, _: &[Slot<L>], _: usize) -> Option<Words<'_, L>> {
        match self {}
    }

    pub(crate) fn offsets(self) -> (isize, isize) {
        match self {}
    }

    pub(crate) fn id_now(self) -> u32 {
        match self {}
    }
}

/// Cannot exist either.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a, const L: usize> {
    never: Infallible,
    slots: PhantomData<&'a Slot<L>>,
}

impl<const L: usize> Words<'_, L> {
    /// Never asked for: no table has an area.
    ///
    /// # Safety
    /// Nothing is needed here; the real one needs what it says.
    pub(crate) unsafe fn of_slots(
        _: (isize, isize),
        _: *const Slot<L>,
        _: usize,
        _: usize,
    ) -> Self {
        unreachable!("no table has an area")
    }

    pub(crate) fn add(self, _: u64) -> bool {
        match self.never {}
    }

    pub(crate) fn add_release(self, _: u64) -> bool {
        match self.never {}
    }

    pub(crate) fn add_as(self, _: u64, _: Ordering) -> bool {
        match self.never {}
    }
}

impl<const L: usize> Sections for Words<'_, L> {
    fn add_below(&self, _: i64, _: u32) -> Below {
        match self.never {}
    }

    fn publish(&self) -> Option<i64> {
        match self.never {}
    }
}
