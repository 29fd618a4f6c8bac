//! The loop that does the I/Os.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cairn_fio::job::Ddir;

use super::fill::Filler;
use super::generate::{Generator, Io, READ, WRITE};
use super::target::Target;
use crate::recorder::{DIRS, Recorder, SYNC};

/// Tells workers to stop; a line of its own, written once.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
    generator: Generator,
    /// Flush after this many writes; 0 is never.
    every: u64,
    writes: u64,
    last: usize,
}

impl Sequence {
    pub(crate) fn new(generator: Generator, flush_every: u32) -> Self {
        Self {
            generator,
            every: u64::from(flush_every),
            writes: 0,
            last: 0,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Step> {
        if self.every > 0 && self.writes >= self.every {
            self.writes = 0;
            return Some(Step::Flush(self.last));
        }
        let io = self.generator.next()?;
        if io.dir == WRITE {
            self.writes += 1;
            self.last = io.region;
        }
        Some(Step::Io(io))
    }
}

/// Where a worker gets its next step from: alone, or shared by the lanes of one job.
pub(crate) enum Source {
    Own(Box<Sequence>),
    Shared(Arc<Mutex<Sequence>>),
}

impl Source {
    #[inline]
    fn next(&mut self) -> Option<Step> {
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
    /// Whether latencies are measured.
    pub(crate) clock: bool,
    /// Each write is durable when it returns.
    pub(crate) durable: bool,
    /// Whether a failed I/O is counted and the next one tried.
    pub(crate) go_on: [bool; DIRS],
}

/// The I/O that ended a job.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub(crate) step: Step,
    pub(crate) error: cairn_block::Error,
}

impl Worker {
    /// Works until the sequence ends, somebody says stop, or an I/O fails.
    pub(crate) fn run(&mut self, stop: &Stop) -> Result<(), Failed> {
        while !stop.asked() {
            let Some(next) = self.source.next() else {
                break;
            };
            self.step(next)?;
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, step: Step) -> Result<(), Failed> {
        let Self {
            targets,
            filler,
            recorder,
            clock,
            durable,
            ..
        } = self;
        let (dir, len, nanos, done) = match step {
            Step::Io(io) => {
                let Some(target) = targets.get(io.region) else {
                    return Ok(());
                };
                match io.dir {
                    READ => {
                        let buf = filler.for_read(io.len);
                        let begun = clock.then(Instant::now);
                        let done = target.read(io.offset, buf);
                        (io.dir, io.len, elapsed(begun), done)
                    }
                    WRITE => {
                        let buf = filler.for_write(io.offset, io.len);
                        let begun = clock.then(Instant::now);
                        let done = target.write(io.offset, buf, *durable);
                        (io.dir, io.len, elapsed(begun), done)
                    }
                    _ => {
                        let begun = clock.then(Instant::now);
                        let done = target.trim(io.offset, io.len);
                        (io.dir, io.len, elapsed(begun), done)
                    }
                }
            }
            Step::Flush(region) => {
                let begun = clock.then(Instant::now);
                let done = targets.get(region).map_or(Ok(()), Target::flush);
                (SYNC, 0, elapsed(begun), done)
            }
        };
        match done {
            Ok(()) => recorder.done(dir, len, nanos),
            Err(error) => {
                recorder.failed(dir, || (error.errno(), describe(&step, &error)));
                if !self.go_on.get(dir).copied().unwrap_or(false) {
                    return Err(Failed { step, error });
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
pub(crate) fn describe(step: &Step, error: &cairn_block::Error) -> String {
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
