//! Waiting for a socket: first by asking again for a while, then by sleeping.
//!
//! Waking a thread on another CPU costs tens of microseconds, far more than a request to RAM. So a
//! connection asks its socket again and again for a short time before it sleeps. That is only worth it
//! while an answer usually comes within that time and nobody else needs the CPU, and both are
//! watched: spins that come to nothing become rare, and a long time between two looks shows that
//! somebody took the CPU. It is offered now and then only, and looks have pauses between them: without the
//! one or the other a client on the other CPU gets up to half of its requests done.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long to ask before sleeping: a client on a CPU that has to be woken first takes up to 180 us.
const SPIN: Duration = Duration::from_micros(200);
/// Pauses of the CPU between two looks, tens of nanoseconds each. Two CPUs may be two threads of one core, or one
/// lock: looking without a pause then takes half of the client's speed.
const SHORT: u32 = 40;
/// The same under a client that has many requests in flight: more of them are there at the next look, and are
/// taken in and answered together.
const LONG: u32 = 160;
/// Looks between two offers of the CPU.
const OFFER: u32 = 64;
/// Two looks further apart than this mean that another thread ran in between.
const TAKEN: Duration = Duration::from_micros(40);
/// Waits without a spin after one that came to nothing, at most.
const MOST_SKIPPED: u32 = 64;

/// How many threads may spin at once in this process.
pub(crate) struct Spinners {
    now: AtomicUsize,
    most: usize,
}

impl Spinners {
    pub(crate) fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            now: AtomicUsize::new(0),
            most: cpus / 2,
        }
    }

    fn enter(&self) -> bool {
        // Relaxed: a number only, nothing is read through it.
        let before = self.now.fetch_add(1, Ordering::Relaxed);
        if before >= self.most {
            self.now.fetch_sub(1, Ordering::Relaxed);
        }
        before < self.most
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection learned about spinning.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Waits to go without one.
    skip: u32,
    /// How many were skipped after the last that came to nothing.
    penalty: u32,
}

impl Spin {
    /// Asks `look` until it has something or time is up, less often where requests come `many` at a time.
    /// `Ok(true)` when it had.
    pub(crate) fn spin<E>(
        &mut self,
        spinners: &Spinners,
        many: bool,
        mut look: impl FnMut() -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(false);
        }
        if !spinners.enter() {
            return Ok(false);
        }
        let begun = Instant::now();
        let mut last = begun;
        let pauses = if many { LONG } else { SHORT };
        let mut looks = 0_u32;
        let found = loop {
            match look() {
                Ok(false) => {}
                other => break other,
            }
            looks += 1;
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            if looks.is_multiple_of(OFFER) {
                std::thread::yield_now();
            }
            let now = Instant::now();
            if now - begun >= SPIN || now - last >= TAKEN {
                break Ok(false);
            }
            last = now;
        };
        spinners.leave();
        if matches!(found, Ok(true)) {
            self.penalty = 0;
        } else {
            self.penalty = (self.penalty * 2 + 1).min(MOST_SKIPPED);
            self.skip = self.penalty;
        }
        found
    }
}

/// What a connection sleeps for.
pub(crate) struct Sleep<'a> {
    pub(crate) socket: BorrowedFd<'a>,
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) mailbox: Option<BorrowedFd<'a>>,
    pub(crate) stopped: Option<BorrowedFd<'a>>,
}

impl Sleep<'_> {
    /// Sleeps until one of them has something, at most `most`. `false` when time was up.
    pub(crate) fn sleep(&self, most: Option<Duration>) -> io::Result<bool> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, self.read);
        events.set(PollFlags::OUT, self.write);
        // A peer that hung up is always reported, so a socket of which nothing is wanted stays out.
        let socket = (!events.is_empty()).then_some(self.socket);
        let mut fds = Vec::with_capacity(3);
        fds.extend(socket.map(|fd| PollFd::from_borrowed_fd(fd, events)));
        for fd in [self.mailbox, self.stopped].into_iter().flatten() {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        poll_for(&mut fds, most)
    }
}

/// `poll`, with interruptions as wake-ups.
pub(crate) fn poll_for(fds: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<bool> {
    let most = most.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    match poll(fds, most.as_ref()) {
        Ok(n) => Ok(n > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(e) => Err(e.into()),
    }
}
