//! Threads for devices that take their time.
//!
//! A device that answers in a microsecond is used by the connection's own thread: a hand-over costs
//! more than the request. One that sleeps would then serve one request at a time, so once a
//! connection sees that its device is slow it hands requests over to these threads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::execute::{Answers, Executor, Scratch};
use super::export::Served;
use super::segs::{Pool, Segs};
use crate::codec::{Request, ServerTransmission, WireError};

/// A flag that `poll` can wait for.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    pub(super) fn wake(&self) {
        // Fails only when the counter is full, and then the sleeper wakes anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn calm(&self) {
        // Nothing to read means that it is calm.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One finished request.
pub(super) struct Finished {
    pub(super) request: Request,
    pub(super) answer: Segs,
    pub(super) error: Option<WireError>,
    pub(super) took: Duration,
}

/// Where finished requests of one connection arrive.
pub(super) struct Mailbox {
    done: Mutex<Vec<Finished>>,
    /// Whether anything is there; read without the lock.
    any: AtomicBool,
    sleeping: AtomicBool,
    pub(super) waker: Waker,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            done: Mutex::default(),
            any: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            waker: Waker::new()?,
        })
    }

    fn put(&self, finished: Finished) {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(finished);
        // SeqCst on both flags: either this thread sees the other one asleep, or the other sees mail
        // before it sleeps.
        self.any.store(true, Ordering::SeqCst);
        if self.sleeping.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    pub(super) fn has_mail(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Takes everything that is there.
    pub(super) fn take(&self, into: &mut Vec<Finished>) {
        if self.has_mail() {
            self.any.store(false, Ordering::SeqCst);
            into.append(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Announces sleep; `false` if there is mail already.
    pub(super) fn lie_down(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        if self.has_mail() {
            self.sleeping.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    pub(super) fn get_up(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
        self.waker.calm();
    }
}

/// A request on its way to a worker.
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) payload: Segs,
    pub(super) export: Arc<Served>,
    pub(super) rules: ServerTransmission,
    pub(super) mailbox: Arc<Mailbox>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

/// The threads, started when they are first needed.
pub(super) struct Workers {
    queue: Mutex<Queue>,
    ready: Condvar,
    running: AtomicUsize,
    most: usize,
    stop: Arc<AtomicBool>,
}

impl Workers {
    pub(super) fn new(most: usize, stop: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::default(),
            ready: Condvar::new(),
            running: AtomicUsize::new(0),
            most: most.max(1),
            stop,
        })
    }

    /// Hands a request over; gives it back when there is no thread to take it.
    pub(super) fn submit(self: &Arc<Self>, job: Job) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let running = self.running.load(Ordering::Relaxed);
        if queue.jobs.len() >= queue.idle && running < self.most {
            let me = Arc::clone(self);
            let started = thread::Builder::new()
                .name(format!("nbd-work-{running}"))
                .spawn(move || me.work());
            match started {
                Ok(_) => {
                    self.running.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) if running == 0 => return Some(job),
                Err(_) => {}
            }
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.ready.notify_one();
        None
    }

    /// Lets the threads end once the queue is empty.
    pub(super) fn close(&self) {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.ready.notify_all();
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = self
                .ready
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn work(&self) {
        let mut pool = Pool::default();
        let mut scratch = Scratch::default();
        while let Some(job) = self.next() {
            let begun = Instant::now();
            let (answer, error) = self.run(&job, &mut pool, &mut scratch);
            job.mailbox.put(Finished {
                request: job.request,
                answer,
                error,
                took: begun.elapsed(),
            });
        }
    }

    fn run(&self, job: &Job, pool: &mut Pool, scratch: &mut Scratch) -> (Segs, Option<WireError>) {
        let executor = Executor {
            export: &job.export,
            rules: &job.rules,
            stop: &self.stop,
        };
        // A small answer gets a buffer of its size, since many of them may wait to be sent.
        let small = usize::try_from(job.request.len)
            .ok()
            .filter(|n| job.request.command == crate::codec::command::READ && *n < (64 << 10))
            .unwrap_or(0);
        let mut out = Segs::sized(small + 2 * crate::codec::Reply::MAX_HEADER);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut to = Answers {
                out: &mut out,
                pool,
                scratch,
            };
            executor.run(&job.request, &job.payload.slices(), &mut to)
        }));
        ran.map_or_else(
            |_| {
                // A device that panicked is a device that failed.
                let mut out = Segs::default();
                let mut to = Answers {
                    out: &mut out,
                    pool,
                    scratch,
                };
                executor.fail(&job.request, &WireError::Io.into(), &mut to);
                (out, Some(WireError::Io))
            },
            |error| (std::mem::take(&mut out), error),
        )
    }
}
