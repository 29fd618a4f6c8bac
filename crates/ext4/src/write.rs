//! Writing files: into pages that are written back later, or directly to the device.

use std::io::IoSlice;
use std::sync::atomic::Ordering;

use cairn_block::{BlockDeviceExt, Caps, ReqFlags};
use cairn_extents::{Extent, Status};
use cairn_flags::Probe;

use crate::error::{Error, Result};
use crate::file::File;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::num::{low32, part, part_mut, put, us};
use crate::pages::{Page, Place};
use crate::space::For;

impl<P: Probe> Ext4<P> {
    /// Writes `buf` at `off`. The data stays in memory until it is written back, and blocks get their
    /// places then; the space for them is claimed now.
    ///
    /// # Errors
    /// No space, or what reading the rest of a block says. What was written before the error stays.
    pub fn write_at(&self, file: &File<P>, off: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        let inode = &file.inode;
        let written = {
            let _alone = inode.alone();
            self.write_locked(inode, off, buf)
        };
        if self.pages.read() > self.most_pages.cast_signed() {
            // Kept for the next sync: it is not this write's.
            if let Err(e) = self.write_back_all() {
                self.note(e);
            }
        }
        written
    }

    /// Refuses what ends past the largest file.
    fn check_end(&self, off: u64, len: u64) -> Result<u64> {
        let max = self.geo.max_size();
        match off.checked_add(len) {
            Some(end) if end <= max => Ok(end),
            end => Err(Error::TooBig {
                end: end.unwrap_or(u64::MAX),
                max,
            }),
        }
    }

    fn write_locked(&self, inode: &Inode<P>, off: u64, buf: &[u8]) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let end = self.check_end(off, buf.len() as u64)?;
        let bs = self.geo.block_size as u64;
        let mut at = off;
        let mut result = Ok(());
        while at < end {
            let into = at & (bs - 1);
            let n = (bs - into).min(end - at);
            let piece = part(buf, us(at - off), us(n));
            result = self.write_block(inode, low32(at >> self.geo.block_bits), us(into), piece);
            if result.is_err() {
                break;
            }
            at += n;
        }
        if at > off {
            self.grown(inode, at);
        }
        result
    }

    /// Notes that data up to `end` was written.
    fn grown(&self, inode: &Inode<P>, end: u64) {
        if end > inode.size() {
            let mut raw = inode.body_mut();
            raw.set_size(end);
            inode.size.store(end, Ordering::Release);
            if end > u64::from(u32::MAX >> 1) {
                self.sup().need_large_file();
            }
        }
        inode.touch();
    }

    /// Writes a part of one block into its page.
    fn write_block(&self, inode: &Inode<P>, lblk: u32, into: usize, piece: &[u8]) -> Result<()> {
        if let Some(page) = inode.pages().get_mut(&lblk) {
            put(&mut page.data, into, piece);
            page.again();
            return Ok(());
        }
        let extent = self.look_up(inode, lblk)?;
        let whole = piece.len() == self.geo.block_size;
        let mut data = if whole {
            vec![0; self.geo.block_size]
        } else {
            self.old_block(inode, lblk, &extent)?
        };
        put(&mut data, into, piece);
        let place = match extent.status {
            Status::Written(_) => Place::Written,
            Status::Unwritten(_) => Place::Unwritten,
            _ => {
                self.space.claim(1, For::Data)?;
                if let Err(e) = inode.es.insert_delayed(lblk, 1, false, false) {
                    self.space.unclaim(1);
                    return Err(Error::unsupported(format!("block {lblk}: {e}")));
                }
                Place::Delayed
            }
        };
        self.add_page(inode, lblk, data, place);
        // One file alone may not fill the memory for all.
        if inode.pages().len() as u64 >= self.most_pages.max(1) {
            self.write_back_locked(inode)?;
        }
        Ok(())
    }

    pub(crate) fn add_page(&self, inode: &Inode<P>, lblk: u32, data: Vec<u8>, place: Place) {
        let page = Page::new(data.into_boxed_slice(), place);
        if inode.pages().insert(lblk, page).is_none() {
            self.pages.add(1);
        }
        inode.paged.store(true, Ordering::Release);
    }

    /// What a block holds on disk; zeros where it has no data, and past the end of the file.
    pub(crate) fn old_block(
        &self,
        inode: &Inode<P>,
        lblk: u32,
        extent: &Extent,
    ) -> Result<Vec<u8>> {
        let bs = self.geo.block_size;
        let mut data = vec![0; bs];
        let start = u64::from(lblk) << self.geo.block_bits;
        let left = inode.size().saturating_sub(start);
        if let Some(block) = extent.physical_at(lblk)
            && matches!(extent.status, Status::Written(_))
            && left > 0
        {
            self.device
                .read_at(&mut data, block << self.geo.block_bits)?;
            if left < bs as u64 {
                part_mut(&mut data, us(left), bs - us(left)).fill(0);
            }
        }
        Ok(data)
    }

    /// Writes `buf` at `off` to the device before it returns; durable, if asked for.
    ///
    /// Where the blocks are written already this is what Linux does for direct I/O: a look-up that tells
    /// it, a look-up for each extent that is touched, and nothing of the file's metadata. Elsewhere the
    /// data goes through pages that are written back at once.
    ///
    /// # Errors
    /// No space, or what the device says.
    pub fn write_direct(&self, file: &File<P>, off: u64, buf: &[u8], durable: bool) -> Result<()> {
        self.writable()?;
        if buf.is_empty() {
            return Ok(());
        }
        let inode = &*file.inode;
        let end = self.check_end(off, buf.len() as u64)?;
        let mut done = false;
        {
            let _shared = inode.shared();
            if end <= inode.size()
                && !inode.paged.load(Ordering::Acquire)
                && self.overwrite(inode, off, buf, durable)?
            {
                inode.touch();
                if inode.is_split() {
                    return Ok(());
                }
                done = true;
            }
        }
        if done {
            inode.split_lock();
            return Ok(());
        }
        {
            let _alone = inode.alone();
            self.write_locked(inode, off, buf)?;
            self.write_back_locked(inode)?;
        }
        if durable {
            self.fsync(file)?;
        }
        Ok(())
    }

    /// Writes over blocks that are written; whether all were. The caller holds the inode's lock.
    #[inline]
    fn overwrite(&self, inode: &Inode<P>, off: u64, buf: &[u8], durable: bool) -> Result<bool> {
        let block = |off: u64| low32(off >> self.geo.block_bits);
        // What the check found is not used further: the mapping step asks again, as ext4 does.
        let extent = self.look_up(inode, block(off))?;
        if !matches!(extent.status, Status::Written(_)) {
            return Ok(false);
        }
        let (mut off, mut rest) = (off, buf);
        while !rest.is_empty() {
            let extent = self.look_up(inode, block(off))?;
            let (covered, Some(place)) = self.part(&extent, off) else {
                return Ok(false);
            };
            let n = us(covered.min(rest.len() as u64).min(self.max_transfer));
            let (now, later) = rest.split_at(n.min(rest.len()));
            self.put_data(now, place, durable)?;
            rest = later;
            off += n as u64;
        }
        Ok(true)
    }

    #[inline]
    fn put_data(&self, buf: &[u8], place: u64, durable: bool) -> Result<()> {
        if !durable {
            self.device.write_at(buf, place)?;
        } else if self.device.caps().intersects(Caps::FUA) {
            self.device
                .write_vectored_at(&[IoSlice::new(buf)], place, ReqFlags::FUA)?;
        } else {
            self.device.write_at(buf, place)?;
            self.device.flush()?;
        }
        Ok(())
    }
}
