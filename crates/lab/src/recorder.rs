//! What one worker counts and records, and how the sampler reads it.
//!
//! Operations, bytes and errors: the counters of [`crate::operations`], one set for all workers of a
//! workload. What is rare is in atomics of the worker's own cell, written by the worker alone.
//!
//! Latencies: the worker owns a histogram outright. When the sampler wants to see it, it raises an
//! epoch; the worker notices at its next operation (one relaxed load of a line that is written ten
//! times a second) and exchanges its histogram for an empty one. The exchange goes through a mutex
//! that the worker only ever tries: if the sampler holds it just then, the worker goes on recording
//! and hands over at the next epoch. So no worker waits and none allocates.

use std::mem;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::latency::{Hist, LONGEST, new_hist};
use crate::operations::{Operations, Phase};

/// What is told apart: read, write, trim, and flush as the fourth. Operations that are none of these
/// count as the first.
pub(crate) const DIRS: usize = 4;

/// Index of flushes.
pub(crate) const SYNC: usize = 3;

/// Distributions kept: one for each of these, and the response times of reads, writes and trims.
pub(crate) const KEPT: usize = DIRS + RESPONSES;

/// Directions that have response times where there is a rate.
pub(crate) const RESPONSES: usize = 3;

/// An I/O that starts more than this after its intended time counts as late: less is the kernel's own
/// slowness in waking a sleeper.
const LATE: Duration = Duration::from_millis(1);

/// The side of a worker that others read.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Cell {
    /// Latencies above [`LONGEST`].
    over: AtomicU64,
    /// I/Os that started late, and the longest that one did, in nanoseconds.
    late: [AtomicU64; 2],
    /// The first operation that failed: errno, and in words.
    first_error: OnceLock<(i32, Arc<str>)>,
    handed: Mutex<Handed>,
}

#[derive(Default)]
struct Handed {
    /// Recorded, for the sampler to take.
    full: Option<Hists>,
    /// Empty, for the worker to take.
    spare: Option<Hists>,
}

/// Histograms by direction; directions that never occur have none.
pub(crate) type Hists = [Option<Box<Hist>>; KEPT];

fn hists(used: [bool; KEPT]) -> Hists {
    used.map(|used| used.then(|| Box::new(new_hist())))
}

/// What readers ask of all recorders at once; one relaxed load an operation tells a worker that there
/// is something to do.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Epoch {
    number: AtomicU32,
    resets: AtomicU32,
    keep_counts: bool,
}

impl Epoch {
    /// The phase that readers count by.
    pub(crate) fn phase(&self) -> Phase {
        self.phase_after(self.resets.load(Ordering::Relaxed))
    }

    fn phase_after(&self, resets: u32) -> Phase {
        if resets == 0 || self.keep_counts {
            Phase::First
        } else {
            Phase::AfterReset
        }
    }

    /// One whose [`reset`](Self::reset) drops latencies only. Counters go on: who asks for the reset
    /// remembers where they stood.
    pub(crate) fn keeping_counts() -> Self {
        Self {
            keep_counts: true,
            ..Self::default()
        }
    }

    /// Asks every worker to hand its histograms over at its next operation.
    pub(crate) fn hand_over(&self) {
        self.number.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks every worker to begin again at its next operation: what it recorded is dropped, and unless
    /// counters are kept it counts in the second [`Phase`] from there on. The worker does it itself, so
    /// that in the first case both agree to the operation.
    pub(crate) fn reset(&self) {
        self.resets.fetch_add(1, Ordering::Relaxed);
        self.number.fetch_add(1, Ordering::Release);
    }
}

impl Cell {
    /// Latencies that were longer than a minute and count as one.
    pub(crate) fn over(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }

    /// I/Os that started late, and the longest that one did, in nanoseconds.
    pub(crate) fn late(&self) -> (u64, u64) {
        let [count, most] = &self.late;
        (count.load(Ordering::Relaxed), most.load(Ordering::Relaxed))
    }

    /// What the first operation that failed was, and how.
    pub(crate) fn first_error(&self) -> Option<(i32, Arc<str>)> {
        self.first_error.get().cloned()
    }

    /// Adds what was handed over to `to`, direction by direction, and empties it.
    pub(crate) fn collect(&self, mut to: impl FnMut(usize, &Hist)) {
        let Some(mut full) = self.lock().full.take() else {
            return;
        };
        for (dir, hist) in full.iter_mut().enumerate() {
            if let Some(hist) = hist
                && !hist.is_empty()
            {
                to(dir, hist);
                hist.reset();
            }
        }
        let mut handed = self.lock();
        if handed.spare.is_none() {
            handed.spare = Some(full);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The side of a worker that the worker itself holds.
pub(crate) struct Recorder {
    cell: Arc<Cell>,
    operations: Arc<Operations>,
    phase: Phase,
    hists: Hists,
    epoch: Arc<Epoch>,
    seen: u32,
    resets: u32,
    since: Instant,
}

impl Recorder {
    /// A recorder for the directions in `used`; with none it counts and records no latency.
    pub(crate) fn new(
        epoch: &Arc<Epoch>,
        operations: &Arc<Operations>,
        used: [bool; DIRS],
    ) -> (Self, Arc<Cell>) {
        Self::with_responses(epoch, operations, used, [false; RESPONSES])
    }

    /// The same, with response times for these directions.
    pub(crate) fn with_responses(
        epoch: &Arc<Epoch>,
        operations: &Arc<Operations>,
        used: [bool; DIRS],
        responses: [bool; RESPONSES],
    ) -> (Self, Arc<Cell>) {
        let mut both = [false; KEPT];
        for (slot, used) in both.iter_mut().zip(used.into_iter().chain(responses)) {
            *slot = used;
        }
        let used = both;
        let cell = Arc::new(Cell::default());
        cell.lock().spare = Some(hists(used));
        let seen = epoch.number.load(Ordering::Acquire);
        let resets = epoch.resets.load(Ordering::Relaxed);
        let recorder = Self {
            cell: Arc::clone(&cell),
            operations: Arc::clone(operations),
            phase: epoch.phase_after(resets),
            hists: hists(used),
            epoch: Arc::clone(epoch),
            seen,
            resets,
            since: Instant::now(),
        };
        (recorder, cell)
    }

    /// Counts an operation that succeeded, and its latency if it was measured.
    #[inline]
    pub(crate) fn done(&mut self, dir: usize, bytes: u64, nanos: Option<u64>) {
        self.operations.done(self.phase, dir, bytes);
        match nanos {
            Some(nanos) => self.latency(dir, nanos),
            None => self.look(),
        }
    }

    /// Records a latency without counting an operation.
    #[inline]
    pub(crate) fn latency(&mut self, dir: usize, nanos: u64) {
        if let Some(Some(hist)) = self.hists.get_mut(dir) {
            hist.saturating_record(nanos);
            if nanos > LONGEST {
                bump(&self.cell.over, 1);
            }
        }
        self.look();
    }

    /// Records how long after its intended start an I/O was done, and how late it had started.
    pub(crate) fn response(&mut self, dir: usize, time: Duration, late: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(Some(hist)) = self.hists.get_mut(DIRS + dir) {
            hist.saturating_record(nanos(time));
        }
        if late > LATE {
            let [count, most] = &self.cell.late;
            bump(count, 1);
            most.store(
                most.load(Ordering::Relaxed).max(nanos(late)),
                Ordering::Relaxed,
            );
        }
    }

    #[inline]
    fn look(&mut self) {
        if self.epoch.number.load(Ordering::Relaxed) != self.seen {
            self.asked();
        }
    }

    /// Recording begins now.
    pub(crate) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// When recording began, or began again.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Counts an operation that failed; its latency is no latency of the device. The first is kept in
    /// words, whatever is reset later.
    #[cold]
    pub(crate) fn failed(&mut self, dir: usize, what: impl FnOnce() -> (i32, String)) {
        self.cell.first_error.get_or_init(|| {
            let (errno, text) = what();
            (errno, Arc::from(text))
        });
        self.operations.failed(self.phase, dir);
    }

    #[cold]
    fn asked(&mut self) {
        self.seen = self.epoch.number.load(Ordering::Acquire);
        let resets = self.epoch.resets.load(Ordering::Relaxed);
        if resets == self.resets {
            self.hand_over();
        } else {
            self.resets = resets;
            self.begin_again();
        }
    }

    fn begin_again(&mut self) {
        for hist in self.hists.iter_mut().flatten() {
            hist.reset();
        }
        self.phase = self.epoch.phase_after(self.resets);
        self.cell.over.store(0, Ordering::Relaxed);
        for late in &self.cell.late {
            late.store(0, Ordering::Relaxed);
        }
        // Once in a run, and only against a reader that empties the same slot: waiting is short.
        self.cell.collect(|_, _| {});
        self.since = Instant::now();
    }

    /// Gives what was recorded to the sampler unless the sampler is busy with it.
    fn hand_over(&mut self) {
        let mut handed = match self.cell.handed.try_lock() {
            Ok(handed) => handed,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if handed.full.is_none()
            && let Some(spare) = handed.spare.take()
        {
            handed.full = Some(mem::replace(&mut self.hists, spare));
        }
    }
}

impl Drop for Recorder {
    /// The last hand-over, also after a panic: here the worker may wait.
    fn drop(&mut self) {
        if self.epoch.resets.load(Ordering::Acquire) != self.resets {
            // Nothing was done since the reset, so nothing of what is here belongs after it.
            return;
        }
        let mine = mem::take(&mut self.hists);
        let mut handed = self.cell.lock();
        match &mut handed.full {
            None => handed.full = Some(mine),
            Some(full) => {
                for (to, from) in full.iter_mut().zip(mine) {
                    match (to, from) {
                        (Some(to), Some(from)) => crate::latency::add(to, &from),
                        (to @ None, from) => *to = from,
                        (Some(_), None) => {}
                    }
                }
            }
        }
    }
}

/// One writer: no read-modify-write is needed.
#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency;
    use crate::operations::Counts;
    use std::thread;

    #[test]
    fn nothing_recorded_is_lost_however_often_the_reader_looks() {
        let epoch = Arc::new(Epoch::default());
        let operations = Arc::new(Operations::new(2));
        let (mut recorder, cell) = Recorder::new(&epoch, &operations, [true, true, false, false]);
        let n = 200_000;
        let worker = thread::spawn(move || {
            for i in 0..n {
                recorder.done(usize::from(i % 3 == 0), 10, Some(i % 1000 + 1));
            }
        });
        let mut total = [latency::new_hist(), latency::new_hist()];
        let mut look = || {
            cell.collect(|dir, hist| latency::add(&mut total[dir], hist));
        };
        while !worker.is_finished() {
            epoch.hand_over();
            look();
            thread::yield_now();
        }
        worker.join().unwrap();
        look();
        assert_eq!(total[0].len() + total[1].len(), n);
        assert_eq!(total[1].len(), operations.dir(Phase::First, 1).ops);
        assert_eq!(
            operations.data(epoch.phase()),
            Counts {
                ops: n,
                bytes: 10 * n,
                errors: 0
            }
        );
    }

    #[test]
    fn a_reader_that_never_looks_costs_no_record() {
        let epoch = Arc::new(Epoch::default());
        let operations = Arc::new(Operations::new(2));
        let (mut recorder, cell) = Recorder::new(&epoch, &operations, [true, false, false, false]);
        for i in 0..10 {
            epoch.hand_over();
            recorder.done(0, 1, Some(i + 1));
        }
        drop(recorder);
        let mut n = 0;
        cell.collect(|_, hist| n += hist.len());
        assert_eq!(n, 10);
    }

    #[test]
    fn after_a_reset_counters_and_latencies_agree() {
        let epoch = Arc::new(Epoch::default());
        let operations = Arc::new(Operations::new(2));
        let (mut recorder, cell) = Recorder::new(&epoch, &operations, [false, true, false, true]);
        for _ in 0..5 {
            recorder.done(1, 8, Some(3));
        }
        epoch.hand_over();
        recorder.done(1, 8, Some(3));
        epoch.reset();
        // The operation under way when the reset is noticed still belongs to what was before.
        recorder.done(1, 8, Some(3));
        for _ in 0..7 {
            recorder.done(1, 8, Some(4));
        }
        recorder.done(SYNC, 0, Some(9));
        drop(recorder);
        let mut n = [0; DIRS];
        cell.collect(|dir, hist| n[dir] = hist.len());
        assert_eq!(n, [0, 7, 0, 1]);
        assert_eq!(
            operations.data(epoch.phase()),
            Counts {
                ops: 7,
                bytes: 56,
                errors: 0
            }
        );
        assert_eq!(operations.dir(epoch.phase(), SYNC).ops, 1);
    }

    #[test]
    fn a_reset_may_keep_the_counters_and_never_shows_older_latencies() {
        let epoch = Arc::new(Epoch::keeping_counts());
        let operations = Arc::new(Operations::new(2));
        let (mut busy, seen) = Recorder::new(&epoch, &operations, [true, false, false, false]);
        let (mut idle, rest) = Recorder::new(&epoch, &operations, [true, false, false, false]);
        for _ in 0..5 {
            busy.done(0, 1, Some(1));
            idle.done(0, 1, Some(1));
        }
        epoch.reset();
        for _ in 0..3 {
            busy.done(0, 1, Some(2));
        }
        drop((busy, idle));
        let mut n = 0;
        for cell in [&seen, &rest] {
            cell.collect(|_, hist| n += hist.len());
        }
        assert_eq!(n, 2, "the first operation after the reset tells of it");
        assert_eq!(operations.data(epoch.phase()).ops, 13);
    }

    #[test]
    fn what_is_longer_than_a_minute_is_counted_apart() {
        let epoch = Arc::new(Epoch::default());
        let operations = Arc::new(Operations::new(2));
        let (mut recorder, cell) = Recorder::new(&epoch, &operations, [true, false, false, false]);
        recorder.done(0, 1, Some(LONGEST * 2));
        recorder.failed(0, || (5, "it broke".to_owned()));
        drop(recorder);
        assert_eq!(cell.over(), 1);
        assert_eq!(
            operations.dir(Phase::First, 0),
            Counts {
                ops: 1,
                bytes: 1,
                errors: 1
            }
        );
    }
}
