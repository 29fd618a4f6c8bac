//! Replies, as a server writes them.

use super::Framing;
use super::error::WireError;
use super::proto::{
    BASE_ALLOCATION_ID, CHUNK_MAGIC, EXTENDED_CHUNK_LEN, EXTENDED_CHUNK_MAGIC, MAX_EXTENTS,
    MAX_STRING, SIMPLE_REPLY_MAGIC, StatusFlags, chunk,
};
use super::request::Request;
use super::take::len32;

/// Longest header with the fields that stand before the data.
const LONGEST: usize = EXTENDED_CHUNK_LEN + 12;

/// The bytes before the data of one reply or chunk.
#[derive(Debug, Clone, Copy)]
pub struct ReplyHeader {
    bytes: [u8; LONGEST],
    len: usize,
}

impl ReplyHeader {
    const fn new() -> Self {
        Self {
            bytes: [0; LONGEST],
            len: 0,
        }
    }

    #[inline]
    fn put(&mut self, field: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + field.len()) {
            to.copy_from_slice(field);
            self.len += field.len();
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Answers to one request.
///
/// A header says how many bytes of data follow; the caller sends them behind it, from wherever they
/// are, so data goes from the device to the socket's buffer once.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    framing: Framing,
    cookie: u64,
    offset: u64,
}

impl Reply {
    /// Longest header of any reply, in bytes.
    pub const MAX_HEADER: usize = LONGEST;

    /// Answers to `request`.
    pub const fn to(framing: Framing, request: &Request) -> Self {
        Self {
            framing,
            cookie: request.cookie,
            offset: request.offset,
        }
    }

    #[inline]
    fn simple(&self, error: u32) -> ReplyHeader {
        let mut h = ReplyHeader::new();
        h.put(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        h.put(&error.to_be_bytes());
        h.put(&self.cookie.to_be_bytes());
        h
    }

    #[inline]
    fn chunk(&self, kind: u16, done: bool, len: usize) -> ReplyHeader {
        let mut h = ReplyHeader::new();
        let flags = if done { chunk::DONE } else { 0 };
        let extended = self.framing == Framing::Extended;
        let magic = if extended {
            EXTENDED_CHUNK_MAGIC
        } else {
            CHUNK_MAGIC
        };
        h.put(&magic.to_be_bytes());
        h.put(&flags.to_be_bytes());
        h.put(&kind.to_be_bytes());
        h.put(&self.cookie.to_be_bytes());
        if extended {
            h.put(&self.offset.to_be_bytes());
            h.put(&(len as u64).to_be_bytes());
        } else {
            h.put(&len32(len).to_be_bytes());
        }
        h
    }

    /// Success without data, of any command but a read.
    #[inline]
    pub fn done(&self) -> ReplyHeader {
        if self.framing == Framing::Extended {
            self.chunk(chunk::NONE, true, 0)
        } else {
            self.simple(0)
        }
    }

    /// The end of an answer in chunks.
    pub fn end(&self) -> ReplyHeader {
        self.chunk(chunk::NONE, true, 0)
    }

    /// In front of `len` bytes read at `offset`. In simple framing that is the whole answer.
    #[inline]
    pub fn data(&self, offset: u64, len: usize, done: bool) -> ReplyHeader {
        if self.framing == Framing::Simple {
            return self.simple(0);
        }
        let mut h = self.chunk(chunk::OFFSET_DATA, done, len + 8);
        h.put(&offset.to_be_bytes());
        h
    }

    /// `len` bytes at `offset` are zeros. Not for simple framing, which has no such answer.
    #[inline]
    pub fn hole(&self, offset: u64, len: u32, done: bool) -> ReplyHeader {
        let mut h = self.chunk(chunk::OFFSET_HOLE, done, 12);
        h.put(&offset.to_be_bytes());
        h.put(&len.to_be_bytes());
        h
    }

    /// Failure, with a message where the framing has room for one; a longer message is cut.
    pub fn error(&self, error: WireError, message: &str, to: &mut Vec<u8>) {
        if self.framing == Framing::Simple {
            to.extend_from_slice(self.simple(error.number()).as_slice());
            return;
        }
        let mut end = message.len().min(MAX_STRING);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        let message = message.get(..end).unwrap_or_default().as_bytes();
        let head = self.chunk(chunk::ERROR, true, 6 + message.len());
        to.extend_from_slice(head.as_slice());
        to.extend_from_slice(&error.number().to_be_bytes());
        let len = u16::try_from(message.len()).unwrap_or(0);
        to.extend_from_slice(&len.to_be_bytes());
        to.extend_from_slice(message);
    }

    /// Where data is, as the whole answer.
    pub fn status(&self, status: &Status, to: &mut Vec<u8>) {
        let n = status.runs.len();
        let head = if self.framing == Framing::Extended {
            let mut h = self.chunk(chunk::BLOCK_STATUS_EXT, true, 8 + n * 16);
            h.put(&BASE_ALLOCATION_ID.to_be_bytes());
            h.put(&len32(n).to_be_bytes());
            h
        } else {
            let mut h = self.chunk(chunk::BLOCK_STATUS, true, 4 + n * 8);
            h.put(&BASE_ALLOCATION_ID.to_be_bytes());
            h
        };
        to.extend_from_slice(head.as_slice());
        for (len, flags) in &status.runs {
            if self.framing == Framing::Extended {
                to.extend_from_slice(&len.to_be_bytes());
                to.extend_from_slice(&u64::from(flags.bits()).to_be_bytes());
            } else {
                let len = u32::try_from(*len).unwrap_or(u32::MAX);
                to.extend_from_slice(&len.to_be_bytes());
                to.extend_from_slice(&flags.bits().to_be_bytes());
            }
        }
    }
}

/// Extents of one answer to `BLOCK_STATUS`: equal neighbours joined, as many as one chunk may have.
#[derive(Debug, Clone, Default)]
pub struct Status {
    runs: Vec<(u64, StatusFlags)>,
    one: bool,
}

impl Status {
    /// No extents yet; `one` when the client wants a single one.
    pub const fn new(one: bool) -> Self {
        Self {
            runs: Vec::new(),
            one,
        }
    }

    /// Adds the next extent and tells whether more are wanted.
    pub fn push(&mut self, len: u64, flags: StatusFlags) -> bool {
        if len == 0 {
            return true;
        }
        let full = self.runs.len() >= if self.one { 1 } else { MAX_EXTENTS };
        match self.runs.last_mut() {
            Some((joined, same)) if *same == flags => *joined += len,
            _ if full => return false,
            _ => self.runs.push((len, flags)),
        }
        true
    }

    /// Extents so far.
    pub fn runs(&self) -> &[(u64, StatusFlags)] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_one_is_one() {
        let mut all = Status::new(false);
        for (len, bits) in [(1, 0), (2, 0), (0, 1), (3, 3), (4, 0)] {
            assert!(all.push(len, StatusFlags::from_bits_retain(bits)));
        }
        let lens: Vec<u64> = all.runs().iter().map(|r| r.0).collect();
        assert_eq!(lens, [3, 3, 4]);
        let mut one = Status::new(true);
        assert!(one.push(5, StatusFlags::empty()));
        assert!(one.push(5, StatusFlags::empty()));
        assert!(!one.push(5, StatusFlags::HOLE));
        assert_eq!(one.runs(), [(10, StatusFlags::empty())]);
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let request = Request {
            cookie: 1,
            command: 0,
            flags: super::super::CommandFlags::empty(),
            offset: 0,
            len: 1,
            payload: 0,
        };
        let mut out = Vec::new();
        let text = "\u{e9}".repeat(4000);
        Reply::to(Framing::Structured, &request).error(WireError::Io, &text, &mut out);
        assert_eq!(out.len(), 20 + 6 + 4096);
        assert!(std::str::from_utf8(&out[26..]).is_ok());
    }
}
