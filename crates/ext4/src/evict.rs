//! Writing inodes, and the end of those that have no name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_flags::Probe;

use crate::error::{Error, Result};
use crate::file::File;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{self, Run};
use crate::raw::{EXTENTS_FL, Raw, Time, Which};
use crate::tree::MAX_BLOCK;

/// What of an ended inode is still to be given back.
pub(crate) struct Rest {
    /// Its number, and whether it was a directory; `None` if the inode goes on.
    ino: Option<(u32, bool)>,
    runs: Vec<(u64, u64)>,
    tree: Vec<u64>,
}

impl Rest {
    /// Runs of blocks alone.
    pub(crate) fn of_runs(runs: &[Run]) -> Self {
        Self {
            ino: None,
            runs: runs.iter().map(|r| (r.start, u64::from(r.len))).collect(),
            tree: Vec::new(),
        }
    }
}

impl<P: Probe> Ext4<P> {
    /// Writes an inode's fields into its table, or notes that this is still to be done.
    #[inline]
    pub(crate) fn write_inode(&self, inode: &Inode<P>, raw: &mut Raw) {
        let stored = self.try_write_inode(inode, raw);
        if stored.is_err() || inode.stale.load(Ordering::Relaxed) {
            inode.stale.store(stored.is_err(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn try_write_inode(&self, inode: &Inode<P>, raw: &mut Raw) -> Result<()> {
        self.store_inode(inode.place, inode.seed, raw)
    }

    /// Writes an inode's fields into its place in the inode tables.
    #[inline]
    pub(crate) fn store_inode(
        &self,
        (block, at): (u64, usize),
        seed: u32,
        raw: &mut Raw,
    ) -> Result<()> {
        self.cache
            .get(block)?
            .write(|b| raw.store(&self.geo, seed, b, at))?;
        Ok(())
    }

    /// Marks the buffer of an inode whose bytes are right there already, or will be in a moment.
    #[inline]
    pub(crate) fn mark_inode(&self, (block, _): (u64, usize)) -> Result<()> {
        self.cache.get(block)?.mark_unchanged();
        Ok(())
    }

    /// Sets the times of data that changed, and stores what could not be stored before.
    pub(crate) fn settle_inode(&self, inode: &Inode<P>) -> Result<()> {
        let touched = inode.touched.swap(false, Ordering::AcqRel);
        if !touched && !inode.stale.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut raw = inode.body_mut();
        if inode.gone.load(Ordering::Acquire) {
            return Ok(());
        }
        if touched {
            let now = Time::now();
            raw.set_time(Which::Modify, now);
            raw.set_time(Which::Change, now);
        }
        let stored = self.try_write_inode(inode, &mut raw);
        inode.stale.store(stored.is_err(), Ordering::Relaxed);
        stored
    }

    /// Closes a file. One whose last name is gone ends here.
    ///
    /// # Errors
    /// Its times could not be written.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a closed file is not to be used again"
    )]
    pub fn close(&self, file: File<P>) -> Result<()> {
        let inode = &file.inode;
        let settled = if inode.touched.load(Ordering::Relaxed) && self.writable().is_ok() {
            self.settle_inode(inode)
        } else {
            Ok(())
        };
        if inode.opens.fetch_sub(1, Ordering::SeqCst) == 1 && inode.is_nameless() {
            self.evict(inode, Time::now());
        }
        settled
    }

    /// Ends an inode without names that nobody has open. What cannot be given back now is given back by
    /// the next sync.
    pub(crate) fn evict(&self, inode: &Inode<P>, now: Time) {
        if inode.gone.swap(true, Ordering::AcqRel) {
            return;
        }
        let rest = match self.end(inode, now) {
            Ok(rest) => rest,
            Err(e) => {
                self.note(e);
                return;
            }
        };
        self.give_rest(rest);
    }

    /// Clears the inode on disk, and tells what it had.
    fn end(&self, inode: &Inode<P>, now: Time) -> Result<Rest> {
        let _alone = inode.alone();
        if inode.paged.load(Ordering::Acquire) {
            let mut pages = inode.pages();
            let delayed = pages.values().filter(|p| p.delayed()).count() as u64;
            self.pages.add(-crate::num::to_i64(pages.len()));
            pages.clear();
            self.space.unclaim(delayed);
        }
        let mut raw = inode.body_mut();
        // As Linux does: the inode is marked once when its blocks begin to go, and once more when it is cleared.
        // What is written the second time holds for both; a buffer that cannot be had is missed there, too.
        let _ = self.mark_inode(inode.place);
        let (mut runs, mut tree) = (Vec::new(), Vec::new());
        let walked = if raw.flags() & EXTENTS_FL != 0 {
            self.walk(
                inode,
                &raw,
                &mut |run| {
                    runs.push((run.start, u64::from(run.len)));
                    Ok(())
                },
                &mut |block| {
                    tree.push(block);
                    Ok(())
                },
            )
        } else {
            Ok(())
        };
        let kept = walked.and_then(|()| {
            if raw.has_attribute_block() {
                return Err(Error::unsupported(format!(
                    "inode {} has attributes in a block of their own",
                    inode.ino
                )));
            }
            Ok(())
        });
        if let Err(e) = kept {
            // It stays as it is, without names.
            self.write_inode(inode, &mut raw);
            return Err(e);
        }
        if raw.flags() & EXTENTS_FL != 0 {
            node::empty_root(raw.root_mut());
        }
        raw.set_size(0);
        inode.size.store(0, Ordering::Release);
        raw.set_sectors(0);
        raw.set_dtime(now.secs32());
        self.try_write_inode(inode, &mut raw)?;
        drop(raw);
        // Nothing was delayed any more: no reservation is to be lowered.
        let _ = inode.es.remove(0, MAX_BLOCK);
        if let Some(old) = self.inodes.remove(inode.ino, Arc::clone(&inode.es)) {
            let _ = self.es.evict(self.es_key(old));
        }
        Ok(Rest {
            ino: Some((inode.ino, inode.is_dir())),
            runs,
            tree,
        })
    }

    pub(crate) fn give_rest(&self, mut rest: Rest) {
        if let Err(e) = self.try_give_rest(&mut rest) {
            self.note(e);
            self.rests().push(rest);
        }
    }

    fn try_give_rest(&self, rest: &mut Rest) -> Result<()> {
        while let Some((start, len)) = rest.runs.last().copied() {
            self.give_blocks(start, len)?;
            rest.runs.pop();
        }
        while let Some(block) = rest.tree.last().copied() {
            self.give_metadata(block)?;
            rest.tree.pop();
        }
        // The bit goes last: whoever takes the number finds nothing of the old inode.
        match rest.ino {
            Some((ino, dir)) => self.give_inode(ino, dir),
            None => Ok(()),
        }
    }

    /// Gives back what could not be given back before.
    pub(crate) fn give_rests(&self) -> Result<()> {
        let rests = std::mem::take(&mut *self.rests());
        let mut failed = None;
        for mut rest in rests {
            if let Err(e) = self.try_give_rest(&mut rest) {
                failed.get_or_insert(e);
                self.rests().push(rest);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
