//! Discard, zeroing and freeing.
//!
//! A range is cleared region by region, the region's lock held alone. Long runs of pages are freed
//! at once. Freeing a single page costs about ten times as much as zeroing it, so short runs are
//! zeroed, marked as waiting, and freed in longer runs once enough of them wait in a region.

use cairn_block::{Error, Op, ReqFlags, Result};

use crate::bitmap::PAGE;
use crate::ram::{Ram, pages};
use crate::stripes::{REGION, regions};

/// Shortest run that is freed at once: 64 KiB.
const RUN: u64 = 16;
/// Under huge pages only a whole one is freed: less would split it for good.
const HUGE_RUN: u64 = REGION / PAGE;
/// A region is swept each time so many more of its pages wait: 256 KiB.
const SWEEP: u64 = 64;
/// When more than this waits on the whole device (64 MiB), a region is swept of all its pages, however
/// short the runs are.
const MOST_WAITING: u64 = (64 << 20) / PAGE;

impl Ram {
    /// Makes a range read as zeros, by freeing where that pays.
    pub(crate) fn clear(&self, op: Op, off: u64, len: u64) -> Result<()> {
        for (at, n) in regions(off, len) {
            let _alone = self.stripes.own(at);
            self.still_inside(op, at, n)?;
            let size = self.len.load(std::sync::atomic::Ordering::Relaxed);
            self.clear_region(at, n, size)?;
        }
        Ok(())
    }

    /// After the size went down from `old` to `new`: nothing of the tail may show again.
    pub(crate) fn clear_beyond(&self, new: u64, old: u64) -> Result<()> {
        for (at, n) in regions(new, old - new) {
            let _alone = self.stripes.own(at);
            self.clear_region(at, n, old)?;
        }
        Ok(())
    }

    /// The region's lock is held alone, and the range lies inside it.
    fn clear_region(&self, off: u64, len: u64, size: u64) -> Result<()> {
        let end = off + len;
        let first = off.div_ceil(PAGE);
        // The last page of the device may be a partial one, and is then cleared as a whole.
        let last = if end == size {
            end.div_ceil(PAGE)
        } else {
            end / PAGE
        };
        if first >= last {
            // At most the end of one page and the beginning of the next.
            let border = (first * PAGE).clamp(off, end);
            self.zero_part(off, border)?;
            return self.zero_part(border, end);
        }
        self.zero_part(off, first * PAGE)?;
        self.zero_part(last * PAGE, end)?;
        self.clear_pages(first, last)
    }

    /// Zeroes a part of one page, which stays allocated.
    fn zero_part(&self, from: u64, to: u64) -> Result<()> {
        if from < to && self.bits.test(from / PAGE) {
            self.zero(from, to - from)?;
        }
        Ok(())
    }

    fn clear_pages(&self, first: u64, end: u64) -> Result<()> {
        if !self.store.frees() {
            self.zero_runs(first, end)?;
            self.space.release(self.clear_bits(first, end));
            return Ok(());
        }
        if end - first >= self.shortest_run() {
            return self.free_run(first, end);
        }
        let before = self.waiting_in_region(first);
        // Zeroed before the bits are cleared: who sees a clear bit may count on zeros behind it.
        self.zero_runs(first, end)?;
        let mut page = first;
        while page < end {
            let (data, next) = self.bits.run(page, end);
            if data {
                self.waiting.set_all(page, next);
                self.space.wait(self.clear_bits(page, next));
            }
            page = next;
        }
        let after = self.waiting_in_region(first);
        if self.space.pending() > MOST_WAITING {
            self.sweep(first, 1)
        } else if before / SWEEP != after / SWEEP {
            self.sweep(first, self.shortest_run())
        } else {
            Ok(())
        }
    }

    /// Clears bits; where pages have locks, each under its own, so that who reads a page finds its bit
    /// and its bytes in step.
    fn clear_bits(&self, first: u64, end: u64) -> u64 {
        let Some(guards) = &self.guards else {
            return self.bits.clear(first, end);
        };
        (first..end)
            .map(|page| {
                let _alone = guards.own(page);
                self.bits.clear(page, page + 1)
            })
            .sum()
    }

    fn shortest_run(&self) -> u64 {
        if self.config.huge { HUGE_RUN } else { RUN }
    }

    fn zero_runs(&self, first: u64, end: u64) -> Result<()> {
        let mut page = first;
        while page < end {
            let (data, next) = self.bits.run(page, end);
            if data {
                // The bytes of the last page behind the end of the device are zero anyway.
                self.zero(page * PAGE, (next - page) * PAGE)?;
            }
            page = next;
        }
        Ok(())
    }

    /// Frees a run of pages, whatever they hold.
    fn free_run(&self, first: u64, end: u64) -> Result<()> {
        let data = self.clear_bits(first, end);
        let waiting = self.waiting.clear(first, end);
        if data + waiting == 0 {
            return Ok(());
        }
        let off = first * PAGE;
        let freed = self.store.free(off, (end - first) * PAGE);
        self.space.unwait(waiting);
        self.space.release(data + waiting);
        if freed.map_err(|e| Error::io(off, e))? {
            self.counts.freed_bytes().add((data + waiting) * PAGE);
        }
        Ok(())
    }

    fn region_of(&self, page: u64) -> (u64, u64) {
        let first = page * PAGE / REGION * REGION / PAGE;
        let end = (first + REGION / PAGE).min(self.config.max.div_ceil(PAGE));
        (first, end)
    }

    fn waiting_in_region(&self, page: u64) -> u64 {
        let (first, end) = self.region_of(page);
        self.waiting.count(first, end)
    }

    /// Frees the waiting pages of a region that lie in clear runs of at least `shortest` pages. The
    /// region's lock is held alone, so a clear bit stays clear.
    fn sweep(&self, page: u64, shortest: u64) -> Result<()> {
        let (mut page, end) = self.region_of(page);
        while page < end {
            let (data, next) = self.bits.run(page, end);
            if !data && next - page >= shortest && self.waiting.count(page, next) > 0 {
                self.free_run(page, next)?;
            }
            page = next;
        }
        Ok(())
    }

    /// Frees everything that waits, for a write that finds the limit reached.
    pub(crate) fn free_waiting(&self) -> Result<()> {
        for (at, _) in regions(0, self.config.max) {
            if self.waiting_in_region(at / PAGE) > 0 {
                let _alone = self.stripes.own(at);
                self.sweep(at / PAGE, 1)?;
            }
        }
        Ok(())
    }

    pub(crate) fn write_zeroes_checked(&self, off: u64, len: u64, flags: ReqFlags) -> Result<()> {
        if flags.contains(ReqFlags::FAST) && !self.zeroing_is_fast(off, len, flags) {
            return Err(Error::not_fast());
        }
        if !flags.contains(ReqFlags::NO_HOLE) {
            return self.clear(Op::WriteZeroes, off, len);
        }
        for (at, n) in regions(off, len) {
            let mut alone = Some(self.stripes.own(at));
            self.still_inside(Op::WriteZeroes, at, n)?;
            let (first, end) = pages(at, n);
            let mut reserved = self.claim(first, end);
            if reserved.is_none() && self.space.pending() > 0 {
                drop(alone.take());
                self.free_waiting()?;
                alone = Some(self.stripes.own(at));
                self.still_inside(Op::WriteZeroes, at, n)?;
                reserved = self.claim(first, end);
            }
            let reserved = reserved.ok_or_else(|| self.no_space(at))?;
            if let Err(e) = self.ask(first, end).and_then(|()| self.zero(at, n)) {
                self.space.settle(reserved, 0);
                return Err(e);
            }
            let used = self.commit(first, end);
            self.space.settle(reserved, used);
            drop(alone);
        }
        Ok(())
    }

    /// Whether clearing bits and freeing whole pages is all it takes.
    fn zeroing_is_fast(&self, off: u64, len: u64, flags: ReqFlags) -> bool {
        if flags.contains(ReqFlags::NO_HOLE) || !self.store.frees() {
            return false;
        }
        let end = off + len;
        let whole = |edge: u64| edge.is_multiple_of(PAGE) || !self.bits.test(edge / PAGE);
        len == 0
            || (whole(off)
                && (end == self.len.load(std::sync::atomic::Ordering::Relaxed) || whole(end)))
    }
}
