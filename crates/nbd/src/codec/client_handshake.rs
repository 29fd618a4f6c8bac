//! The client's side of the handshake.

use std::fmt;

use super::error::Violation;
use super::proto::{
    BASE_ALLOCATION, EXPORT_NAME_PAD, FIXED_NEWSTYLE, INIT_MAGIC, MAX_STRING, NO_ZEROES,
    OPTION_MAGIC, OPTION_REPLY_MAGIC, info, option, rep,
};
use super::server_handshake::ExportInfo;
use super::take::{Take, len32};
use super::{Framing, TransmissionFlags};

/// Longest data of one reply that is read.
const LONGEST_REPLY: u32 = 64 << 10;
/// Largest payload where the server does not say.
const USUAL_PAYLOAD: u32 = 32 << 20;

/// What a client asks for. What the server does not have is done without.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientWishes {
    /// Name of the export.
    pub name: String,
    /// The best framing to ask for.
    pub framing: Framing,
    /// Whether to ask where data is.
    pub allocation: bool,
    /// Whether to begin with TLS, without which nothing is asked then.
    pub tls: bool,
}

impl ClientWishes {
    /// Everything, of the export of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            framing: Framing::Extended,
            allocation: true,
            tls: false,
        }
    }
}

/// What a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientReady {
    /// The export.
    pub info: ExportInfo,
    /// How replies are framed.
    pub framing: Framing,
    /// The id of `base:allocation`, if it was chosen.
    pub allocation: Option<u32>,
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStep {
    /// More bytes are needed.
    More,
    /// Something was used, and perhaps asked.
    Went,
    /// TLS begins. What the server has sent already is to be dropped, and
    /// [`ClientHandshake::encrypted`] to be called.
    StartTls,
    /// Transmission begins.
    Ready(Box<ClientReady>),
}

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server does not speak the protocol.
    Violation(Violation),
    /// The server is too old to negotiate.
    OldServer,
    /// The server refused.
    Refused {
        /// What the error number means.
        why: &'static str,
        /// The server's own words, with what could steer a terminal written out.
        message: String,
    },
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(v) => v.fmt(f),
            Self::OldServer => f.write_str(
                "the server cannot negotiate: it must speak the fixed newstyle handshake",
            ),
            Self::Refused { why, message } if message.is_empty() => write!(f, "{why}"),
            Self::Refused { why, message } => write!(f, "{why}: {message}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl From<Violation> for HandshakeError {
    fn from(v: Violation) -> Self {
        Self::Violation(v)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    StartTls,
    Extended,
    Structured,
    Contexts,
    Go,
    ExportName,
}

/// The client's side of the handshake: takes what the server says, asks for one thing after the other,
/// and falls back to less where the server does not know it.
#[derive(Debug)]
pub struct ClientHandshake {
    wishes: ClientWishes,
    stage: Stage,
    zeroes: bool,
    framing: Framing,
    allocation: Option<u32>,
    info: Option<ExportInfo>,
    sizes: Option<[u32; 3]>,
}

/// One reply to an option.
struct Answer<'a> {
    kind: u32,
    data: &'a [u8],
}

impl ClientHandshake {
    /// A connection that begins.
    pub fn new(wishes: ClientWishes) -> Self {
        Self {
            wishes,
            stage: Stage::Greeting,
            zeroes: true,
            framing: Framing::Simple,
            allocation: None,
            info: None,
            sizes: None,
        }
    }

    /// Takes the next thing from `input`, writes what is to be sent to `out`, and returns how many
    /// bytes it used.
    ///
    /// # Errors
    /// The server refused, or does not speak the protocol.
    pub fn step(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, ClientStep), HandshakeError> {
        match self.stage {
            Stage::Greeting => self.greeting(input, out),
            Stage::ExportName => Ok(self.export_name(input)),
            _ => self.reply(input, out),
        }
    }

    fn greeting(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, ClientStep), HandshakeError> {
        let mut take = Take(input);
        let Some(magic) = take.u64() else {
            return Ok((0, ClientStep::More));
        };
        expect("a greeting", magic, INIT_MAGIC)?;
        let Some(magic) = take.u64() else {
            return Ok((0, ClientStep::More));
        };
        if magic != OPTION_MAGIC {
            return Err(HandshakeError::OldServer);
        }
        let Some(flags) = take.u16() else {
            return Ok((0, ClientStep::More));
        };
        if flags & FIXED_NEWSTYLE == 0 {
            return Err(HandshakeError::OldServer);
        }
        self.zeroes = flags & NO_ZEROES == 0;
        out.extend_from_slice(&u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES)).to_be_bytes());
        if self.wishes.tls {
            self.ask(Stage::StartTls, out);
        } else {
            self.ask_first(out);
        }
        Ok((18, ClientStep::Went))
    }

    /// TLS is on now; writes what is to be asked first.
    pub fn encrypted(&mut self, out: &mut Vec<u8>) {
        self.ask_first(out);
    }

    fn ask_first(&mut self, out: &mut Vec<u8>) {
        let first = match self.wishes.framing {
            Framing::Extended => Stage::Extended,
            Framing::Structured => Stage::Structured,
            Framing::Simple => Stage::Go,
        };
        self.ask(first, out);
    }

    /// Enters a stage and asks what belongs to it.
    fn ask(&mut self, stage: Stage, out: &mut Vec<u8>) {
        self.stage = stage;
        let name = self.wishes.name.as_bytes();
        let name_len = len32(name.len()).to_be_bytes();
        let ask = |out: &mut Vec<u8>, option: u32, data: &[&[u8]]| {
            let len = data.iter().map(|d| d.len()).sum();
            out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
            out.extend_from_slice(&option.to_be_bytes());
            out.extend_from_slice(&len32(len).to_be_bytes());
            for d in data {
                out.extend_from_slice(d);
            }
        };
        match stage {
            Stage::Greeting => {}
            Stage::StartTls => ask(out, option::STARTTLS, &[]),
            Stage::Extended => ask(out, option::EXTENDED_HEADERS, &[]),
            Stage::Structured => ask(out, option::STRUCTURED_REPLY, &[]),
            Stage::Contexts => {
                let query = BASE_ALLOCATION.as_bytes();
                let (one, len) = (1_u32.to_be_bytes(), len32(query.len()).to_be_bytes());
                let data = [&name_len[..], name, &one, &len, query];
                ask(out, option::SET_META_CONTEXT, &data);
            }
            Stage::Go => {
                let wants = [1_u16.to_be_bytes(), info::BLOCK_SIZE.to_be_bytes()];
                ask(out, option::GO, &[&name_len, name, &wants[0], &wants[1]]);
            }
            Stage::ExportName => ask(out, option::EXPORT_NAME, &[name]),
        }
    }

    const fn option(&self) -> u32 {
        match self.stage {
            Stage::StartTls => option::STARTTLS,
            Stage::Extended => option::EXTENDED_HEADERS,
            Stage::Structured => option::STRUCTURED_REPLY,
            Stage::Contexts => option::SET_META_CONTEXT,
            Stage::Greeting | Stage::Go | Stage::ExportName => option::GO,
        }
    }

    fn reply(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, ClientStep), HandshakeError> {
        let mut take = Take(input);
        let Some(magic) = take.u64() else {
            return Ok((0, ClientStep::More));
        };
        expect("a reply to an option", magic, OPTION_REPLY_MAGIC)?;
        let (Some(option), Some(kind), Some(len)) = (take.u32(), take.u32(), take.u32()) else {
            return Ok((0, ClientStep::More));
        };
        if option != self.option() {
            return Err(Violation::Reply("an answer to another option").into());
        }
        if len > LONGEST_REPLY {
            let max = LONGEST_REPLY;
            return Err(Violation::OptionTooLong { option, len, max }.into());
        }
        let Some(data) = usize::try_from(len).ok().and_then(|n| take.bytes(n)) else {
            return Ok((0, ClientStep::More));
        };
        let step = self.answer(&Answer { kind, data }, out)?;
        Ok((20 + data.len(), step))
    }

    fn answer(
        &mut self,
        answer: &Answer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ClientStep, HandshakeError> {
        let acked = answer.kind == rep::ACK;
        let refused = answer.kind & rep::ERROR != 0;
        match self.stage {
            Stage::StartTls if acked => return Ok(ClientStep::StartTls),
            Stage::Extended if acked => {
                self.framing = Framing::Extended;
                self.ask(self.after_framing(), out);
            }
            Stage::Extended if refused => self.ask(Stage::Structured, out),
            Stage::Structured if acked => {
                self.framing = Framing::Structured;
                self.ask(self.after_framing(), out);
            }
            Stage::Structured if refused => self.ask(Stage::Go, out),
            Stage::Contexts if answer.kind == rep::META_CONTEXT => {
                let mut take = Take(answer.data);
                let id = take
                    .u32()
                    .ok_or(Violation::Reply("a context without an id"))?;
                if take.0 == BASE_ALLOCATION.as_bytes() {
                    self.allocation = Some(id);
                }
            }
            // An export that is not there is told again by GO, with its own words.
            Stage::Contexts if acked || refused => self.ask(Stage::Go, out),
            Stage::Go if answer.kind == rep::INFO => self.inform(answer.data)?,
            Stage::Go if acked => return self.ready().map(ClientStep::Ready),
            Stage::Go if answer.kind == rep::ERR_UNSUP && self.framing != Framing::Extended => {
                self.ask(Stage::ExportName, out);
            }
            // Nothing is asked in plain text instead of TLS.
            Stage::StartTls | Stage::Go if refused => return Err(refusal(answer)),
            _ => {
                return Err(
                    Violation::Reply("an answer of a kind that does not belong here").into(),
                );
            }
        }
        Ok(ClientStep::Went)
    }

    const fn after_framing(&self) -> Stage {
        if self.wishes.allocation {
            Stage::Contexts
        } else {
            Stage::Go
        }
    }

    fn inform(&mut self, data: &[u8]) -> Result<(), Violation> {
        let short = Violation::Reply("information that is too short");
        let mut take = Take(data);
        match take.u16().ok_or(short)? {
            info::EXPORT => {
                let mut info = ExportInfo::new(take.u64().ok_or(short)?);
                info.flags = TransmissionFlags::from_bits_retain(take.u16().ok_or(short)?);
                self.info = Some(info);
            }
            info::BLOCK_SIZE => {
                let mut size = || take.u32().ok_or(short);
                self.sizes = Some([size()?, size()?, size()?]);
            }
            _ => {}
        }
        Ok(())
    }

    fn ready(&mut self) -> Result<Box<ClientReady>, HandshakeError> {
        let mut info = self
            .info
            .take()
            .ok_or(Violation::Reply("no size of the export"))?;
        info.max_payload = USUAL_PAYLOAD;
        if let Some([min, preferred, max]) = self.sizes {
            if !min.is_power_of_two() || min > 65536 || !info.size.is_multiple_of(min.into()) {
                return Err(Violation::Reply("a block size that cannot be").into());
            }
            info.min_block = min;
            info.preferred_block = preferred.max(min);
            info.max_payload = max.min(USUAL_PAYLOAD).max(min) / min * min;
        }
        Ok(Box::new(ClientReady {
            info,
            framing: self.framing,
            allocation: self.allocation,
        }))
    }

    fn export_name(&self, input: &[u8]) -> (usize, ClientStep) {
        let pad = if self.zeroes { EXPORT_NAME_PAD } else { 0 };
        let mut take = Take(input);
        let (Some(size), Some(flags), Some(_)) = (take.u64(), take.u16(), take.bytes(pad)) else {
            return (0, ClientStep::More);
        };
        let mut info = ExportInfo::new(size);
        info.flags = TransmissionFlags::from_bits_retain(flags);
        info.max_payload = USUAL_PAYLOAD;
        let ready = ClientReady {
            info,
            framing: self.framing,
            allocation: self.allocation,
        };
        (10 + pad, ClientStep::Ready(Box::new(ready)))
    }
}

fn expect(of: &'static str, found: u64, want: u64) -> Result<(), Violation> {
    if found == want {
        Ok(())
    } else {
        Err(Violation::Magic { of, found, want })
    }
}

fn refusal(answer: &Answer<'_>) -> HandshakeError {
    let why = match answer.kind & !rep::ERROR {
        1 => "the server does not know the option",
        2 => "the server's policy forbids it",
        3 => "the server finds the question invalid",
        4 => "the server's platform cannot do it",
        5 => "the server requires TLS",
        6 => "the server has no export of this name",
        7 => "the server stops",
        8 => "the server requires that block sizes are asked for",
        9 => "the question is too long for the server",
        10 => "the server requires extended headers",
        _ => "the server refused for a reason of its own",
    };
    let text = answer.data.get(..MAX_STRING).unwrap_or(answer.data);
    HandshakeError::Refused {
        why,
        message: printable(text),
    }
}

/// A peer's words, unable to steer a terminal.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .chars()
        .flat_map(|c| {
            c.is_control()
                .then(|| c.escape_default())
                .into_iter()
                .flatten()
                .chain((!c.is_control()).then_some(c))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_peer_do_not_steer_the_terminal() {
        assert_eq!(printable(b"no\x1b[2J\n\xff"), "no\\u{1b}[2J\\n\u{fffd}");
    }
}
