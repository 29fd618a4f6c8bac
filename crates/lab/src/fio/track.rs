//! One clone of a running plan: what it measured, and its result.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_fio::Job;
use cairn_fio::job::{Ddir, ErrorMask};
use cairn_fio::output::{CpuUsage, JobResult, Json, LatencyBuckets, Stats};

use super::clones::CloneSpec;
use super::figures::{all_at, batches, put, rebin};
use super::rate::{self, Times};
use super::usage;
use crate::engine::extras::IoLog;
use crate::engine::gate::{Found, Gate, Search};
use crate::engine::logger::Written;
use crate::engine::names::NameOp;
use crate::engine::run::{Dump, Stop};
use crate::engine::verify::Written as Blocks;
use crate::latency::{self, Hist, new_hist};
use crate::operations::{Counts, Operations};
use crate::recorder::{Cell, DIRS, Epoch, KEPT, RESPONSES, SYNC};

/// Errno of a job that was too slow.
const EIO: i32 = 5;

/// Errno of a job whose I/Os take too long.
const ETIMEDOUT: i32 = 110;

/// Where a clone is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its turn has not come.
    Waiting,
    /// Its threads exist, it may wait for its start delay.
    Created,
    /// It runs and is not measured yet.
    Ramping,
    /// It runs and is measured.
    Running,
    /// It was told to stop.
    Stopping,
    /// All its threads have ended.
    Ended,
}

/// One clone.
pub(crate) struct Track {
    pub(crate) spec: CloneSpec,
    pub(crate) state: State,
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) cells: Vec<Arc<Cell>>,
    /// Threads that have not ended.
    pub(crate) open: usize,
    /// When its first thread began.
    pub(crate) began: Option<Instant>,
    /// When it must stop.
    pub(crate) deadline: Option<Instant>,
    /// How long it is measured at most.
    limit: Option<Duration>,
    /// When measuring begins, for one that ramps.
    pub(crate) measure_at: Option<Instant>,
    ramp: Duration,
    pub(crate) sample_at: Option<Instant>,
    sampled_at: Instant,
    sampled: [Counts; 3],
    bw: [Stats; 3],
    iops: [Stats; 3],
    hists: [Option<Box<Hist>>; KEPT],
    pub(crate) logs: Vec<Written>,
    pub(crate) lines_lost: u64,
    /// Blocks that were not what they should be.
    pub(crate) dumps: Vec<Dump>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) iolog: Option<Arc<IoLog>>,
    /// What it wrote, where it leaves a state for a later run.
    pub(crate) state_of: Option<Arc<Mutex<Blocks>>>,
    search: Option<Searching>,
    /// Bytes and I/Os at the last look at the least rates, and when that was.
    floor: Option<(Instant, [Counts; 3])>,
    /// Longest time that one of its threads was measured.
    runtime: Duration,
    tids: Vec<u32>,
    /// What its threads had used when measuring began.
    used_before: CpuUsage,
    used: CpuUsage,
    /// Errno of what ended it.
    pub(crate) error: i32,
    /// The same in words.
    pub(crate) failure: Option<String>,
}

/// The search for a depth that keeps a latency.
struct Searching {
    search: Search,
    /// When its window ends.
    at: Option<Instant>,
    /// The depth was found, and is measured for one window more.
    found: bool,
}

/// How a thread ended.
pub(crate) struct End {
    pub(crate) at: Instant,
    pub(crate) since: Instant,
    pub(crate) used: CpuUsage,
    pub(crate) failed: Option<(i32, String)>,
    /// Its log files: name and text.
    pub(crate) logs: Vec<Written>,
    /// Lines that there was no room for.
    pub(crate) lines_lost: u64,
    /// Blocks that were not what they should be.
    pub(crate) dumps: Vec<Dump>,
}

impl Track {
    /// Of a process with so many threads that work.
    pub(crate) fn new(spec: CloneSpec, threads: usize) -> Self {
        Self {
            spec,
            state: State::Waiting,
            epoch: Arc::new(Epoch::default()),
            stop: Arc::new(Stop::default()),
            operations: Arc::new(Operations::new(threads)),
            cells: Vec::new(),
            open: 0,
            began: None,
            deadline: None,
            limit: None,
            measure_at: None,
            ramp: Duration::ZERO,
            sample_at: None,
            sampled_at: Instant::now(),
            sampled: [Counts::default(); 3],
            bw: [Stats::default(); 3],
            iops: [Stats::default(); 3],
            hists: [const { None }; KEPT],
            logs: Vec::new(),
            lines_lost: 0,
            dumps: Vec::new(),
            gate: None,
            iolog: None,
            state_of: None,
            search: None,
            floor: None,
            runtime: Duration::ZERO,
            tids: Vec::new(),
            used_before: CpuUsage::default(),
            used: CpuUsage::default(),
            error: 0,
            failure: None,
        }
    }

    /// A thread began.
    pub(crate) fn started(&mut self, job: &Job, at: Instant, tid: u32) {
        self.tids.push(tid);
        if self.began.is_some() {
            return;
        }
        self.began = Some(at);
        self.search = Search::new(job, self.spec.lanes()).map(|search| Searching {
            search,
            at: None,
            found: false,
        });
        let ramp = job.control.ramp_time;
        self.ramp = ramp;
        self.limit = Some(job.control.runtime).filter(|limit| !limit.is_zero());
        self.deadline = self.limit.map(|limit| at + ramp + limit);
        if ramp > Duration::ZERO {
            self.state = State::Ramping;
            self.measure_at = Some(at + ramp);
        } else {
            self.state = State::Running;
            self.begin_samples(at);
        }
    }

    fn begin_samples(&mut self, at: Instant) {
        self.sampled_at = at;
        self.sampled = [Counts::default(); 3];
        self.sample_at = Some(at + self.spec.sample());
    }

    /// Does what is due, and says when the next thing is.
    pub(crate) fn tend(&mut self, job: Option<&Job>, now: Instant) -> Option<Instant> {
        if self.state == State::Ramping && self.measure_at.is_some_and(|at| now >= at) {
            self.state = State::Running;
            self.measure_at = None;
            // What is measured lasts as long as was asked for, however late this came.
            self.deadline = self.limit.map(|limit| now + limit);
            if self.search.is_none() {
                self.epoch.reset();
            }
            self.used_before = self
                .tids
                .iter()
                .map(|tid| usage::thread(*tid))
                .fold(CpuUsage::default(), plus);
            self.begin_samples(now);
        }
        if self.state == State::Running && self.sample_at.is_some_and(|at| now >= at) {
            self.sample(now);
            self.sample_at = Some(now + self.spec.sample());
        }
        if self.state == State::Running {
            self.search(now);
        }
        if let Some(job) =
            job.filter(|job| self.state == State::Running && rate::has_floor(&job.pace))
        {
            self.keep_the_floor(job, now);
        }
        if matches!(self.state, State::Running | State::Ramping)
            && self.deadline.is_some_and(|at| now >= at)
        {
            self.stop.now();
            self.state = State::Stopping;
        }
        match self.state {
            State::Ramping => [self.measure_at, self.deadline].into_iter().flatten().min(),
            State::Running => {
                let window = self.search.as_ref().and_then(|s| s.at);
                let all = [self.sample_at, self.deadline, window];
                all.into_iter().flatten().min()
            }
            _ => None,
        }
    }

    /// Tries the next depth when the window of the one before is over.
    fn search(&mut self, now: Instant) {
        let (Some(Searching { search, at, found }), Some(gate)) = (&mut self.search, &self.gate)
        else {
            return;
        };
        match at {
            None => {
                gate.take_window();
                *at = Some(now + search.window());
                return;
            }
            Some(at) if now < *at => return,
            Some(at) => *at = now + search.window(),
        }
        if *found {
            // One that goes on is looked at no more until it ends.
            if !search.goes_on() {
                self.stop.now();
                self.state = State::Stopping;
            }
            return;
        }
        let (timed, over) = gate.take_window();
        match search.judge(timed, over) {
            Found::Try(depth) => gate.set_limit(depth),
            Found::Depth(depth) => {
                // What is reported is the depth that was found, and nothing of those that were tried.
                gate.set_limit(depth);
                *found = true;
                self.epoch.reset();
                self.begin_samples(now);
            }
            Found::Nothing => {
                self.error = ETIMEDOUT;
                self.failure = Some(format!(
                    "latency_target: {over} of {timed} I/Os took longer at a depth of 1"
                ));
                self.stop.now();
                self.state = State::Stopping;
            }
        }
    }

    /// Ends a job whose rate was below the least that it allows, over a cycle.
    fn keep_the_floor(&mut self, job: &Job, now: Instant) {
        let counts = [0, 1, 2].map(|dir| self.counts(dir));
        let Some((since, before)) = self.floor else {
            self.floor = Some((now, counts));
            return;
        };
        let over = now.saturating_duration_since(since);
        if over < job.pace.cycle {
            return;
        }
        let mut done = counts;
        for (done, before) in done.iter_mut().zip(before) {
            *done = done.since(before);
        }
        self.floor = Some((now, counts));
        if let Some(why) = rate::below(job, &done, over) {
            self.error = EIO;
            self.failure = Some(why);
            self.stop.now();
            self.state = State::Stopping;
        }
    }

    /// Service and response times of a direction, where there is a rate.
    pub(crate) fn times(&self, index: usize) -> Option<Times<'_>> {
        let response = self.hists.get(DIRS + index)?.as_deref()?;
        Some(Times {
            dir: Ddir::ALL.get(index).copied()?,
            service: self.hist(index)?,
            response,
        })
    }

    /// I/Os that started late, and the longest that one did.
    pub(crate) fn late(&self) -> (u64, Duration) {
        let late = self.cells.iter().map(|cell| cell.late());
        let (count, most) = late.fold((0, 0), |(n, most), (m, ns)| (n + m, most.max(ns)));
        (count, Duration::from_nanos(most))
    }

    fn sample(&mut self, now: Instant) {
        let millis = now.saturating_duration_since(self.sampled_at).as_secs_f64() * 1e3;
        for dir in 0..3 {
            let counts = self.counts(dir);
            let (Some(before), Some(bw), Some(iops)) = (
                self.sampled.get_mut(dir),
                self.bw.get_mut(dir),
                self.iops.get_mut(dir),
            ) else {
                continue;
            };
            let step = counts.since(*before);
            *before = counts;
            if counts.ops == 0 || millis <= 0.0 {
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "rates are not negative and far below 2^64; the cast saturates"
            )]
            let whole = |x: f64| x as u64;
            bw.record(whole(step.bytes as f64 * 1e3 / millis / 1024.0));
            iops.record(whole(step.ops as f64 * 1e3 / millis));
        }
        self.sampled_at = now;
    }

    /// A thread ended.
    pub(crate) fn ended(&mut self, end: End) {
        self.open = self.open.saturating_sub(1);
        self.runtime = self
            .runtime
            .max(end.at.saturating_duration_since(end.since));
        self.used = plus(self.used, end.used);
        self.logs.extend(end.logs);
        self.lines_lost += end.lines_lost;
        self.dumps.extend(end.dumps);
        if let Some((errno, what)) = end.failed {
            self.stop.now();
            if self.failure.is_none() {
                self.error = errno;
                self.failure = Some(what);
            }
        }
        if self.open == 0 {
            self.state = State::Ended;
            self.gather();
        }
    }

    /// Takes in what the threads handed over.
    pub(crate) fn gather(&mut self) {
        for cell in &self.cells {
            cell.collect(|dir, hist| {
                if let Some(slot) = self.hists.get_mut(dir) {
                    latency::add(slot.get_or_insert_with(|| Box::new(new_hist())), hist);
                }
            });
        }
    }

    /// What all its threads counted in a direction.
    pub(crate) fn counts(&self, dir: usize) -> Counts {
        self.operations.dir(self.epoch.phase(), dir)
    }

    /// Errno of the first I/O that failed, whether it ended the job or not, and the I/O in words.
    pub(crate) fn first_error(&self) -> Option<(i32, Arc<str>)> {
        self.cells.iter().find_map(|cell| cell.first_error())
    }

    /// What went wrong first, for people.
    pub(crate) fn complaint(&self) -> Option<Arc<str>> {
        match (self.first_error(), &self.failure) {
            (Some((_, what)), _) => Some(what),
            (None, Some(failure)) => Some(Arc::from(failure.as_str())),
            (None, None) => None,
        }
    }

    /// Share of the work that is done, 0 to 1, and the time left, where they can be told.
    pub(crate) fn share(&self, now: Instant) -> (Option<f64>, Option<Duration>) {
        let Some(began) = self.began else {
            return (Some(0.0), None);
        };
        if self.state == State::Ended {
            return (Some(1.0), Some(Duration::ZERO));
        }
        let passed = now.saturating_duration_since(began);
        let by_time = self.deadline.map(|end| {
            let whole = end.saturating_duration_since(began).as_secs_f64();
            (
                passed.as_secs_f64() / whole.max(1e-9),
                end.saturating_duration_since(now),
            )
        });
        let moved: u64 = (0..3).map(|d| self.counts(d).bytes).sum();
        let by_bytes = self
            .spec
            .total()
            .filter(|total| *total > 0 && moved > 0)
            .map(|total| {
                let share = (moved as f64 / total as f64).min(1.0);
                (share, passed.mul_f64((1.0 - share) / share))
            });
        match (by_time, by_bytes) {
            (Some(a), Some(b)) => (Some(a.0.max(b.0)), Some(a.1.min(b.1))),
            (Some(one), None) | (None, Some(one)) => (Some(one.0), Some(one.1)),
            (None, None) => (None, None),
        }
    }

    /// Time that I/Os of a direction took, in milliseconds.
    pub(crate) fn busy_ms(&self, dir: usize) -> u64 {
        self.hist(dir).map_or(0, |hist| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative; the cast saturates"
            )]
            let whole = (hist.mean() * hist.len() as f64 / 1e6) as u64;
            whole
        })
    }

    fn hist(&self, dir: usize) -> Option<&Hist> {
        self.hists.get(dir)?.as_deref()
    }

    /// The result of this clone alone, as of now.
    pub(crate) fn result(&self, job: &Job, now: Instant, run_began: Instant) -> JobResult {
        let mut result = JobResult::of_job(job);
        let runtime = match (self.state, self.began) {
            (State::Ended, _) | (_, None) => self.runtime,
            (_, Some(began)) => {
                now.saturating_duration_since(self.measured_since().unwrap_or(began))
            }
        };
        let worked = (0..3).any(|dir| {
            let counts = self.counts(dir);
            counts.ops + counts.errors > 0
        });
        // As fio does: a job that did something took a millisecond at least, so that it has a rate.
        let runtime_ms = millis(runtime).max(u64::from(worked));
        result.members = 1;
        result.pid = self.tids.first().copied().unwrap_or(0);
        result.error = self.error;
        result.elapsed_s = now
            .saturating_duration_since(run_began)
            .as_millis()
            .div_ceil(1000)
            .try_into()
            .unwrap_or(u64::MAX);
        result.job_runtime_ms = runtime_ms;
        result.cpu = usage::since(self.used, self.used_before);
        let mut issued = 0;
        let mut failed = 0;
        for (index, dir) in Ddir::ALL.into_iter().enumerate() {
            let counts = self.counts(index);
            issued += counts.ops + counts.errors;
            failed += counts.errors;
            let side = result.directions.get_mut(dir);
            side.io_bytes = counts.bytes;
            side.total_ios = counts.ops;
            side.runtime_ms = if counts.ops > 0 { runtime_ms } else { 0 };
            side.bw = self.bw.get(index).copied().unwrap_or_default();
            side.iops = self.iops.get(index).copied().unwrap_or_default();
            if let Some(hist) = self.hist(index) {
                // fio measures the calls on names and nothing around them.
                let names = NameOp::of(job.queue.ioengine).is_some();
                // Of others the call is the whole I/O: nothing lies between submission and completion.
                if !job.report.disable_clat {
                    put(&mut side.clat, hist);
                    if !names {
                        let binned = rebin(hist);
                        let buckets = LatencyBuckets::from_histogram(&binned);
                        result.latency.merge(&buckets);
                    }
                }
                if !job.report.disable_lat && !names {
                    put(&mut side.lat, hist);
                }
            }
        }
        if let Some(hist) = self.hist(SYNC) {
            put(&mut result.sync, hist);
        }
        if job.control.continue_on_error != ErrorMask::None {
            let first = self.first_error().map_or(self.error, |(errno, _)| errno);
            result.errors = Some((failed, first));
        }
        let depth = match &self.search {
            Some(searching) => searching.search.depth(),
            None => self.spec.lanes(),
        };
        if self.search.is_some() {
            result.latency_depth.depth = u32::try_from(depth).unwrap_or(u32::MAX);
        }
        result.depth = all_at(issued, depth);
        (result.submit, result.complete) = match &self.gate {
            Some(gate) => gate.batches(),
            None => (batches(issued), batches(issued)),
        };
        let rated: Vec<(String, Json)> = (0..RESPONSES)
            .filter_map(|dir| self.times(dir))
            .map(|times| (times.dir.word().to_owned(), times.json()))
            .collect();
        if !rated.is_empty() {
            let (late, most) = self.late();
            let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
            let mut parts = vec![
                ("late_ios".to_owned(), Json::from(late)),
                ("largest_backlog_ns".to_owned(), Json::from(most)),
            ];
            parts.extend(rated);
            result.own.push(("rate".to_owned(), Json::Object(parts)));
        }
        let over: u64 = self.cells.iter().map(|c| c.over()).sum();
        if over > 0 {
            result
                .own
                .push(("over_one_minute".to_owned(), Json::from(over)));
        }
        if let Some(failure) = &self.failure {
            result
                .own
                .push(("failure".to_owned(), Json::from(failure.as_str())));
        }
        result
    }

    fn measured_since(&self) -> Option<Instant> {
        (self.state == State::Running || self.state == State::Stopping)
            .then_some(self.began)
            .flatten()
            .map(|began| began + self.ramp)
    }
}

fn plus(a: CpuUsage, b: CpuUsage) -> CpuUsage {
    CpuUsage {
        user_us: a.user_us + b.user_us,
        sys_us: a.sys_us + b.sys_us,
        ctx: a.ctx + b.ctx,
        majf: a.majf + b.majf,
        minf: a.minf + b.minf,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
