//! Writing back: blocks get their places, data goes to the device, extents into the tree.

use std::io::IoSlice;
use std::sync::atomic::Ordering;

use cairn_extents::Status;
use cairn_flags::Probe;

use crate::edit::total;
use crate::error::{Error, Object, Result};
use crate::file::File;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{MAX_WRITTEN, Run};
use crate::num::{low32, to_i64, us};
use crate::pages::Pages;
use crate::raw::Raw;

/// Blocks that one request writes, at most.
const MOST_AT_ONCE: u64 = 256;

impl<P: Probe> Ext4<P> {
    /// Makes a file's data and metadata durable.
    ///
    /// # Errors
    /// What could not be written stays in memory, and a later call tries again.
    pub fn fsync(&self, file: &File<P>) -> Result<()> {
        self.writable()?;
        {
            let _alone = file.inode.alone();
            self.write_back_locked(&file.inode)?;
        }
        self.settle_inode(&file.inode)?;
        self.store_stale_descs()?;
        self.cache.flush()?;
        Ok(())
    }

    /// Writes back what all files have waiting. The first error is returned, the rest is written all the same.
    pub(crate) fn write_back_all(&self) -> Result<()> {
        let mut failed = None;
        for inode in self.inodes.all() {
            if inode.paged.load(Ordering::Acquire) {
                let _alone = inode.alone();
                if let Err(e) = self.write_back_locked(&inode) {
                    failed.get_or_insert(e);
                }
            }
            if let Err(e) = self.settle_inode(&inode) {
                failed.get_or_insert(e);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Writes back what a file has waiting. The caller holds its lock alone.
    pub(crate) fn write_back_locked(&self, inode: &Inode<P>) -> Result<()> {
        let mut pages = std::mem::take(&mut *inode.pages());
        if pages.is_empty() {
            inode.paged.store(false, Ordering::Release);
            return Ok(());
        }
        let before = pages.len();
        let mut raw = inode.body_mut();
        let mut result = Ok(());
        while let Some((&lblk, _)) = pages.first_key_value() {
            result = self.write_back_run(inode, &mut raw, &pages, lblk).map(|n| {
                for done in lblk..lblk + n {
                    pages.remove(&done);
                }
            });
            if result.is_err() {
                break;
            }
        }
        self.pages.add(-to_i64(before - pages.len()));
        inode.paged.store(!pages.is_empty(), Ordering::Release);
        *inode.pages() = pages;
        self.write_inode(inode, &mut raw);
        result
    }

    /// Writes back the pages from `lblk` on that lie in one run; returns how many.
    fn write_back_run(
        &self,
        inode: &Inode<P>,
        raw: &mut Raw,
        pages: &Pages<P>,
        lblk: u32,
    ) -> Result<u32> {
        let delayed = pages.get(&lblk).is_some_and(crate::pages::Page::delayed);
        let len = low32(
            pages
                .range(lblk..)
                .zip(lblk..lblk.saturating_add(MAX_WRITTEN))
                .take_while(|((at, page), want)| *at == want && page.delayed() == delayed)
                .count() as u64,
        );
        if delayed {
            return self.place_run(inode, raw, pages, lblk, len);
        }
        let extent = self.find(inode, raw, lblk)?;
        let n = len.min(extent.end() - lblk);
        match extent.status.advanced(lblk - extent.lblk) {
            Status::Written(start) => {
                self.write_pages(pages, lblk, n, start)?;
                Ok(n)
            }
            Status::Unwritten(start) => {
                self.write_pages(pages, lblk, n, start)?;
                let run = Run {
                    lblk,
                    len: n,
                    start,
                    unwritten: false,
                };
                self.replace(inode, raw, lblk, lblk + n, Some(run))?;
                let _ = inode.es.insert(lblk, n, Status::Written(start));
                Ok(n)
            }
            _ => Err(Error::corrupt(
                Object::Inode(inode.ino),
                format!("block {lblk} has lost its place"),
            )),
        }
    }

    /// Gives delayed pages their places and writes them.
    fn place_run(
        &self,
        inode: &Inode<P>,
        raw: &mut Raw,
        pages: &Pages<P>,
        lblk: u32,
        len: u32,
    ) -> Result<u32> {
        let goal = self.goal(inode, raw, lblk)?;
        let (start, n) = self.take_blocks(goal, len)?;
        let run = Run {
            lblk,
            len: n,
            start,
            unwritten: false,
        };
        let done = self
            .write_pages(pages, lblk, n, start)
            .and_then(|()| self.replace(inode, raw, lblk, lblk + n, Some(run)));
        match done {
            Ok(_) => {
                self.add_sectors(raw, u64::from(n));
                for (_, page) in pages.range(lblk..lblk + n) {
                    page.mapped();
                }
                // The claim went with the allocation, so what the map releases is accounted for.
                let _ = inode.es.insert(lblk, n, Status::Written(start));
                Ok(n)
            }
            Err(e) => {
                // The pages keep their claim.
                self.space.reclaim(u64::from(n));
                self.give_blocks(start, u64::from(n))?;
                Err(e)
            }
        }
    }

    /// Where the blocks of a file from `lblk` on should lie: behind those before.
    pub(crate) fn goal(&self, inode: &Inode<P>, raw: &Raw, lblk: u32) -> Result<u64> {
        if let Some(before) = lblk.checked_sub(1) {
            let extent = self.find(inode, raw, before)?;
            if let Some(place) = extent.physical_at(before) {
                return Ok(place + 1);
            }
        }
        Ok(self.home(inode.ino))
    }

    /// Writes the data of adjacent pages to adjacent blocks.
    fn write_pages(&self, pages: &Pages<P>, lblk: u32, n: u32, start: u64) -> Result<()> {
        let most = (self.max_transfer >> self.geo.block_bits).clamp(1, MOST_AT_ONCE);
        let all: Vec<IoSlice<'_>> = pages
            .range(lblk..lblk + n)
            .map(|(_, page)| IoSlice::new(&page.data))
            .collect();
        let mut at = start << self.geo.block_bits;
        for piece in all.chunks(us(most)) {
            self.device
                .write_vectored_at(piece, at, cairn_block::ReqFlags::empty())?;
            at += (piece.len() as u64) << self.geo.block_bits;
        }
        Ok(())
    }

    /// Gives back runs that a tree no longer holds.
    pub(crate) fn give_runs(&self, runs: &[Run]) {
        if total(runs) > 0 {
            self.give_rest(crate::evict::Rest::of_runs(runs));
        }
    }
}
