//! The client: an export of any NBD server as a block device.

mod config;
mod device;
mod gate;
mod link;
mod register;
mod slot;

pub use config::NbdConfig;
pub use device::NbdDevice;
pub use register::register;

use std::fmt;
use std::io;

use crate::codec::{HandshakeError, WireError};

/// Why there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket failed.
    Io(io::Error),
    /// The server refused, or does not speak the protocol.
    Handshake(HandshakeError),
    /// The server's export is not the one that was there before.
    Changed {
        /// What is different.
        what: &'static str,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => e.fmt(f),
            Self::Handshake(e) => e.fmt(f),
            Self::Changed { what } => write!(
                f,
                "the {what} of the export is not what it was: this is another device"
            ),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(e) => Some(e),
            Self::Handshake(e) => Some(e),
            Self::Changed { .. } => None,
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl From<HandshakeError> for ConnectError {
    fn from(e: HandshakeError) -> Self {
        Self::Handshake(e)
    }
}

/// Why one request failed.
#[derive(Debug)]
enum CallError {
    /// The server said so.
    Told(WireError),
    /// There was no reply, and there will be none.
    Lost(String),
}
