//! Truncating, punching holes, allocating ahead.

use std::sync::atomic::Ordering;

use cairn_extents::Status;
use cairn_flags::Probe;

use crate::edit::total;
use crate::error::{Error, Result};
use crate::file::File;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{MAX_UNWRITTEN, Run};
use crate::num::{low32, part_mut, to_i64, us};
use crate::pages::Place;
use crate::raw::{Time, Which};
use crate::space::For;
use crate::tree::MAX_BLOCK;

impl<P: Probe> Ext4<P> {
    /// Makes a file `size` bytes long: what lies behind is gone, what is new reads as zeros.
    ///
    /// # Errors
    /// A size past the largest, or what the extent tree says; the file is then as it was.
    pub fn truncate(&self, file: &File<P>, size: u64) -> Result<()> {
        self.writable()?;
        let max = self.geo.max_size();
        if size > max {
            return Err(Error::TooBig { end: size, max });
        }
        let inode = &*file.inode;
        let _alone = inode.alone();
        let bs = self.geo.block_size as u64;
        if size < inode.size() {
            let into = size & (bs - 1);
            if into != 0 {
                self.zero_part(inode, low32(size >> self.geo.block_bits), us(into), us(bs))?;
            }
        }
        let gone = self.cut(inode, low32(size.div_ceil(bs)), MAX_BLOCK, Some(size))?;
        self.give_runs(&gone);
        Ok(())
    }

    /// Makes a range of a file a hole that reads as zeros; the size stays.
    ///
    /// # Errors
    /// What the extent tree says, or no space for it where a hole splits an extent.
    pub fn punch_hole(&self, file: &File<P>, off: u64, len: u64) -> Result<()> {
        self.writable()?;
        let inode = &*file.inode;
        let _alone = inode.alone();
        let bits = self.geo.block_bits;
        let bs = self.geo.block_size as u64;
        let end = off.saturating_add(len).min(inode.size());
        if off >= end {
            return Ok(());
        }
        // A block at the end of the file goes whole: behind the end there is nothing to keep.
        let last = if end == inode.size() {
            end.div_ceil(bs)
        } else {
            end >> bits
        };
        let (first, last) = (low32(off.div_ceil(bs)), low32(last));
        let (head, tail) = (off & (bs - 1), end & (bs - 1));
        if head != 0 {
            let same = off >> bits == end >> bits;
            let to = if same { tail } else { bs };
            self.zero_part(inode, low32(off >> bits), us(head), us(to))?;
        }
        if tail != 0 && end < inode.size() && (head == 0 || off >> bits != end >> bits) {
            self.zero_part(inode, low32(end >> bits), 0, us(tail))?;
        }
        if first < last {
            let gone = self.cut(inode, first, last, None)?;
            self.give_runs(&gone);
        }
        Ok(())
    }

    /// Takes the blocks from `from` to before `to` out of a file, and sets its size. Returns the runs that
    /// are to be given back. The caller holds the inode's lock alone.
    fn cut(&self, inode: &Inode<P>, from: u32, to: u32, size: Option<u64>) -> Result<Vec<Run>> {
        let mut raw = inode.body_mut();
        let gone = if from < to {
            self.replace(inode, &mut raw, from, to, None)?
        } else {
            Vec::new()
        };
        self.sub_sectors(&mut raw, total(&gone));
        let delayed = {
            let mut pages = inode.pages();
            let cut: Vec<u32> = pages.range(from..to).map(|(l, _)| *l).collect();
            let mut delayed = 0;
            for lblk in &cut {
                delayed += u64::from(pages.remove(lblk).is_some_and(|p| p.delayed()));
            }
            self.pages.add(-to_i64(cut.len()));
            inode.paged.store(!pages.is_empty(), Ordering::Release);
            delayed
        };
        self.space.unclaim(delayed);
        if from < to {
            // The claims of delayed blocks were taken back above.
            let _ = inode.es.remove(from, to - from);
        }
        if let Some(size) = size {
            raw.set_size(size);
            inode.size.store(size, Ordering::Release);
            if size > u64::from(u32::MAX >> 1) {
                self.sup().need_large_file();
            }
        }
        let now = Time::now();
        raw.set_time(Which::Modify, now);
        raw.set_time(Which::Change, now);
        self.write_inode(inode, &mut raw);
        Ok(gone)
    }

    /// Makes a part of a block zeros, if it has data.
    fn zero_part(&self, inode: &Inode<P>, lblk: u32, from: usize, to: usize) -> Result<()> {
        if let Some(page) = inode.pages().get_mut(&lblk) {
            part_mut(&mut page.data, from, to - from).fill(0);
            page.again();
            return Ok(());
        }
        let extent = self.look_up(inode, lblk)?;
        if matches!(extent.status, Status::Written(_)) {
            let mut data = self.old_block(inode, lblk, &extent)?;
            part_mut(&mut data, from, to - from).fill(0);
            self.add_page(inode, lblk, data, Place::Written);
        }
        Ok(())
    }

    /// Allocates the blocks of a range ahead; they read as zeros until they are written. The file grows
    /// to the end of the range unless `keep_size`.
    ///
    /// # Errors
    /// No space: what was allocated before stays.
    pub fn allocate(&self, file: &File<P>, off: u64, len: u64, keep_size: bool) -> Result<()> {
        self.writable()?;
        let inode = &*file.inode;
        let max = self.geo.max_size();
        let end = match off.checked_add(len) {
            Some(end) if end <= max => end,
            end => {
                return Err(Error::TooBig {
                    end: end.unwrap_or(u64::MAX),
                    max,
                });
            }
        };
        if len == 0 {
            return Ok(());
        }
        let _alone = inode.alone();
        // What is delayed gets its place first, so that only holes are left to fill.
        self.write_back_locked(inode)?;
        let mut raw = inode.body_mut();
        let mut at = low32(off >> self.geo.block_bits);
        let last = low32(end.div_ceil(self.geo.block_size as u64));
        let mut result = Ok(());
        while at < last {
            let extent = self.find(inode, &raw, at)?;
            let stop = extent.end().min(last);
            if extent.status != Status::Hole {
                at = stop;
                continue;
            }
            match self.fill_hole(inode, &mut raw, at, stop - at) {
                Ok(n) => at += n,
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        if result.is_ok() && !keep_size && end > raw.size() {
            raw.set_size(end);
            inode.size.store(end, Ordering::Release);
            if end > u64::from(u32::MAX >> 1) {
                self.sup().need_large_file();
            }
        }
        raw.set_time(Which::Change, Time::now());
        self.write_inode(inode, &mut raw);
        result
    }

    fn fill_hole(
        &self,
        inode: &Inode<P>,
        raw: &mut crate::raw::Raw,
        at: u32,
        len: u32,
    ) -> Result<u32> {
        let goal = self.goal(inode, raw, at)?;
        let claimed = self
            .space
            .claim_up_to(u64::from(len.min(MAX_UNWRITTEN)), For::Data)?;
        let (start, n) = self
            .take_blocks(goal, low32(claimed))
            .inspect_err(|_| self.space.unclaim(claimed))?;
        self.space.unclaim(claimed - u64::from(n));
        let run = Run {
            lblk: at,
            len: n,
            start,
            unwritten: true,
        };
        if let Err(e) = self.replace(inode, raw, at, at + n, Some(run)) {
            self.give_blocks(start, u64::from(n))?;
            return Err(e);
        }
        self.add_sectors(raw, u64::from(n));
        let _ = inode.es.insert(at, n, Status::Unwritten(start));
        Ok(n)
    }
}
