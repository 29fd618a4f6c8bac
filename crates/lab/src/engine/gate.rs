//! What stands between the lanes of a job and its queue: how deep it may be, how many I/Os go in and come out at
//! a time, which ones must not overlap, and the search for a depth that keeps a latency.
//!
//! A lane enters before its I/O and leaves after it. A job that asks for none of this has no gate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_fio::job::{Job, LatencyTarget};
use cairn_fio::output::DepthCounts;

use super::generate::Io;
use super::run::Stop;

/// Longest wait between two looks at whether to stop.
const NAP: Duration = Duration::from_millis(20);

/// The queue of a job.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The queue is filled again when it has drained to this.
    low: usize,
    /// I/Os that go in at a time.
    batch: usize,
    /// I/Os that come out at a time at least, once the queue is full.
    reap: usize,
    /// I/Os that come out at a time at most.
    most: usize,
    serialize: bool,
    target: Option<LatencyTarget>,
    /// I/Os that were timed in the window, and how many of them took too long.
    timed: [AtomicU64; 2],
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Debug)]
struct State {
    /// How deep the queue may be now.
    limit: usize,
    /// Lanes that still run.
    lanes: usize,
    /// I/Os that entered and did not leave.
    inside: usize,
    /// Of these, how many wait for the others of their batch.
    waiting: usize,
    /// Batches that went in.
    gone: u64,
    /// The queue was full, and is not filled until enough came out.
    draining: bool,
    out: usize,
    held: Vec<Io>,
    submit: DepthCounts,
    complete: DepthCounts,
}

impl Gate {
    /// The gate of a job with so many lanes, if it needs one.
    pub(crate) fn new(job: &Job, lanes: usize) -> Option<Self> {
        let q = &job.queue;
        let at_most = |n: u32| usize::try_from(n).unwrap_or(lanes).min(lanes);
        let low = q.iodepth_low.map_or(lanes, at_most);
        let batch = match q.batch {
            0 => lanes,
            n => at_most(n),
        };
        let reap = at_most(q.batch_complete_min).max(1);
        // fio reaps as many as the minimum where no maximum is given.
        let most = q.batch_complete_max.map_or(reap, at_most).max(reap);
        let target = Some(job.pace.latency.clone()).filter(|l| !l.target.is_zero());
        let many = lanes > 1;
        let needed = target.is_some()
            || (many && (low < lanes || batch > 1 || reap > 1 || q.serialize_overlap));
        needed.then(|| Self {
            low,
            batch,
            reap,
            most,
            serialize: q.serialize_overlap && many,
            timed: [const { AtomicU64::new(0) }; 2],
            state: Mutex::new(State {
                limit: if target.is_some() { 1 } else { lanes },
                lanes,
                inside: 0,
                waiting: 0,
                gone: 0,
                draining: false,
                out: 0,
                held: Vec::with_capacity(lanes),
                submit: DepthCounts::default(),
                complete: DepthCounts::default(),
            }),
            target,
            turn: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        let woken = self.turn.wait_timeout(state, NAP);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for a place in the queue; false if somebody said stop before.
    pub(crate) fn enter(&self, io: Option<Io>, stop: &Stop) -> bool {
        let mut state = self.lock();
        while state.draining || state.inside >= state.limit || self.overlaps(&state, io) {
            if stop.asked() {
                return false;
            }
            if state.waiting > 0 {
                // This one cannot make their batch whole, and may well wait for one of them.
                self.submit(&mut state);
            }
            state = self.wait(state);
        }
        state.inside += 1;
        if let (true, Some(io)) = (self.serialize, io) {
            state.held.push(io);
        }
        state.draining = state.inside >= state.limit && (self.low < state.limit || self.reap > 1);
        state.out = 0;
        state.waiting += 1;
        if state.waiting >= self.batch || state.inside >= state.limit {
            self.submit(&mut state);
            return true;
        }
        let batch = state.gone;
        while state.gone == batch {
            if stop.asked() {
                self.submit(&mut state);
            } else {
                state = self.wait(state);
            }
        }
        true
    }

    /// Whether an I/O that is inside touches the same bytes.
    fn overlaps(&self, state: &State, io: Option<Io>) -> bool {
        let Some(io) = io.filter(|_| self.serialize) else {
            return false;
        };
        state.held.iter().any(|held| {
            held.region == io.region
                && held.offset < io.offset + io.len
                && io.offset < held.offset + held.len
        })
    }

    /// Those that wait for their batch go.
    fn submit(&self, state: &mut State) {
        state
            .submit
            .record_batch(u32::try_from(state.waiting).unwrap_or(u32::MAX));
        state.waiting = 0;
        state.gone += 1;
        self.turn.notify_all();
    }

    /// An I/O is done.
    pub(crate) fn leave(&self, io: Option<Io>, nanos: Option<u64>) {
        if let (Some(target), Some(nanos)) = (&self.target, nanos) {
            let [timed, over] = &self.timed;
            timed.fetch_add(1, Ordering::Relaxed);
            if u128::from(nanos) > target.target.as_nanos() {
                over.fetch_add(1, Ordering::Relaxed);
            }
        }
        let mut state = self.lock();
        state.inside -= 1;
        state.out += 1;
        if let Some(io) = io
            && let Some(at) = state.held.iter().position(|held| *held == io)
        {
            state.held.swap_remove(at);
        }
        let enough = state.inside == 0
            || (state.out >= self.reap.min(state.limit) && state.inside <= self.low);
        if state.draining && state.out >= self.most {
            // The queue drains on, but no more than these come out at a time.
            let out = std::mem::take(&mut state.out);
            self.reaped(&mut state, out);
            state.draining = state.inside > self.low;
            drop(state);
            self.turn.notify_all();
        } else if !state.draining || enough {
            let out = std::mem::take(&mut state.out);
            self.reaped(&mut state, out);
            state.draining = false;
            drop(state);
            self.turn.notify_all();
        }
    }

    /// So many came out.
    fn reaped(&self, state: &mut State, mut out: usize) {
        while out > 0 {
            let n = out.min(self.most);
            state
                .complete
                .record_batch(u32::try_from(n).unwrap_or(u32::MAX));
            out -= n;
        }
    }

    /// Nothing more comes from this lane: those that wait for their batch go without it.
    pub(crate) fn retire(&self) {
        let mut state = self.lock();
        // With fewer lanes than the depth the queue is never full again.
        state.lanes = state.lanes.saturating_sub(1).max(1);
        state.limit = state.limit.min(state.lanes);
        state.draining = false;
        if state.waiting > 0 {
            self.submit(&mut state);
        } else {
            self.turn.notify_all();
        }
    }

    /// How many I/Os went in and came out at a time.
    pub(crate) fn batches(&self) -> (DepthCounts, DepthCounts) {
        let state = self.lock();
        (state.submit, state.complete)
    }

    /// Lets so many in from now on.
    pub(crate) fn set_limit(&self, limit: usize) {
        let mut state = self.lock();
        state.limit = limit.clamp(1, state.lanes);
        drop(state);
        self.turn.notify_all();
    }

    /// I/Os since the last look, and how many of them took longer than the target.
    pub(crate) fn take_window(&self) -> (u64, u64) {
        let [timed, over] = &self.timed;
        (
            timed.swap(0, Ordering::Relaxed),
            over.swap(0, Ordering::Relaxed),
        )
    }
}

/// The search for the deepest queue that keeps a latency: doubled until it does not, then halved in between.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Search {
    target: LatencyTarget,
    depth: usize,
    /// Deepest that kept it, and shallowest that did not.
    kept: usize,
    failed: usize,
    /// A depth was tried that did not keep it.
    bounded: bool,
}

/// What a window of the search comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The next depth is tried.
    Try(usize),
    /// The depth that keeps the latency.
    Depth(usize),
    /// Not even one I/O at a time does.
    Nothing,
}

impl Search {
    /// The search that a job asks for, if it does.
    pub(crate) fn new(job: &Job, lanes: usize) -> Option<Self> {
        let target = job.pace.latency.clone();
        (!target.target.is_zero()).then_some(Self {
            target,
            depth: 1,
            kept: 0,
            failed: lanes + 1,
            bounded: false,
        })
    }

    /// How long a depth is tried.
    pub(crate) fn window(&self) -> Duration {
        match self.target.window {
            Duration::ZERO => Duration::from_secs(1),
            window => window,
        }
    }

    /// The depth that is tried.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the job goes on when the depth was found.
    pub(crate) fn goes_on(&self) -> bool {
        self.target.keep_running
    }

    /// Takes in a window: so many I/Os, of which so many took too long.
    pub(crate) fn judge(&mut self, timed: u64, over: u64) -> Found {
        if timed == 0 {
            return Found::Try(self.depth);
        }
        let good = 100.0 * (timed - over.min(timed)) as f64 / timed as f64;
        if good >= self.target.percentile {
            self.kept = self.depth;
        } else {
            self.failed = self.depth;
            self.bounded = true;
        }
        if self.failed <= 1 {
            return Found::Nothing;
        }
        if self.kept + 1 >= self.failed {
            self.depth = self.kept;
            return Found::Depth(self.kept);
        }
        self.depth = if self.bounded {
            self.kept.midpoint(self.failed)
        } else {
            (self.kept * 2).min(self.failed - 1)
        };
        Found::Try(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    fn job(text: &str) -> Job {
        let text = format!("[j]\nrw=randwrite\nsize=1m\nioengine=libaio\niodepth=8\n{text}\n");
        let plan = cairn_fio::parse_job_text("t", &text).unwrap();
        plan.jobs[0].clone()
    }

    fn io(offset: u64) -> Io {
        Io {
            dir: 1,
            region: 0,
            offset,
            len: 4096,
        }
    }

    /// Lanes that enter and leave until each did so often; the most that were inside at once.
    fn storm(gate: &Arc<Gate>, lanes: usize, each: u64) -> usize {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let stop = Stop::default();
        thread::scope(|scope| {
            for lane in 0..lanes {
                let (gate, inside, most, stop) = (gate, &inside, &most, &stop);
                scope.spawn(move || {
                    for i in 0..each {
                        let io = io(4096 * (i % 4 + lane as u64 % 2));
                        assert!(gate.enter(Some(io), stop));
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        gate.leave(Some(io), Some(1000));
                    }
                    gate.retire();
                });
            }
        });
        most.into_inner()
    }

    #[test]
    fn who_asks_for_nothing_has_no_gate() {
        assert!(Gate::new(&job(""), 8).is_none());
        assert!(Gate::new(&job("iodepth_batch=4\nserialize_overlap=1"), 1).is_none());
        assert!(Gate::new(&job("latency_target=1ms"), 1).is_some());
    }

    #[test]
    fn batches_go_in_and_come_out_as_large_as_asked_for() {
        let text = "iodepth_batch=4\niodepth_batch_complete=4\niodepth_low=4";
        let gate = Arc::new(Gate::new(&job(text), 8).unwrap());
        assert!(storm(&gate, 8, 200) <= 8);
        let (submit, complete) = gate.batches();
        // 4 is the second of the sizes told apart; the lanes that end last go alone.
        let share = |c: &DepthCounts| c.counts[1] as f64 / c.total as f64;
        assert!(submit.counts[1] > 0 && complete.total > 0, "{submit:?}");
        assert!(share(&submit) > 0.5, "{submit:?}");
    }

    #[test]
    fn no_more_come_out_at_a_time_than_the_most() {
        // The queue drains from 8 to 1, so that 7 come out: as 4 and 3, and not at once.
        let text = "iodepth_low=1\niodepth_batch_complete_min=2\niodepth_batch_complete_max=4";
        let gate = Gate::new(&job(text), 8).unwrap();
        let stop = Stop::default();
        let ios: Vec<Io> = (0..8).map(|i| io(4096 * i)).collect();
        for io in &ios {
            assert!(gate.enter(Some(*io), &stop));
        }
        for io in &ios[..7] {
            gate.leave(Some(*io), None);
        }
        let (_, complete) = gate.batches();
        // Up to four are one size, up to eight the next.
        assert_eq!((complete.total, complete.counts[2]), (2, 0), "{complete:?}");
        let all = Gate::new(&job("iodepth_low=1\niodepth_batch_complete_max=8"), 8).unwrap();
        for io in &ios {
            assert!(all.enter(Some(*io), &stop));
        }
        for io in &ios[..7] {
            all.leave(Some(*io), None);
        }
        let (_, complete) = all.batches();
        assert_eq!((complete.total, complete.counts[2]), (1, 1), "{complete:?}");
    }

    #[test]
    fn ios_of_the_same_bytes_wait_for_each_other() {
        let gate = Gate::new(&job("serialize_overlap=1"), 8).unwrap();
        let stop = Stop::default();
        assert!(gate.enter(Some(io(0)), &stop) && gate.enter(Some(io(4096)), &stop));
        stop.now();
        assert!(!gate.enter(Some(io(2048)), &stop), "two are in the way");
        gate.leave(Some(io(0)), None);
        assert!(!gate.enter(Some(io(2048)), &stop));
        gate.leave(Some(io(4096)), None);
        assert!(gate.enter(Some(io(2048)), &stop));
    }

    #[test]
    fn no_more_are_inside_than_the_limit_says() {
        let gate = Arc::new(Gate::new(&job("latency_target=1us"), 8).unwrap());
        assert_eq!(storm(&gate, 8, 50), 1);
        assert_eq!(gate.take_window(), (400, 0));
    }

    /// The depth found when latencies grow with it, and how many windows that took.
    fn search(deepest: usize, keeps: usize) -> (Found, usize) {
        let mut search = Search::new(&job("latency_target=1ms\nlatency_percentile=90"), deepest);
        let search = search.as_mut().unwrap();
        for windows in 1..50 {
            let over = if search.depth() <= keeps { 10 } else { 11 };
            match search.judge(100, over) {
                Found::Try(depth) => assert!((1..=deepest).contains(&depth)),
                found => return (found, windows),
            }
        }
        panic!("no end");
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_latency_is_found() {
        for deepest in [1, 2, 7, 64, 100] {
            for keeps in 1..=deepest {
                let (found, windows) = search(deepest, keeps);
                assert_eq!(found, Found::Depth(keeps), "of {deepest}");
                assert!(windows <= 14, "{windows}");
            }
            assert_eq!(search(deepest, 0).0, Found::Nothing);
        }
    }
}
