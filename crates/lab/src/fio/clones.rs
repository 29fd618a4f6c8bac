//! From a plan to clones that are ready to run.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_block::Stack;
use cairn_fio::Plan;
use cairn_fio::job::{
    Amount, CpusPolicy, Ddir, Distribution, EngineClass, ErrorMask, FileServiceType, Job, RwMode,
    ShapedDistribution, SubmitMode, SyncIo, VerifyKind,
};
use cairn_fio::plan::JobClone;

use super::exec::Commands;
use super::needs::CloneNeeds;
use crate::engine::burn::Burn;
use crate::engine::checkers::Checkers;
use crate::engine::clock::{Clock, Watch};
use crate::engine::extras::{Extras, IoLog};
use crate::engine::fill::{Fill, Filler};
use crate::engine::flow::{Flow, Member};
use crate::engine::gate::Gate;
use crate::engine::generate::{Generator, Params, Region, Service, mix};
use crate::engine::logger::Logger;
use crate::engine::pace::{Schedule, Think};
use crate::engine::replay::{Replayer, Trace};
use crate::engine::run::{Sequence, Source, Steps, Verifier, Worker};
use crate::engine::target::Target;
use crate::engine::verify::{self, Written};
use crate::engine::vstate::{self, State};
use crate::fio_error::FioError;
use crate::operations::Operations;
use crate::recorder::{Cell, DIRS, Epoch, RESPONSES, Recorder, SYNC};

/// Most threads a run may have.
const MAX_THREADS: usize = 4096;

/// fio's seed where none is given.
pub(crate) const DEFAULT_SEED: u64 = 0x89;

/// How the clones of a run are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Making {
    /// Mixed into every seed.
    pub(crate) seed: u64,
    /// Jobs go on until they are stopped, whatever their size.
    pub(crate) for_ever: bool,
    /// One I/O in so many is timed; 0 and 1 are all.
    pub(crate) sample: u32,
}

/// One thread of the run, ready to be started any number of times.
pub(crate) struct CloneSpec {
    pub(crate) clone: JobClone,
    pub(crate) name: String,
    params: Params,
    targets: Arc<[Target]>,
    fill: Fill,
    buf_len: usize,
    flush_every: [u32; 3],
    /// Paths of its files, by region.
    names: Arc<[String]>,
    flow: Option<Arc<Member>>,
    durable: bool,
    clock: bool,
    go_on: [bool; DIRS],
    used: [bool; DIRS],
    /// Workers that share the sequence: the depth, where the stack has latency of its own.
    lanes: usize,
    pub(crate) end_flush: bool,
    /// Stacks that it works on, by index.
    pub(crate) grounds: Vec<usize>,
    pub(crate) start_delay: Duration,
    /// The job, for its rates and logs.
    job: Job,
    verify: Option<verify::Plan>,
    sample: u32,
    trace: Option<Arc<Trace>>,
    /// Bytes of a loop, after which the files are emptied.
    anew: Option<u64>,
}

/// What stands behind a path of a job.
pub(crate) struct Found {
    pub(crate) target: Target,
    /// Index of its stack.
    pub(crate) ground: Option<usize>,
    /// Whether a layer of that stack takes its time.
    pub(crate) slow: bool,
}

/// Makes the clones of a plan over the targets that `target` finds.
///
/// # Errors
/// A file of a pattern that cannot be read, or too many threads.
pub(crate) fn specs(
    plan: &Plan,
    clones: Vec<CloneNeeds>,
    making: Making,
    target: impl Fn(&Job, &str, u64) -> Option<Found>,
) -> Result<Vec<CloneSpec>, FioError> {
    let mut specs = Vec::with_capacity(clones.len());
    let mut threads = 0;
    let mut flows: HashMap<u32, Arc<Flow>> = HashMap::new();
    for CloneNeeds {
        clone,
        files,
        trace,
    } in clones
    {
        let Some(job) = plan.jobs.get(clone.job) else {
            continue;
        };
        let mut targets = Vec::new();
        let mut regions = Vec::new();
        let mut slow = false;
        let mut grounds = Vec::new();
        let names = files.iter().map(|(path, _)| path.clone()).collect();
        for (path, region) in files {
            let found = if job.queue.ioengine.class() == EngineClass::Null {
                Some(Found {
                    target: Target::Null,
                    ground: None,
                    slow: false,
                })
            } else {
                target(job, &path, region.len)
            };
            // Every path was made before; one that was not would be a slip of this crate.
            let Some(found) = found else {
                return Err(FioError::job(&job.name, format!("{path} was not made")));
            };
            slow |= found.slow;
            grounds.extend(found.ground);
            targets.push(found.target);
            regions.push(region);
        }
        let depth = usize::try_from(job.queue.effective_depth()).unwrap_or(usize::MAX);
        let offload = job.queue.submit_mode == SubmitMode::Offload;
        let lanes = if slow || offload { depth } else { 1 };
        threads += lanes.min(MAX_THREADS + 1);
        if threads > MAX_THREADS {
            return Err(FioError::job(
                &job.name,
                format!("the run needs more than {MAX_THREADS} threads: lower numjobs or iodepth"),
            ));
        }
        let mut spec = spec(job, clone, making, targets, regions, lanes)?;
        if lanes > 1 && spec.anew.is_some() {
            return Err(FioError::option(
                &job.name,
                "unlink_each_loop",
                "I/Os of the loop before are in flight still; run it with iodepth=1",
            ));
        }
        if let Some(verify) = &mut spec.verify
            && job.verify.state_load
        {
            verify.until = Some(Arc::new(load(plan, job, clone)?));
        }
        spec.grounds = grounds;
        spec.names = names;
        let control = &job.control;
        spec.flow = (control.flow > 0).then(|| {
            let flow = Arc::clone(flows.entry(control.flow_id).or_default());
            Arc::new(Member::new(flow, control.flow, control.flow_sleep))
        });
        if let Some(trace) = trace {
            spec.replay(trace);
        }
        specs.push(spec);
    }
    Ok(specs)
}

fn spec(
    job: &Job,
    clone: JobClone,
    making: Making,
    targets: Vec<Target>,
    regions: Vec<Region>,
    lanes: usize,
) -> Result<CloneSpec, FioError> {
    let area: u64 = regions.iter().map(|r| r.len).sum();
    let time_based = job.control.time_based && job.control.runtime > Duration::ZERO;
    let once = match job.extent.io_size {
        Some(Amount::Bytes(n)) => n,
        Some(share) => share.of(area),
        None => match (job.files.filesize, job.extent.size) {
            (Some(_), Some(Amount::Bytes(n))) => n.min(area),
            _ => area,
        },
    };
    let total = (!making.for_ever && !time_based)
        .then(|| once.saturating_mul(u64::from(job.control.loops.max(1))));
    let seed = if job.random.randrepeat || job.random.allrandrepeat {
        job.random.randseed.unwrap_or(DEFAULT_SEED)
    } else {
        fastrand::u64(..)
    };
    let seed = mix(seed, u64::from(clone.thread), making.seed);
    let fill = Fill::new(job, seed).map_err(|(path, source)| FioError::HostFile {
        job: job.name.clone(),
        path,
        source,
    })?;
    let every = |default: u64| match job.files.service.parameter {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of I/Os, at least one; the cast saturates"
        )]
        Some(n) if n >= 1.0 => n as u64,
        _ => default,
    };
    let service = match job.files.service.kind {
        FileServiceType::Sequential => Service::Sequential,
        FileServiceType::Random => Service::Random(every(1)),
        FileServiceType::Zipf | FileServiceType::Pareto | FileServiceType::Normal => {
            Service::Drawn(drawn(job))
        }
        FileServiceType::RoundRobin => Service::RoundRobin(every(1)),
    };
    let (low, high) = job.control.startdelay;
    let start_delay = if high > low {
        low + high
            .saturating_sub(low)
            .mul_f64(fastrand::Rng::with_seed(mix(seed, 2, 0)).f64())
    } else {
        low
    };
    let rw = job.access.rw;
    let clock = !(job.report.disable_clat && job.report.disable_lat);
    let mut used = [false; DIRS];
    let reads_back = job.verify.kind != VerifyKind::None;
    if clock {
        if let Some(slot) = used.first_mut() {
            *slot = reads_back;
        }
        for (slot, dir) in used.iter_mut().zip(Ddir::ALL) {
            *slot |= rw.has(dir);
        }
        let flushes =
            flushes(job) != [0; 3] || job.durability.end_fsync || job.durability.fsync_on_close;
        if let Some(slot) = used.get_mut(SYNC) {
            *slot = flushes;
        }
    }
    Ok(CloneSpec {
        clone,
        name: job.name.clone(),
        params: Params {
            access: job.access.clone(),
            norandommap: job.random.norandommap,
            distribution: job.random.distribution.clone(),
            stride: job.random.sequence_stride,
            regions,
            service,
            total,
            number_ios: job.extent.number_ios,
            seed,
        },
        targets: targets.into(),
        fill,
        buf_len: usize::try_from(job.max_block()).unwrap_or(usize::MAX),
        flush_every: flushes(job),
        names: Arc::default(),
        flow: None,
        durable: job.durability.sync != SyncIo::None,
        clock,
        go_on: go_on(job.control.continue_on_error),
        used,
        lanes,
        end_flush: job.durability.end_fsync || job.durability.fsync_on_close,
        grounds: Vec::new(),
        start_delay,
        verify: verify::Plan::new(job, clone.thread + 1, seed)?,
        job: job.clone(),
        sample: making.sample,
        trace: None,
        anew: (job.files.unlink_each_loop && job.control.loops > 1 && total.is_some())
            .then_some(once),
    })
}

/// What an earlier run left of a job.
fn load(plan: &Plan, job: &Job, clone: JobClone) -> Result<State, FioError> {
    let name = vstate::file_name(&job.name, clone.thread);
    let folder = plan.run.aux_path.as_deref().unwrap_or("");
    let path = Path::new(folder).join(name);
    let broken = |source: io::Error| FioError::HostFile {
        job: job.name.clone(),
        path: path.display().to_string(),
        source,
    };
    let bytes = std::fs::read(&path).map_err(broken)?;
    State::decode(&bytes).map_err(|why| broken(io::Error::new(io::ErrorKind::InvalidData, why)))
}

/// How often the files of a job are drawn; with fio's parameters where none is given.
fn drawn(job: &Job) -> Distribution {
    let service = &job.files.service;
    let shape = |default: f64| ShapedDistribution {
        parameter: service.parameter.unwrap_or(default),
        center: None,
    };
    match service.kind {
        FileServiceType::Zipf => Distribution::Zipf(shape(1.1)),
        FileServiceType::Pareto => Distribution::Pareto(shape(0.2)),
        _ => Distribution::Normal(shape(0.0)),
    }
}

/// A flush after each of these many writes; data and metadata are one flush here.
fn flushes(job: &Job) -> [u32; 3] {
    let d = &job.durability;
    [d.fsync, d.fdatasync, d.sync_file_range.every]
}

/// Fresh workers of a clone, and what they share with who watches them.
pub(crate) struct Made {
    pub(crate) workers: Vec<(Worker, Arc<Cell>)>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) iolog: Option<Arc<IoLog>>,
    /// What the job wrote, where it leaves a state.
    pub(crate) written: Option<Arc<Mutex<Written>>>,
}

fn go_on(mask: ErrorMask) -> [bool; DIRS] {
    match mask {
        ErrorMask::None | ErrorMask::Verify => [false; DIRS],
        ErrorMask::Read => [true, false, false, false],
        ErrorMask::Write => [false, true, false, true],
        ErrorMask::Io | ErrorMask::All => [true; DIRS],
    }
}

impl CloneSpec {
    /// Workers with their cells; the first of them ends the job with its last flush.
    pub(crate) fn workers(&self, epoch: &Arc<Epoch>, operations: &Arc<Operations>) -> Made {
        let extras = self.extras();
        let seed = self.params.seed;
        let sequence = || {
            let steps = match &self.trace {
                Some(trace) => Steps::Replayed(Replayer::new(Arc::clone(trace), &self.job)),
                None => Steps::Drawn(Box::new(Generator::new(self.params.clone()))),
            };
            let schedule = Schedule::new(&self.job, seed);
            let sequence = Sequence::new(steps, self.flush_every, schedule);
            match self.anew {
                Some(bytes) => sequence.anew_each(bytes),
                None => sequence,
            }
        };
        let saves = self.verify.is_some() && vstate::saves(&self.job);
        let depth = if saves { self.depth() } else { 0 };
        let keeping = Written::keeping(usize::try_from(depth).unwrap_or(usize::MAX));
        let written = Arc::new(Mutex::new(keeping));
        let mut responses = [false; RESPONSES];
        let timed = self.trace.is_some() && !self.job.replay.no_stall;
        if self.clock && (timed || self.job.pace.is_rated()) {
            for (slot, used) in responses.iter_mut().zip(self.used) {
                *slot = used;
            }
        }
        let mut sources: Vec<Source> = if self.lanes == 1 {
            vec![Source::Own(Box::new(sequence()))]
        } else {
            let shared = Arc::new(Mutex::new(sequence()));
            (0..self.lanes)
                .map(|_| Source::Shared(Arc::clone(&shared)))
                .collect()
        };
        let workers = sources
            .drain(..)
            .enumerate()
            .map(|(lane, source)| {
                let (recorder, cell) =
                    Recorder::with_responses(epoch, operations, self.used, responses);
                let seed = mix(seed, lane as u64, 3);
                let worker = Worker {
                    source,
                    targets: Arc::clone(&self.targets),
                    filler: Filler::new(self.buf_len, self.fill.clone(), seed),
                    recorder,
                    clock: Clock::new(self.clock, self.sample, seed),
                    watch: Watch::get(),
                    burn: (self.job.queue.ioengine.class() == EngineClass::Cpu)
                        .then(|| Burn::new(&self.job.engine.cpu)),
                    durable: self.durable,
                    go_on: self.go_on,
                    think: Think::new(&self.job),
                    logger: Logger::new(&self.job, self.clone.thread + 1).map(Box::new),
                    verify: self.verify.as_ref().map(|plan| {
                        Box::new(Verifier {
                            plan: plan.clone(),
                            written: Arc::clone(&written),
                            reads: !self.job.access.rw.has(Ddir::Write),
                            go_on: matches!(
                                self.job.control.continue_on_error,
                                ErrorMask::Verify | ErrorMask::All
                            ),
                            checkers: Checkers::new(plan, self.lanes),
                            names: Arc::clone(&self.names),
                            dumps: Vec::new(),
                            wrong: 0,
                            first: None,
                        })
                    }),
                    extras: (!extras.is_empty()).then(|| Box::new(extras.clone())),
                };
                (worker, cell)
            })
            .collect();
        Made {
            workers,
            gate: extras.gate,
            iolog: extras.log,
            written: saves.then_some(written),
        }
    }

    /// The depth that its job asks for, which a state tells.
    fn depth(&self) -> u32 {
        self.job.queue.effective_depth()
    }

    /// The file that tells a later run where this one stood: its name and content.
    pub(crate) fn state(&self, written: &Mutex<Written>) -> (String, Vec<u8>) {
        let written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let (writes, completed) = written.standing();
        let state = State {
            depth: self.depth(),
            files: u32::try_from(self.targets.len()).unwrap_or(u32::MAX),
            writes,
            number: u64::from(self.clone.thread),
            name: self.name.clone(),
            completed,
        };
        (
            vstate::file_name(&self.name, self.clone.thread),
            state.encode(),
        )
    }

    /// What only few jobs ask for.
    fn extras(&self) -> Extras {
        let longest = self.job.pace.latency.max;
        let log = self.job.replay.write_iolog.as_deref();
        Extras {
            gate: Gate::new(&self.job, self.lanes).map(Arc::new),
            flow: self.flow.clone(),
            longest: (!longest.is_zero())
                .then(|| u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX)),
            log: log.map(|name| Arc::new(IoLog::new(name, self.names.to_vec()))),
        }
    }

    /// Takes its I/Os from a trace.
    fn replay(&mut self, trace: Arc<Trace>) {
        if self.clock {
            self.used = trace.used;
        }
        self.buf_len = usize::try_from(trace.longest).unwrap_or(usize::MAX);
        self.params.total = None;
        self.trace = Some(trace);
    }

    /// Whether what was written is read back at the end.
    pub(crate) fn verifies(&self) -> bool {
        self.verify.as_ref().is_some_and(|plan| plan.read_back)
    }

    /// CPUs that its threads may run on; all where there are none.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let control = &self.job.control;
        match control.cpus_policy {
            CpusPolicy::Shared => control.cpus_allowed.clone(),
            CpusPolicy::Split => {
                let n = control.cpus_allowed.len().max(1);
                let at = usize::try_from(self.clone.sub).unwrap_or(0) % n;
                control.cpus_allowed.get(at).copied().into_iter().collect()
            }
        }
    }

    /// Length of a sample of bandwidth and IOPS, both of which are taken at once: the shorter of the two.
    pub(crate) fn sample(&self) -> Duration {
        let report = &self.job.report;
        let shorter = report.bwavgtime.min(report.iopsavgtime);
        shorter.max(Duration::from_millis(1))
    }

    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// What its job runs before and after itself.
    pub(crate) fn commands(&self) -> Option<Commands> {
        Commands::of(&self.job)
    }

    /// Bytes it will move in all, unless time ends it.
    pub(crate) fn total(&self) -> Option<u64> {
        self.params.total
    }

    /// Every I/O error is counted and the next I/O tried.
    pub(crate) fn never_give_up(&mut self) {
        self.go_on = [true; DIRS];
    }
}

/// Whether a layer of the stack takes its time on purpose, so that a queue in front of it makes sense.
pub(crate) fn has_latency(stack: &Stack) -> bool {
    const SLOW: &[&str] = &["delay", "rate", "pause", "nbd"];
    stack
        .spec()
        .nodes()
        .iter()
        .any(|node| SLOW.contains(&node.name.as_str()))
}

/// What a job does, in a few words.
pub(crate) fn about(job: &Job) -> String {
    let size = |n: u64| {
        if n >= 1 << 20 && n.is_multiple_of(1 << 20) {
            format!("{} MiB", n >> 20)
        } else if n >= 1024 && n.is_multiple_of(1024) {
            format!("{} KiB", n >> 10)
        } else {
            format!("{n} B")
        }
    };
    let (min, max) = (job.min_block(), job.max_block());
    let block = if min == max {
        size(min)
    } else {
        format!("{} to {}", size(min), size(max))
    };
    let rw: RwMode = job.access.rw;
    format!("fio {rw} {block}")
}
