//! Groups of arms, and the rounds that measure all of them in turn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::args::Options;
use crate::bar::Bar;
use crate::machine::Machine;
use crate::report;
use crate::stats::Spread;
use crate::worker::{Placement, Pool, Work};

/// One run of one bench: groups of arms, bars over their ratios, and a report.
///
/// ```no_run
/// use std::hint::black_box;
/// use std::process::ExitCode;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use cairn_rivals::{Bar, Bench, repeat8};
///
/// fn main() -> ExitCode {
///     Bench::main("example", |bench| {
///         static SHARED: AtomicU64 = AtomicU64::new(0);
///         bench
///             .group("add", &[1, 2])
///             .arm("load", |_thread, n| {
///                 for _ in 0..n / 8 {
///                     repeat8!(black_box(SHARED.load(Relaxed)));
///                 }
///             })
///             .arm("fetch_add", |_thread, n| {
///                 for _ in 0..n / 8 {
///                     repeat8!(SHARED.fetch_add(1, Relaxed));
///                 }
///             });
///         bench.bar(Bar::at_least("a load is 5 x faster", 5.0, "add", "fetch_add", "load"));
///     })
/// }
/// ```
pub struct Bench {
    name: String,
    options: Options,
    groups: Vec<Group>,
    bars: Vec<Bar>,
}

/// Arms that are compared with each other; the first is the base of the ratios.
pub struct Group {
    pub(crate) name: String,
    pub(crate) threads: Vec<usize>,
    pub(crate) arms: Vec<Arm>,
    /// Samples of this group are no longer than this.
    pub(crate) longest: Duration,
    sample: Option<Duration>,
}

pub(crate) struct Arm {
    pub(crate) name: String,
    work: Work,
    before: Option<Box<dyn Fn() + Send + Sync>>,
    /// Threads whose time counts; the others are company.
    measured: usize,
    id: usize,
    pub(crate) seen: BTreeMap<(usize, Placement), Vec<f64>>,
    pub(crate) dropped: BTreeMap<usize, usize>,
}

impl Arm {
    pub(crate) fn spread(&self, threads: usize, placement: Placement) -> Option<Spread> {
        Spread::of(self.seen.get(&(threads, placement))?)
    }
}

impl Group {
    /// Adds an arm: `work(thread, n)` does `n` operations, a multiple of 8, as thread number
    /// `thread` counted from 0. Its figure is the mean over the threads.
    pub fn arm(
        &mut self,
        name: &str,
        work: impl Fn(usize, u64) + Send + Sync + 'static,
    ) -> &mut Self {
        self.arms.push(Arm {
            name: name.into(),
            work: Arc::new(work),
            before: None,
            measured: usize::MAX,
            id: 0,
            seen: BTreeMap::new(),
            dropped: BTreeMap::new(),
        });
        self
    }

    /// Counts only the first `threads` threads of the arm added last; the others are company, as
    /// the writer beside a measured reader is.
    pub fn measure_first(&mut self, threads: usize) -> &mut Self {
        if let Some(arm) = self.arms.last_mut() {
            arm.measured = threads;
        }
        self
    }

    /// Makes the samples of this group no longer than `longest`, for arms that use up what
    /// [`before`](Self::before) prepared.
    pub fn at_most(&mut self, longest: Duration) -> &mut Self {
        self.longest = longest;
        self
    }

    /// Takes samples of this length in this group, unless the options ask for another: for arms that
    /// need a while to be as warm as they get.
    pub fn sample(&mut self, time: Duration) -> &mut Self {
        self.sample = Some(time);
        self
    }

    /// Runs `prepare`, untimed, before each sample of the arm added last.
    pub fn before(&mut self, prepare: impl Fn() + Send + Sync + 'static) -> &mut Self {
        if let Some(arm) = self.arms.last_mut() {
            arm.before = Some(Box::new(prepare));
        }
        self
    }
}

impl Bench {
    /// The whole of a bench's `main`: reads the arguments, lets `fill` add groups and bars, runs,
    /// prints the table and the JSON report.
    ///
    /// Exits with 0 also when a bar is missed, which the report says; 2 on bad arguments or when
    /// the report cannot be written.
    pub fn main(name: &str, fill: impl FnOnce(&mut Self)) -> ExitCode {
        let options = match Options::from_args() {
            Ok(options) => options,
            Err(message) => {
                let _ = writeln!(io::stderr(), "{name}: {message}");
                return ExitCode::from(2);
            }
        };
        let mut bench = Self::new(name, options);
        fill(&mut bench);
        match bench.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(io::stderr(), "{name}: report: {error}");
                ExitCode::from(2)
            }
        }
    }

    /// An empty bench.
    pub fn new(name: &str, options: Options) -> Self {
        Self {
            name: name.into(),
            options,
            groups: Vec::new(),
            bars: Vec::new(),
        }
    }

    /// The options of this run.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a group, measured with each of these numbers of threads.
    pub fn group(&mut self, name: &str, threads: &[usize]) -> &mut Group {
        self.groups.push(Group {
            name: name.into(),
            threads: threads.to_vec(),
            arms: Vec::new(),
            longest: Duration::MAX,
            sample: None,
        });
        let last = self.groups.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "one was just pushed")]
        &mut self.groups[last]
    }

    /// Adds a bar to be judged at the end.
    pub fn bar(&mut self, bar: Bar) -> &mut Self {
        self.bars.push(bar);
        self
    }

    /// Measures, prints the table and the JSON report on stdout, notes on stderr.
    ///
    /// # Errors
    /// When stdout or the JSON file cannot be written.
    pub fn run(mut self) -> io::Result<()> {
        if let Some(filter) = &self.options.filter {
            self.groups.retain(|g| g.name.contains(filter));
        }
        for (id, arm) in self.groups.iter_mut().flat_map(|g| &mut g.arms).enumerate() {
            arm.id = id;
        }
        let most = self.groups.iter().flat_map(|g| &g.threads).max();
        let pool = Pool::new(most.copied().unwrap_or(1));
        let machine = Machine::describe(pool.cpus, pool.pinned, pool.real_time);
        self.note_limits(&pool)?;
        let round_trips = self.measure(&pool);

        let mut out = String::new();
        let _ = writeln!(out, "{}: {}", self.name, machine.line());
        report::table(&mut out, &self.groups, &self.bars, &round_trips);
        let json = report::json(&self.name, &machine, &self.groups, &self.bars, &round_trips);
        io::stdout().lock().write_all(out.as_bytes())?;
        if let Some(file) = &self.options.json {
            std::fs::write(file, format!("{json:#}\n"))?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn into_groups(self) -> Vec<Group> {
        self.groups
    }

    /// Says what this machine does not give.
    fn note_limits(&self, pool: &Pool) -> io::Result<()> {
        let mut notes = io::stderr().lock();
        if !pool.pinned {
            writeln!(notes, "note: threads could not be pinned, they may move")?;
        }
        if !pool.real_time {
            writeln!(
                notes,
                "note: SCHED_FIFO is not permitted, more samples will be dropped"
            )?;
        }
        let crowded = |g: &&Group| g.threads.iter().any(|&t| t > pool.cpus);
        for group in self.groups.iter().filter(crowded) {
            writeln!(
                notes,
                "note: {}: more threads than the {} CPUs; context switches are kept",
                group.name, pool.cpus
            )?;
        }
        Ok(())
    }

    /// One sample of each arm per round, in another order each round, so that no arm always finds the
    /// caches that the same other one left. Returns the round trips of all pairs.
    fn measure(&mut self, pool: &Pool) -> Vec<f64> {
        let mut round_trips = Vec::new();
        for round in 0..self.options.rounds as usize {
            for group in &mut self.groups {
                for t in 0..group.threads.len() {
                    let threads = group.threads.get(t).copied().unwrap_or(1);
                    let wanted = match group.sample {
                        Some(time) if self.options.sample == Options::default().sample => time,
                        _ => self.options.sample,
                    };
                    let time = wanted.min(group.longest);
                    for i in order(group.arms.len(), round) {
                        if let Some(arm) = group.arms.get_mut(i) {
                            let trip = arm.sample(pool, threads, time);
                            round_trips.extend(trip);
                        }
                    }
                    // Leaves the CPUs to others in between.
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        }
        round_trips
    }
}

/// The numbers below `arms`, shuffled alike for the same round of every run.
fn order(arms: usize, round: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..arms).collect();
    let mut x = (round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for last in (1..arms).rev() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let other = usize::try_from(x % (last as u64 + 1)).unwrap_or(0);
        all.swap(last, other);
    }
    all
}

impl Arm {
    fn sample(&mut self, pool: &Pool, threads: usize, time: Duration) -> Option<f64> {
        if let Some(prepare) = &self.before {
            prepare();
        }
        let sample = pool.sample(self.id, &self.work, threads, time);
        if sample.disturbed {
            *self.dropped.entry(threads).or_default() += 1;
            return None;
        }
        let measured = sample.ns_per_op.len().min(self.measured);
        let sum: f64 = sample.ns_per_op.iter().take(measured).sum();
        self.seen
            .entry((threads, sample.placement))
            .or_default()
            .push(sum / measured as f64);
        sample.round_trip.map(|t| t.as_nanos() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_arm_in_an_order_of_its_own() {
        let rounds: Vec<Vec<usize>> = (0..60).map(|r| order(7, r)).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert!(rounds.windows(2).all(|w| w[0] != w[1]));
        assert!((0..7).all(|arm| rounds.iter().any(|r| r[0] == arm)));
        assert!(order(0, 0).is_empty() && order(1, 3) == [0]);
    }
}
