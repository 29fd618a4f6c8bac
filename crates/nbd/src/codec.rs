//! The protocol without sockets, clocks or threads: bytes in, events and bytes out.
//!
//! Each machine is given what has arrived so far and says how much of it it used. None of them
//! allocates by a length that the peer claimed: a machine asks for more bytes until what it needs is
//! there, and the caller's buffer bounds how much that can be.
//!
//! | side | negotiation | after it |
//! |---|---|---|
//! | server | [`ServerHandshake`] | [`ServerTransmission`], replies by [`Reply`] |
//! | client | [`ClientHandshake`] | [`ClientTransmission`], requests by [`Request`] |

mod client_handshake;
mod client_transmission;
mod error;
mod proto;
mod reply;
mod request;
mod server_handshake;
mod take;

pub use client_handshake::{
    ClientHandshake, ClientReady, ClientStep, ClientWishes, HandshakeError,
};
pub use client_transmission::{Body, ClientTransmission, Event, Extents};
pub use error::{Violation, WireError};
pub(crate) use proto::BASE_ALLOCATION_ID as ALLOCATION_ID;
pub use proto::{
    CommandFlags, DEFAULT_PORT, MAX_STRING, StatusFlags, TransmissionFlags, command, option,
};
pub use reply::{Reply, ReplyHeader, Status};
pub use request::{Request, ServerTransmission};
pub use server_handshake::{
    ExportInfo, Exports, HandshakeLimits, HowEntered, Negotiated, ServerHandshake, ServerStep,
    TlsPolicy,
};

/// How replies are framed, as the handshake agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Framing {
    /// One header, and the data behind it.
    #[default]
    Simple,
    /// Chunks that say what they hold.
    Structured,
    /// Chunks and requests with 64-bit lengths.
    Extended,
}
