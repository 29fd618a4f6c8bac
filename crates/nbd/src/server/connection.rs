//! One connection: a thread that receives, carries out and answers, without ever blocking in one of
//! them while another could go on.

mod receive;
mod requests;

use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::execute::Scratch;
use super::export::Served;
use super::input::Input;
use super::pace::Pace;
use super::segs::{Pool, Segs};
use super::workers::{Finished, Mailbox};
use super::{Live, Shared};
use crate::codec::{Negotiated, Request, ServerTransmission, Violation, WireError};
use crate::socket::Socket;
use crate::wait::{Sleep, Spin};

/// How long a stopping server goes on answering with refusals.
const REFUSING: Duration = Duration::from_secs(2);

/// Why a connection ended early.
#[derive(Debug)]
pub(super) enum End {
    /// The client hung up, or was hung up on for no fault of its own.
    Closed,
    /// The client broke the protocol.
    Broken(Violation),
    /// The socket failed.
    Lost(io::Error),
    /// No export was chosen in time.
    Handshake,
    /// The client took no answers.
    Stalled,
    /// The client asked for nothing.
    Idle,
}

impl End {
    /// What is worth telling. A client that goes away without a word is not.
    pub(super) fn complaint(&self) -> Option<String> {
        match self {
            Self::Closed => None,
            Self::Lost(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                None
            }
            other => Some(other.to_string()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the client hung up"),
            Self::Broken(v) => v.fmt(f),
            Self::Lost(e) => e.fmt(f),
            Self::Handshake => f.write_str("no export was chosen in time"),
            Self::Stalled => f.write_str("the client takes no answers"),
            Self::Idle => f.write_str("the client was idle for too long"),
        }
    }
}

impl From<Violation> for End {
    fn from(v: Violation) -> Self {
        Self::Broken(v)
    }
}

impl From<io::Error> for End {
    fn from(e: io::Error) -> Self {
        Self::Lost(e)
    }
}

/// A connection from its first byte on.
pub(super) struct Connection<'s> {
    pub(super) shared: &'s Arc<Shared>,
    live: &'s Arc<Live>,
    pub(super) socket: Socket,
    pub(super) input: Input,
}

impl<'s> Connection<'s> {
    pub(super) fn new(
        shared: &'s Arc<Shared>,
        live: &'s Arc<Live>,
        socket: Socket,
    ) -> Result<Self, End> {
        socket.prepare()?;
        Ok(Self {
            shared,
            live,
            socket,
            input: Input::new(),
        })
    }

    /// From the greeting to the end.
    pub(super) fn run(&mut self) -> Result<(), End> {
        let Some(negotiated) = self.greet()? else {
            return Ok(());
        };
        let Some(export) = self.shared.served(&negotiated.name) else {
            return Err(End::Closed);
        };
        *self
            .live
            .export
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(negotiated.name.clone());
        let export = Arc::clone(export);
        let ended = Session::new(self, export, &negotiated)?.run();
        self.socket.close();
        ended
    }
}

/// A payload that does not fit into the input, or that nobody wants.
enum Coming {
    /// Gathered in segments.
    Kept { request: Request, payload: Segs },
    /// Dropped, and answered with an error.
    Dropped {
        request: Request,
        left: u64,
        error: WireError,
    },
}

/// A read whose answer is longer than is ever held in memory.
struct LongRead {
    request: Request,
    at: u64,
}

/// A connection after the handshake.
struct Session<'c> {
    shared: &'c Arc<Shared>,
    live: &'c Live,
    socket: &'c Socket,
    input: &'c mut Input,
    export: Arc<Served>,
    rules: ServerTransmission,
    out: Segs,
    pool: Pool,
    scratch: Scratch,
    coming: Option<Coming>,
    long: Option<LongRead>,
    pace: Pace,
    spin: Spin,
    mailbox: Arc<Mailbox>,
    finished: Vec<Finished>,
    /// Requests that workers have, and their bytes.
    jobs: usize,
    job_bytes: usize,
    /// Requests in a row that came when there was no other.
    alone: u32,
    /// The last requests came several at a time.
    several: bool,
    /// What was received is used up.
    hungry: bool,
    /// The client sends no more.
    eof: bool,
    /// When sending last got stuck.
    stuck: Option<Instant>,
    /// When something last happened, kept only where idle clients are dropped.
    busy: Instant,
    /// When this connection saw that the server stops.
    stopping: Option<Instant>,
}

impl<'c> Session<'c> {
    fn new(
        connection: &'c mut Connection<'_>,
        export: Arc<Served>,
        negotiated: &Negotiated,
    ) -> Result<Self, End> {
        Ok(Self {
            shared: connection.shared,
            live: connection.live,
            socket: &connection.socket,
            input: &mut connection.input,
            export,
            rules: ServerTransmission::new(negotiated),
            out: Segs::default(),
            pool: Pool::default(),
            scratch: Scratch::default(),
            coming: None,
            long: None,
            pace: Pace::default(),
            spin: Spin::default(),
            mailbox: Arc::new(Mailbox::new()?),
            finished: Vec::new(),
            jobs: 0,
            job_bytes: 0,
            alone: 0,
            several: false,
            hungry: true,
            eof: false,
            stuck: None,
            busy: Instant::now(),
            stopping: None,
        })
    }

    fn run(&mut self) -> Result<(), End> {
        loop {
            let mut moved = self.collect();
            moved |= self.take_requests()?;
            moved |= self.send()?;
            if self.over() || self.too_late() {
                return Ok(());
            }
            if self.hungry {
                moved |= self.receive()?;
            }
            if !moved {
                if self.shared.stopping() && self.jobs == 0 && self.out.is_empty() {
                    return Ok(());
                }
                self.wait()?;
            }
        }
    }

    /// Whether there is nothing left to do for a client that sends no more.
    const fn over(&self) -> bool {
        self.eof && self.jobs == 0 && self.out.is_empty() && self.long.is_none()
    }

    /// Whether a stopping server has refused requests for long enough.
    fn too_late(&mut self) -> bool {
        if !self.shared.stopping() {
            return false;
        }
        let since = *self.stopping.get_or_insert_with(Instant::now);
        self.jobs == 0 && since.elapsed() > REFUSING
    }

    /// Whether there is as much in flight as may be.
    fn full(&self) -> bool {
        let config = &self.shared.config;
        self.jobs >= config.requests || self.out.len() + self.job_bytes >= config.bytes
    }

    fn may_receive(&self) -> bool {
        !self.eof && self.hungry && !self.full()
    }

    /// Takes what workers have finished.
    fn collect(&mut self) -> bool {
        if self.jobs == 0 || !self.mailbox.has_mail() {
            return false;
        }
        self.mailbox.take(&mut self.finished);
        let mut errors = 0;
        for f in self.finished.drain(..) {
            let bytes = f.request.len;
            self.pace.handed(bytes, f.took);
            self.jobs -= 1;
            self.job_bytes = self.job_bytes.saturating_sub(weight(bytes));
            errors += u64::from(f.error.is_some());
            if let Some(log) = &self.shared.config.recorder {
                log.reply(&f.request, f.error);
            }
            self.out.append(f.answer);
        }
        super::Counts::add(&self.live.counts.errors, errors);
        self.count_jobs();
        true
    }

    fn count_jobs(&self) {
        self.live
            .counts
            .in_flight
            .store(self.jobs as u64, std::sync::atomic::Ordering::Relaxed);
    }

    /// Sends what is ready, as much as the socket takes at once.
    fn send(&mut self) -> Result<bool, End> {
        let mut any = false;
        while !self.out.is_empty() {
            let sent = self
                .out
                .send(&mut self.pool, |bufs| self.socket.write_vectored(bufs));
            match sent {
                Ok(_) => {
                    any = true;
                    self.stuck = None;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.stuck.is_none() {
                        self.stuck = Some(Instant::now());
                    }
                    break;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(any)
    }

    /// Waits until something can go on.
    fn wait(&mut self) -> Result<(), End> {
        let stopping = self.shared.stopping();
        if self.may_receive() && self.out.is_empty() && !stopping {
            let mut spin = std::mem::take(&mut self.spin);
            let found = spin.spin(&self.shared.spinners, self.several, || {
                if self.jobs > 0 && self.mailbox.has_mail() {
                    return Ok(true);
                }
                self.receive()
            });
            self.spin = spin;
            if found? || self.eof {
                return Ok(());
            }
        }
        let asleep = self.jobs > 0;
        if asleep && !self.mailbox.lie_down() {
            return Ok(());
        }
        let slept = Sleep {
            socket: self.socket.as_fd(),
            read: self.may_receive() && !stopping,
            write: !self.out.is_empty(),
            mailbox: asleep.then(|| self.mailbox.waker.fd()),
            stopped: (!stopping).then(|| self.shared.stopped.fd()),
        }
        .sleep(self.patience(Instant::now()));
        if asleep {
            self.mailbox.get_up();
        }
        if slept? {
            return Ok(());
        }
        match self.patience(Instant::now()) {
            Some(left) if left.is_zero() => Err(if self.stuck.is_some() {
                End::Stalled
            } else {
                End::Idle
            }),
            _ => Ok(()),
        }
    }

    /// How long to wait at most.
    fn patience(&self, now: Instant) -> Option<Duration> {
        let config = &self.shared.config;
        if let Some(stuck) = self.stuck {
            return Some((stuck + config.stalled).saturating_duration_since(now));
        }
        // Nobody is idle who waits for an answer.
        let idle = config.idle.filter(|_| self.jobs == 0)?;
        Some((self.busy + idle).saturating_duration_since(now))
    }
}

/// What a request counts for while a worker has it.
fn weight(bytes: u64) -> usize {
    usize::try_from(bytes.min(super::execute::PIECE)).unwrap_or(usize::MAX)
}
