//! Lists of buffers: gathered, scattered, and cut into pieces without copying.

use std::io::{IoSlice, IoSliceMut};

use crate::check;

#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths of slices in memory fit usize"
)]
pub(crate) const fn us(n: u64) -> usize {
    n as usize
}

/// All bytes in one piece.
pub(crate) fn gather(bufs: &[IoSlice<'_>]) -> Vec<u8> {
    let mut all = Vec::with_capacity(us(check::bytes(bufs)));
    for b in bufs {
        all.extend_from_slice(b);
    }
    all
}

/// Spreads one piece over the buffers.
pub(crate) fn scatter(mut from: &[u8], bufs: &mut [IoSliceMut<'_>]) {
    for b in bufs {
        let n = b.len().min(from.len());
        let (part, rest) = from.split_at(n);
        if let Some(to) = b.get_mut(..n) {
            to.copy_from_slice(part);
        }
        from = rest;
    }
}

/// Hands out a list of buffers to write in pieces of any length.
pub(crate) struct Pieces<'a> {
    rest: std::slice::Iter<'a, IoSlice<'a>>,
    open: &'a [u8],
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(bufs: &'a [IoSlice<'a>]) -> Self {
        Self {
            rest: bufs.iter(),
            open: &[],
        }
    }

    pub(crate) fn take(&mut self, len: u64) -> Vec<IoSlice<'a>> {
        let mut need = us(len);
        let mut list = Vec::new();
        while need > 0 {
            if self.open.is_empty() {
                match self.rest.next() {
                    Some(b) => self.open = b,
                    None => break,
                }
                continue;
            }
            let (part, rest) = self.open.split_at(need.min(self.open.len()));
            list.push(IoSlice::new(part));
            need -= part.len();
            self.open = rest;
        }
        list
    }
}

/// Hands out a list of buffers to fill in pieces of any length.
pub(crate) struct PiecesMut<'a, 'b> {
    rest: std::slice::IterMut<'a, IoSliceMut<'b>>,
    open: &'a mut [u8],
}

impl<'a, 'b> PiecesMut<'a, 'b> {
    pub(crate) fn new(bufs: &'a mut [IoSliceMut<'b>]) -> Self {
        Self {
            rest: bufs.iter_mut(),
            open: &mut [],
        }
    }

    pub(crate) fn take(&mut self, len: u64) -> Vec<IoSliceMut<'a>> {
        let mut need = us(len);
        let mut list = Vec::new();
        while need > 0 {
            if self.open.is_empty() {
                match self.rest.next() {
                    Some(b) => self.open = b,
                    None => break,
                }
                continue;
            }
            let open = std::mem::take(&mut self.open);
            let n = need.min(open.len());
            let (part, rest) = open.split_at_mut(n);
            list.push(IoSliceMut::new(part));
            need -= n;
            self.open = rest;
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_list() {
        let bufs = [
            IoSlice::new(b"abc"),
            IoSlice::new(b""),
            IoSlice::new(b"defgh"),
        ];
        let mut pieces = Pieces::new(&bufs);
        let all: Vec<Vec<u8>> = [2, 0, 4, 2]
            .iter()
            .map(|n| gather(&pieces.take(*n)))
            .collect();
        assert_eq!(all, [&b"ab"[..], b"", b"cdef", b"gh"]);
        assert!(pieces.take(1).is_empty());
    }

    #[test]
    fn pieces_to_fill_cover_the_list() {
        let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 5]);
        let mut bufs = [
            IoSliceMut::new(&mut a),
            IoSliceMut::new(&mut b),
            IoSliceMut::new(&mut c),
        ];
        let mut pieces = PiecesMut::new(&mut bufs);
        for (n, text) in [(2, &b"ab"[..]), (4, b"cdef"), (2, b"gh")] {
            scatter(text, &mut pieces.take(n));
        }
        assert_eq!((&a[..], &c[..]), (&b"abc"[..], &b"defgh"[..]));
    }
}
