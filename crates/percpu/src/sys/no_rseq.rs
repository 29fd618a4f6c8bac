//! No restartable sequences in this build.

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
    pub(crate) fn add<const L: usize>(self, _: &[Slot<L>], _: usize, _: u64) -> bool {
        match self {}
    }

    pub(crate) fn add_release<const L: usize>(self, _: &[Slot<L>], _: usize, _: u64) -> bool {
        match self {}
    }

    pub(crate) fn pair<const L: usize>(self, _: &[Slot<L>], _: usize) -> Pair {
        match self {}
    }

    pub(crate) fn index(self) -> u32 {
        match self {}
    }
}

/// Cannot exist either.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pair {}

impl Sections for Pair {
    fn add_below(&self, _: i64, _: u32) -> Below {
        match *self {}
    }

    fn publish(&self) -> Option<i64> {
        match *self {}
    }
}
