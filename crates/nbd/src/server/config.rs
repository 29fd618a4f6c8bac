//! What a server is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::record::Recorder;
use crate::codec::{HandshakeLimits, TlsPolicy};

/// Limits and habits of a server.
///
/// ```
/// use cairn_nbd::ServerConfig;
/// use std::time::Duration;
///
/// let config = ServerConfig::new().connections(10).idle(Some(Duration::from_mins(1)));
/// # let _ = config;
/// ```
#[derive(Clone)]
pub struct ServerConfig {
    pub(super) handshake: HandshakeLimits,
    pub(super) handshake_time: Duration,
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) bytes: usize,
    pub(super) idle: Option<Duration>,
    pub(super) stalled: Duration,
    pub(super) threads: usize,
    pub(super) max_payload: u32,
    pub(super) notes: Option<Arc<Notes>>,
    pub(super) recorder: Option<Arc<Recorder>>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<(crate::ServerTls, TlsPolicy)>,
}

type Notes = dyn Fn(&str) + Send + Sync;

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            handshake: HandshakeLimits::default(),
            handshake_time: Duration::from_secs(10),
            connections: 100,
            requests: 256,
            bytes: 128 << 20,
            idle: None,
            stalled: Duration::from_mins(1),
            threads: 64,
            max_payload: crate::codec::ExportInfo::MAX_PAYLOAD,
            notes: None,
            recorder: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl ServerConfig {
    /// The defaults: 100 connections, 10 s for a handshake, 256 requests and 128 MiB in flight for each
    /// connection, payloads up to 64 MiB, 60 s for a client that does not take its answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits of the handshake.
    #[must_use]
    pub const fn handshake(mut self, limits: HandshakeLimits) -> Self {
        self.handshake = limits;
        self
    }

    /// Time for a whole handshake.
    #[must_use]
    pub const fn handshake_time(mut self, time: Duration) -> Self {
        self.handshake_time = time;
        self
    }

    /// Most connections at once; further ones are closed at once.
    #[must_use]
    pub const fn connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// Most requests and most bytes in flight on one connection; at the limit the server stops
    /// reading until some are answered.
    #[must_use]
    pub const fn in_flight(mut self, requests: usize, bytes: usize) -> Self {
        self.requests = requests;
        self.bytes = bytes;
        self
    }

    /// Ends a connection on which nothing was asked for this long.
    #[must_use]
    pub const fn idle(mut self, time: Option<Duration>) -> Self {
        self.idle = time;
        self
    }

    /// Ends a connection whose client takes no answer for this long.
    #[must_use]
    pub const fn stalled(mut self, time: Duration) -> Self {
        self.stalled = time;
        self
    }

    /// Most threads that wait for devices that take their time.
    #[must_use]
    pub const fn threads(mut self, most: usize) -> Self {
        self.threads = most;
        self
    }

    /// Largest payload in bytes that clients are offered.
    #[must_use]
    pub const fn max_payload(mut self, bytes: u32) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Logs what is asked and answered.
    #[must_use]
    pub fn record(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Encrypts connections of clients that ask for it, or of all of them.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: crate::ServerTls, policy: TlsPolicy) -> Self {
        self.tls = Some((tls, policy));
        self
    }

    #[cfg(feature = "tls")]
    pub(super) fn tls_policy(&self) -> TlsPolicy {
        let policy = self.tls.as_ref().map(|(_, policy)| *policy);
        policy.unwrap_or_default()
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, reason = "with TLS it is a setting")]
    pub(super) const fn tls_policy(&self) -> TlsPolicy {
        TlsPolicy::Never
    }

    /// Who is told, in one line each, why connections ended that should not have. What comes from a
    /// client is escaped.
    #[must_use]
    pub fn notes(mut self, notes: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notes = Some(Arc::new(notes));
        self
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("connections", &self.connections)
            .field("requests", &self.requests)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
