//! Tasks of creat-clo as a workload of a lab.

use std::sync::{Arc, Mutex, TryLockError};
use std::time::Instant;

use cairn_buffer::{BufferCache, BufferStats, CountingProbe, HeadInfo, NoProbe};
use cairn_ext4::{Dir, Ext4};
use cairn_extents::ExtentCache;
use cairn_flags::{Probe, SetPolicy};

use crate::engine::run::Stop;
use crate::files::{FileTask, Work};
use crate::operations::Operations;
use crate::pattern::{DIR_INO, Pattern};
use crate::recorder::{Cell, DIRS, Epoch, Recorder};
use crate::switches::Switches;

/// Tasks up to which each has a recorder of its own; beyond, as many are shared by all.
const RECORDERS: usize = 64;

/// Files that a task works on between two looks at the pool of recorders.
const SLICE: usize = 64;

/// First inode number of the files that come and go.
const FIRST_INO: u64 = 1 << 32;

/// The buffer cache, with the probe that counts or without.
#[derive(Clone)]
pub(crate) enum Buffers {
    Plain(Arc<BufferCache<NoProbe>>),
    Counted(Arc<BufferCache<CountingProbe>>),
}

impl Buffers {
    pub(crate) fn set_policy(&self, policy: SetPolicy) {
        match self {
            Self::Plain(cache) => cache.set_policy(policy),
            Self::Counted(cache) => cache.set_policy(policy),
        }
    }
}

impl Buffers {
    pub(crate) fn stats(&self) -> BufferStats {
        match self {
            Self::Plain(cache) => cache.stats(),
            Self::Counted(cache) => cache.stats(),
        }
    }

    /// Follows every reference; their number.
    ///
    /// # Errors
    /// The first that does not hold, in words.
    pub(crate) fn audit(&self) -> Result<u64, String> {
        let found = match self {
            Self::Plain(cache) => cache.audit(),
            Self::Counted(cache) => cache.audit(),
        };
        found.map(|n| n as u64).map_err(|e| e.to_string())
    }

    /// Up to `most` heads in the order of their blocks.
    pub(crate) fn heads(&self, most: usize) -> Vec<HeadInfo> {
        let mut heads = match self {
            Self::Plain(cache) => cache.heads(most),
            Self::Counted(cache) => cache.heads(most),
        };
        heads.sort_by_key(|h| h.block);
        heads
    }
}

/// The file system that tasks work on, if they work on files.
#[derive(Clone)]
pub(crate) enum Files {
    Plain(Arc<Ext4<NoProbe>>, Dir<NoProbe>),
    Counted(Arc<Ext4<CountingProbe>>, Dir<CountingProbe>),
}

impl Files {
    /// The cache of its metadata.
    pub(crate) fn buffers(&self) -> Buffers {
        match self {
            Self::Plain(fs, _) => Buffers::Plain(Arc::clone(fs.buffers())),
            Self::Counted(fs, _) => Buffers::Counted(Arc::clone(fs.buffers())),
        }
    }
}

/// A workload of tasks.
pub(crate) struct Tasks {
    /// Works on files of it, or else on buffers alone.
    pub(crate) files: Option<Files>,
    pub(crate) buffers: Buffers,
    /// First block of the area.
    pub(crate) base: u64,
    pub(crate) cache: ExtentCache,
    pub(crate) switches: Arc<Switches>,
    pub(crate) count: usize,
}

/// One task, ready to run.
pub(crate) enum Task {
    Plain(Run<NoProbe>),
    Counted(Run<CountingProbe>),
}

impl Tasks {
    /// Fresh tasks, and the cells they count in. Cells of shared recorders come last.
    pub(crate) fn start(
        &self,
        epoch: &Arc<Epoch>,
        operations: &Arc<Operations>,
    ) -> (Vec<Task>, Vec<Arc<Cell>>) {
        let latencies = [true, false, false, false];
        let mut cells = Vec::new();
        let pool: Option<Pool> = (self.count > RECORDERS).then(|| {
            (0..RECORDERS)
                .map(|_| {
                    let (recorder, cell) = Recorder::new(epoch, operations, latencies);
                    cells.push(cell);
                    Mutex::new(recorder)
                })
                .collect()
        });
        let own = if pool.is_some() {
            [false; DIRS]
        } else {
            latencies
        };
        let mut tasks = Vec::with_capacity(self.count);
        for number in 0..self.count {
            let (recorder, cell) = Recorder::new(epoch, operations, own);
            cells.push(cell);
            tasks.push(self.task(number, recorder, pool.clone()));
        }
        (tasks, cells)
    }

    fn task(&self, number: usize, recorder: Recorder, pool: Option<Pool>) -> Task {
        let run = (recorder, pool, number);
        match (&self.files, &self.buffers) {
            (Some(Files::Plain(fs, dir)), _) => Task::Plain(Run::new(
                Work::Files(FileTask::new(fs, dir, number, 1)),
                run,
            )),
            (Some(Files::Counted(fs, dir)), _) => Task::Counted(Run::new(
                Work::Files(FileTask::new(fs, dir, number, 1)),
                run,
            )),
            (None, Buffers::Plain(buffers)) => {
                Task::Plain(Run::new(Work::Pattern(self.pattern(number, buffers)), run))
            }
            (None, Buffers::Counted(buffers)) => {
                Task::Counted(Run::new(Work::Pattern(self.pattern(number, buffers)), run))
            }
        }
    }

    fn pattern<P: Probe>(&self, number: usize, buffers: &Arc<BufferCache<P>>) -> Pattern<P> {
        let dir = self.cache.map(DIR_INO);
        Pattern::<P>::map_dir(&dir);
        Pattern::new(
            Arc::clone(buffers),
            self.base,
            dir,
            self.cache.map(FIRST_INO + number as u64),
            Arc::clone(&self.switches),
        )
    }
}

impl Task {
    /// Works until told to stop.
    ///
    /// # Errors
    /// What ended it, in words.
    pub(crate) fn run(self, stop: &Stop) -> Result<(), String> {
        match self {
            Self::Plain(run) => run.run(stop),
            Self::Counted(run) => run.run(stop),
        }
    }
}

/// Recorders that tasks lease for one slice at a time.
type Pool = Arc<[Mutex<Recorder>]>;

/// The loop of a task.
pub(crate) struct Run<P: Probe> {
    work: Work<P>,
    recorder: Recorder,
    pool: Option<Pool>,
    number: usize,
}

impl<P: Probe> Run<P> {
    fn new(work: Work<P>, (recorder, pool, number): (Recorder, Option<Pool>, usize)) -> Self {
        Self {
            work,
            recorder,
            pool,
            number,
        }
    }

    fn run(mut self, stop: &Stop) -> Result<(), String> {
        let mut held = self.work.begin()?;
        while !stop.asked() {
            match &self.pool {
                None => {
                    // One clock read a file: the end of one is the beginning of the next.
                    let mut begun = Instant::now();
                    for _ in 0..SLICE {
                        held.step()?;
                        let now = Instant::now();
                        self.recorder.done(0, 0, Some(nanos(begun, now)));
                        begun = now;
                    }
                }
                Some(pool) => {
                    let lease = pool
                        .get(self.number % pool.len().max(1))
                        .map(Mutex::try_lock);
                    let mut lease = match lease {
                        Some(Ok(recorder)) => Some(recorder),
                        Some(Err(TryLockError::Poisoned(e))) => Some(e.into_inner()),
                        // A task that finds its recorder taken counts and measures nothing.
                        Some(Err(TryLockError::WouldBlock)) | None => None,
                    };
                    let mut begun = lease.as_ref().map(|_| Instant::now());
                    for _ in 0..SLICE {
                        held.step()?;
                        self.recorder.done(0, 0, None);
                        if let (Some(recorder), Some(at)) = (&mut lease, begun) {
                            let now = Instant::now();
                            recorder.latency(0, nanos(at, now));
                            begun = Some(now);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[inline]
fn nanos(begun: Instant, now: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(begun).as_nanos()).unwrap_or(u64::MAX)
}
