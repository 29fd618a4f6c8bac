//! The sampler: one thread that looks at everything ten times a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use crate::auto::{self, Auto, AutoPlan, Next, Seen};
use crate::checks::Checker;
use crate::compare::{Counted, Share, Slices, Subject};
use crate::environment::Watch;
use crate::latency::{self, Hist, new_hist};
use crate::look::Look;
use crate::operations::Counts;
use crate::policy::{Policies, Switch};
use crate::sample::{
    AutoSample, Buckets, Comparison, ExtentSample, FlagSample, Latency, Sample, WorkloadSample,
};
use crate::shared::Shared;

/// How long after a switch of a policy samples belong to no arm: longer than a stack exchange, a
/// fold of the counters and the caches' own transient take.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);

/// Samples a slow reader may lag behind before they are dropped.
pub(crate) const CHANNEL: usize = 256;

/// What the lab asks of its sampler.
pub(crate) enum Command {
    /// Begin the statistics again.
    Reset,
    /// Begin an interleaved comparison, or end the one under way.
    Auto(Option<AutoPlan>),
    /// Arms are compared by another workload from now on.
    CompareBy,
    /// Tell what the run came to so far, and go on.
    Look(Sender<Last>),
    /// Take a last look and end.
    Finish(Sender<Last>),
}

/// The last look at a run.
pub(crate) struct Last {
    pub(crate) sample: Sample,
    /// Time that the workloads ran since the reset.
    pub(crate) ran: Duration,
    /// Latencies of each workload since the reset.
    pub(crate) totals: Vec<Hist>,
    /// The warm-up that was not over when the run ended, so that it is counted.
    pub(crate) cold: Option<Duration>,
}

/// One workload as the sampler sums it up.
struct Track {
    /// Counts at the reset.
    base: Counts,
    /// Counts at the last sample.
    before: Counts,
    recent: Hist,
    total: Hist,
    /// Times from when operations were due, if they are.
    responses: Option<Box<Hist>>,
    /// Whether it ran at the last sample.
    was_running: bool,
    /// The last distribution that was handed over.
    shown: Option<(Latency, Arc<Buckets>)>,
}

pub(crate) struct Sampler {
    shared: Arc<Shared>,
    policies: Policies,
    out: SyncSender<Arc<Sample>>,
    interval: Duration,
    began: Instant,
    last: Instant,
    seq: u64,
    dropped: u64,
    tracks: Vec<Track>,
    slices: Slices,
    counted: Counted,
    auto: Option<Auto>,
    /// By policy, what its arms are compared by.
    subjects: Vec<Subject>,
    first_error: Option<Arc<str>>,
    latest: Option<Arc<Sample>>,
    look: Look,
    checker: Checker,
    watch: Watch,
    ran: Duration,
    /// Statistics begin again when this has passed.
    warm_at: Option<Duration>,
    was_running: bool,
}

/// What each policy's arms are compared by.
fn subjects(policies: &Policies, shared: &Shared) -> Vec<Subject> {
    let list = policies.list().iter();
    let chosen = shared.compared();
    list.map(|p| Subject::new(&p.name, &shared.workloads, chosen))
        .collect()
}

impl Sampler {
    pub(crate) fn new(
        shared: Arc<Shared>,
        policies: Policies,
        out: SyncSender<Arc<Sample>>,
        interval: Duration,
        probe: bool,
    ) -> Self {
        let tracks = shared
            .workloads
            .iter()
            .map(|_| Track {
                base: Counts::default(),
                before: Counts::default(),
                recent: new_hist(),
                total: new_hist(),
                responses: None,
                was_running: true,
                shown: None,
            })
            .collect();
        let subjects = subjects(&policies, &shared);
        let warm_at = Some(shared.warmup).filter(|w| !w.is_zero());
        let now = Instant::now();
        Self {
            look: Look::new(&shared, probe),
            checker: Checker::new(now),
            watch: Watch::new(),
            shared,
            policies,
            out,
            interval,
            began: now,
            last: now,
            seq: 0,
            dropped: 0,
            tracks,
            slices: Slices::default(),
            counted: Counted::default(),
            auto: None,
            subjects,
            first_error: None,
            latest: None,
            ran: Duration::ZERO,
            warm_at,
            was_running: true,
        }
    }

    /// Samples until it is told to finish, or until nobody holds the lab any more.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        // Workers hand their histograms over at their next operation, so they are asked a little
        // before they are read.
        let lead = (self.interval / 10).min(Duration::from_millis(4));
        let mut due = self.began + self.interval;
        loop {
            match self.wait(commands, due.checked_sub(lead).unwrap_or(due)) {
                Wake::Due => {}
                Wake::Finish(reply) => {
                    self.finish(&reply);
                    return;
                }
                Wake::Gone => return,
            }
            self.shared.epoch.hand_over();
            match self.wait(commands, due) {
                Wake::Due => {}
                Wake::Finish(reply) => {
                    self.finish(&reply);
                    return;
                }
                Wake::Gone => return,
            }
            let now = Instant::now();
            self.shared.stop_what_is_over(now);
            let sample = self.sample(now, now.saturating_duration_since(due));
            let sample = Arc::new(sample);
            self.latest = Some(Arc::clone(&sample));
            match self.out.try_send(sample) {
                // Nobody listens in a headless run.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(_)) => self.dropped += 1,
            }
            if self
                .warm_at
                .is_some_and(|at| now.saturating_duration_since(self.began) >= at)
            {
                self.warm_at = None;
                self.reset();
            }
            due += self.interval;
            if due < now {
                // The machine stalled: keep the pace from here, the gap shows as lateness.
                due = now + self.interval;
            }
        }
    }

    fn wait(&mut self, commands: &Receiver<Command>, until: Instant) -> Wake {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match commands.recv_timeout(left) {
                Ok(Command::Reset) => self.reset(),
                Ok(Command::Auto(plan)) => self.compare(plan),
                Ok(Command::CompareBy) => self.compare_by(),
                Ok(Command::Look(reply)) => self.tell(&reply),
                Ok(Command::Finish(reply)) => return Wake::Finish(reply),
                Err(RecvTimeoutError::Timeout) => return Wake::Due,
                Err(RecvTimeoutError::Disconnected) => return Wake::Gone,
            }
        }
    }

    /// Takes in what the workers handed over.
    fn gather(&mut self) -> Vec<Counts> {
        let mut counts = Vec::with_capacity(self.tracks.len());
        for (track, workload) in self.tracks.iter_mut().zip(&self.shared.workloads) {
            track.recent.reset();
            counts.push(workload.read(|response, hist| {
                if response {
                    let new = || Box::new(new_hist());
                    latency::add(track.responses.get_or_insert_with(new), hist);
                } else {
                    latency::add(&mut track.recent, hist);
                }
            }));
            latency::add(&mut track.total, &track.recent);
        }
        counts
    }

    /// Begins an interleaved comparison; what slices there are belong to another one.
    fn compare(&mut self, plan: Option<AutoPlan>) {
        // The arm from before stands again when it is over: also that of one that it takes the place of.
        let under_way = self.auto.take().filter(Auto::running);
        if let (None, Some(old)) = (plan, &under_way) {
            let _ = self.policies.set(old.plan().policy, old.home());
        }
        if let Some(plan) = plan {
            let same = under_way.filter(|old| old.plan().policy == plan.policy);
            let home = same.map_or_else(|| self.policies.arm(plan.policy), |old| old.home());
            self.auto = Some(Auto::new(plan, home));
            self.slices.clear();
            let [first, second] = plan.arms;
            // Through the other arm, so that these two are the ones compared. Both exist: who asked for
            // them was checked.
            let _ = self.policies.set(plan.policy, second);
            let _ = self.policies.set(plan.policy, first);
        }
    }

    /// Compares by the workload that is chosen now. Slices hold all workloads; an interleaved comparison looked
    /// at one only and begins again, or, if it is done, is forgotten.
    fn compare_by(&mut self) {
        self.subjects = subjects(&self.policies, &self.shared);
        if let Some(auto) = &self.auto {
            let plan = auto.plan();
            let running = auto.running();
            self.compare(running.then_some(plan));
        }
    }

    /// Gives the comparison under way its share of a sample, and switches as it says.
    fn step(&mut self, seen: &Step<'_>) -> Option<AutoSample> {
        let auto = self.auto.as_mut()?;
        let policy = auto.plan().policy;
        let workload = self.subjects.get(policy)?.workload?;
        let next = auto.step(&Seen {
            arms: seen.arms,
            settling: seen.settling,
            whole: seen.interval < 2 * self.interval,
            interval: seen.interval,
            ops: seen.ops.get(workload).copied().flatten(),
            latency: &self.tracks.get(workload)?.recent,
        });
        if let Next::Switch(arm) = next {
            let _ = self.policies.set(policy, arm);
        }
        if !auto.holds() {
            // Somebody switched by hand: what was found does not answer the question asked now.
            self.auto = None;
            self.slices.clear();
        }
        self.auto.as_ref().map(Auto::sample)
    }

    fn reset(&mut self) {
        if let Some(auto) = &self.auto {
            let plan = auto.plan();
            let running = auto.sample().running;
            self.compare(running.then_some(plan));
        }
        self.shared.epoch.reset();
        let counts = self.gather();
        for (track, now) in self.tracks.iter_mut().zip(counts) {
            track.base = now;
            track.total.reset();
            if let Some(responses) = &mut track.responses {
                responses.reset();
            }
        }
        let now = Instant::now();
        for workload in &self.shared.workloads {
            workload.reset(now);
        }
        self.slices.clear();
        self.look.reset(&self.shared);
        self.counted = Counted::default();
        self.ran = Duration::ZERO;
    }

    fn sample(&mut self, now: Instant, late: Duration) -> Sample {
        let interval = now.saturating_duration_since(self.last);
        let seconds = interval.as_secs_f64().max(1e-9);
        let running = self.shared.running();
        if running || self.was_running {
            self.ran += interval;
        }
        let (arms, switch) = self.policies.snapshot();
        let settling = switch.is_some_and(|s| {
            // A switch inside the interval counts too, however short the settle window.
            now.saturating_duration_since(s.at) < SETTLE || s.at > self.last
        });
        let counts = self.gather();
        let mut workloads = Vec::with_capacity(self.tracks.len());
        let mut steps = Vec::with_capacity(self.tracks.len());
        for ((track, workload), counts) in self
            .tracks
            .iter_mut()
            .zip(&self.shared.workloads)
            .zip(counts)
        {
            let step = counts.since(track.before);
            let total = counts.since(track.base);
            track.before = counts;
            let running = workload.running();
            steps.push((running && track.was_running).then_some(step.ops));
            track.was_running = running;
            // Workers hand over at their next operation: one that got no CPU in time leaves nothing for this
            // sample, and the last figures stand while operations go on.
            let new = latency::with_buckets(&track.recent);
            let (recent, buckets) = match &track.shown {
                Some(shown) if new.0.n == 0 && step.ops > 0 => shown.clone(),
                _ => track.shown.insert((new.0, Arc::new(new.1))).clone(),
            };
            workloads.push(WorkloadSample {
                name: Arc::clone(&workload.name),
                about: Arc::clone(&workload.about),
                workers: workload.workers,
                unit: workload.unit,
                ops: total.ops,
                bytes: total.bytes,
                errors: total.errors,
                errors_in_all: counts.errors,
                ran: workload.ran(now),
                ops_per_s: step.ops as f64 / seconds,
                bytes_per_s: step.bytes as f64 / seconds,
                recent,
                buckets,
                total: latency::summary(&track.total),
                response: track.responses.as_ref().map(|h| latency::summary(h)),
            });
        }
        if settling || !running || !self.was_running {
            self.slices.interrupt();
        } else {
            let shares: Vec<_> = steps
                .iter()
                .zip(&self.tracks)
                .map(|(ops, track)| Share {
                    ops: *ops,
                    latency: &track.recent,
                })
                .collect();
            self.slices.add(&arms, interval, &shares);
        }
        if self.first_error.is_none() && workloads.iter().any(|w| w.errors_in_all > 0) {
            self.first_error = self.shared.first_error();
        }
        let seen = self.look.take(&self.shared, seconds, &workloads);
        let step = Step {
            arms: &arms,
            settling,
            counts: !settling && running && self.was_running,
            interval,
            ops: &steps,
        };
        let (comparison, auto) = self.compared(&step, switch, counted(&seen.extents, &seen.flags));
        let checks = self.checker.take(&self.shared, now);
        let machine = self.watch.take();
        let sample = Sample {
            seq: self.seq,
            elapsed: now.saturating_duration_since(self.began),
            interval,
            late,
            dropped: self.dropped,
            running,
            settling,
            failure: self.shared.failure(),
            first_error: self.first_error.clone(),
            workloads,
            arms,
            layers: seen.layers,
            extents: seen.extents,
            flags: seen.flags,
            buffers: seen.buffers,
            comparison,
            auto,
            checks,
            machine,
        };
        self.seq += 1;
        self.last = now;
        self.was_running = running;
        sample
    }

    /// Books what was counted, gives the comparison under way its share, and compares.
    fn compared(
        &mut self,
        step: &Step<'_>,
        switch: Option<Switch>,
        counted: Counted,
    ) -> (Option<Comparison>, Option<AutoSample>) {
        let more = counted.since(std::mem::replace(&mut self.counted, counted));
        if step.counts {
            self.slices.count(step.arms, more);
        }
        let mut comparison = switch.and_then(|s| {
            let subject = self.subjects.get(s.policy)?;
            Some(self.slices.compare(s, step.arms, subject))
        });
        let auto = self.step(step);
        if let (Some(c), Some(auto)) = (&mut comparison, &auto)
            && c.policy == auto.policy
        {
            c.effect = auto.rate;
            c.estimator = auto::ESTIMATOR;
            let waits = auto.rate.is_none() && c.workload.is_some();
            c.reason = waits.then(|| Arc::from("two pairs of slices are needed"));
        }
        (comparison, auto)
    }

    /// What the run came to, as the last sample had it.
    fn tell(&mut self, reply: &Sender<Last>) {
        let latest = self.latest.as_deref().cloned();
        let sample = latest.unwrap_or_else(|| self.sample(Instant::now(), Duration::ZERO));
        let _ = reply.send(Last {
            sample,
            ran: self.ran,
            totals: self.tracks.iter().map(|t| t.total.clone()).collect(),
            cold: self.warm_at,
        });
    }

    fn finish(&mut self, reply: &Sender<Last>) {
        // The workers have ended and left everything they had.
        let sample = self.sample(Instant::now(), Duration::ZERO);
        let _ = reply.send(Last {
            sample,
            ran: self.ran,
            totals: std::mem::take(&mut self.tracks)
                .into_iter()
                .map(|t| t.total)
                .collect(),
            cold: self.warm_at,
        });
    }
}

/// What a comparison under way is told of a sample.
struct Step<'a> {
    arms: &'a [usize],
    settling: bool,
    /// It belongs to an arm, and the workers ran all the time.
    counts: bool,
    interval: Duration,
    /// By workload, its operations if it ran all the time.
    ops: &'a [Option<u64>],
}

/// What was counted below the workloads since the reset.
fn counted(extents: &ExtentSample, flags: &FlagSample) -> Counted {
    let all = |n: i64| u64::try_from(n).unwrap_or(0);
    let shared = extents.slots.iter().filter(|s| &*s.label == "shared");
    Counted {
        sets: flags.sets,
        rmws: flags.rmws,
        lookups: all(extents.hits.exact) + all(extents.misses.exact),
        shared: shared.map(|s| s.hits + s.misses).sum(),
    }
}

enum Wake {
    Due,
    Finish(Sender<Last>),
    /// The lab was dropped.
    Gone,
}

/// Rates of counters that only grow, by name.
#[derive(Default)]
pub(crate) struct Rates {
    before: HashMap<String, u64>,
}

impl Rates {
    /// How much the counter grew since it was last asked for.
    pub(crate) fn step(&mut self, name: &str, now: u64) -> u64 {
        if let Some(before) = self.before.get_mut(name) {
            now.saturating_sub(std::mem::replace(before, now))
        } else {
            self.before.insert(name.to_owned(), now);
            0
        }
    }
}
