//! The loop that does the I/Os.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_fio::job::Ddir;

use super::burn::Burn;
use super::checkers::Checkers;
use super::clock::{Clock, Watch};
use super::extras::Extras;
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
    /// A loop is done: the files are emptied before the next one.
    Anew,
}

/// The I/Os of a job with the flushes between them.
#[derive(Debug)]
pub(crate) struct Sequence {
    steps: Steps,
    /// Flush after each of these many writes; 0 is never.
    every: [u64; 3],
    flushed: u64,
    writes: u64,
    last: usize,
    schedule: Option<Schedule>,
    loops: Option<Loops>,
}

/// Where the loops of a job end, whose files are emptied in between.
#[derive(Debug)]
struct Loops {
    /// Bytes of one.
    bytes: u64,
    done: u64,
    /// The first I/O of the next one.
    held: Option<Io>,
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
    pub(crate) fn new(steps: Steps, flush_every: [u32; 3], schedule: Option<Schedule>) -> Self {
        Self {
            steps,
            every: flush_every.map(u64::from),
            flushed: 0,
            writes: 0,
            last: 0,
            schedule,
            loops: None,
        }
    }

    /// Empties the files between two loops of so many bytes.
    pub(crate) fn anew_each(mut self, bytes: u64) -> Self {
        self.loops = Some(Loops {
            bytes,
            done: 0,
            held: None,
        });
        self
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Due> {
        if self.writes > self.flushed && self.is_flush_due() {
            self.flushed = self.writes;
            return Some((Step::Flush(self.last), None));
        }
        let io = match &mut self.steps {
            Steps::Drawn(generator) => match &mut self.loops {
                None => generator.next()?,
                Some(loops) => match loops.next(generator)? {
                    Step::Io(io) => io,
                    between => return Some((between, None)),
                },
            },
            Steps::Replayed(replayer) => return replayer.next(),
        };
        if io.dir == WRITE {
            self.writes += 1;
            self.last = io.region;
        }
        let at = self.schedule.as_mut().and_then(|s| s.at(&io));
        Some((Step::Io(io), at))
    }

    /// Whether the write before was the last of so many.
    fn is_flush_due(&self) -> bool {
        let mut every = self.every.iter().filter(|n| **n > 0);
        every.any(|n| self.writes.is_multiple_of(*n))
    }

    /// The generator, where nothing else decides what comes next and when.
    fn plain(&mut self) -> Option<&mut Generator> {
        match &mut self.steps {
            Steps::Drawn(generator)
                if self.schedule.is_none() && self.every == [0; 3] && self.loops.is_none() =>
            {
                Some(generator)
            }
            _ => None,
        }
    }

    /// The intended starts that are still to come move by this much.
    fn delay(&mut self, by: Duration) {
        if let Some(schedule) = &mut self.schedule {
            schedule.delay(by);
        }
    }
}

impl Loops {
    /// The next I/O, or what comes between two loops.
    fn next(&mut self, generator: &mut Generator) -> Option<Step> {
        let held = self.held.take();
        let io = match held {
            Some(io) => io,
            None => generator.next()?,
        };
        if held.is_none() && self.done >= self.bytes {
            self.done = 0;
            self.held = Some(io);
            return Some(Step::Anew);
        }
        self.done += io.len;
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
    fn next(&mut self) -> Option<Due> {
        match self {
            Self::Own(sequence) => sequence.next(),
            Self::Shared(sequence) => sequence
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(),
        }
    }

    fn delay(&mut self, by: Duration) {
        match self {
            Self::Own(sequence) => sequence.delay(by),
            Self::Shared(sequence) => sequence
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .delay(by),
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
    /// Which I/Os are timed, and with what.
    pub(crate) clock: Clock,
    pub(crate) watch: &'static Watch,
    /// Each write is durable when it returns.
    pub(crate) durable: bool,
    /// Whether a failed I/O is counted and the next one tried.
    pub(crate) go_on: [bool; DIRS],
    pub(crate) think: Option<Think>,
    pub(crate) logger: Option<Box<Logger>>,
    pub(crate) verify: Option<Box<Verifier>>,
    /// Instead of I/Os.
    pub(crate) burn: Option<Burn>,
    /// What few jobs ask for.
    pub(crate) extras: Option<Box<Extras>>,
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
    /// Threads that check instead of this one.
    pub(crate) checkers: Option<Checkers>,
    /// Names of the files, where blocks that are wrong are kept.
    pub(crate) names: Arc<[String]>,
    pub(crate) dumps: Vec<Dump>,
    /// Mismatches so far, and the first.
    pub(crate) wrong: u64,
    pub(crate) first: Option<String>,
}

/// Most blocks that a lane keeps.
const DUMPS: usize = 64;

/// A block that is not what it should be: the name of a file, and what it holds.
pub(crate) type Dump = (String, Vec<u8>);

/// Errno of an I/O that took too long.
const ETIMEDOUT: i32 = 110;

/// Errno of a block that is not what it should be.
pub(crate) const EILSEQ: i32 = 84;

impl Verifier {
    fn written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a job that only reads has come to what an earlier run did not write for sure.
    fn is_past(&self, io: &Io) -> bool {
        match &self.plan.until {
            Some(state) if self.reads || self.plan.only => {
                let done = self.written().count_read();
                state.ends_at(done, io.region, io.offset)
            }
            _ => false,
        }
    }

    /// Keeps a mismatch.
    pub(super) fn mismatch(&mut self, recorder: &mut Recorder, text: String) {
        self.wrong += 1;
        recorder.failed(READ, || (EILSEQ, format!("verify: {text}")));
        self.first.get_or_insert(text);
    }

    /// Keeps the bytes that came back and those that were written, where those are known.
    pub(super) fn dump(&mut self, io: &Io, found: &[u8], number: Option<u64>) {
        if !self.plan.dump || self.dumps.len() >= 2 * DUMPS {
            return;
        }
        let name = self.names.get(io.region).map_or("file", String::as_str);
        let name = name.rsplit('/').next().unwrap_or(name);
        self.dumps
            .push((format!("{name}.{}.received", io.offset), found.to_vec()));
        if let Some(number) = number.or_else(|| self.plan.number_of(found)) {
            let mut wanted = vec![0; found.len()];
            self.plan.lay_out(&mut wanted, io.offset, number);
            self.plan.stamp(&mut wanted, io.offset, number);
            self.dumps
                .push((format!("{name}.{}.expected", io.offset), wanted));
        }
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
    pub(crate) errno: i32,
    /// What failed, for people.
    pub(crate) text: String,
}

impl Worker {
    /// Works until the sequence ends, somebody says stop, or an I/O fails.
    pub(crate) fn run(&mut self, stop: &Stop) -> Result<(), Failed> {
        if let Some(extras) = &self.extras {
            extras.begin();
        }
        let done = if let Some(burn) = self.burn {
            burn.run(stop);
            Ok(())
        } else if self.is_plain() {
            self.plain_loop(stop)
        } else {
            self.full_loop(stop)
        };
        self.settle_checks();
        if let Some(extras) = &self.extras {
            extras.end();
        }
        done
    }

    fn is_plain(&self) -> bool {
        self.think.is_none()
            && self.logger.is_none()
            && self.verify.is_none()
            && self.extras.is_none()
            && !self.targets.iter().any(|t| matches!(t, Target::Name(_)))
    }

    /// Nothing but the I/Os, where the job asks for nothing else.
    fn plain_loop(&mut self, stop: &Stop) -> Result<(), Failed> {
        let Source::Own(sequence) = &mut self.source else {
            return self.full_loop(stop);
        };
        let Some(generator) = sequence.plain() else {
            return self.full_loop(stop);
        };
        while !stop.asked() {
            let Some(io) = generator.next() else {
                break;
            };
            let Some(target) = self.targets.get(io.region) else {
                continue;
            };
            let timed = self.clock.due();
            let (nanos, failed) = match io.dir {
                READ => {
                    let buf = self.filler.for_read(io.len);
                    let begun = mark(self.watch, timed);
                    let failed = failure(target.read(io.offset, buf));
                    (since(self.watch, begun), failed)
                }
                WRITE => {
                    let buf = self.filler.for_write(io.offset, io.len);
                    let begun = mark(self.watch, timed);
                    let failed = failure(target.write(io.offset, buf, self.durable));
                    (since(self.watch, begun), failed)
                }
                _ => {
                    let begun = mark(self.watch, timed);
                    let failed = failure(target.trim(io.offset, io.len));
                    (since(self.watch, begun), failed)
                }
            };
            match failed {
                None => self.recorder.done(io.dir, io.len, nanos),
                Some(error) => {
                    let (failed, target) = (Step::Io(io), Some(target));
                    settle(
                        &mut self.recorder,
                        self.go_on,
                        io.dir,
                        failed,
                        target,
                        &error,
                    )?;
                }
            }
        }
        Ok(())
    }

    fn full_loop(&mut self, stop: &Stop) -> Result<(), Failed> {
        while !stop.asked() {
            let Some((next, intended)) = self.source.next() else {
                break;
            };
            if let Some(at) = intended
                && !wait_until(at, stop)
            {
                break;
            }
            let io = match next {
                Step::Io(io) => Some(io),
                Step::Flush(_) => None,
                Step::Anew => {
                    self.anew(stop)?;
                    continue;
                }
            };
            if let (Some(io), Some(v)) = (&io, &self.verify)
                && v.is_past(io)
            {
                break;
            }
            if let Some(extras) = &self.extras
                && !extras.enter(&next, stop)
            {
                break;
            }
            let late = intended.map(|at| at.elapsed());
            let done = self.step_of_job(next);
            if let Some(extras) = &self.extras {
                extras.leave(io, done.as_ref().ok().copied().flatten());
            }
            let nanos = done?;
            if let (Some(at), Some(late), Some(io)) = (intended, late, io) {
                self.recorder.response(io.dir, at.elapsed(), late);
            }
            if let (Some(extras), Some(nanos)) = (&self.extras, nanos)
                && let Some(most) = extras.too_long(nanos)
            {
                return Err(Failed {
                    errno: ETIMEDOUT,
                    text: format!(
                        "{} took {nanos} ns, above max_latency of {most} ns",
                        describe(&next)
                    ),
                });
            }
            if let Some(think) = &mut self.think
                && let Some(pause) = think.after_io(stop)
            {
                self.source.delay(pause);
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
        self.settle_checks();
        Ok(())
    }

    /// Checks what the loop wrote, then empties the files for the next one.
    fn anew(&mut self, stop: &Stop) -> Result<(), Failed> {
        self.read_back(stop)?;
        for target in self.targets.iter() {
            target.anew().map_err(|error| Failed {
                errno: error.errno(),
                text: format!("unlink_each_loop: {error}"),
            })?;
        }
        Ok(())
    }

    /// Waits for the blocks that other threads check.
    fn settle_checks(&mut self) {
        if let Some(verifier) = &mut self.verify {
            verifier.settle(&mut self.recorder);
        }
    }

    fn checked_read(&mut self, io: Io, number: Option<u64>) -> Result<Option<u64>, Failed> {
        let io = Io { dir: READ, ..io };
        let nanos = self.step(Step::Io(io))?;
        if let Some(verifier) = &mut self.verify {
            let block = self.filler.for_read(io.len);
            verifier.examine(&mut self.recorder, io, block, number);
        }
        Ok(nanos)
    }

    /// The next step of the job; where blocks are checked, with its check.
    #[inline]
    fn step_of_job(&mut self, step: Step) -> Result<Option<u64>, Failed> {
        match (&self.verify, step) {
            (Some(v), Step::Io(io))
                if (io.dir == WRITE && v.plan.only) || (io.dir == READ && v.reads) =>
            {
                self.checked_read(io, None)
            }
            _ => self.step(step),
        }
    }

    /// Does a step; the time it took, where it was taken.
    #[inline]
    fn step(&mut self, step: Step) -> Result<Option<u64>, Failed> {
        let watch = self.watch;
        let timed = self.clock.due();
        let (dir, len, nanos, failed) = match step {
            Step::Io(io) => {
                let Some(target) = self.targets.get(io.region) else {
                    return Ok(None);
                };
                match (target, io.dir) {
                    (Target::Name(name), dir) => {
                        let (nanos, done) = name.io(io.len, timed);
                        (dir, io.len, nanos, failure(done))
                    }
                    (_, READ) => {
                        let buf = self.filler.for_read(io.len);
                        let begun = mark(watch, timed);
                        let failed = failure(target.read(io.offset, buf));
                        (io.dir, io.len, since(watch, begun), failed)
                    }
                    (_, WRITE) => {
                        let buf = self.filler.for_write(io.offset, io.len);
                        let number = self.verify.as_ref().map(|v| {
                            let number = v.written().next();
                            v.plan.lay_out(buf, io.offset, number);
                            v.plan.stamp(buf, io.offset, number);
                            number
                        });
                        let begun = mark(watch, timed);
                        let failed = failure(target.write(io.offset, buf, self.durable));
                        let nanos = since(watch, begun);
                        if let (Some(v), Some(number), None) = (&self.verify, number, &failed) {
                            v.written().add(&io, number);
                        }
                        (io.dir, io.len, nanos, failed)
                    }
                    (_, _) => {
                        let begun = mark(watch, timed);
                        let failed = failure(target.trim(io.offset, io.len));
                        (io.dir, io.len, since(watch, begun), failed)
                    }
                }
            }
            Step::Flush(region) => {
                let begun = mark(watch, timed);
                let failed = self.targets.get(region).and_then(|t| failure(t.flush()));
                (SYNC, 0, since(watch, begun), failed)
            }
            Step::Anew => return Ok(None),
        };
        match failed {
            None => {
                self.recorder.done(dir, len, nanos);
                if let (Some(logger), Step::Io(io), Some(nanos)) = (&mut self.logger, step, nanos) {
                    logger.io(&io, nanos);
                }
            }
            Some(error) => {
                let target = match step {
                    Step::Io(io) => self.targets.get(io.region),
                    Step::Flush(_) | Step::Anew => None,
                };
                settle(&mut self.recorder, self.go_on, dir, step, target, &error)?;
            }
        }
        Ok(nanos)
    }

    /// Flushes each target once, as `end_fsync` asks.
    pub(crate) fn end_flush(&mut self) -> Result<(), Failed> {
        for region in 0..self.targets.len() {
            self.step(Step::Flush(region))?;
        }
        Ok(())
    }
}

/// What is wrong, if anything, in a word.
///
/// The outcome is a large value of which success writes the tag alone. Carried on as it is, it is loaded as a whole
/// right after that, which waits until the tag has reached the cache, behind all bytes of a copy: half of the time of
/// a 4 KiB write. Looked at here, by its tag, it costs nothing.
#[inline]
fn failure(done: cairn_block::Result<()>) -> Option<Box<cairn_block::Error>> {
    match done {
        Ok(()) => None,
        Err(error) => Some(Box::new(error)),
    }
}

/// Counts a failure; it ends the job unless the job goes on after such.
#[cold]
fn settle(
    recorder: &mut Recorder,
    go_on: [bool; DIRS],
    dir: usize,
    step: Step,
    target: Option<&Target>,
    error: &cairn_block::Error,
) -> Result<(), Failed> {
    let errno = error.errno();
    let text = match target {
        Some(Target::Name(name)) => name.describe(error),
        _ => format!("{}: {error}", describe(&step)),
    };
    recorder.failed(dir, || (errno, text.clone()));
    if go_on.get(dir).copied().unwrap_or(false) {
        return Ok(());
    }
    Err(Failed { errno, text })
}

/// A step for people.
fn describe(step: &Step) -> String {
    match step {
        Step::Io(io) => {
            let dir = Ddir::ALL.get(io.dir).map_or("", |d| d.word());
            format!("{dir} of {} bytes at {}", io.len, io.offset)
        }
        Step::Flush(_) => "flush".to_owned(),
        Step::Anew => "unlink".to_owned(),
    }
}

#[inline]
fn mark(watch: &Watch, timed: bool) -> Option<u64> {
    timed.then(|| watch.mark())
}

#[inline]
fn since(watch: &Watch, begun: Option<u64>) -> Option<u64> {
    begun.map(|mark| watch.since(mark))
}
