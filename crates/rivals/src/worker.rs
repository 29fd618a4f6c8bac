//! The threads that run the arms, and one sample of one arm.
//!
//! A sample goes: all threads meet, two of them play ping-pong, they meet again, each repeats a
//! chunk of operations until the sample's time is over, and goes on untimed until the others are
//! done too, so that every timed operation had its company; then ping-pong again. A chunk takes
//! about 20 us, so that looking at the clock costs nothing beside it.

use std::collections::HashMap;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::system;

/// An arm: does `n` operations as thread number `thread`.
pub(crate) type Work = Arc<dyn Fn(usize, u64) + Send + Sync>;

/// How far two CPUs are apart, judged by the time a cache line takes there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// One thread, or more than two: nothing to tell.
    Any,
    /// A round trip below 200 ns: a common cache.
    Near,
    /// A longer round trip.
    Far,
}

impl Placement {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    fn of(round_trip: Duration) -> Self {
        if round_trip < Duration::from_nanos(200) {
            Self::Near
        } else {
            Self::Far
        }
    }
}

/// What all threads of one sample share.
struct Meeting {
    threads: usize,
    arrived: [AtomicUsize; 4],
    done: AtomicUsize,
    ball: Line,
}

#[repr(align(128))]
struct Line(AtomicU32);

impl Meeting {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: [const { AtomicUsize::new(0) }; 4],
            done: AtomicUsize::new(0),
            ball: Line(AtomicU32::new(0)),
        }
    }

    fn all_at(&self, count: &AtomicUsize) {
        count.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while count.load(Ordering::Acquire) < self.threads {
            spins += 1;
            if spins.is_multiple_of(1 << 14) {
                // Threads may outnumber CPUs.
                thread::yield_now();
            }
            hint::spin_loop();
        }
    }

    /// The mean time of a round trip; the two players call it at once.
    fn ping_pong(&self, player: u32) -> Duration {
        const ROUNDS: u32 = 64;
        let ball = &self.ball.0;
        let first = ball.load(Ordering::Relaxed);
        // Both start from the value that the last game left, a multiple of 2 * ROUNDS.
        let first = first - first % (2 * ROUNDS);
        let start = Instant::now();
        for round in 0..ROUNDS {
            let mine = first + 2 * round + player;
            while ball.load(Ordering::Acquire) != mine {
                hint::spin_loop();
            }
            ball.store(mine + 1, Ordering::Release);
        }
        start.elapsed() / ROUNDS
    }
}

struct Job {
    arm: usize,
    work: Work,
    meeting: Arc<Meeting>,
    time: Duration,
    thread: usize,
    /// No more threads than CPUs.
    roomy: bool,
    real_time: bool,
}

/// What one thread saw of one sample.
struct Seen {
    thread: usize,
    ns_per_op: f64,
    switches: u64,
    round_trips: Option<[Duration; 2]>,
}

/// One sample of one arm.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Nanoseconds per operation of each thread.
    pub(crate) ns_per_op: Vec<f64>,
    /// A thread lost its CPU meanwhile, or the two CPUs moved: not to be used.
    pub(crate) disturbed: bool,
    pub(crate) placement: Placement,
    /// Mean round trip of two threads.
    pub(crate) round_trip: Option<Duration>,
}

/// The pinned threads.
pub(crate) struct Pool {
    jobs: Vec<Sender<Job>>,
    seen: Receiver<Seen>,
    threads: Vec<thread::JoinHandle<()>>,
    pub(crate) cpus: usize,
    pub(crate) pinned: bool,
    pub(crate) real_time: bool,
}

impl Pool {
    pub(crate) fn new(threads: usize) -> Self {
        let cpus = system::cpus();
        let (tell, seen) = channel();
        let (ready, is_ready) = channel();
        let (jobs, handles) = (0..threads)
            .map(|i| {
                let (give, jobs) = channel();
                let (tell, ready) = (tell.clone(), ready.clone());
                let cpu = cpus.get(i % cpus.len().max(1)).copied();
                let handle = thread::spawn(move || {
                    let pinned = cpu.is_some_and(system::pin);
                    let real_time = system::real_time(true);
                    system::real_time(false);
                    let _ = ready.send((pinned, real_time));
                    // The others would wait for this thread forever; the panic has been reported.
                    if catch_unwind(AssertUnwindSafe(|| serve(&jobs, &tell))).is_err() {
                        std::process::abort();
                    }
                });
                (give, handle)
            })
            .unzip();
        let (pinned, real_time) = is_ready
            .iter()
            .take(threads)
            .fold((true, true), |all, one| (all.0 && one.0, all.1 && one.1));
        Self {
            jobs,
            seen,
            threads: handles,
            cpus: cpus.len(),
            pinned,
            real_time,
        }
    }

    /// Runs one sample on the first `threads` threads.
    pub(crate) fn sample(&self, arm: usize, work: &Work, threads: usize, time: Duration) -> Sample {
        let crowded = threads > self.cpus;
        let meeting = Arc::new(Meeting::new(threads));
        for (thread, jobs) in self.jobs.iter().enumerate().take(threads) {
            jobs.send(Job {
                arm,
                work: Arc::clone(work),
                meeting: Arc::clone(&meeting),
                time,
                thread,
                roomy: !crowded,
                // More real-time threads than CPUs would wait for each other forever.
                real_time: self.real_time && !crowded,
            })
            .expect("workers live as long as the pool");
        }
        let mut seen: Vec<Seen> = self.seen.iter().take(threads).collect();
        seen.sort_by_key(|s| s.thread);
        let trips = seen.iter().find_map(|s| s.round_trips);
        let placements = trips.map(|trips| trips.map(Placement::of));
        let switched = !crowded && seen.iter().any(|s| s.switches > 0);
        Sample {
            ns_per_op: seen.iter().map(|s| s.ns_per_op).collect(),
            disturbed: switched || placements.is_some_and(|[before, after]| before != after),
            placement: placements.map_or(Placement::Any, |[before, _]| before),
            round_trip: trips.map(|[before, after]| (before + after) / 2),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

fn serve(jobs: &Receiver<Job>, tell: &Sender<Seen>) {
    let mut chunks = HashMap::new();
    for job in jobs {
        if job.real_time {
            system::real_time(true);
        }
        let chunk = chunks.entry((job.arm, job.meeting.threads)).or_insert(0);
        let seen = run(&job, chunk);
        if job.real_time {
            system::real_time(false);
        }
        // Drop what the arm holds before the harness goes on.
        drop(job);
        if tell.send(seen).is_err() {
            return;
        }
    }
}

fn run(job: &Job, chunk: &mut u64) -> Seen {
    let meeting = &*job.meeting;
    let [met, ready, start, end] = &meeting.arrived;
    let two = meeting.threads == 2 && job.roomy;
    let player = u32::from(job.thread == 1);

    meeting.all_at(met);
    if *chunk == 0 {
        *chunk = calibrate(job);
    }
    meeting.all_at(ready);
    let before = two.then(|| meeting.ping_pong(player));
    meeting.all_at(start);

    let switches = system::context_switches();
    let began = Instant::now();
    let mut ops = 0;
    let elapsed = loop {
        (job.work)(job.thread, *chunk);
        ops += *chunk;
        let elapsed = began.elapsed();
        if elapsed >= job.time {
            break elapsed;
        }
    };
    let switches = system::context_switches() - switches;
    meeting.done.fetch_add(1, Ordering::AcqRel);
    while meeting.done.load(Ordering::Acquire) < meeting.threads {
        (job.work)(job.thread, *chunk);
        if meeting.threads > 2 {
            thread::yield_now();
        }
    }

    meeting.all_at(end);
    let after = two.then(|| meeting.ping_pong(player));
    let ns_per_op = elapsed.as_nanos() as f64 / ops as f64;
    *chunk = chunk_for(ns_per_op);
    Seen {
        thread: job.thread,
        ns_per_op,
        switches,
        round_trips: before.zip(after).map(|(before, after)| [before, after]),
    }
}

/// Time of a chunk.
const CHUNK: Duration = Duration::from_micros(20);

/// Operations that take about [`CHUNK`]: a multiple of 8.
fn chunk_for(ns_per_op: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float beyond u64 saturates, and min takes care of the rest"
    )]
    let ops = (CHUNK.as_nanos() as f64 / ns_per_op) as u64;
    (ops.min(1 << 30) / 8 * 8).max(8)
}

/// A first guess at [`chunk_for`]; it also warms caches and branch predictors.
fn calibrate(job: &Job) -> u64 {
    let mut n = 8;
    loop {
        let start = Instant::now();
        (job.work)(job.thread, n);
        if start.elapsed() >= CHUNK || n >= 1 << 30 {
            return n;
        }
        n *= 2;
    }
}
