//! The lab: a composed stack, workloads on it, and a sampler that looks at both.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::auto::AutoPlan;
use crate::compare::Subject;
use crate::engine::run::Stop;
use crate::fio_error::FioError;
use crate::latency::Hist;
use crate::load::{self, Job, Load};
use crate::pin;
use crate::policy::{Policies, PolicyError};
use crate::registry::Registry;
use crate::sample::Sample;
use crate::sampler::{CHANNEL, Command, Last, Sampler};
use crate::scenario::Scenario;
use crate::shared::Shared;
use crate::shrinker::Shrink;
use crate::summary::{Ending, PolicySummary, Summary};

/// How long the lab waits for workers that were told to stop: far longer than any operation on a
/// healthy stack takes.
const PATIENCE: Duration = Duration::from_secs(3);

/// Stack of a worker thread.
const WORKER_STACK: usize = 256 << 10;

/// How a lab is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Count the sets of every flag word. The counting costs about as much as a set itself, so timed
    /// comparisons run without.
    pub probe: bool,
    /// Time between two samples.
    pub interval: Duration,
    /// Keep each worker on one CPU, in turn, so that no run differs from the next by where its threads went.
    /// Comparisons do.
    pub pin: bool,
}

impl Default for Options {
    /// Probe on, ten samples a second.
    fn default() -> Self {
        Self {
            probe: true,
            interval: Duration::from_millis(100),
            pin: false,
        }
    }
}

/// A running lab. Dropping it stops everything too, without the summary.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use cairn_lab::{Lab, Options, Registry, Scenario};
///
/// let scenario = Scenario::preset("creat-clo").expect("a preset");
/// let lab = Lab::start(scenario, &Registry::default(), Options::default())?;
/// let samples = lab.take_samples().expect("the first to ask");
/// let sample = samples.recv_timeout(Duration::from_secs(5))?;
/// assert_eq!(&*sample.workloads[0].name, "creat-clo");
/// let summary = lab.finish();
/// assert!(summary.workloads[0].ops > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lab {
    scenario: Scenario,
    stack_spec: String,
    policies: Policies,
    shared: Arc<Shared>,
    loads: Vec<Load>,
    running: Mutex<Running>,
    /// Each worker is kept on one CPU.
    pin: bool,
    samples: Mutex<Option<Receiver<Arc<Sample>>>>,
    commands: Sender<Command>,
    sampler: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Running {
    threads: Vec<JoinHandle<()>>,
    stuck: usize,
}

impl Lab {
    /// Composes the scenario's stack, starts its workloads and the sampler.
    ///
    /// # Errors
    /// [`LabError`] when the scenario names something that does not exist or cannot be had. Nothing
    /// runs then.
    pub fn start(
        scenario: Scenario,
        registry: &Registry,
        options: Options,
    ) -> Result<Self, LabError> {
        let built = load::build(&scenario, registry, &options)?;
        let arms = arms(&built.policies, &scenario.policies)?;
        let entries = built
            .policies
            .into_iter()
            .zip(arms)
            .map(|((info, apply), arm)| (info, apply, arm))
            .collect();
        let policies = Policies::new(entries);
        let shared = Arc::new(built.shared);
        let (out, samples) = mpsc::sync_channel(CHANNEL);
        let (commands, inbox) = mpsc::channel();
        let mut lab = Self {
            stack_spec: shared.stack.spec().to_string(),
            scenario,
            policies: policies.clone(),
            shared: Arc::clone(&shared),
            loads: built.loads,
            running: Mutex::new(Running::default()),
            pin: options.pin,
            samples: Mutex::new(Some(samples)),
            commands,
            sampler: None,
        };
        lab.start_workload()?;
        let interval = options.interval.max(Duration::from_millis(1));
        let watcher = Sampler::new(shared, policies, out, interval, options.probe);
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || watcher.run(&inbox))
            .map_err(LabError::Thread)?;
        lab.sampler = Some(thread);
        Ok(lab)
    }

    /// What runs.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The stack in its canonical form.
    pub fn stack(&self) -> &str {
        &self.stack_spec
    }

    /// I/Os of a workload that began late although it has a rate, since the reset.
    pub(crate) fn late(&self, workload: usize) -> u64 {
        let workload = self.shared.workloads.get(workload);
        workload.map_or(0, crate::shared::Workload::late)
    }

    /// A handle on the live policies.
    pub fn policies(&self) -> Policies {
        self.policies.clone()
    }

    /// The channel that samples arrive on; `None` after the first call. A reader that falls behind by
    /// more than 256 samples loses some, and they say so.
    pub fn take_samples(&self) -> Option<Receiver<Arc<Sample>>> {
        self.samples
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Stops the workers and waits for them, a few seconds at most. The sampler goes on.
    pub fn stop_workload(&self) {
        let mut running = self.running();
        self.stop_threads(&mut running);
    }

    fn stop_threads(&self, running: &mut Running) {
        self.shared.stop();
        let deadline = Instant::now() + PATIENCE;
        for thread in running.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(200));
            }
            if thread.is_finished() {
                // A worker catches its panics itself.
                let _ = thread.join();
            } else {
                running.stuck += 1;
            }
        }
        for workload in &self.shared.workloads {
            workload.retire();
        }
    }

    /// Starts the workers from the beginning of their sequences, unless they run.
    ///
    /// # Errors
    /// [`LabError::Thread`] if the system refuses a thread; nothing runs then.
    pub fn start_workload(&self) -> Result<(), LabError> {
        let mut running = self.running();
        if self.shared.running() {
            return Ok(());
        }
        // What is left of an earlier start has ended.
        self.stop_threads(&mut running);
        self.shared.forgive();
        for index in 0..self.loads.len() {
            if let Err(e) = self.start_load(index, &mut running) {
                self.stop_threads(&mut running);
                return Err(LabError::Thread(e));
            }
        }
        Ok(())
    }

    fn start_load(&self, index: usize, running: &mut Running) -> std::io::Result<()> {
        let (Some(load), Some(workload)) =
            (self.loads.get(index), self.shared.workloads.get(index))
        else {
            return Ok(());
        };
        let stop = Arc::new(Stop::default());
        let (jobs, cells) = load.jobs(&self.shared.epoch, &workload.operations);
        workload.start(cells, Arc::clone(&stop), self.shared.warmup);
        let cpus = if self.pin { pin::allowed() } else { Vec::new() };
        for (number, job) in jobs.into_iter().enumerate() {
            // In turn over all workloads.
            let turn = running.threads.len() % cpus.len().max(1);
            let cpu = cpus.get(turn).copied();
            let shared = Arc::clone(&self.shared);
            let stop = Arc::clone(&stop);
            workload.one_more();
            let spawned = thread::Builder::new()
                .name(format!("{}.{number}", workload.name))
                .stack_size(WORKER_STACK)
                .spawn(move || {
                    // Where it does not work out, the thread runs where it may: the CPU was allowed a
                    // moment ago, so only its removal can be the reason.
                    let _ = pin::to(cpu.as_slice());
                    work(&shared, index, job, &stop);
                });
            match spawned {
                Ok(thread) => running.threads.push(thread),
                Err(e) => {
                    workload.one_less();
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// Begins an interleaved comparison of two arms of a policy: the sampler switches A B B A by itself
    /// until the pairs are done, and then goes back to the arm from before. Samples show its course; a switch of
    /// the policy by hand ends it.
    ///
    /// # Errors
    /// When the policy or an arm does not exist, the arms are the same, there are fewer than two pairs or
    /// the slices are empty, or when no workload has anything that the policy acts on.
    pub fn start_auto(&self, plan: AutoPlan) -> Result<(), LabError> {
        let info = self.policies.list().get(plan.policy);
        let name = info.map_or_else(|| plan.policy.to_string(), |p| p.name.clone());
        let refuse = |message: String| {
            Err(LabError::Workload {
                workload: self.scenario.name.clone(),
                message,
            })
        };
        let [a, b] = plan.arms;
        let arms = info.map_or(0, |p| p.arms.len());
        if a == b || a >= arms || b >= arms {
            return refuse(format!(
                "arms {a} and {b} of policy {name} cannot be compared: it has {arms}, and two different \
                 ones are needed"
            ));
        }
        if plan.pairs < 2 || plan.slice.is_zero() {
            return refuse("a comparison needs at least two pairs of slices that last".to_owned());
        }
        if let Some(reason) =
            Subject::new(&name, &self.shared.workloads, self.shared.compared()).reason
        {
            return refuse(reason.to_string());
        }
        // The sampler ends only after the lab.
        let _ = self.commands.send(Command::Auto(Some(plan)));
        Ok(())
    }

    /// Ends the interleaved comparison; the policy goes back to the arm it stood on before.
    pub fn stop_auto(&self) {
        let _ = self.commands.send(Command::Auto(None));
    }

    /// Shrinks the extent status cache once, as memory pressure does: every entry that the shrinker may take
    /// is scanned, and those that were not looked up since the scan before are reclaimed.
    pub fn shrink(&self) -> Shrink {
        self.shared.shrinker.shrink()
    }

    /// Compares arms by the throughput of this workload, by its number, from the next sample on; with `None`, and
    /// with a number that there is none of, by the first one that has what the policy acts on. An interleaved
    /// comparison under way begins again.
    pub fn compare_by(&self, workload: Option<usize>) {
        let number = workload.map_or(0, |index| index.saturating_add(1));
        self.shared.compared.store(number, Ordering::Relaxed);
        // The sampler ends only after the lab.
        let _ = self.commands.send(Command::CompareBy);
    }

    /// Has samples show `blocks` of the shown file from block `from` on, in up to 512 cells; with 0 blocks the
    /// whole file. What lies past its end is left out.
    pub fn show_blocks(&self, from: u32, blocks: u32) {
        let window = u64::from(from) << 32 | u64::from(blocks);
        self.shared.window.store(window, Ordering::Relaxed);
    }

    /// Has samples show another file, by its number in the order in which jobs name them, as a whole; past the
    /// last one it is the first.
    pub fn show_file(&self, number: usize) {
        let number = number.checked_rem(self.shared.files.len()).unwrap_or(0);
        self.shared.window.store(0, Ordering::Relaxed);
        self.shared.shown_file.store(number, Ordering::Relaxed);
    }

    /// Begins all statistics again, with the next sample.
    pub fn reset(&self) {
        // The sampler ends only after the lab.
        let _ = self.commands.send(Command::Reset);
    }

    /// Stops everything and sums up. Never takes longer than a few seconds: what does not stop by then
    /// is counted and left behind.
    pub fn finish(self) -> Summary {
        self.finish_with_distributions().0
    }

    /// The same, with the latencies of each workload since the reset and the last look, at workers that had ended.
    pub(crate) fn finish_with_distributions(self) -> (Summary, Vec<Hist>, Option<Sample>) {
        let stuck_workers = {
            let mut running = self.running();
            self.stop_threads(&mut running);
            running.stuck
        };
        let last = self.last(Command::Finish);
        self.sum_up(last, stuck_workers)
    }

    /// What the run came to so far, with the latencies of each workload since the reset.
    pub(crate) fn so_far(&self) -> (Summary, Vec<Hist>) {
        let stuck_workers = self.running().stuck;
        let last = self.last(Command::Look);
        let (summary, hists, _) = self.sum_up(last, stuck_workers);
        (summary, hists)
    }

    fn last(&self, ask: fn(Sender<Last>) -> Command) -> Option<Last> {
        let (reply, answer) = mpsc::channel();
        let _ = self.commands.send(ask(reply));
        answer.recv_timeout(PATIENCE).ok()
    }

    fn sum_up(
        &self,
        last: Option<Last>,
        stuck_workers: usize,
    ) -> (Summary, Vec<Hist>, Option<Sample>) {
        let policies = self
            .policies
            .list()
            .iter()
            .enumerate()
            .map(|(i, p)| PolicySummary {
                name: p.name.clone(),
                arm: p
                    .arms
                    .get(self.policies.arm(i))
                    .cloned()
                    .unwrap_or_default(),
            })
            .collect();
        let ending = Ending {
            scenario: self.scenario.name.clone(),
            stack: self.stack_spec.clone(),
            seed: self.scenario.seed,
            seconds: last.as_ref().map_or(0.0, |l| l.ran.as_secs_f64()),
            cold: last.as_ref().and_then(|l| l.cold),
            policies,
            stuck_workers,
        };
        let summary = Summary::new(ending, last.as_ref().map(|l| &l.sample));
        let (totals, sample) = last.map(|l| (l.totals, l.sample)).unzip();
        (summary, totals.unwrap_or_default(), sample)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let mut running = std::mem::take(&mut *self.running());
        self.stop_threads(&mut running);
        // The sampler ends when nobody can send to it any more.
        let (closed, _) = mpsc::channel();
        self.commands = closed;
        if let Some(sampler) = self.sampler.take() {
            // One that hangs in a look at a broken stack is left behind.
            let deadline = Instant::now() + PATIENCE;
            while !sampler.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(200));
            }
            if sampler.is_finished() {
                let _ = sampler.join();
            }
        }
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab")
            .field("scenario", &self.scenario.name)
            .field("stack", &self.stack_spec)
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

/// The life of a worker thread: works, and says how it ended.
fn work(shared: &Shared, index: usize, job: Job, stop: &Stop) {
    let ended = catch_unwind(AssertUnwindSafe(|| job.run(stop)));
    if let Some(workload) = shared.workloads.get(index) {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(what)) => shared.fail(&format!("{}: {what}", workload.name)),
            Err(panic) => {
                let said = load::said(&*panic);
                shared.fail(&format!("{}: a worker panicked: {said}", workload.name));
            }
        }
        workload.one_less();
    }
}

/// The arm each policy starts on.
fn arms(
    policies: &[(crate::policy::PolicyInfo, crate::policy::Apply)],
    chosen: &BTreeMap<String, String>,
) -> Result<Vec<usize>, LabError> {
    let infos: Vec<_> = policies.iter().map(|(info, _)| info.clone()).collect();
    let mut arms = vec![0; infos.len()];
    for (slot, default) in arms.iter_mut().zip(crate::registry::DEFAULT_ARMS) {
        *slot = default;
    }
    for (policy, arm) in chosen {
        let (policy, arm) = crate::policy::resolve(&infos, policy, arm)?;
        if let Some(slot) = arms.get_mut(policy) {
            *slot = arm;
        }
    }
    Ok(arms)
}

/// Why a lab did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The stack could not be built.
    Stack(Box<cairn_block::BuildError>),
    /// The buffer cache could not be made.
    Buffers(Box<cairn_buffer::BufferError>),
    /// The scenario names a policy or an arm that does not exist.
    Policy(PolicyError),
    /// The jobs of a workload cannot be read.
    Jobs {
        /// Name of the workload.
        workload: String,
        /// Why.
        source: Box<cairn_fio::ParseError>,
    },
    /// The jobs of a workload cannot be run.
    Fio {
        /// Name of the workload.
        workload: String,
        /// Why.
        source: Box<FioError>,
    },
    /// A file of a workload could not be laid out: the stack failed, not the request.
    Layout {
        /// Name of the workload.
        workload: String,
        /// The file.
        path: String,
        /// What the stack said.
        source: Box<cairn_block::Error>,
    },
    /// What a workload asks for cannot be.
    Workload {
        /// Name of the workload.
        workload: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A workload broke off.
    Failed {
        /// Name of the workload.
        workload: String,
        /// What happened.
        message: String,
    },
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl LabError {
    pub(crate) fn fio(workload: &str, source: FioError) -> Self {
        let workload = workload.to_owned();
        match source {
            FioError::Layout { path, source } => Self::Layout {
                workload,
                path,
                source,
            },
            source => Self::Fio {
                workload,
                source: Box::new(source),
            },
        }
    }

    /// Whether the request was wrong (exit code 2), as opposed to something that broke (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Fio { source, .. } => source.is_usage(),
            Self::Failed { .. } | Self::Layout { .. } | Self::Thread(_) => false,
            _ => true,
        }
    }
}

impl From<PolicyError> for LabError {
    fn from(e: PolicyError) -> Self {
        Self::Policy(e)
    }
}

impl From<cairn_buffer::BufferError> for LabError {
    fn from(e: cairn_buffer::BufferError) -> Self {
        Self::Buffers(Box::new(e))
    }
}

impl From<cairn_block::BuildError> for LabError {
    fn from(e: cairn_block::BuildError) -> Self {
        Self::Stack(Box::new(e))
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stack(e) => e.fmt(f),
            Self::Buffers(e) => e.fmt(f),
            Self::Policy(e) => e.fmt(f),
            Self::Jobs { workload, source } => write!(f, "workload `{workload}`: {source}"),
            Self::Fio { workload, source } => write!(f, "workload `{workload}`: {source}"),
            Self::Layout {
                workload,
                path,
                source,
            } => write!(f, "workload `{workload}`: laying out {path}: {source}"),
            Self::Workload { workload, message } | Self::Failed { workload, message } => {
                write!(f, "workload `{workload}`: {message}")
            }
            Self::Thread(e) => write!(f, "starting a thread: {e}"),
        }
    }
}

impl Error for LabError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Stack(e) => Some(e),
            Self::Buffers(e) => Some(e),
            Self::Policy(e) => Some(e),
            Self::Jobs { source, .. } => Some(source),
            Self::Fio { source, .. } => Some(source),
            Self::Layout { source, .. } => Some(source),
            Self::Workload { .. } | Self::Failed { .. } => None,
            Self::Thread(e) => Some(e),
        }
    }
}
