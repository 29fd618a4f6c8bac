//! What a device is told.

use std::time::Duration;

use crate::codec::Framing;

/// How a device reaches its server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NbdConfig {
    /// Connections to spread requests over; more than one only if the server allows it.
    pub connections: usize,
    /// Most requests in flight on one connection; a thread with one more waits.
    pub depth: usize,
    /// Longest wait for a reply, and for a connection.
    pub timeout: Duration,
    /// How long to try to connect again when the connection is lost; zero means never.
    pub reconnect: Duration,
    /// The best kind of replies to ask for. Simple ones tell neither holes nor where data is.
    pub replies: Framing,
}

impl NbdConfig {
    /// Requests in flight that a connection has by default: as many as this crate's server takes in.
    pub const DEPTH: usize = 256;
}

impl Default for NbdConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            depth: Self::DEPTH,
            timeout: Duration::from_secs(30),
            reconnect: Duration::ZERO,
            replies: Framing::Extended,
        }
    }
}
