//! What a server counts, for each connection and in all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counters of one connection. Its thread alone writes them, a batch at a time.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) reads: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) others: AtomicU64,
    pub(super) read_bytes: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) in_flight: AtomicU64,
}

impl Counts {
    pub(super) const fn new() -> Self {
        Self {
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            others: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        }
    }

    /// Adds without a locked instruction: there is one writer.
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        if n > 0 {
            let sum = counter.load(Ordering::Relaxed).saturating_add(n);
            counter.store(sum, Ordering::Relaxed);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Totals {
            reads: get(&self.reads),
            writes: get(&self.writes),
            others: get(&self.others),
            read_bytes: get(&self.read_bytes),
            written_bytes: get(&self.written_bytes),
            errors: get(&self.errors),
        }
    }
}

/// Requests and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes, trims, zeroings, hints and questions where data is.
    pub others: u64,
    /// Bytes asked for by reads.
    pub read_bytes: u64,
    /// Bytes that came with writes.
    pub written_bytes: u64,
    /// Requests that were refused or failed.
    pub errors: u64,
}

impl Totals {
    /// All requests.
    pub const fn requests(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    pub(super) const fn plus(self, other: &Self) -> Self {
        Self {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            others: self.others.saturating_add(other.others),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            errors: self.errors.saturating_add(other.errors),
        }
    }
}

/// One connection, as of now.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientStats {
    /// Number of the connection, from 1.
    pub id: u64,
    /// The export, once it is chosen.
    pub export: Option<String>,
    /// When it connected.
    pub since: Instant,
    /// What it did.
    pub totals: Totals,
    /// Requests that worker threads have now.
    pub in_flight: u64,
}

/// The server, as of now.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections so far.
    pub connections: u64,
    /// Connections that were refused since there were too many.
    pub refused: u64,
    /// Connections that broke the protocol, went beyond a limit or were lost.
    pub broken: u64,
    /// What all connections did, those that are gone included.
    pub totals: Totals,
    /// The connections there are.
    pub clients: Vec<ClientStats>,
}
