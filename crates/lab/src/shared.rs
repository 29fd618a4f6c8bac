//! What workers, sampler and lab share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_block::Stack;
use cairn_extents::ExtentCache;

use crate::engine::run::Stop;
use crate::file::FlatFile;
use crate::latency::{self, Hist};
use crate::recorder::{Cell, Counts, Epoch};
use crate::sample::Unit;
use crate::tasks::Buffers;

/// Everything below the workloads, and the workloads as the sampler sees them.
pub(crate) struct Shared {
    pub(crate) stack: Stack,
    pub(crate) cache: ExtentCache,
    pub(crate) buffers: Option<Buffers>,
    /// The file whose extents are shown.
    pub(crate) first_file: Option<Arc<FlatFile>>,
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) workloads: Vec<Workload>,
    failure: Mutex<Option<Arc<str>>>,
}

/// One workload.
pub(crate) struct Workload {
    pub(crate) name: Arc<str>,
    pub(crate) about: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) workers: usize,
    pub(crate) warmup: Duration,
    pub(crate) runtime: Option<Duration>,
    /// Workers that have not ended.
    pub(crate) alive: AtomicUsize,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    cells: Vec<Arc<Cell>>,
    stop: Arc<Stop>,
    /// When it ends by itself.
    until: Option<Instant>,
    /// What workers counted that have ended since.
    retired: Counts,
    /// What they recorded and nobody read yet.
    left: Option<Box<Hist>>,
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
            warmup,
            runtime,
            alive: AtomicUsize::new(0),
            live: Mutex::new(Live::default()),
        }
    }

    /// The sum of what all workers counted; what they handed over goes to `each`.
    pub(crate) fn read(&self, mut each: impl FnMut(&Hist)) -> Counts {
        let mut live = self.live();
        if let Some(left) = live.left.take() {
            each(&left);
        }
        let mut sum = live.retired;
        for cell in &live.cells {
            sum = sum.plus(cell.counts());
            cell.collect(|_, hist| each(hist));
        }
        sum
    }

    /// Takes in the workers of a start.
    pub(crate) fn start(&self, cells: Vec<Arc<Cell>>, stop: Arc<Stop>) {
        let mut live = self.live();
        live.until = self.runtime.map(|r| Instant::now() + r);
        live.cells = cells;
        live.stop = stop;
    }

    /// Keeps what the workers of a start came to; they have ended.
    pub(crate) fn retire(&self) {
        let mut live = self.live();
        let cells = std::mem::take(&mut live.cells);
        let mut left = live
            .left
            .take()
            .unwrap_or_else(|| Box::new(latency::new_hist()));
        for cell in cells {
            live.retired = live.retired.plus(cell.counts());
            cell.collect(|_, hist| latency::add(&mut left, hist));
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

impl Shared {
    pub(crate) fn new(
        stack: Stack,
        cache: ExtentCache,
        buffers: Option<Buffers>,
        first_file: Option<Arc<FlatFile>>,
        workloads: Vec<Workload>,
    ) -> Self {
        Self {
            stack,
            cache,
            buffers,
            first_file,
            epoch: Arc::new(Epoch::keeping_counts()),
            workloads,
            failure: Mutex::new(None),
        }
    }

    /// Whether any worker runs.
    pub(crate) fn running(&self) -> bool {
        self.workloads
            .iter()
            .any(|w| w.alive.load(Ordering::Acquire) > 0)
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
