//! The server: a thread for each connection, and threads for devices that take their time.

mod config;
mod connection;
mod execute;
mod export;
mod greet;
mod input;
mod listen;
mod pace;
mod record;
mod segs;
mod stats;
mod workers;

pub use config::ServerConfig;
pub use export::{Export, ExportError};
pub use listen::{ListenError, Listener};
pub use record::Recorder;
pub use stats::{ClientStats, ServerStats, Totals};

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::codec::{ExportInfo, Exports};
use crate::socket::Socket;
use crate::wait::{self, Spinners};
use connection::Connection;
use export::Served;
use stats::Counts;
use workers::{Waker, Workers};

/// How long a stopping server waits for devices to finish what they were given.
const LAST_REQUESTS: Duration = Duration::from_secs(30);

/// Serves exports to any number of clients.
///
/// ```
/// use std::sync::Arc;
/// use cairn_block::Null;
/// use cairn_nbd::{Export, Listener, Server, ServerConfig};
///
/// let dir = tempfile::tempdir()?;
/// let listener = Listener::unix(dir.path().join("nbd.sock"))?;
/// let export = Export::new("", Arc::new(Null::new(1 << 30)))?;
/// let server = Server::new(ServerConfig::new(), vec![export])?;
/// let stop = server.stopper();
/// let thread = std::thread::spawn(move || server.serve(&listener));
/// // Clients come and go.
/// stop.stop();
/// thread.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What all connections share.
struct Shared {
    config: ServerConfig,
    exports: Vec<Arc<Served>>,
    workers: Arc<Workers>,
    spinners: Spinners,
    stop: Arc<AtomicBool>,
    /// Never read, so that it wakes every sleeper once it was woken.
    stopped: Waker,
    book: Mutex<Book>,
    gone: Condvar,
    next_id: AtomicU64,
}

/// The connections there are, and the sums of those that are gone.
#[derive(Default)]
struct Book {
    live: Vec<Arc<Live>>,
    accepted: u64,
    refused: u64,
    broken: u64,
    totals: Totals,
}

/// One connection, as others see it.
struct Live {
    id: u64,
    since: Instant,
    export: Mutex<Option<String>>,
    counts: Counts,
}

/// Stops a server from another thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    /// No more connections; what was asked is finished, later requests are refused with ESHUTDOWN, and
    /// [`Server::serve`] returns.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.stopped.wake();
    }

    /// What the server did so far.
    pub fn stats(&self) -> ServerStats {
        self.shared.stats()
    }
}

/// Why a server ended badly.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The system refused something.
    Io(io::Error),
    /// An export could not be flushed at the end.
    Flush {
        /// Its name.
        export: String,
        /// What the device said.
        source: cairn_block::Error,
    },
    /// Devices still had requests when the time for them was over.
    Unfinished {
        /// Connections that were left.
        connections: usize,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "serving: {e}"),
            Self::Flush { export, source } => {
                write!(f, "the last flush of export `{export}`: {source}")
            }
            Self::Unfinished { connections } => write!(
                f,
                "{connections} connections still waited for their device after {} s",
                LAST_REQUESTS.as_secs()
            ),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(e) => Some(e),
            Self::Flush { source, .. } => Some(source),
            Self::Unfinished { .. } => None,
        }
    }
}

impl From<io::Error> for ServeError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// Why a server cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// The exports do not go together.
    Export(ExportError),
    /// The system refused something.
    Io(io::Error),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export(e) => e.fmt(f),
            Self::Io(e) => write!(f, "a server cannot be made: {e}"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Export(e) => Some(e),
            Self::Io(e) => Some(e),
        }
    }
}

impl Server {
    /// A server of these exports.
    ///
    /// # Errors
    /// There is no export, or two have one name.
    pub fn new(config: ServerConfig, exports: Vec<Export>) -> Result<Self, ServerError> {
        if exports.is_empty() {
            return Err(ServerError::Export(ExportError::None));
        }
        let mut names = HashSet::new();
        for export in &exports {
            if !names.insert(export.name()) {
                let name = export.name().to_owned();
                return Err(ServerError::Export(ExportError::Twice(name)));
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Shared {
            workers: Workers::new(config.threads, Arc::clone(&stop)),
            config,
            exports: exports
                .into_iter()
                .map(|e| Arc::new(Served::new(e)))
                .collect(),
            spinners: Spinners::new(),
            stop,
            stopped: Waker::new().map_err(ServerError::Io)?,
            book: Mutex::default(),
            gone: Condvar::new(),
            next_id: AtomicU64::new(1),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Serves until it is stopped: then finishes what was asked, flushes every export and returns.
    ///
    /// # Errors
    /// The socket fails, a device does not finish, or the last flush fails.
    pub fn serve(&self, listener: &Listener) -> Result<(), ServeError> {
        let accepted = self.accept_all(listener);
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.stopped.wake();
        let left = self.shared.wait_for_all();
        self.shared.workers.close();
        accepted?;
        if left > 0 {
            return Err(ServeError::Unfinished { connections: left });
        }
        for export in &self.shared.exports {
            if export.caps.contains(cairn_block::Caps::FLUSH) {
                export.device.flush().map_err(|source| ServeError::Flush {
                    export: export.name.clone(),
                    source,
                })?;
            }
        }
        Ok(())
    }

    fn accept_all(&self, listener: &Listener) -> io::Result<()> {
        while !self.shared.stopping() {
            let mut fds = [
                PollFd::from_borrowed_fd(self.shared.stopped.fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            ];
            wait::poll_for(&mut fds, None)?;
            match listener.accept() {
                Ok(socket) => self.shared.welcome(socket),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => {
                    // Out of descriptors, or the client went away: neither is a reason to end.
                    self.shared.note(&format!("accepting a connection: {e}"));
                    let mut stop = [PollFd::from_borrowed_fd(
                        self.shared.stopped.fd(),
                        PollFlags::IN,
                    )];
                    wait::poll_for(&mut stop, Some(Duration::from_millis(50)))?;
                }
            }
        }
        Ok(())
    }
}

impl Shared {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn note(&self, text: &str) {
        if let Some(notes) = &self.config.notes {
            notes(text);
        }
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection its thread, or turns it away.
    fn welcome(self: &Arc<Self>, socket: Socket) {
        let live = {
            let mut book = self.book();
            book.accepted += 1;
            if book.live.len() >= self.config.connections {
                book.refused += 1;
                return;
            }
            let live = Arc::new(Live {
                id: self.next_id.fetch_add(1, Ordering::Relaxed),
                since: Instant::now(),
                export: Mutex::default(),
                counts: Counts::new(),
            });
            book.live.push(Arc::clone(&live));
            live
        };
        let shared = Arc::clone(self);
        let mine = Arc::clone(&live);
        let started = thread::Builder::new()
            .name(format!("nbd-{}", live.id))
            .spawn(move || shared.attend(&mine, socket));
        if let Err(e) = started {
            self.farewell(&live, true);
            self.note(&format!("a thread for connection {}: {e}", live.id));
        }
    }

    /// One connection from its beginning to its end, whatever it does.
    fn attend(self: &Arc<Self>, live: &Arc<Live>, socket: Socket) {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            Connection::new(self, live, socket).and_then(|mut c| c.run())
        }));
        let broken = match ended {
            Ok(Ok(())) => None,
            Ok(Err(end)) => end.complaint(),
            Err(_) => Some("its device panicked".to_owned()),
        };
        self.farewell(live, broken.is_some());
        if let Some(why) = broken {
            self.note(&format!("connection {}: {why}", live.id));
        }
    }

    fn farewell(&self, live: &Arc<Live>, broken: bool) {
        let mut book = self.book();
        book.broken += u64::from(broken);
        book.totals = book.totals.plus(&live.counts.totals());
        book.live.retain(|l| l.id != live.id);
        drop(book);
        self.gone.notify_all();
    }

    /// Waits until every connection is gone; returns how many are left when time is up.
    fn wait_for_all(&self) -> usize {
        let book = self.book();
        let (book, _) = self
            .gone
            .wait_timeout_while(book, LAST_REQUESTS, |book| !book.live.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        book.live.len()
    }

    fn stats(&self) -> ServerStats {
        let book = self.book();
        let clients: Vec<ClientStats> = book
            .live
            .iter()
            .map(|live| ClientStats {
                id: live.id,
                export: live
                    .export
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone(),
                since: live.since,
                totals: live.counts.totals(),
                in_flight: live.counts.in_flight.load(Ordering::Relaxed),
            })
            .collect();
        ServerStats {
            connections: book.accepted,
            refused: book.refused,
            broken: book.broken,
            totals: clients
                .iter()
                .fold(book.totals, |sum, c| sum.plus(&c.totals)),
            clients,
        }
    }

    fn served(&self, name: &str) -> Option<&Arc<Served>> {
        self.exports.iter().find(|e| e.name == name)
    }
}

impl Exports for Shared {
    fn find(&self, name: &str) -> Option<ExportInfo> {
        self.served(name).map(|e| {
            let mut info = e.info();
            info.max_payload = self.config.max_payload;
            info
        })
    }

    fn each(&self, list: &mut dyn FnMut(&str, &str)) {
        for e in &self.exports {
            list(&e.name, &e.description);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .field("exports", &self.exports.len())
            .finish_non_exhaustive()
    }
}
