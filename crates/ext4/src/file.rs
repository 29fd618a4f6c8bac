//! Open files, and reading them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_block::BlockDeviceExt;
use cairn_extents::{Extent, Status};
use cairn_flags::Probe;

use crate::error::Result;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::num::{low32, us};
use crate::path::Stat;

/// An open file. Its operations are methods of [`Ext4`]; give it to [`Ext4::close`] in the end.
///
/// Dropped without that, an inode whose last name is gone is freed when the file system is unmounted.
#[must_use = "an open file is to be closed"]
pub struct File<P: Probe = cairn_flags::NoProbe> {
    pub(crate) inode: Arc<Inode<P>>,
}

impl<P: Probe> File<P> {
    /// Its inode's number.
    pub fn ino(&self) -> u32 {
        self.inode.ino
    }

    /// Bytes in it now.
    pub fn size(&self) -> u64 {
        self.inode.size()
    }

    /// What is known of its blocks.
    pub fn map(&self) -> &Arc<cairn_extents::ExtentMap> {
        &self.inode.es
    }
}

impl<P: Probe> std::fmt::Debug for File<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File")
            .field("ino", &self.ino())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl<P: Probe> Ext4<P> {
    /// What is known of an open file.
    pub fn stat(&self, file: &File<P>) -> Stat {
        self.stat_inode(&file.inode)
    }

    /// The blocks of a file that are allocated, in order, as the extent tree has them; data that waits for
    /// write-back has none yet.
    ///
    /// # Errors
    /// What the device or the extent tree says.
    pub fn mapped(&self, file: &File<P>) -> Result<Vec<Extent>> {
        let _shared = file.inode.shared();
        let body = file.inode.body();
        let mut extents = Vec::new();
        let mut each = |run: crate::node::Run| {
            extents.push(Extent {
                lblk: run.lblk,
                len: run.len,
                status: crate::tree::status_of(&run),
                referenced: false,
            });
            Ok(())
        };
        self.walk(&file.inode, &body, &mut each, &mut |_| Ok(()))?;
        Ok(extents)
    }

    /// Fills `buf` with the bytes at `off`, as far as the file goes; returns how many.
    ///
    /// # Errors
    /// What the device or the extent tree says.
    pub fn read_at(&self, file: &File<P>, off: u64, buf: &mut [u8]) -> Result<usize> {
        let _shared = file.inode.shared();
        self.read_locked(&file.inode, off, buf)
    }

    /// As [`read_at`](Self::read_at), by a caller that holds the inode's lock.
    #[inline]
    pub(crate) fn read_locked(&self, inode: &Inode<P>, off: u64, buf: &mut [u8]) -> Result<usize> {
        let left = inode.size().saturating_sub(off);
        let len = us(left.min(buf.len() as u64));
        let Some(mut rest) = buf.get_mut(..len) else {
            return Ok(0);
        };
        let mut off = off;
        let bs = self.geo.block_size as u64;
        let cached = inode.paged.load(Ordering::Acquire);
        let pages = cached.then(|| inode.pages());
        while !rest.is_empty() {
            let lblk = low32(off >> self.geo.block_bits);
            let into = off & (bs - 1);
            let mut n;
            if let Some(page) = pages.as_ref().and_then(|p| p.get(&lblk)) {
                n = us((bs - into).min(rest.len() as u64));
                let from = crate::num::part(&page.data, us(into), n);
                crate::num::put(rest, 0, from);
            } else {
                let extent = self.look_up(inode, lblk)?;
                let (most, place) = self.part(&extent, off);
                n = us(most.min(rest.len() as u64));
                if cached {
                    // The next block may be a page.
                    n = n.min(us(bs - into));
                }
                let now = crate::num::part_mut(rest, 0, n);
                match place {
                    Some(place) => self.read_data(now, place)?,
                    None => now.fill(0),
                }
            }
            off += n as u64;
            rest = rest.get_mut(n..).unwrap_or_default();
        }
        Ok(len)
    }

    /// How many bytes from `off` on an extent covers, and their place on the device if they have one.
    #[inline]
    pub(crate) fn part(&self, extent: &Extent, off: u64) -> (u64, Option<u64>) {
        let into = off - (u64::from(extent.lblk) << self.geo.block_bits);
        let covered = (u64::from(extent.len) << self.geo.block_bits) - into;
        let place = match extent.status {
            Status::Written(start) => Some((start << self.geo.block_bits) + into),
            _ => None,
        };
        (covered, place)
    }

    /// Reads data, in requests that the device takes.
    fn read_data(&self, buf: &mut [u8], place: u64) -> Result<()> {
        if self.max_transfer >= buf.len() as u64 {
            self.device.read_at(buf, place)?;
            return Ok(());
        }
        let mut at = place;
        for piece in buf.chunks_mut(us(self.max_transfer)) {
            self.device.read_at(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}
