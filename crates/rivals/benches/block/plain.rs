//! The rival: a mapping of shared memory and `memcpy`, nothing else.

use std::io;
use std::ptr;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::walk::BLOCK;

/// Shared memory, every page of it touched.
pub(crate) struct Plain(MmapRaw);

impl Plain {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let file = memfd_create("plain", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        let plain = Self(MmapOptions::new().len(len).map_raw(&file)?);
        for off in (0..len).step_by(BLOCK) {
            plain.write(off, &[1; BLOCK]);
        }
        Ok(plain)
    }

    #[inline]
    pub(crate) fn read(&self, off: usize, to: &mut [u8; BLOCK]) {
        debug_assert!(off + BLOCK <= self.0.len(), "the walk stays inside");
        // SAFETY: the walk gives offsets of whole blocks of the mapping, which nobody can shorten;
        // `to` is the thread's own. Bytes that another thread writes meanwhile are not looked at.
        unsafe { ptr::copy_nonoverlapping(self.0.as_ptr().add(off), to.as_mut_ptr(), BLOCK) }
    }

    #[inline]
    pub(crate) fn write(&self, off: usize, from: &[u8; BLOCK]) {
        debug_assert!(off + BLOCK <= self.0.len(), "the walk stays inside");
        // SAFETY: as in `read`, with the roles changed.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.0.as_mut_ptr().add(off), BLOCK) }
    }
}
