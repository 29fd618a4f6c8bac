//! Runs a plan in fio's language on a stack, and fills fio's results.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use cairn_extents::CounterReport;
use cairn_fio::Plan;
use cairn_fio::job::{EngineClass, Job};
use cairn_fio::output::{EtaLine, RunResult};

use crate::fio::accept;
use crate::fio::clones;
use crate::fio::ground::On;
use crate::fio::lane::{LaneThread, Message};
use crate::fio::pace::Pace;
use crate::fio::setup::{Choice, Setup, setup};
use crate::fio::steady::Steady;
use crate::fio::track::{State, Track};
use crate::fio_error::FioError;
use crate::load;
use crate::policy::{PolicyError, resolve};
use crate::registry::{DEFAULT_ARMS, Registry};
use turns::Turns;

mod results;
mod turns;

/// Stack of a worker thread.
const WORKER_STACK: usize = 256 << 10;

/// How long a thread may take to end after its job was told to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// Errno of a thread that does not end.
const ETIMEDOUT: i32 = 110;

/// How a plan is run.
#[derive(Default)]
pub struct FioOptions<'a> {
    /// Stack of every path that no `map` covers; by default a `ram` as large as the jobs need.
    pub stack: Option<String>,
    /// Stacks by path: the longest prefix wins.
    pub map: Vec<(String, String)>,
    /// Whether paths are files or windows of the device; by default paths below /dev and device
    /// engines are devices, the rest files.
    pub on: Option<On>,
    /// Mixed into the seeds of the jobs.
    pub seed: u64,
    /// One I/O in so many is timed, at random; 0 and 1 are every one. Counts are exact whatever is timed.
    pub sample: u32,
    /// Jobs may run commands on this machine: `exec_prerun` and `exec_postrun`.
    pub allow_exec: bool,
    /// Arms of policies, by name.
    pub policies: Vec<(String, String)>,
    /// Set from outside to end the run early; what was measured so far is the result.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Told about the run each [`Self::progress_interval`], on the calling thread.
    pub progress: Option<&'a mut dyn FnMut(&Progress)>,
    /// Time between two calls of `progress`; 250 ms or more.
    pub progress_interval: Duration,
    /// Given the results so far each [`Self::status_interval`], on the calling thread.
    pub status: Option<&'a mut dyn FnMut(RunResult)>,
    /// Time between two calls of `status`; zero is never.
    pub status_interval: Duration,
    /// Given each file that a job asked for, name and content, on the calling thread at the end: logs, blocks that
    /// were not what they should be, and what commands said.
    pub logs: Option<LogTaker<'a>>,
}

/// Takes the name and the content of a file.
pub type LogTaker<'a> = &'a mut dyn FnMut(&str, &[u8]);

impl fmt::Debug for FioOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FioOptions")
            .field("stack", &self.stack)
            .field("map", &self.map)
            .field("on", &self.on)
            .field("seed", &self.seed)
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

/// How a run is going.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// fio's status line, with the rates since the line before.
    pub line: EtaLine,
}

/// Runs a plan. What the jobs come to is in the result, their errors too (`error` of each job); an
/// `Err` means that nothing was run.
///
/// # Errors
/// [`FioError`] names the option, size or stack that is wrong.
///
/// # Examples
/// ```
/// use cairn_lab::{FioOptions, Registry, run_fio};
///
/// let plan = cairn_fio::parse_command_line(["--name=w", "--rw=randwrite", "--bs=4k", "--size=1m"])?;
/// let result = run_fio(&plan, FioOptions::default(), &Registry::default(), &mut |_| {})?;
/// assert_eq!(result.jobs[0].directions.write.total_ios, 256);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_fio(
    plan: &Plan,
    options: FioOptions<'_>,
    registry: &Registry,
    notes: &mut dyn FnMut(&str),
) -> Result<RunResult, FioError> {
    let mut said: Vec<String> = Vec::new();
    let mut note = |text: String| {
        if !said.contains(&text) {
            notes(&text);
            said.push(text);
        }
    };
    for job in &plan.jobs {
        accept::accept(plan, job, &mut note)?;
        if !options.allow_exec {
            accept::no_commands(job)?;
        }
    }
    let map = with_exports(plan, &options.map);
    let choice = Choice {
        stack: options.stack.as_deref(),
        map: &map,
        on: options.on,
        seed: options.seed,
        sample: options.sample,
    };
    let mut setup = setup(plan, &choice, registry, &mut note)?;
    let arms = choose_arms(&setup, registry, &options.policies)?;
    for job in &plan.jobs {
        remark(plan, job, &setup, &mut note);
    }
    let specs = std::mem::take(&mut setup.specs);
    let prepared = setup.cache.counters().report();
    let threads = specs.iter().map(clones::CloneSpec::lanes).sum();
    let mut steady: Vec<(usize, Steady)> = Vec::new();
    for spec in &specs {
        let report = spec.clone.report;
        let job = plan.jobs.get(spec.clone.job);
        if let Some(watch) = job.and_then(|job| Steady::new(job.report.steadystate))
            && steady.iter().all(|(other, _)| *other != report)
        {
            steady.push((report, watch));
        }
    }
    let run = Run {
        plan,
        prepared,
        tracks: specs
            .into_iter()
            .map(|spec| Track::new(spec, threads))
            .collect(),
        began: Instant::now(),
        setup,
        arms,
        seed: options.seed,
        sample: options.sample,
        steady,
        over: false,
    };
    run.all(options, &mut note)
}

/// The stacks by path, with those that jobs name as an NBD export.
fn with_exports(plan: &Plan, map: &[(String, String)]) -> Vec<(String, String)> {
    let mut all = map.to_vec();
    for clone in plan.clones() {
        let job = plan.jobs.get(clone.job);
        let exported = job.filter(|j| j.queue.ioengine.class() == EngineClass::Nbd);
        let Some((job, uri)) = exported.and_then(|j| Some((j, j.engine.uri.as_deref()?))) else {
            continue;
        };
        for index in 0..job.files.count() {
            let path = job.files.path(&job.name, clone.sub, index);
            if all.iter().all(|(mapped, _)| *mapped != path) {
                all.push((path, format!("nbd(\"{uri}\")")));
            }
        }
    }
    all
}

/// Sets the policies for this run and names the arms.
fn choose_arms(
    setup: &Setup,
    registry: &Registry,
    chosen: &[(String, String)],
) -> Result<Vec<(String, String)>, FioError> {
    let policies = load::policies(registry, &setup.cache, &setup.switches, None);
    let infos: Vec<_> = policies.iter().map(|(info, _)| info.clone()).collect();
    let mut arms = vec![0; infos.len()];
    for (slot, arm) in arms.iter_mut().zip(DEFAULT_ARMS) {
        *slot = arm;
    }
    for (policy, arm) in chosen {
        let (policy, arm) = resolve(&infos, policy, arm).map_err(FioError::Policy)?;
        if let Some(slot) = arms.get_mut(policy) {
            *slot = arm;
        }
    }
    Ok(policies
        .iter()
        .zip(arms)
        .map(|((info, apply), arm)| {
            apply(arm);
            let name = info.arms.get(arm).cloned().unwrap_or_default();
            (info.name.clone(), name)
        })
        .collect())
}

/// Says what a job gets that it may not expect.
fn remark(plan: &Plan, job: &Job, setup: &Setup, note: &mut dyn FnMut(String)) {
    let class = job.queue.ioengine.class();
    if matches!(
        class,
        EngineClass::Null | EngineClass::Cpu | EngineClass::Metadata
    ) {
        return;
    }
    if !job.queue.direct {
        note("there is no page cache: buffered I/O goes straight to the stack".to_owned());
    }
    let index = plan.jobs.iter().position(|j| std::ptr::eq(j, job));
    let lanes = setup
        .specs
        .iter()
        .filter(|s| Some(s.clone.job) == index)
        .map(clones::CloneSpec::lanes)
        .max()
        .unwrap_or(1);
    if class == EngineClass::Queue && job.queue.effective_depth() > 1 && lanes == 1 {
        note(format!(
            "{}: no layer of the stack has latency, so the queue completes inline and the depth is 1",
            job.queue.ioengine
        ));
    }
    if lanes == 1 {
        for option in accept::of_a_queue(plan, job) {
            note(format!("{option}: no effect, the queue completes inline"));
        }
    }
}

struct Run<'p> {
    plan: &'p Plan,
    tracks: Vec<Track>,
    began: Instant,
    setup: Setup,
    /// The counters as laying out the files left them: not the jobs' doing.
    prepared: CounterReport,
    arms: Vec<(String, String)>,
    seed: u64,
    sample: u32,
    /// By report, whether its jobs have become steady, where they ask for that.
    steady: Vec<(usize, Steady)>,
    /// A job that ended took all others along, also those behind a stonewall.
    over: bool,
}

impl Run<'_> {
    fn all(
        mut self,
        mut options: FioOptions<'_>,
        note: &mut dyn FnMut(String),
    ) -> Result<RunResult, FioError> {
        let mut pace = Pace::new(&options, self.began);
        let mut first = 0;
        while first < self.tracks.len() {
            let end = self.end_of_phase(first);
            self.phase(first, end, &mut options, &mut pace)?;
            self.tell_rates(first, end, note);
            self.complain(first, end, note);
            if cancelled(&options) || self.over {
                break;
            }
            first = end;
        }
        let now = Instant::now();
        self.unmount(note);
        self.hand_logs(&mut options, note);
        Ok(self.result(now))
    }

    /// Unmounts the file systems; jobs on one that cannot be unmounted have failed.
    fn unmount(&mut self, note: &mut dyn FnMut(String)) {
        for (index, ground) in self.setup.grounds.iter().enumerate() {
            let Err(e) = ground.end() else {
                continue;
            };
            note(format!(
                "the file layer on {} was not unmounted cleanly: {e}",
                ground.spec()
            ));
            let of_it = |t: &&mut Track| t.error == 0 && t.spec.grounds.contains(&index);
            for track in self.tracks.iter_mut().filter(of_it) {
                track.error = e.errno();
            }
        }
    }

    /// Says how jobs with a rate kept it.
    fn tell_rates(&self, first: usize, end: usize, note: &mut dyn FnMut(String)) {
        for track in self.tracks.iter().take(end).skip(first) {
            let name = &track.spec.name;
            for times in (0..3).filter_map(|dir| track.times(dir)) {
                note(format!("job {name}: {}", times.line()));
            }
            let (late, most) = track.late();
            if late > 0 {
                let ios: u64 = (0..3).map(|dir| track.counts(dir).ops).sum();
                note(format!(
                    "job {name}: {late} of {ios} I/Os started more than 1 ms late, the latest {:.1} ms: the \
                     rate is not what was asked for",
                    most.as_secs_f64() * 1e3
                ));
            }
        }
    }

    /// Says once for each job what went wrong first in it, and where.
    fn complain(&self, first: usize, end: usize, note: &mut dyn FnMut(String)) {
        let mut before = None;
        for track in self.tracks.iter().take(end).skip(first) {
            let job = track.spec.clone.job;
            let Some(what) = track.complaint().filter(|_| before != Some(job)) else {
                continue;
            };
            before = Some(job);
            let stack = track.spec.grounds.first();
            let on = stack.and_then(|index| self.setup.grounds.get(*index));
            let on = on.map_or(String::new(), |g| format!(" (on {})", g.spec()));
            note(format!("job {}: {what}{on}", track.spec.name));
        }
    }

    /// Clones up to the next stonewall run together.
    fn end_of_phase(&self, first: usize) -> usize {
        let job_of = |t: &Track| t.spec.clone.job;
        let mut before = self.tracks.get(first).map(job_of);
        for (index, track) in self.tracks.iter().enumerate().skip(first + 1) {
            let job = job_of(track);
            let walled = self.plan.jobs.get(job).is_some_and(|j| j.control.stonewall);
            if walled && before != Some(job) {
                return index;
            }
            before = Some(job);
        }
        self.tracks.len()
    }

    fn phase(
        &mut self,
        first: usize,
        end: usize,
        options: &mut FioOptions<'_>,
        pace: &mut Pace,
    ) -> Result<(), FioError> {
        let (tell, news) = mpsc::channel();
        let mut turns = Turns {
            waiting: (first..end).collect(),
            tell,
        };
        let mut refused = self.admit(&mut turns).err();
        if refused.is_some() || cancelled(options) {
            self.stop_all();
            turns.waiting.clear();
        }
        self.attend(&news, options, pace, &mut turns, &mut refused);
        match refused {
            Some(e) => Err(FioError::Thread(e)),
            None => Ok(()),
        }
    }

    fn spawn(&mut self, index: usize, tell: &Sender<Message>) -> std::io::Result<()> {
        let Some(track) = self.tracks.get_mut(index) else {
            return Ok(());
        };
        let made = track.spec.workers(&track.epoch, &track.operations);
        track.gate = made.gate;
        track.iolog = made.iolog;
        track.state_of = made.written;
        let workers = made.workers;
        track.cells = workers.iter().map(|(_, cell)| Arc::clone(cell)).collect();
        track.state = State::Created;
        let lanes_left = Arc::new(AtomicUsize::new(workers.len()));
        let commands = track.spec.commands().map(Arc::new);
        for (worker, _) in workers {
            let thread = LaneThread {
                index,
                worker,
                delay: track.spec.start_delay,
                stop: Arc::clone(&track.stop),
                lanes_left: Arc::clone(&lanes_left),
                end_flush: track.spec.end_flush,
                commands: commands.clone(),
                cpus: track.spec.cpus(),
                tell: tell.clone(),
            };
            thread::Builder::new()
                .name(format!("{}.{}", track.spec.name, track.spec.clone.sub))
                .stack_size(WORKER_STACK)
                .spawn(move || thread.run())?;
            track.open += 1;
        }
        Ok(())
    }

    fn stop_all(&self) {
        for track in &self.tracks {
            track.stop.abort();
        }
    }

    /// Serves the clones that have threads until all of them have ended.
    fn attend(
        &mut self,
        news: &Receiver<Message>,
        options: &mut FioOptions<'_>,
        pace: &mut Pace,
        turns: &mut Turns,
        refused: &mut Option<std::io::Error>,
    ) {
        let mut give_up: Option<Instant> = None;
        while self.tracks.iter().any(|t| t.open > 0) {
            let now = Instant::now();
            let mut wake = now + Duration::from_millis(100);
            for track in &mut self.tracks {
                let job = self.plan.jobs.get(track.spec.clone.job);
                if let Some(at) = track.tend(job, now) {
                    wake = wake.min(at);
                }
            }
            if let Some(at) = self.watch_steady(now) {
                wake = wake.min(at);
            }
            if let Some(at) = pace.next() {
                wake = wake.min(at);
            }
            match news.recv_timeout(wake.saturating_duration_since(now)) {
                Ok(Message::Started(index, at, tid)) => {
                    if let Some(track) = self.tracks.get_mut(index)
                        && let Some(job) = self.plan.jobs.get(track.spec.clone.job)
                    {
                        track.started(job, at, tid);
                    }
                }
                Ok(Message::Ended(index, end)) => {
                    if let Some(track) = self.tracks.get_mut(index) {
                        track.ended(end);
                    }
                    self.take_along(index, turns);
                    if let Err(e) = self.admit(turns) {
                        *refused = Some(e);
                        self.stop_all();
                        turns.waiting.clear();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Every thread says that it ended; this end of the channel lives as long as the run.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = Instant::now();
            if cancelled(options) {
                self.stop_all();
                turns.waiting.clear();
            }
            self.report(now, options, pace);
            // Checking what was written may take its time.
            let over = |t: &Track| t.stop.aborted() || (t.stop.asked() && !t.spec.verifies());
            if self.tracks.iter().all(|t| t.open == 0 || over(t)) {
                let until = *give_up.get_or_insert(now + PATIENCE);
                if now >= until {
                    self.abandon();
                    break;
                }
            } else {
                give_up = None;
            }
        }
    }

    /// Threads that were told to stop long ago are left behind, and their clones say so.
    fn abandon(&mut self) {
        for track in self.tracks.iter_mut().filter(|t| t.open > 0) {
            track.error = ETIMEDOUT;
            track.failure = Some(format!(
                "{} of its threads did not end within {} s of being told to stop",
                track.open,
                PATIENCE.as_secs()
            ));
            track.open = 0;
            track.state = State::Ended;
            track.gather();
        }
    }
}

fn cancelled(options: &FioOptions<'_>) -> bool {
    options
        .cancel
        .as_ref()
        .is_some_and(|c| c.load(Ordering::Relaxed))
}

/// A policy error is an error of the request.
impl From<PolicyError> for FioError {
    fn from(e: PolicyError) -> Self {
        Self::Policy(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::usage;

    #[test]
    fn the_thread_that_waits_for_jobs_costs_no_cpu() {
        let plan = cairn_fio::parse_job_text("t", "[j]\nrw=write\nsize=4k\nstartdelay=600ms\n");
        let before = usage::this_thread();
        let registry = Registry::default();
        let result = run_fio(
            &plan.unwrap(),
            FioOptions::default(),
            &registry,
            &mut |_| {},
        );
        let used = usage::since(usage::this_thread(), before);
        assert_eq!(result.unwrap().jobs[0].directions.write.total_ios, 1);
        // Half a second of looking at the clock would show.
        assert!(used.user_us + used.sys_us < 300_000, "{used:?}");
    }
}
