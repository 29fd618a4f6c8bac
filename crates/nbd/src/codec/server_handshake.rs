//! The server's side of the handshake.

mod contexts;
mod export;
mod options;

pub use export::{ExportInfo, Exports, HowEntered, Negotiated};

use super::Framing;
use super::error::Violation;
use super::proto::{
    FIXED_NEWSTYLE, INIT_MAGIC, NO_ZEROES, OPTION_MAGIC, OPTION_REPLY_MAGIC, option, rep,
};
use super::take::{Take, len32};

/// What a client may do before it has named an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeLimits {
    /// Longest option data in bytes that is looked at; longer ones are skipped and refused.
    pub option_len: u32,
    /// Longest option data in bytes that is skipped; beyond it the connection ends.
    pub skip_len: u32,
    /// Most options in one handshake.
    pub options: u32,
    /// Most queries in one option about metadata contexts.
    pub queries: u32,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            option_len: 64 << 10,
            skip_len: 1 << 20,
            options: 256,
            queries: 64,
        }
    }
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsPolicy {
    /// Never.
    #[default]
    Never,
    /// When the client asks for it.
    Offered,
    /// Always: until then every option but `STARTTLS` and `ABORT` is refused.
    Required,
}

/// What a step of the handshake came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStep {
    /// More bytes are needed.
    More,
    /// Something was used; there may be more to do.
    Went,
    /// The answer is in the output; after it has gone out, TLS begins. What the client has sent already
    /// is to be dropped, and [`ServerHandshake::encrypted`] to be called.
    StartTls,
    /// The client enters transmission.
    Ready(Box<Negotiated>),
    /// The client ends the session.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Flags,
    Options,
    /// Skips the data of an option that is too long, then refuses it.
    Skip {
        option: u32,
        left: u64,
    },
}

/// The server's side of the handshake.
///
/// [`greeting`](Self::greeting) goes out first; then [`step`](Self::step) is called with what has
/// arrived and not been used yet, until it says [`Ready`](ServerStep::Ready).
///
/// ```
/// use cairn_nbd::codec::{ExportInfo, Exports, ServerHandshake, ServerStep, HandshakeLimits, TlsPolicy};
///
/// struct One;
/// impl Exports for One {
///     fn find(&self, name: &str) -> Option<ExportInfo> {
///         (name == "").then(|| ExportInfo::new(1 << 20))
///     }
///     fn each(&self, list: &mut dyn FnMut(&str, &str)) {
///         list("", "a megabyte");
///     }
/// }
///
/// let mut server = ServerHandshake::new(HandshakeLimits::default(), TlsPolicy::Never);
/// let mut out = Vec::new();
/// server.greeting(&mut out);
/// assert_eq!(out.len(), 18);
/// // The client's flags, then EXPORT_NAME of the empty name.
/// let wire = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
/// assert_eq!(server.step(&wire, &One, &mut out)?, (4, ServerStep::Went));
/// let (used, step) = server.step(&wire[4..], &One, &mut out)?;
/// assert_eq!(used, 16);
/// assert!(matches!(step, ServerStep::Ready(n) if n.info.size == 1 << 20));
/// # Ok::<(), cairn_nbd::codec::Violation>(())
/// ```
#[derive(Debug)]
pub struct ServerHandshake {
    limits: HandshakeLimits,
    tls: TlsPolicy,
    encrypted: bool,
    state: State,
    no_zeroes: bool,
    seen: u32,
    framing: Framing,
    /// The export for which `base:allocation` was chosen.
    contexts: Option<String>,
}

/// An option with all its data.
struct Asked<'a> {
    option: u32,
    data: &'a [u8],
}

impl ServerHandshake {
    /// A connection that begins.
    pub const fn new(limits: HandshakeLimits, tls: TlsPolicy) -> Self {
        Self {
            limits,
            tls,
            encrypted: false,
            state: State::Flags,
            no_zeroes: false,
            seen: 0,
            framing: Framing::Simple,
            contexts: None,
        }
    }

    /// What the server says first.
    pub fn greeting(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&INIT_MAGIC.to_be_bytes());
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    }

    /// TLS is on now: everything that was agreed before is forgotten, since anybody on the way may have
    /// put it there.
    pub fn encrypted(&mut self) {
        self.encrypted = true;
        self.framing = Framing::Simple;
        self.contexts = None;
    }

    /// Takes the next thing from `input`, answers into `out`, and returns how many bytes it used.
    ///
    /// # Errors
    /// The client broke the protocol in a way that has no answer, or went beyond a limit at which
    /// the connection ends.
    pub fn step(
        &mut self,
        input: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<(usize, ServerStep), Violation> {
        match self.state {
            State::Flags => self.flags(input),
            State::Skip { option, left } => Ok(self.skip(option, left, input, out)),
            State::Options => self.option(input, exports, out),
        }
    }

    fn flags(&mut self, input: &[u8]) -> Result<(usize, ServerStep), Violation> {
        let Some(flags) = Take(input).u32() else {
            return Ok((0, ServerStep::More));
        };
        if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return Err(Violation::ClientFlags(flags));
        }
        self.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
        self.state = State::Options;
        Ok((4, ServerStep::Went))
    }

    fn skip(
        &mut self,
        option: u32,
        left: u64,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, ServerStep) {
        let used = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let left = left - used as u64;
        if left > 0 {
            self.state = State::Skip { option, left };
            return (used, ServerStep::More);
        }
        self.state = State::Options;
        refuse(
            out,
            option,
            rep::ERR_TOO_BIG,
            "more data than any option needs",
        );
        (used, ServerStep::Went)
    }

    fn option(
        &mut self,
        input: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<(usize, ServerStep), Violation> {
        let mut take = Take(input);
        let Some(magic) = take.u64() else {
            return Ok((0, ServerStep::More));
        };
        if magic != OPTION_MAGIC {
            return Err(Violation::Magic {
                of: "an option",
                found: magic,
                want: OPTION_MAGIC,
            });
        }
        let (Some(option), Some(len)) = (take.u32(), take.u32()) else {
            return Ok((0, ServerStep::More));
        };
        if len > self.limits.skip_len {
            return Err(Violation::OptionTooLong {
                option,
                len,
                max: self.limits.skip_len,
            });
        }
        let long = len > self.limits.option_len;
        let data = if long {
            None
        } else {
            let Some(data) = usize::try_from(len).ok().and_then(|len| take.bytes(len)) else {
                return Ok((0, ServerStep::More));
            };
            Some(data)
        };
        self.seen += 1;
        if self.seen > self.limits.options {
            return Err(Violation::TooManyOptions(self.limits.options));
        }
        let Some(data) = data else {
            if option == option::EXPORT_NAME {
                return Err(Violation::ExportName("the name is too long"));
            }
            self.state = State::Skip {
                option,
                left: len.into(),
            };
            return Ok((16, ServerStep::Went));
        };
        let asked = Asked { option, data };
        self.answer(&asked, exports, out)
            .map(|step| (16 + data.len(), step))
    }

    /// Whether the option has to wait for TLS.
    fn must_encrypt(&self, option: u32) -> bool {
        self.tls == TlsPolicy::Required
            && !self.encrypted
            && !matches!(option, option::STARTTLS | option::ABORT)
    }
}

/// One reply to an option.
fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let len = data.iter().map(|d| d.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&len32(len).to_be_bytes());
    for d in data {
        out.extend_from_slice(d);
    }
}

fn ack(out: &mut Vec<u8>, option: u32) {
    reply(out, option, rep::ACK, &[]);
}

/// An error reply. Its text never holds what the client sent, so its size is fixed.
fn refuse(out: &mut Vec<u8>, option: u32, kind: u32, why: &'static str) {
    reply(out, option, kind, &[why.as_bytes()]);
}
