//! Bytes in and out: which pages hold data, which lock is held, and the limit.

use std::io;

use cairn_block::{Error, Op, Result};

use crate::bitmap::{PAGE, PAGE_BYTES};
use crate::guard::Guards;
use crate::ram::{Ram, pages};
use crate::stripes::{REGION, regions};

/// The parts of a range by page: number, first byte within, bytes.
fn page_parts(off: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = off + len as u64;
    let mut at = off;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, within) = (at / PAGE, at % PAGE);
            let n = (PAGE - within).min(end - at);
            at += n;
            #[expect(clippy::cast_possible_truncation, reason = "both are at most a page")]
            (page, within as usize, n as usize)
        })
    })
}

impl Ram {
    /// Copies out; the range was checked.
    #[inline]
    pub(crate) fn read_slice(&self, mut off: u64, mut to: &mut [u8]) -> Result<()> {
        if let Some(guards) = &self.guards {
            return self.read_guarded(guards, off, to);
        }
        let end = off + to.len() as u64;
        if off / PAGE + 1 == end.div_ceil(PAGE) && self.bits.test(off / PAGE) {
            // A page that is there: what nearly every small read wants.
            return self.store.copy_out(off, to).map_err(|e| Error::io(off, e));
        }
        let last = end.div_ceil(PAGE);
        while off < end {
            let (data, next) = self.bits.run(off / PAGE, last);
            #[expect(clippy::cast_possible_truncation, reason = "at most to.len()")]
            let n = ((next * PAGE).min(end) - off) as usize;
            let (part, rest) = to.split_at_mut(n);
            if data {
                self.store
                    .copy_out(off, part)
                    .map_err(|e| Error::io(off, e))?;
            } else {
                // Reading a hole through a shared mapping would allocate it.
                part.fill(0);
                self.counts.zero_page_reads().add(next - off / PAGE);
            }
            to = rest;
            off += n as u64;
        }
        Ok(())
    }

    #[cold]
    fn read_guarded(&self, guards: &Guards, off: u64, to: &mut [u8]) -> Result<()> {
        let mut rest = to;
        for (page, within, n) in page_parts(off, rest.len()) {
            let (part, later) = rest.split_at_mut(n);
            let _shared = guards.share(page);
            let start = page * PAGE;
            let fail = |e| Error::io(start, e);
            if !self.bits.test(page) {
                part.fill(0);
                self.counts.zero_page_reads().inc();
            } else if guards.sums() {
                let mut whole = [0; PAGE_BYTES];
                self.store.copy_out(start, &mut whole).map_err(fail)?;
                if let Some((kept, now)) = guards.differs(page, &whole) {
                    let why = format!(
                        "the 4096 bytes at {start} have the checksum {now:08x}, they were written with {kept:08x}"
                    );
                    return Err(fail(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                part.copy_from_slice(whole.get(within..within + n).unwrap_or_default());
            } else {
                self.store
                    .copy_out(start + within as u64, part)
                    .map_err(fail)?;
            }
            rest = later;
        }
        Ok(())
    }

    /// Copies into pages that the caller has a share of.
    #[inline]
    fn copy_in(&self, off: u64, from: &[u8]) -> Result<()> {
        let Some(guards) = &self.guards else {
            return self.store.copy_in(off, from).map_err(|e| Error::io(off, e));
        };
        let mut rest = from;
        for (page, within, n) in page_parts(off, from.len()) {
            let (part, later) = rest.split_at(n);
            let start = page * PAGE;
            let fail = |e| Error::io(start, e);
            let _alone = guards.own(page);
            self.store
                .copy_in(start + within as u64, part)
                .map_err(fail)?;
            if guards.sums() {
                let mut whole = [0; PAGE_BYTES];
                self.store.copy_out(start, &mut whole).map_err(fail)?;
                guards.keep(page, &whole);
            }
            rest = later;
        }
        Ok(())
    }

    /// Zeroes pages, or parts of them, that the caller holds alone.
    pub(crate) fn zero(&self, off: u64, len: u64) -> Result<()> {
        if self.guards.is_none() {
            return self.store.zero(off, len).map_err(|e| Error::io(off, e));
        }
        let (mut at, end) = (off, off + len);
        while at < end {
            let n = PAGE.min(end - at);
            let zeros = [0; PAGE_BYTES];
            #[expect(clippy::cast_possible_truncation, reason = "at most a page")]
            self.copy_in(at, zeros.get(..n as usize).unwrap_or_default())?;
            at += n;
        }
        Ok(())
    }

    /// Copies in; the range was checked against the size of a moment ago.
    #[inline]
    pub(crate) fn write_slice(&self, off: u64, mut from: &[u8]) -> Result<()> {
        if !from.is_empty() && off / REGION == (off + from.len() as u64 - 1) / REGION {
            return self.write_region(off, from);
        }
        for (at, n) in regions(off, from.len() as u64) {
            #[expect(clippy::cast_possible_truncation, reason = "at most from.len()")]
            let (part, rest) = from.split_at(n as usize);
            self.write_region(at, part)?;
            from = rest;
        }
        Ok(())
    }

    #[inline]
    fn write_region(&self, off: u64, from: &[u8]) -> Result<()> {
        let len = from.len() as u64;
        let (first, end) = pages(off, len);
        let share = self.stripes.share(off);
        self.still_inside(Op::Write, off, len)?;
        let there = if first + 1 == end {
            self.bits.test(first)
        } else {
            self.bits.run(first, end) == (true, end)
        };
        if there {
            return self.copy_in(off, from);
        }
        drop(share);
        self.write_new(off, from)
    }

    /// A write that allocates.
    #[cold]
    fn write_new(&self, off: u64, from: &[u8]) -> Result<()> {
        let len = from.len() as u64;
        let (first, end) = pages(off, len);
        let mut swept = false;
        loop {
            let share = self.stripes.share(off);
            self.still_inside(Op::Write, off, len)?;
            let Some(reserved) = self.claim(first, end) else {
                drop(share);
                if swept || self.space.pending() == 0 {
                    return Err(self.no_space(off));
                }
                self.free_waiting()?;
                swept = true;
                continue;
            };
            if let Err(e) = self.ask(first, end).and_then(|()| self.copy_in(off, from)) {
                self.space.settle(reserved, 0);
                return Err(e);
            }
            let used = self.commit(first, end);
            self.space.settle(reserved, used);
            return Ok(());
        }
    }

    /// Takes space for the pages that hold nothing yet, where the backing wants to be asked.
    pub(crate) fn ask(&self, first: u64, end: u64) -> Result<()> {
        let mut page = first;
        while page < end {
            let (data, next) = self.bits.run(page, end);
            if !data {
                let off = page * PAGE;
                self.store
                    .ask(off, (next - page) * PAGE)
                    .map_err(|e| Error::io(off, e))?;
            }
            page = next;
        }
        Ok(())
    }

    /// Takes the pages that are not resident from the limit, before they are touched.
    pub(crate) fn claim(&self, first: u64, end: u64) -> Option<u64> {
        if !self.space.limited() {
            return Some(0);
        }
        let need = self.bits.count_clear_in_both(&self.waiting, first, end);
        self.space.reserve(need).then_some(need)
    }

    /// Sets the bits of pages that were copied to; returns how many became resident by it.
    pub(crate) fn commit(&self, first: u64, end: u64) -> u64 {
        let mut used = 0;
        for page in first..end {
            if self.bits.set(page) {
                // Only who set the bit takes the page off the waiting list, and only a discard,
                // which the region's lock keeps out, puts it there.
                if self.waiting.test(page) {
                    self.waiting.clear(page, page + 1);
                    self.space.unwait(1);
                } else {
                    used += 1;
                }
            }
        }
        used
    }

    pub(crate) fn no_space(&self, offset: u64) -> Error {
        Error::NoSpace {
            offset,
            limit: self.space.limit_bytes().unwrap_or(0),
        }
    }
}
