//! Runs a plan in fio's language on a stack, and fills fio's results.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_extents::{CounterReport, Reading};
use cairn_fio::Plan;
use cairn_fio::job::{EngineClass, Job, PerDir, RwMode};
use cairn_fio::output::{DiskUtil, EtaLine, JobResult, Json, RunResult, RunState};

use crate::fio::accept;
use crate::fio::clones;
use crate::fio::ground::{Ground, On};
use crate::fio::lane::{LaneThread, Message};
use crate::fio::pace::Pace;
use crate::fio::setup::{Choice, Setup, setup};
use crate::fio::track::{State, Track};
use crate::fio_error::FioError;
use crate::load;
use crate::policy::{PolicyError, resolve};
use crate::registry::{DEFAULT_ARMS, Registry};

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
    /// Given each log file that a job asked for, name and text, on the calling thread at the end.
    pub logs: Option<LogTaker<'a>>,
}

/// Takes the name and the text of a log file.
pub type LogTaker<'a> = &'a mut dyn FnMut(&str, &str);

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
    }
    let choice = Choice {
        stack: options.stack.as_deref(),
        map: &options.map,
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
    };
    run.all(options, &mut note)
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
    if matches!(class, EngineClass::Null | EngineClass::Metadata) {
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
            if cancelled(&options) {
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

    /// Hands the log files over.
    fn hand_logs(&mut self, options: &mut FioOptions<'_>, note: &mut dyn FnMut(String)) {
        let mut files: Vec<(String, String)> = Vec::new();
        for track in &mut self.tracks {
            if track.lines_lost > 0 {
                let name = &track.spec.name;
                note(format!(
                    "job {name}: {} lines of its logs were too many to keep; log_avg_msec makes them fewer",
                    track.lines_lost
                ));
            }
            for (name, text) in track.logs.drain(..) {
                match files.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, all)) => merge_by_time(all, &text),
                    None => files.push((name, text)),
                }
            }
        }
        if let Some(take) = &mut options.logs {
            for (name, text) in files {
                take(&name, &text);
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
        let mut refused = None;
        for index in first..end {
            if let Err(e) = self.spawn(index, &tell) {
                refused = Some(e);
                break;
            }
        }
        drop(tell);
        if refused.is_some() || cancelled(options) {
            self.stop_all();
        }
        self.attend(&news, options, pace);
        match refused {
            Some(e) => Err(FioError::Thread(e)),
            None => Ok(()),
        }
    }

    fn spawn(&mut self, index: usize, tell: &Sender<Message>) -> std::io::Result<()> {
        let Some(track) = self.tracks.get_mut(index) else {
            return Ok(());
        };
        let workers = track.spec.workers(&track.epoch, &track.operations);
        track.cells = workers.iter().map(|(_, cell)| Arc::clone(cell)).collect();
        track.state = State::Created;
        let lanes_left = Arc::new(AtomicUsize::new(workers.len()));
        for (worker, _) in workers {
            let thread = LaneThread {
                index,
                worker,
                delay: track.spec.start_delay,
                stop: Arc::clone(&track.stop),
                lanes_left: Arc::clone(&lanes_left),
                end_flush: track.spec.end_flush,
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
    fn attend(&mut self, news: &Receiver<Message>, options: &mut FioOptions<'_>, pace: &mut Pace) {
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
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Every thread says that it ended before it lets go of the channel.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = Instant::now();
            if cancelled(options) {
                self.stop_all();
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

    fn report(&mut self, now: Instant, options: &mut FioOptions<'_>, pace: &mut Pace) {
        if let Some(progress) = &mut options.progress
            && pace.progress_due(now)
        {
            progress(&self.progress(now, pace));
        }
        if let Some(status) = &mut options.status
            && pace.status_due(now)
        {
            for track in &self.tracks {
                track.epoch.hand_over();
            }
            // Workers hand over at their next operation; one that takes longer is seen next time.
            thread::sleep(Duration::from_millis(2));
            for track in &mut self.tracks {
                track.gather();
            }
            status(self.result(now));
        }
    }

    fn progress(&self, now: Instant, pace: &mut Pace) -> Progress {
        let mut totals = [(0, 0); 3];
        let mut states = Vec::with_capacity(self.tracks.len());
        let (mut remaining, mut shares) = (Some(Duration::ZERO), Vec::new());
        for track in &self.tracks {
            for (dir, total) in totals.iter_mut().enumerate() {
                let counts = track.counts(dir);
                total.0 += counts.bytes;
                total.1 += counts.ops;
            }
            let job = self.plan.jobs.get(track.spec.clone.job);
            states.push(run_state(track, job.map_or(RwMode::Read, |j| j.access.rw)));
            let (share, left) = track.share(now);
            remaining = match (remaining, left) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
            shares.push(share);
        }
        let done = shares
            .iter()
            .copied()
            .collect::<Option<Vec<f64>>>()
            .filter(|s| !s.is_empty())
            .map(|s| s.iter().sum::<f64>() / s.len() as f64);
        let (bytes_per_s, ios_per_s) = pace.rates(now, totals);
        let running =
            |t: &&Track| matches!(t.state, State::Running | State::Ramping | State::Stopping);
        let open = self.tracks.iter().filter(running).count();
        Progress {
            elapsed: now.saturating_duration_since(self.began),
            line: EtaLine {
                states,
                open_files: u32::try_from(open).unwrap_or(u32::MAX),
                done_percent: done.map(|share| 100.0 * share),
                bytes_per_s: whole(bytes_per_s),
                iops: whole(ios_per_s),
                eta_s: remaining.map(|left| left.as_secs()),
            },
        }
    }

    /// Everything so far in fio's form.
    fn result(&self, now: Instant) -> RunResult {
        let mut jobs: Vec<(usize, JobResult)> = Vec::new();
        let mut util = false;
        for track in &self.tracks {
            let Some(job) = self.plan.jobs.get(track.spec.clone.job) else {
                continue;
            };
            if !job.report.stats {
                continue;
            }
            util |= job.report.disk_util;
            let one = track.result(job, now, self.began);
            match jobs.last_mut() {
                Some((report, merged)) if *report == track.spec.clone.report => merged.merge(&one),
                _ => jobs.push((track.spec.clone.report, one)),
            }
        }
        let timestamp = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        RunResult {
            version_suffix: format!(" (cairn {})", env!("CARGO_PKG_VERSION")),
            timestamp_ms: u64::try_from(timestamp.as_millis()).unwrap_or(u64::MAX),
            utc_offset_s: 0,
            global_options: self.plan.global_options(),
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
            disk_util: util.then(|| self.disk_util(now)),
            own: self.own(),
        }
    }

    /// One entry for each stack in use: its I/Os, and their time.
    fn disk_util(&self, now: Instant) -> Vec<DiskUtil> {
        let wall_ms = now
            .saturating_duration_since(self.began)
            .as_secs_f64()
            .max(1e-3)
            * 1e3;
        let mut list: Vec<DiskUtil> = Vec::new();
        for (index, ground) in self.setup.grounds.iter().enumerate() {
            let name = ground
                .stack()
                .devices()
                .next()
                .map_or_else(|| "stack".to_owned(), |(id, _)| id.to_owned());
            let mut entry = DiskUtil {
                name: if list.iter().any(|d| d.name == name) {
                    format!("{name}.{index}")
                } else {
                    name
                },
                ..DiskUtil::default()
            };
            for track in self
                .tracks
                .iter()
                .filter(|t| t.spec.grounds.contains(&index))
            {
                for (dir, (ios, ticks)) in entry.ios.iter_mut().zip(&mut entry.ticks).enumerate() {
                    *ios += track.counts(dir).ops;
                    *ticks += track.busy_ms(dir);
                }
            }
            entry.in_queue = entry.ticks.iter().sum();
            entry.util = (100.0 * entry.in_queue as f64 / wall_ms).min(100.0);
            list.push(entry);
        }
        list
    }

    /// How times are taken, and what that costs here.
    fn clock(&self) -> String {
        let began = Instant::now();
        let reads = 1000_u32;
        for _ in 0..reads {
            std::hint::black_box(Instant::now());
        }
        let cost = began.elapsed().as_nanos() / u128::from(reads);
        let timed = match self.sample {
            0 | 1 => "every I/O".to_owned(),
            n => format!("one I/O in {n}, at random"),
        };
        format!("monotonic, {cost} ns a read, two reads for {timed}")
    }

    /// What the files are on: of several stacks the first that has files; `none` without files.
    fn file_layer(&self) -> &'static str {
        let mut layers = self.setup.grounds.iter().filter_map(Ground::layer_name);
        layers.next().unwrap_or("none")
    }

    /// What fio has no place for.
    fn own(&self) -> Vec<(String, Json)> {
        let counters = self.setup.cache.counters().report();
        let reading = |r: Reading, before: Reading| {
            let since = |now: i64, then: i64| Json::Int(i128::from(now - then));
            Json::object([
                ("exact", since(r.exact, before.exact)),
                ("approximate", since(r.approximate, before.exact)),
                ("bound", Json::Int(i128::from(r.bound))),
            ])
        };
        let stacks = self
            .setup
            .grounds
            .iter()
            .map(|g| Json::from(g.spec()))
            .collect();
        vec![
            ("version".to_owned(), Json::from(env!("CARGO_PKG_VERSION"))),
            ("stacks".to_owned(), Json::List(stacks)),
            ("file_layer".to_owned(), Json::from(self.file_layer())),
            ("seed".to_owned(), Json::from(self.seed)),
            ("policies".to_owned(), Json::texts(&self.arms)),
            (
                "extent_cache".to_owned(),
                Json::object([
                    ("hits", reading(counters.hits, self.prepared.hits)),
                    ("misses", reading(counters.misses, self.prepared.misses)),
                ]),
            ),
            ("clock".to_owned(), Json::Text(self.clock())),
        ]
    }
}

/// Puts the lines of two logs in the order of their times, which stand first.
fn merge_by_time(all: &mut String, more: &str) {
    let time = |line: &str| -> u64 {
        let first = line.split(',').next().unwrap_or("");
        first.parse().unwrap_or(0)
    };
    let mut lines: Vec<&str> = all.lines().chain(more.lines()).collect();
    lines.sort_by_key(|line| time(line));
    let mut merged = lines.join("\n");
    merged.push('\n');
    *all = merged;
}

fn cancelled(options: &FioOptions<'_>) -> bool {
    options
        .cancel
        .as_ref()
        .is_some_and(|c| c.load(Ordering::Relaxed))
}

/// fio's letter for what a clone does.
fn run_state(track: &Track, rw: RwMode) -> RunState {
    match track.state {
        State::Waiting => RunState::NotCreated,
        State::Created => RunState::Created,
        State::Ramping => RunState::Ramping,
        State::Running => RunState::Running(rw),
        State::Stopping => RunState::Finishing,
        State::Ended if track.error != 0 => RunState::Failed,
        State::Ended => RunState::Reaped,
    }
}

/// Rates as fio's line has them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are not negative, and a float saturates"
)]
fn whole([read, write, trim]: [f64; 3]) -> PerDir<u64> {
    PerDir {
        read: read as u64,
        write: write as u64,
        trim: trim as u64,
    }
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
