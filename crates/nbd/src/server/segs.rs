//! Bytes in segments: what waits to be sent, and payloads as they arrive.
//!
//! A device reads straight into the segments that are sent, and writes straight from those that were
//! received. Segments are recycled, so a connection in steady state allocates nothing; and they are
//! taken one by one as bytes arrive, so a claimed length reserves nothing.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};

/// Bytes of one segment: as much as a socket's buffer takes at once.
pub(crate) const SEGMENT: usize = 256 << 10;
/// Segments that a pool keeps for later.
const KEPT: usize = 32;
/// Segments that one system call sends.
const VECTORS: usize = 32;

/// Unused segments.
#[derive(Default)]
pub(crate) struct Pool {
    free: Vec<Box<[u8]>>,
}

impl Pool {
    fn take(&mut self) -> Box<[u8]> {
        self.free
            .pop()
            .unwrap_or_else(|| vec![0; SEGMENT].into_boxed_slice())
    }

    fn give(&mut self, buf: Box<[u8]>) {
        if buf.len() == SEGMENT && self.free.len() < KEPT {
            self.free.push(buf);
        }
    }
}

struct Segment {
    buf: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Segment {
    const fn new(buf: Box<[u8]>) -> Self {
        Self {
            buf,
            start: 0,
            end: 0,
        }
    }

    fn filled(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    const fn room(&self) -> usize {
        self.buf.len() - self.end
    }

    /// The next `len` bytes that are not filled yet.
    fn tail(&mut self, len: usize) -> &mut [u8] {
        self.buf
            .get_mut(self.end..self.end + len)
            .unwrap_or_default()
    }
}

/// A point to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    segments: usize,
    end: usize,
    bytes: usize,
}

/// A queue of bytes.
#[derive(Default)]
pub(crate) struct Segs {
    list: VecDeque<Segment>,
    bytes: usize,
}

impl Segs {
    /// With one segment of exactly `len` bytes, for an answer of known size.
    pub(crate) fn sized(len: usize) -> Self {
        let mut segs = Self::default();
        let buf = vec![0; len].into_boxed_slice();
        segs.list.push_back(Segment::new(buf));
        segs
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where the end is now. Valid until something is taken off the front.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            segments: self.list.len(),
            end: self.list.back().map_or(0, |s| s.end),
            bytes: self.bytes,
        }
    }

    /// Takes back what was added since.
    pub(crate) fn rewind(&mut self, mark: Mark, pool: &mut Pool) {
        while self.list.len() > mark.segments {
            if let Some(segment) = self.list.pop_back() {
                pool.give(segment.buf);
            }
        }
        if let Some(last) = self.list.back_mut() {
            last.end = mark.end;
        }
        self.bytes = mark.bytes;
    }

    /// Adds bytes.
    #[inline]
    pub(crate) fn put(&mut self, pool: &mut Pool, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let segment = self.open(pool);
            let n = segment.room().min(bytes.len());
            let (now, rest) = bytes.split_at(n);
            segment.tail(n).copy_from_slice(now);
            segment.end += n;
            self.bytes += n;
            bytes = rest;
        }
    }

    /// The last segment, with room in it.
    fn open(&mut self, pool: &mut Pool) -> &mut Segment {
        if self.list.back().is_none_or(|s| s.room() == 0) {
            self.list.push_back(Segment::new(pool.take()));
        }
        let last = self.list.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "there is a last one now")]
        &mut self.list[last]
    }

    /// Adds `len` bytes that `fill` writes; on an error nothing was added.
    #[inline]
    pub(crate) fn fill<E>(
        &mut self,
        pool: &mut Pool,
        len: usize,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.list.back().is_none_or(|s| s.room() < len) {
            if len > SEGMENT {
                return self.fill_many(pool, len, fill);
            }
            self.list.push_back(Segment::new(pool.take()));
        }
        if let Some(segment) = self.list.back_mut() {
            fill(&mut [IoSliceMut::new(segment.tail(len))])?;
            segment.end += len;
            self.bytes += len;
        }
        Ok(())
    }

    fn fill_many<E>(
        &mut self,
        pool: &mut Pool,
        len: usize,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut new: Vec<Segment> = (0..len.div_ceil(SEGMENT))
            .map(|_| Segment::new(pool.take()))
            .collect();
        let mut left = len;
        let mut bufs: Vec<IoSliceMut<'_>> = new
            .iter_mut()
            .map(|s| {
                let n = left.min(SEGMENT);
                left -= n;
                IoSliceMut::new(s.tail(n))
            })
            .collect();
        let filled = fill(&mut bufs);
        drop(bufs);
        if let Err(e) = filled {
            for segment in new {
                pool.give(segment.buf);
            }
            return Err(e);
        }
        let mut left = len;
        for mut segment in new {
            segment.end = left.min(SEGMENT);
            left -= segment.end;
            self.list.push_back(segment);
        }
        self.bytes += len;
        Ok(())
    }

    /// Adds another queue behind this one.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.bytes += other.bytes;
        self.list.append(&mut other.list);
    }

    /// The bytes as slices.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        self.list.iter().map(|s| IoSlice::new(s.filled())).collect()
    }

    /// Hands the front to `send` and drops what it took.
    ///
    /// # Errors
    /// What `send` says.
    pub(crate) fn send(
        &mut self,
        pool: &mut Pool,
        send: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut bufs = [IoSlice::new(&[]); VECTORS];
        let mut used = 0;
        for (to, from) in bufs.iter_mut().zip(&self.list) {
            *to = IoSlice::new(from.filled());
            used += 1;
        }
        let n = send(bufs.get(..used).unwrap_or_default())?;
        self.drop_front(n, pool);
        Ok(n)
    }

    fn drop_front(&mut self, mut n: usize, pool: &mut Pool) {
        self.bytes -= n.min(self.bytes);
        let mut segments = self.list.len();
        while let Some(front) = self.list.front_mut() {
            let have = front.end - front.start;
            if n < have {
                front.start += n;
                return;
            }
            n -= have;
            if segments == 1 && front.buf.len() == SEGMENT {
                // The last one stays, to be filled from its beginning.
                front.start = 0;
                front.end = 0;
                return;
            }
            segments -= 1;
            if let Some(front) = self.list.pop_front() {
                pool.give(front.buf);
            }
        }
    }

    /// Takes in up to `len` bytes by one call to `receive`, which is offered room in a segment and
    /// `spare` behind it. Returns what it said, and how many of those bytes are in this queue.
    ///
    /// # Errors
    /// What `receive` says.
    pub(crate) fn receive(
        &mut self,
        pool: &mut Pool,
        len: usize,
        spare: &mut [u8],
        receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<(usize, usize)> {
        let segment = self.open(pool);
        let n = segment.room().min(len);
        let got = if n == len {
            receive(&mut [IoSliceMut::new(segment.tail(n)), IoSliceMut::new(spare)])?
        } else {
            receive(&mut [IoSliceMut::new(segment.tail(n))])?
        };
        let mine = got.min(n);
        segment.end += mine;
        self.bytes += mine;
        Ok((got, mine))
    }

    /// Empties the queue.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        for segment in self.list.drain(..) {
            pool.give(segment.buf);
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(segs: &Segs) -> Vec<u8> {
        segs.slices().iter().flat_map(|s| s.to_vec()).collect()
    }

    #[test]
    fn bytes_keep_their_order_over_segments() {
        let (mut segs, mut pool) = (Segs::default(), Pool::default());
        let big: Vec<u8> = (0..=250).cycle().take(2 * SEGMENT + 7).collect();
        segs.put(&mut pool, b"head");
        segs.fill::<()>(&mut pool, big.len(), |bufs| {
            let mut rest = &big[..];
            for b in bufs {
                let (now, later) = rest.split_at(b.len());
                b.copy_from_slice(now);
                rest = later;
            }
            Ok(())
        })
        .unwrap();
        segs.put(&mut pool, b"tail");
        let want = [b"head", &big[..], b"tail"].concat();
        assert_eq!(all(&segs), want);
        let mut sent = Vec::new();
        while !segs.is_empty() {
            segs.send(&mut pool, |bufs| {
                // A socket that takes odd amounts.
                let first = bufs.iter().find(|b| !b.is_empty()).unwrap();
                let n = first.len().min(100_001);
                sent.extend_from_slice(&first[..n]);
                Ok(n)
            })
            .unwrap();
        }
        assert_eq!(sent, want);
    }

    #[test]
    fn a_failed_fill_leaves_nothing() {
        let (mut segs, mut pool) = (Segs::default(), Pool::default());
        segs.put(&mut pool, b"kept");
        let mark = segs.mark();
        segs.put(&mut pool, b"header");
        for len in [1, SEGMENT, 3 * SEGMENT] {
            assert_eq!(segs.fill(&mut pool, len, |_| Err(5)), Err(5));
        }
        segs.rewind(mark, &mut pool);
        assert_eq!(all(&segs), b"kept");
        assert_eq!(segs.len(), 4);
    }

    #[test]
    fn a_payload_takes_memory_as_it_arrives() {
        let (mut segs, mut pool) = (Segs::default(), Pool::default());
        let mut spare = [0; 8];
        let claimed = 1 << 30;
        let (got, mine) = segs
            .receive(&mut pool, claimed, &mut spare, |bufs| {
                assert!(bufs.iter().map(|b| b.len()).sum::<usize>() <= SEGMENT);
                Ok(10)
            })
            .unwrap();
        assert_eq!((got, mine, segs.len()), (10, 10, 10));
        let (got, mine) = segs
            .receive(&mut pool, 5, &mut spare, |bufs| {
                assert_eq!(bufs.len(), 2);
                Ok(7)
            })
            .unwrap();
        assert_eq!((got, mine, segs.len()), (7, 5, 15));
    }
}
