//! Replies, as a client reads them.

use super::Framing;
use super::error::{Violation, WireError};
use super::proto::{
    CHUNK_MAGIC, EXTENDED_CHUNK_MAGIC, MAX_EXTENTS, MAX_STRING, SIMPLE_REPLY_MAGIC, StatusFlags,
    chunk,
};
use super::take::Take;

/// What stands at the front of what has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The whole answer in simple framing; the data of a read that succeeded follows.
    Simple {
        /// Of the request.
        cookie: u64,
        /// What went wrong.
        error: Option<WireError>,
    },
    /// A chunk of an answer.
    Chunk {
        /// Of the request.
        cookie: u64,
        /// Whether it is the last one.
        done: bool,
        /// What it says.
        body: Body<'a>,
    },
}

/// What a chunk says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Nothing.
    None,
    /// `len` bytes follow, which were read at `offset`.
    Data {
        /// Where they were read.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Zeros were read.
    Hole {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Where data is.
    Status(Extents<'a>),
    /// The request failed.
    Error {
        /// Why.
        error: WireError,
        /// The server's words.
        message: &'a [u8],
    },
}

/// Extents of a status chunk, still as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extents<'a> {
    /// Id of their context.
    pub context: u32,
    wide: bool,
    rest: Take<'a>,
}

impl Iterator for Extents<'_> {
    type Item = (u64, StatusFlags);

    fn next(&mut self) -> Option<Self::Item> {
        let (len, flags) = if self.wide {
            (self.rest.u64()?, self.rest.u64()?)
        } else {
            (self.rest.u32()?.into(), self.rest.u32()?.into())
        };
        // Bits beyond the two that are defined say nothing to this client.
        let flags = u32::try_from(flags & 3).unwrap_or(0);
        Some((len, StatusFlags::from_bits_truncate(flags)))
    }
}

/// The client's side after the handshake: finds replies in what has arrived.
#[derive(Debug, Clone, Copy)]
pub struct ClientTransmission {
    framing: Framing,
}

/// Fields of a chunk's header.
struct Head {
    done: bool,
    kind: u16,
    cookie: u64,
    len: u64,
}

impl ClientTransmission {
    /// A connection of this framing.
    pub const fn new(framing: Framing) -> Self {
        Self { framing }
    }

    /// What is at the front of `input` and how many bytes it takes, or `None` while it is not all there.
    /// Data that was read is not part of it: it follows.
    ///
    /// # Errors
    /// The server does not speak the protocol.
    pub fn decode<'a>(&self, input: &'a [u8]) -> Result<Option<(Event<'a>, usize)>, Violation> {
        let mut take = Take(input);
        let Some(magic) = take.u32() else {
            return Ok(None);
        };
        let event = match (magic, self.framing) {
            (SIMPLE_REPLY_MAGIC, Framing::Simple | Framing::Structured) => {
                let (Some(error), Some(cookie)) = (take.u32(), take.u64()) else {
                    return Ok(None);
                };
                let error = (error != 0).then(|| WireError::from_number(error));
                Some(Event::Simple { cookie, error })
            }
            (CHUNK_MAGIC, Framing::Structured) | (EXTENDED_CHUNK_MAGIC, Framing::Extended) => {
                self.chunk(&mut take)?
            }
            _ => {
                return Err(Violation::Magic {
                    of: "a reply",
                    found: magic.into(),
                    want: match self.framing {
                        Framing::Simple => SIMPLE_REPLY_MAGIC,
                        Framing::Structured => CHUNK_MAGIC,
                        Framing::Extended => EXTENDED_CHUNK_MAGIC,
                    }
                    .into(),
                });
            }
        };
        let used = input.len() - take.0.len();
        Ok(event.map(|e| (e, used)))
    }

    fn head(self, take: &mut Take<'_>) -> Option<Head> {
        let flags = take.u16()?;
        let kind = take.u16()?;
        let cookie = take.u64()?;
        let len = if self.framing == Framing::Extended {
            take.u64()?;
            take.u64()?
        } else {
            take.u32()?.into()
        };
        Some(Head {
            done: flags & chunk::DONE != 0,
            kind,
            cookie,
            len,
        })
    }

    fn chunk<'a>(self, take: &mut Take<'a>) -> Result<Option<Event<'a>>, Violation> {
        let Some(head) = self.head(take) else {
            return Ok(None);
        };
        let body = match head.kind {
            chunk::NONE if head.len == 0 && head.done => Some(Body::None),
            chunk::OFFSET_DATA if head.len > 8 => take.u64().map(|offset| Body::Data {
                offset,
                len: head.len - 8,
            }),
            chunk::OFFSET_HOLE if head.len == 12 => hole(take),
            chunk::BLOCK_STATUS | chunk::BLOCK_STATUS_EXT => self.status(&head, take)?,
            kind if kind & chunk::ERROR_BIT != 0 => failure(&head, take)?,
            _ => {
                return Err(Violation::Reply(
                    "a chunk of an unknown type or of a wrong length",
                ));
            }
        };
        Ok(body.map(|body| Event::Chunk {
            cookie: head.cookie,
            done: head.done,
            body,
        }))
    }

    fn status<'a>(self, head: &Head, take: &mut Take<'a>) -> Result<Option<Body<'a>>, Violation> {
        let wide = head.kind == chunk::BLOCK_STATUS_EXT;
        let (before, each) = if wide { (8, 16) } else { (4, 8) };
        let n = head.len.saturating_sub(before) / each;
        let right = wide == (self.framing == Framing::Extended)
            && n > 0
            && n <= MAX_EXTENTS as u64
            && head.len == before + n * each;
        if !right {
            return Err(Violation::Reply("a status chunk of a wrong length"));
        }
        let Some(bytes) = usize::try_from(head.len).ok().and_then(|n| take.bytes(n)) else {
            return Ok(None);
        };
        let mut rest = Take(bytes);
        let context = rest.u32().unwrap_or(0);
        if wide && rest.u32().map(u64::from) != Some(n) {
            return Err(Violation::Reply("a status chunk of a wrong count"));
        }
        Ok(Some(Body::Status(Extents {
            context,
            wide,
            rest,
        })))
    }
}

fn hole<'a>(take: &mut Take<'a>) -> Option<Body<'a>> {
    let (offset, len) = (take.u64()?, take.u32()?.into());
    Some(Body::Hole { offset, len })
}

fn failure<'a>(head: &Head, take: &mut Take<'a>) -> Result<Option<Body<'a>>, Violation> {
    // Number, length, message, and for one kind an offset; kinds nobody knows may have more.
    if head.len < 6 || head.len > 6 + 2 * MAX_STRING as u64 {
        return Err(Violation::Reply("an error chunk of a wrong length"));
    }
    let Some(bytes) = usize::try_from(head.len).ok().and_then(|n| take.bytes(n)) else {
        return Ok(None);
    };
    let mut rest = Take(bytes);
    let number = rest.u32().unwrap_or(0);
    let len = rest.u16().unwrap_or(0);
    let message = rest.bytes(len.into()).ok_or(Violation::Reply(
        "an error message that is longer than its chunk",
    ))?;
    if number == 0 {
        return Err(Violation::Reply("an error chunk without an error"));
    }
    Ok(Some(Body::Error {
        error: WireError::from_number(number),
        message,
    }))
}
