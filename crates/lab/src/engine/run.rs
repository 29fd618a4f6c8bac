//! The loop that does the I/Os.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cairn_fio::job::Ddir;

use super::clock::Clock;
use super::fill::Filler;
use super::generate::{Generator, Io, READ, WRITE};
use super::logger::Logger;
use super::pace::{Schedule, Think, wait_until};
use super::replay::Replayer;
use super::target::Target;
use super::verify::{self, Written};
use crate::recorder::{DIRS, Recorder, SYNC};

/// Tells workers to stop; a line of its own, written once or twice.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Stop {
    asked: AtomicBool,
    aborted: AtomicBool,
}

impl Stop {
    /// No further work; what was written is still checked.
    pub(crate) fn now(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Nothing further at all.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.now();
    }

    #[inline]
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }
}

/// What comes next in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Io(Io),
    /// Flush everything written so far; the region last written.
    Flush(usize),
}

/// The I/Os of a job with the flushes between them.
#[derive(Debug)]
pub(crate) struct Sequence {
    steps: Steps,
    /// Flush after this many writes; 0 is never.
    every: u64,
    writes: u64,
    last: usize,
    schedule: Option<Schedule>,
}

/// Where the steps come from.
#[derive(Debug)]
pub(crate) enum Steps {
    Drawn(Box<Generator>),
    Replayed(Replayer),
}

/// A step, and when it is meant to start, where there is a rate.
pub(crate) type Due = (Step, Option<Instant>);

impl Sequence {
    pub(crate) fn new(steps: Steps, flush_every: u32, schedule: Option<Schedule>) -> Self {
        Self {
            steps,
            every: u64::from(flush_every),
            writes: 0,
            last: 0,
            schedule,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Due> {
        if self.every > 0 && self.writes >= self.every {
            self.writes = 0;
            return Some((Step::Flush(self.last), None));
        }
        let io = match &mut self.steps {
            Steps::Drawn(generator) => generator.next()?,
            Steps::Replayed(replayer) => return replayer.next(),
        };
        if io.dir == WRITE {
            self.writes += 1;
            self.last = io.region;
        }
        let at = self.schedule.as_mut().and_then(|s| s.at(&io));
        Some((Step::Io(io), at))
    }
}

/// Where a worker gets its next step from: alone, or shared by the lanes of one job.
pub(crate) enum Source {
    Own(Box<Sequence>),
    Shared(Arc<Mutex<Sequence>>),
}

impl Source {
    #[inline]
    fn next(&mut self) -> Option<Due> {
        match self {
            Self::Own(sequence) => sequence.next(),
            Self::Shared(sequence) => sequence
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(),
        }
    }
}

/// A worker that is ready to run.
pub(crate) struct Worker {
    pub(crate) source: Source,
    /// One for each region of the generator.
    pub(crate) targets: Arc<[Target]>,
    pub(crate) filler: Filler,
    pub(crate) recorder: Recorder,
    /// Which I/Os are timed.
    pub(crate) clock: Clock,
    /// Each write is durable when it returns.
    pub(crate) durable: bool,
    /// Whether a failed I/O is counted and the next one tried.
    pub(crate) go_on: [bool; DIRS],
    pub(crate) think: Option<Think>,
    pub(crate) logger: Option<Box<Logger>>,
    pub(crate) verify: Option<Box<Verifier>>,
}

/// What a worker needs to check blocks.
pub(crate) struct Verifier {
    pub(crate) plan: verify::Plan,
    /// What all lanes of the job wrote and nobody checked yet.
    pub(crate) written: Arc<Mutex<Written>>,
    /// The job only reads, and each read is checked as it comes.
    pub(crate) reads: bool,
    /// A mismatch is counted, and the job goes on as if it were none.
    pub(crate) go_on: bool,
    /// Mismatches so far, and the first.
    pub(crate) wrong: u64,
    pub(crate) first: Option<String>,
}

/// Errno of a block that is not what it should be.
pub(crate) const EILSEQ: i32 = 84;

impl Verifier {
    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a mismatch.
    fn mismatch(&mut self, recorder: &mut Recorder, text: String) {
        self.wrong += 1;
        recorder.failed(READ, || (EILSEQ, format!("verify: {text}")));
        self.first.get_or_insert(text);
    }

    /// What ends the job for its blocks' sake.
    pub(crate) fn verdict(&self) -> Option<(i32, String)> {
        let first = self.first.as_ref().filter(|_| !self.go_on)?;
        Some((
            EILSEQ,
            format!("{} blocks are wrong, the first {first}", self.wrong),
        ))
    }
}

/// The I/O that ended a job.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub(crate) error: cairn_block::Error,
    /// What failed, for people.
    pub(crate) text: String,
}

impl Worker {
    /// Works until the sequence ends, somebody says stop, or an I/O fails.
    pub(crate) fn run(&mut self, stop: &Stop) -> Result<(), Failed> {
        while !stop.asked() {
            let Some((next, intended)) = self.source.next() else {
                break;
            };
            match intended {
                None => self.step_of_job(next)?,
                Some(at) => {
                    if !wait_until(at, stop) {
                        break;
                    }
                    let late = at.elapsed();
                    self.step_of_job(next)?;
                    if let Step::Io(io) = next {
                        self.recorder.response(io.dir, at.elapsed(), late);
                    }
                }
            }
            if let Some(think) = &mut self.think {
                think.after_io(stop);
            }
            if let Some(verifier) = &self.verify
                && let Some(backlog) = verifier.plan.backlog
                && verifier.written().since() >= backlog
            {
                self.read_back(stop)?;
            }
            if self.is_wrong_for_good() {
                break;
            }
        }
        Ok(())
    }

    /// Whether a mismatch ends the job at once.
    fn is_wrong_for_good(&self) -> bool {
        let verifier = self.verify.as_ref();
        verifier.is_some_and(|v| v.plan.fatal && v.first.is_some() && !v.go_on)
    }

    /// Reads everything back that was written since the last time, and checks it.
    pub(crate) fn read_back(&mut self, stop: &Stop) -> Result<(), Failed> {
        let list = match &self.verify {
            Some(verifier) if verifier.plan.read_back => verifier.written().take(),
            _ => return Ok(()),
        };
        for (io, number) in list {
            if stop.aborted() || self.is_wrong_for_good() {
                break;
            }
            self.checked_read(io, Some(number))?;
        }
        Ok(())
    }

    fn checked_read(&mut self, io: Io, number: Option<u64>) -> Result<(), Failed> {
        let io = Io { dir: READ, ..io };
        self.step(Step::Io(io))?;
        if let Some(verifier) = &mut self.verify {
            let found = verifier
                .plan
                .check(self.filler.for_read(io.len), io.offset, number);
            if let Err(text) = found {
                verifier.mismatch(&mut self.recorder, text);
            }
        }
        Ok(())
    }

    /// The next step of the job; where blocks are checked, with its check.
    #[inline]
    fn step_of_job(&mut self, step: Step) -> Result<(), Failed> {
        match (&self.verify, step) {
            (Some(v), Step::Io(io))
                if (io.dir == WRITE && v.plan.only) || (io.dir == READ && v.reads) =>
            {
                self.checked_read(io, None)
            }
            _ => self.step(step),
        }
    }

    #[inline]
    fn step(&mut self, step: Step) -> Result<(), Failed> {
        let Self {
            targets,
            filler,
            recorder,
            clock,
            durable,
            logger,
            verify,
            ..
        } = self;
        let timed = clock.due();
        let (dir, len, nanos, done) = match step {
            Step::Io(io) => {
                let Some(target) = targets.get(io.region) else {
                    return Ok(());
                };
                match (target, io.dir) {
                    (Target::Name(name), dir) => {
                        let (nanos, done) = name.io(io.len, timed);
                        (dir, io.len, nanos, done)
                    }
                    (_, READ) => {
                        let buf = filler.for_read(io.len);
                        let begun = timed.then(Instant::now);
                        let done = target.read(io.offset, buf);
                        (io.dir, io.len, elapsed(begun), done)
                    }
                    (_, WRITE) => {
                        let buf = filler.for_write(io.offset, io.len);
                        let number = verify.as_ref().map(|v| {
                            let number = v.written().next();
                            v.plan.stamp(buf, io.offset, number);
                            number
                        });
                        let begun = timed.then(Instant::now);
                        let done = target.write(io.offset, buf, *durable);
                        let nanos = elapsed(begun);
                        if let (Some(v), Some(number), Ok(())) = (&verify, number, &done) {
                            v.written().add(&io, number);
                        }
                        (io.dir, io.len, nanos, done)
                    }
                    (_, _) => {
                        let begun = timed.then(Instant::now);
                        let done = target.trim(io.offset, io.len);
                        (io.dir, io.len, elapsed(begun), done)
                    }
                }
            }
            Step::Flush(region) => {
                let begun = timed.then(Instant::now);
                let done = targets.get(region).map_or(Ok(()), Target::flush);
                (SYNC, 0, elapsed(begun), done)
            }
        };
        match done {
            Ok(()) => {
                recorder.done(dir, len, nanos);
                if let (Some(logger), Step::Io(io), Some(nanos)) = (logger, step, nanos) {
                    logger.io(&io, nanos);
                }
            }
            Err(error) => {
                let text = || match step {
                    Step::Io(io) => match targets.get(io.region) {
                        Some(Target::Name(name)) => name.describe(&error),
                        _ => describe(&step, &error),
                    },
                    Step::Flush(_) => describe(&step, &error),
                };
                recorder.failed(dir, || (error.errno(), text()));
                if !self.go_on.get(dir).copied().unwrap_or(false) {
                    let text = text();
                    return Err(Failed { error, text });
                }
            }
        }
        Ok(())
    }

    /// Flushes each target once, as `end_fsync` asks.
    pub(crate) fn end_flush(&mut self) -> Result<(), Failed> {
        for region in 0..self.targets.len() {
            self.step(Step::Flush(region))?;
        }
        Ok(())
    }
}

/// An I/O that failed, for people.
fn describe(step: &Step, error: &cairn_block::Error) -> String {
    match step {
        Step::Io(io) => {
            let dir = Ddir::ALL.get(io.dir).map_or("", |d| d.word());
            format!("{dir} of {} bytes at {}: {error}", io.len, io.offset)
        }
        Step::Flush(_) => format!("flush: {error}"),
    }
}

#[inline]
fn elapsed(begun: Option<Instant>) -> Option<u64> {
    // 2^64 ns are 584 years.
    begun.map(|t| u64::try_from(t.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
