//! What workers, sampler and lab share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_block::Stack;
use cairn_extents::ExtentCache;

use crate::engine::run::Stop;
use crate::files::AnyFile;
use crate::latency::{self, Hist};
use crate::operations::{Counts, Operations, Phase};
use crate::policy::Mechanism;
use crate::recorder::{Cell, DIRS, Epoch};
use crate::sample::Unit;
use crate::shrinker::Shrinker;
use crate::tasks::Buffers;

/// Everything below the workloads, and the workloads as the sampler sees them.
pub(crate) struct Shared {
    pub(crate) stack: Stack,
    pub(crate) cache: ExtentCache,
    pub(crate) shrinker: Arc<Shrinker>,
    pub(crate) buffers: Option<Buffers>,
    /// The buffers whose references are checked: those of the tasks, or of the file layer alone.
    pub(crate) audited: Option<Buffers>,
    /// The files, by the paths that jobs give them.
    pub(crate) files: Vec<(String, Arc<AnyFile>)>,
    /// The file whose extents are shown.
    pub(crate) shown_file: AtomicUsize,
    /// One more than the number of the workload that arms are compared by; 0: the first one that the policy
    /// acts on.
    pub(crate) compared: AtomicUsize,
    /// Its blocks that are looked at: the first in the upper half, how many in the lower; 0: all.
    pub(crate) window: AtomicU64,
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) workloads: Vec<Workload>,
    /// Time at the start that the statistics leave out: the longest that any workload asks for, since all
    /// are measured over the same time.
    pub(crate) warmup: Duration,
    failure: Mutex<Option<Arc<str>>>,
}

/// One workload.
pub(crate) struct Workload {
    pub(crate) name: Arc<str>,
    pub(crate) about: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) workers: usize,
    /// What it makes use of.
    pub(crate) uses: Vec<Mechanism>,
    /// What all its workers have done, over all starts.
    pub(crate) operations: Arc<Operations>,
    warmup: Duration,
    runtime: Option<Duration>,
    /// Workers that have not ended.
    alive: AtomicUsize,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    cells: Vec<Arc<Cell>>,
    stop: Arc<Stop>,
    /// When it ends by itself.
    until: Option<Instant>,
    /// Whether it was started before, so that the warm-up is over.
    warm: bool,
    /// Since when it runs, from the reset on at the earliest.
    since: Option<Instant>,
    /// How long it ran before that, since the reset.
    ran: Duration,
    /// The first operation that failed, of workers that have ended.
    first_error: Option<Arc<str>>,
    /// What they recorded and nobody read yet.
    left: Option<Box<Hist>>,
    /// The same of response times.
    left_responses: Option<Box<Hist>>,
}

impl Workload {
    pub(crate) fn new(
        name: &str,
        about: &str,
        unit: Unit,
        workers: usize,
        warmup: Duration,
        runtime: Option<Duration>,
    ) -> Self {
        Self {
            name: Arc::from(name),
            about: Arc::from(about),
            unit,
            workers,
            uses: Vec::new(),
            operations: Arc::new(Operations::new(workers)),
            warmup,
            runtime,
            alive: AtomicUsize::new(0),
            live: Mutex::new(Live::default()),
        }
    }

    /// The sum of what all workers counted; what they handed over goes to `each`: whether it is response times,
    /// which are another measure of the same operations, and the distribution.
    pub(crate) fn read(&self, mut each: impl FnMut(bool, &Hist)) -> Counts {
        let mut live = self.live();
        if let Some(left) = live.left.take() {
            each(false, &left);
        }
        if let Some(left) = live.left_responses.take() {
            each(true, &left);
        }
        for cell in &live.cells {
            cell.collect(|dir, hist| each(dir >= DIRS, hist));
        }
        self.operations.data(Phase::First)
    }

    /// Takes in the workers of a start. The time that it is to run begins after the warm-up, as with
    /// `ramp_time` of fio.
    pub(crate) fn start(&self, cells: Vec<Arc<Cell>>, stop: Arc<Stop>, warmup: Duration) {
        let mut live = self.live();
        let now = Instant::now();
        let warmup = if live.warm { Duration::ZERO } else { warmup };
        live.warm = true;
        live.until = self.runtime.map(|r| now + warmup + r);
        live.cells = cells;
        live.stop = stop;
    }

    /// I/Os with an intended start that began late, since the reset.
    pub(crate) fn late(&self) -> u64 {
        self.live().cells.iter().map(|cell| cell.late().0).sum()
    }

    /// A worker more will run.
    pub(crate) fn one_more(&self) {
        if self.alive.fetch_add(1, Ordering::AcqRel) == 0 {
            self.live().since.get_or_insert_with(Instant::now);
        }
    }

    /// A worker has ended, or was not started after all.
    pub(crate) fn one_less(&self) {
        if self.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.live().rest(Instant::now());
        }
    }

    /// Whether any of its workers runs.
    pub(crate) fn running(&self) -> bool {
        self.alive.load(Ordering::Acquire) > 0
    }

    /// Time that it ran since the reset.
    pub(crate) fn ran(&self, now: Instant) -> Duration {
        let live = self.live();
        let on = |since: Instant| now.saturating_duration_since(since);
        live.ran + live.since.map_or(Duration::ZERO, on)
    }

    /// Its time counts from here.
    pub(crate) fn reset(&self, now: Instant) {
        let mut live = self.live();
        live.ran = Duration::ZERO;
        live.since = live.since.map(|_| now);
    }

    /// What the first operation that failed was, and how.
    pub(crate) fn first_error(&self) -> Option<Arc<str>> {
        let live = self.live();
        let first = || {
            live.cells
                .iter()
                .find_map(|cell| Some(cell.first_error()?.1))
        };
        live.first_error.clone().or_else(first)
    }

    /// Keeps what the workers of a start came to; they have ended.
    pub(crate) fn retire(&self) {
        let mut live = self.live();
        // Those that did not stop in time are no longer counted on.
        live.rest(Instant::now());
        let cells = std::mem::take(&mut live.cells);
        let mut left = live
            .left
            .take()
            .unwrap_or_else(|| Box::new(latency::new_hist()));
        for cell in cells {
            if live.first_error.is_none() {
                live.first_error = cell.first_error().map(|(_, what)| what);
            }
            cell.collect(|dir, hist| {
                if dir < DIRS {
                    latency::add(&mut left, hist);
                } else {
                    let new = || Box::new(latency::new_hist());
                    latency::add(live.left_responses.get_or_insert_with(new), hist);
                }
            });
        }
        live.left = Some(left);
    }

    pub(crate) fn stop(&self) {
        self.live().stop.now();
    }

    fn stop_if_over(&self, now: Instant) {
        let live = self.live();
        if live.until.is_some_and(|until| now >= until) {
            live.stop.now();
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// The workload does not run any more.
    fn rest(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.ran += now.saturating_duration_since(since);
        }
    }
}

impl Shared {
    /// The workload that somebody chose to compare arms by.
    pub(crate) fn compared(&self) -> Option<usize> {
        self.compared.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(crate) fn new(
        stack: Stack,
        cache: ExtentCache,
        shrinker: Arc<Shrinker>,
        buffers: Option<Buffers>,
        audited: Option<Buffers>,
        files: Vec<(String, Arc<AnyFile>)>,
        mut workloads: Vec<Workload>,
    ) -> Self {
        // A slot belongs to a thread of the process, so each workload needs as many as all have.
        let threads = workloads.iter().map(|w| w.workers).sum();
        for workload in &mut workloads {
            workload.operations = Arc::new(Operations::new(threads));
        }
        Self {
            stack,
            cache,
            shrinker,
            buffers,
            audited,
            files,
            shown_file: AtomicUsize::new(0),
            compared: AtomicUsize::new(0),
            window: AtomicU64::new(0),
            epoch: Arc::new(Epoch::keeping_counts()),
            warmup: workloads.iter().map(|w| w.warmup).max().unwrap_or_default(),
            workloads,
            failure: Mutex::new(None),
        }
    }

    /// Whether any worker runs.
    pub(crate) fn running(&self) -> bool {
        self.workloads.iter().any(Workload::running)
    }

    /// The first operation that failed, in the order of the workloads.
    pub(crate) fn first_error(&self) -> Option<Arc<str>> {
        self.workloads.iter().find_map(|w| {
            let what = w.first_error()?;
            Some(Arc::from(format!("{}: {what}", w.name)))
        })
    }

    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.failures().clone()
    }

    /// Keeps the first failure and stops every workload.
    pub(crate) fn fail(&self, what: &str) {
        self.failures().get_or_insert_with(|| Arc::from(what));
        self.stop();
    }

    pub(crate) fn forgive(&self) {
        *self.failures() = None;
    }

    pub(crate) fn stop(&self) {
        for workload in &self.workloads {
            workload.stop();
        }
    }

    pub(crate) fn stop_what_is_over(&self, now: Instant) {
        for workload in &self.workloads {
            workload.stop_if_over(now);
        }
    }

    fn failures(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
