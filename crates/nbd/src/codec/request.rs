//! Requests, as a server reads them.

use super::error::{Violation, WireError};
use super::proto::{
    EXTENDED_REQUEST_LEN, EXTENDED_REQUEST_MAGIC, REQUEST_LEN, REQUEST_MAGIC, command,
};
use super::server_handshake::Negotiated;
use super::take::Take;
use super::{CommandFlags, Framing, TransmissionFlags};

/// One request without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Comes back in the reply; opaque, and need not be unique.
    pub cookie: u64,
    /// One of [`command`](super::command), or a number nobody knows.
    pub command: u16,
    /// Flags, with bits nobody knows kept.
    pub flags: CommandFlags,
    /// First byte.
    pub offset: u64,
    /// Bytes of effect.
    pub len: u64,
    /// Bytes that follow the header.
    pub payload: u64,
}

impl Request {
    /// The header as a client sends it.
    pub fn encode(&self, framing: Framing, to: &mut Vec<u8>) {
        let extended = framing == Framing::Extended;
        let magic = if extended {
            EXTENDED_REQUEST_MAGIC
        } else {
            REQUEST_MAGIC
        };
        to.extend_from_slice(&magic.to_be_bytes());
        to.extend_from_slice(&self.flags.bits().to_be_bytes());
        to.extend_from_slice(&self.command.to_be_bytes());
        to.extend_from_slice(&self.cookie.to_be_bytes());
        to.extend_from_slice(&self.offset.to_be_bytes());
        if extended {
            to.extend_from_slice(&self.len.to_be_bytes());
        } else {
            let len = u32::try_from(self.len).unwrap_or(u32::MAX);
            to.extend_from_slice(&len.to_be_bytes());
        }
    }

    /// Whether it changes what the export holds.
    pub const fn changes(&self) -> bool {
        matches!(
            self.command,
            command::WRITE | command::TRIM | command::WRITE_ZEROES
        )
    }
}

/// The server's side after the handshake: finds requests in what has arrived, and judges them.
///
/// ```
/// use cairn_nbd::codec::{command, CommandFlags, Framing, Negotiated, Request, ServerTransmission};
///
/// let server = ServerTransmission::new(&Negotiated::simple("", 1 << 20));
/// let sent = Request {
///     cookie: 7,
///     command: command::READ,
///     flags: CommandFlags::empty(),
///     offset: 4096,
///     len: 512,
///     payload: 0,
/// };
/// let mut wire = Vec::new();
/// sent.encode(Framing::Simple, &mut wire);
/// assert_eq!(server.decode(&wire[..27])?, None);
/// assert_eq!(server.decode(&wire)?, Some((sent, 28)));
/// assert_eq!(server.check(&sent), Ok(()));
/// # Ok::<(), cairn_nbd::codec::Violation>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ServerTransmission {
    framing: Framing,
    flags: TransmissionFlags,
    size: u64,
    /// Smallest block that a request must keep to; 1 for a client that was not told.
    min_block: u64,
    max_payload: u64,
    contexts: bool,
}

impl ServerTransmission {
    /// A connection as it was negotiated.
    pub fn new(negotiated: &Negotiated) -> Self {
        let info = &negotiated.info;
        let min_block = if negotiated.knows_blocks {
            info.min_block
        } else {
            1
        };
        Self {
            framing: negotiated.framing,
            flags: negotiated.flags(),
            size: info.size,
            min_block: min_block.into(),
            max_payload: info.max_payload.into(),
            contexts: negotiated.allocation,
        }
    }

    /// How replies are framed.
    pub const fn framing(&self) -> Framing {
        self.framing
    }

    /// Largest payload that is taken, in bytes.
    pub const fn max_payload(&self) -> u64 {
        self.max_payload
    }

    /// The request at the front of `input` and the length of its header, or `None` while it is not all
    /// there. [`Request::payload`] bytes follow, whatever [`check`](Self::check) says of it.
    ///
    /// # Errors
    /// The peer does not speak the protocol, or claims a payload above twice the maximum.
    #[inline]
    pub fn decode(&self, input: &[u8]) -> Result<Option<(Request, usize)>, Violation> {
        let extended = self.framing == Framing::Extended;
        let (want, header) = if extended {
            (EXTENDED_REQUEST_MAGIC, EXTENDED_REQUEST_LEN)
        } else {
            (REQUEST_MAGIC, REQUEST_LEN)
        };
        let mut take = Take(input);
        let Some(magic) = take.u32() else {
            return Ok(None);
        };
        if magic != want {
            return Err(Violation::Magic {
                of: "a request",
                found: magic.into(),
                want: want.into(),
            });
        }
        let Some(request) = Self::fields(extended, &mut take) else {
            return Ok(None);
        };
        let max = self.max_payload.saturating_mul(2);
        if request.payload > max {
            return Err(Violation::PayloadTooLong {
                len: request.payload,
                max,
            });
        }
        Ok(Some((request, header)))
    }

    #[inline]
    fn fields(extended: bool, take: &mut Take<'_>) -> Option<Request> {
        let flags = CommandFlags::from_bits_retain(take.u16()?);
        let command = take.u16()?;
        let cookie = take.u64()?;
        let offset = take.u64()?;
        let len = if extended {
            take.u64()?
        } else {
            take.u32()?.into()
        };
        // A write always has a payload. With extended headers a flag tells so for other commands too;
        // it is meant to be set on writes as well, but qemu 10.0 leaves it out there.
        let payload =
            command == command::WRITE || (extended && flags.contains(CommandFlags::PAYLOAD_LEN));
        Some(Request {
            cookie,
            command,
            flags,
            offset,
            len,
            payload: if payload { len } else { 0 },
        })
    }

    /// Whether the request may be carried out; its payload is consumed either way.
    ///
    /// # Errors
    /// What the reply is to say.
    #[inline]
    pub fn check(&self, request: &Request) -> Result<(), WireError> {
        let r = request;
        let allowed = self.allowed(r.command).ok_or(WireError::Inval)?;
        if !allowed.contains(r.flags) {
            return Err(WireError::Inval);
        }
        match r.command {
            command::FLUSH => {
                return if r.offset == 0 && r.len == 0 {
                    Ok(())
                } else {
                    Err(WireError::Inval)
                };
            }
            command::DISC => return Ok(()),
            // The range is in the payload.
            command::BLOCK_STATUS if r.flags.contains(CommandFlags::PAYLOAD_LEN) => {
                return if r.payload <= self.max_payload {
                    Ok(())
                } else {
                    Err(WireError::Inval)
                };
            }
            _ => {}
        }
        if r.changes() && self.flags.contains(TransmissionFlags::READ_ONLY) {
            return Err(WireError::Perm);
        }
        self.check_range(r)?;
        match r.command {
            command::WRITE if r.payload != r.len || r.payload > self.max_payload => {
                Err(WireError::Inval)
            }
            command::READ if r.len > self.max_payload => {
                if self.framing == Framing::Simple {
                    Err(WireError::Inval)
                } else if r.flags.contains(CommandFlags::DF) {
                    Err(WireError::Overflow)
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a range is one that this export has.
    ///
    /// # Errors
    /// What the reply is to say.
    pub fn check_range(&self, r: &Request) -> Result<(), WireError> {
        if r.len == 0 || (r.offset | r.len) & (self.min_block - 1) != 0 {
            return Err(WireError::Inval);
        }
        if r.offset
            .checked_add(r.len)
            .is_none_or(|end| end > self.size)
        {
            return Err(match r.command {
                command::WRITE | command::WRITE_ZEROES => WireError::NoSpc,
                _ => WireError::Inval,
            });
        }
        Ok(())
    }

    /// The flags that a command may have here, or `None` for a command that was not offered.
    fn allowed(&self, command: u16) -> Option<CommandFlags> {
        let has = |flag, then| {
            if self.flags.contains(flag) {
                then
            } else {
                CommandFlags::empty()
            }
        };
        let read_only = self.flags.contains(TransmissionFlags::READ_ONLY);
        let offered = |flag| self.flags.contains(flag) || read_only;
        let extended = self.framing == Framing::Extended;
        let fua = has(TransmissionFlags::SEND_FUA, CommandFlags::FUA);
        let own = match command {
            command::READ => has(TransmissionFlags::SEND_DF, CommandFlags::DF),
            command::WRITE if extended => CommandFlags::PAYLOAD_LEN,
            command::WRITE | command::DISC => CommandFlags::empty(),
            command::FLUSH if self.flags.contains(TransmissionFlags::SEND_FLUSH) => {
                CommandFlags::empty()
            }
            command::TRIM if offered(TransmissionFlags::SEND_TRIM) => CommandFlags::empty(),
            command::CACHE if self.flags.contains(TransmissionFlags::SEND_CACHE) => {
                CommandFlags::empty()
            }
            command::WRITE_ZEROES if offered(TransmissionFlags::SEND_WRITE_ZEROES) => {
                CommandFlags::NO_HOLE
                    | has(TransmissionFlags::SEND_FAST_ZERO, CommandFlags::FAST_ZERO)
            }
            command::BLOCK_STATUS if self.contexts => {
                CommandFlags::REQ_ONE
                    | has(
                        TransmissionFlags::BLOCK_STATUS_PAYLOAD,
                        CommandFlags::PAYLOAD_LEN,
                    )
            }
            _ => return None,
        };
        Some(own | fua)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(change: impl FnOnce(&mut Negotiated)) -> ServerTransmission {
        let mut n = Negotiated::simple("", 1_000_003);
        n.info.flags = TransmissionFlags::all();
        n.info.flags.remove(TransmissionFlags::READ_ONLY);
        n.info.max_payload = 4096;
        change(&mut n);
        ServerTransmission::new(&n)
    }

    fn request(command: u16, offset: u64, len: u64) -> Request {
        let payload = if command == command::WRITE { len } else { 0 };
        Request {
            cookie: 1,
            command,
            flags: CommandFlags::empty(),
            offset,
            len,
            payload,
        }
    }

    #[test]
    fn each_case_has_its_answer() {
        let plain = server(|_| {});
        let cases = [
            (request(command::WRITE, 1_000_000, 4), Err(WireError::NoSpc)),
            (request(command::WRITE, u64::MAX, 4), Err(WireError::NoSpc)),
            (
                request(command::WRITE_ZEROES, 1_000_003, 1),
                Err(WireError::NoSpc),
            ),
            (request(command::READ, 1_000_000, 4), Err(WireError::Inval)),
            (request(command::READ, u64::MAX, 1), Err(WireError::Inval)),
            (request(command::TRIM, 0, 1 << 32), Err(WireError::Inval)),
            (request(command::CACHE, 1_000_003, 1), Err(WireError::Inval)),
            (request(command::READ, 0, 0), Err(WireError::Inval)),
            (request(command::READ, 0, 4097), Err(WireError::Inval)),
            (request(command::WRITE, 0, 4097), Err(WireError::Inval)),
            (request(command::BLOCK_STATUS, 0, 1), Err(WireError::Inval)),
            (request(command::FLUSH, 1, 0), Err(WireError::Inval)),
            (request(8, 0, 1), Err(WireError::Inval)),
            (request(65535, 0, 1), Err(WireError::Inval)),
            (request(command::READ, 1_000_000, 3), Ok(())),
            (request(command::WRITE, 999_999, 4), Ok(())),
            (request(command::TRIM, 0, 1_000_003), Ok(())),
            (request(command::FLUSH, 0, 0), Ok(())),
        ];
        for (r, want) in cases {
            assert_eq!(plain.check(&r), want, "{r:?}");
        }
    }

    #[test]
    fn read_only_refuses_changes_only() {
        let server = server(|n| {
            n.info.flags = TransmissionFlags::HAS_FLAGS | TransmissionFlags::READ_ONLY;
        });
        for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(server.check(&request(command, 0, 1)), Err(WireError::Perm));
        }
        assert_eq!(server.check(&request(command::READ, 0, 1)), Ok(()));
    }

    #[test]
    fn a_flag_counts_only_where_it_was_offered() {
        let with = |command, flags| Request {
            flags,
            ..request(command, 0, 512)
        };
        let all = server(|n| n.framing = Framing::Structured);
        let fua = CommandFlags::FUA;
        for command in [command::READ, command::WRITE, command::TRIM, command::CACHE] {
            assert_eq!(all.check(&with(command, fua)), Ok(()));
        }
        assert_eq!(all.check(&with(command::READ, CommandFlags::DF)), Ok(()));
        for (command, flag) in [
            (command::READ, CommandFlags::NO_HOLE),
            (command::WRITE, CommandFlags::PAYLOAD_LEN),
            (command::WRITE_ZEROES, CommandFlags::REQ_ONE),
            (command::TRIM, CommandFlags::from_bits_retain(1 << 12)),
        ] {
            assert_eq!(all.check(&with(command, flag)), Err(WireError::Inval));
        }
        let few = server(|n| {
            n.info.flags = TransmissionFlags::HAS_FLAGS | TransmissionFlags::SEND_WRITE_ZEROES;
        });
        assert_eq!(few.check(&with(command::READ, fua)), Err(WireError::Inval));
        assert_eq!(
            few.check(&with(command::WRITE_ZEROES, CommandFlags::FAST_ZERO)),
            Err(WireError::Inval)
        );
        assert_eq!(
            few.check(&request(command::TRIM, 0, 1)),
            Err(WireError::Inval)
        );
    }

    #[test]
    fn a_payload_far_above_the_maximum_ends_the_connection() {
        let server = server(|_| {});
        let mut wire = Vec::new();
        request(command::WRITE, 0, 8192).encode(Framing::Simple, &mut wire);
        assert!(server.decode(&wire).unwrap().is_some());
        wire.clear();
        request(command::WRITE, 0, 8193).encode(Framing::Simple, &mut wire);
        assert!(matches!(
            server.decode(&wire),
            Err(Violation::PayloadTooLong {
                len: 8193,
                max: 8192
            })
        ));
    }

    #[test]
    fn blocks_bind_who_was_told() {
        let told = server(|n| {
            n.info.min_block = 512;
            n.knows_blocks = true;
            n.info.size = 1 << 20;
        });
        assert_eq!(
            told.check(&request(command::READ, 1, 512)),
            Err(WireError::Inval)
        );
        assert_eq!(told.check(&request(command::READ, 512, 512)), Ok(()));
        let untold = server(|n| {
            n.info.min_block = 512;
            n.knows_blocks = false;
        });
        assert_eq!(untold.check(&request(command::READ, 1, 3)), Ok(()));
    }

    #[test]
    fn extended_writes_carry_data_whether_they_say_so_or_not() {
        let server = server(|n| n.framing = Framing::Extended);
        let mut wire = Vec::new();
        for flags in [CommandFlags::empty(), CommandFlags::PAYLOAD_LEN] {
            let write = Request {
                flags,
                ..request(command::WRITE, 0, 512)
            };
            wire.clear();
            write.encode(Framing::Extended, &mut wire);
            let (got, header) = server.decode(&wire).unwrap().unwrap();
            assert_eq!((got.payload, header), (512, 32));
            assert_eq!(server.check(&got), Ok(()));
        }
        // A payload where none belongs is consumed, and refused.
        wire.clear();
        Request {
            flags: CommandFlags::PAYLOAD_LEN,
            ..request(command::READ, 0, 512)
        }
        .encode(Framing::Extended, &mut wire);
        let (got, _) = server.decode(&wire).unwrap().unwrap();
        assert_eq!(got.payload, 512);
        assert_eq!(server.check(&got), Err(WireError::Inval));
    }
}
