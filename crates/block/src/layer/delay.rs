//! `delay`: requests take longer.
//!
//! The time of a request depends on the seed and on its number alone, so a run repeats. It sleeps
//! first and spins for the last part, since a sleep ends late by the timer's slack (50 us on Linux).

use std::any::Any;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{mix, unit};
use crate::spec::units::print_time;
use crate::{
    BlockDevice, Caps, Device, Node, Param, ParamKind, Registry, ReqFlags, Result, Shape, Stats,
    forward,
};

cairn_percpu::counter_group! {
    struct Counts { delayed, asked_ns, achieved_ns }
}

/// How the times of requests are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// The given time, and the p99 time for one request in a hundred.
    #[default]
    TwoPoint,
    /// The given time always.
    Fixed,
    /// Exponential with the given mean.
    Exp,
    /// Log-normal with the given median and p99.
    LogNormal,
}

impl Distribution {
    const NAMES: &'static [&'static str] = &["two-point", "fixed", "exp", "lognormal"];

    fn parse(name: &str) -> Self {
        match name {
            "fixed" => Self::Fixed,
            "exp" => Self::Exp,
            "lognormal" => Self::LogNormal,
            _ => Self::TwoPoint,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TwoPoint => "two-point",
            Self::Fixed => "fixed",
            Self::Exp => "exp",
            Self::LogNormal => "lognormal",
        }
    }
}

/// Times that a [`Delay`] adds. Zero adds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DelayTimes {
    /// Reads.
    pub read: Duration,
    /// Writes and zeroing.
    pub write: Duration,
    /// Flushes.
    pub flush: Duration,
    /// Discards.
    pub discard: Duration,
    /// p99 of reads.
    pub read_p99: Duration,
    /// p99 of writes.
    pub write_p99: Duration,
}

const FIELDS: [&str; 6] = ["read", "write", "flush", "discard", "read_p99", "write_p99"];

impl DelayTimes {
    fn to_array(self) -> [Duration; 6] {
        [
            self.read,
            self.write,
            self.flush,
            self.discard,
            self.read_p99,
            self.write_p99,
        ]
    }
}

/// A layer that makes requests take longer. The times can be changed while requests run.
pub struct Delay {
    below: Device,
    times: [AtomicU64; 6],
    dist: Distribution,
    seed: u64,
    /// Who looks at a plan does not wait for what is read meanwhile, as a partition table.
    planned: bool,
    requests: AtomicU64,
    counts: Counts,
    id: Option<Box<str>>,
}

/// Index of an operation's time, and of its p99 if it has one.
#[derive(Clone, Copy)]
enum Which {
    Read,
    Write,
    Flush,
    Discard,
}

impl Delay {
    /// Over `below`, adding nothing yet.
    pub fn new(below: Device) -> Self {
        Self {
            below,
            times: Default::default(),
            dist: Distribution::TwoPoint,
            seed: 0,
            planned: false,
            requests: AtomicU64::new(0),
            counts: Counts::new(),
            id: None,
        }
    }

    /// Adding these times.
    #[must_use]
    pub fn with_times(self, times: DelayTimes) -> Self {
        self.set_times(times);
        self
    }

    /// Spread like this.
    #[must_use]
    pub const fn with_distribution(mut self, dist: Distribution) -> Self {
        self.dist = dist;
        self
    }

    /// With this seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    crate::layer::with_id!();

    /// Changes the times for the requests that begin from now on.
    pub fn set_times(&self, times: DelayTimes) {
        for (slot, time) in self.times.iter().zip(times.to_array()) {
            let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            slot.store(ns, Ordering::Relaxed);
        }
    }

    /// The times as they are now.
    pub fn times(&self) -> DelayTimes {
        let [read, write, flush, discard, read_p99, write_p99] = self
            .times
            .each_ref()
            .map(|t| Duration::from_nanos(t.load(Ordering::Relaxed)));
        DelayTimes {
            read,
            write,
            flush,
            discard,
            read_p99,
            write_p99,
        }
    }

    fn before(&self, which: Which) {
        let [read, write, flush, discard, read_p99, write_p99] = &self.times;
        let (usual, p99) = match which {
            Which::Read => (read, Some(read_p99)),
            Which::Write => (write, Some(write_p99)),
            Which::Flush => (flush, None),
            Which::Discard => (discard, None),
        };
        let usual = usual.load(Ordering::Relaxed);
        let p99 = p99.map_or(0, |t| t.load(Ordering::Relaxed));
        if (usual == 0 && p99 == 0) || self.planned {
            return;
        }
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let ns = draw(self.dist, usual, p99, mix(self.seed, n));
        if ns == 0 {
            return;
        }
        let took = wait(Duration::from_nanos(ns));
        self.counts.delayed().inc();
        self.counts.asked_ns().add(ns);
        self.counts.achieved_ns().add(took);
    }
}

/// 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874;

fn draw(dist: Distribution, usual: u64, p99: u64, word: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that is clamped to the range of u64 by the cast; never negative"
    )]
    let whole = |ns: f64| ns as u64;
    match dist {
        Distribution::TwoPoint if p99 > 0 && word.is_multiple_of(100) => p99,
        Distribution::TwoPoint | Distribution::Fixed => usual,
        Distribution::Exp => whole(-(1.0 - unit(word)).ln() * usual as f64),
        Distribution::LogNormal => {
            let median = usual.max(1) as f64;
            let sigma = (p99.max(usual).max(1) as f64 / median).ln() / Z99;
            // Box-Muller: a normal number from two uniform ones.
            let radius = (-2.0 * (1.0 - unit(word)).ln()).sqrt();
            let turn = std::f64::consts::TAU * unit(mix(word, 1));
            whole(median * (sigma * radius * turn.cos()).exp())
        }
    }
}

/// What is left to spin: more than the timer's slack.
const SPIN: Duration = Duration::from_micros(80);

pub(crate) fn wait(time: Duration) -> u64 {
    let start = Instant::now();
    if let Some(sleep) = time.checked_sub(SPIN) {
        std::thread::sleep(sleep);
    }
    loop {
        let took = start.elapsed();
        if took >= time {
            return u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        }
        std::hint::spin_loop();
    }
}

impl BlockDevice for Delay {
    forward!(below: info extents resize snapshot children cache);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.before(Which::Read);
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.before(Which::Write);
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.before(Which::Flush);
        self.below.flush()
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before(Which::Discard);
        self.below.discard(range, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before(Which::Write);
        self.below.write_zeroes(range, flags)
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("delayed", self.counts.delayed().sum())
            .nanos("delay_asked", self.counts.asked_ns().sum())
            .nanos("delay_achieved", self.counts.achieved_ns().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would not be delayed")]
    }

    fn describe(&self) -> Node {
        let mut node = Node::new("delay");
        for (key, time) in FIELDS.iter().zip(self.times().to_array()) {
            node = node.opt_arg(key, (!time.is_zero()).then(|| print_time(time)));
        }
        if self.dist != Distribution::TwoPoint {
            node = node.arg("dist", self.dist.name());
        }
        if self.seed != 0 {
            node = node.arg("seed", self.seed);
        }
        node.with_id(self.id.as_deref())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[
    Param::new("read", ParamKind::Time, "added to reads").or("0"),
    Param::new("write", ParamKind::Time, "added to writes and zeroing").or("0"),
    Param::new("flush", ParamKind::Time, "added to flushes").or("0"),
    Param::new("discard", ParamKind::Time, "added to discards").or("0"),
    Param::new("p99", ParamKind::Time, "p99 of reads and writes"),
    Param::new("read_p99", ParamKind::Time, "p99 of reads").or("0"),
    Param::new("write_p99", ParamKind::Time, "p99 of writes").or("0"),
    Param::new(
        "dist",
        ParamKind::Choice(Distribution::NAMES),
        "how times are spread",
    )
    .or("two-point"),
    Param::new("seed", ParamKind::Count, "seed of the spread").or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "delay",
        "makes requests take longer",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let time = |key| args.time(key).unwrap_or_default();
            let p99 = args.time("p99");
            let p99_of = |key| match p99 {
                Some(both) if !args.explicit(key) => both,
                _ => time(key),
            };
            let times = DelayTimes {
                read: time("read"),
                write: time("write"),
                flush: time("flush"),
                discard: time("discard"),
                read_p99: p99_of("read_p99"),
                write_p99: p99_of("write_p99"),
            };
            for (op, usual, slow) in [
                ("read", times.read, times.read_p99),
                ("write", times.write, times.write_p99),
            ] {
                let own = format!("{op}_p99");
                if !slow.is_zero() && slow < usual {
                    let key = if args.explicit(&own) { &own } else { "p99" };
                    return Err(args.refuse(
                        key,
                        format!(
                            "{slow:?} is less than {op}={usual:?}, but of all {op}s only one in a hundred \
                             takes longer than the 99th percentile; give at least {usual:?}, or leave it out"
                        ),
                    ).into());
                }
            }
            let mut delay = Delay::new(site.below()?)
                .with_times(times)
                .with_distribution(Distribution::parse(args.text("dist").unwrap_or_default()))
                .with_seed(args.number("seed").unwrap_or(0))
                .with_id(args.id());
            delay.planned = site.planning();
            Ok(Arc::new(delay))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(dist: Distribution, usual: u64, p99: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..20_000)
            .map(|n| draw(dist, usual, p99, mix(7, n)))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_percentile_below_the_usual_time_is_refused() {
        let registry = Registry::new();
        let said = |spec: &str| registry.open(spec).err().map(|e| e.to_string());
        let both = said("delay(read=50us,write=1ms,p99=400us)/null(1m)").unwrap();
        assert!(both.contains("p99") && both.contains("write=1ms"), "{both}");
        let own = said("delay(read=50us,read_p99=10us)/null(1m)").unwrap();
        assert!(own.contains("read_p99") && own.contains("50"), "{own}");
        assert_eq!(said("delay(read=50us,p99=50us)/null(1m)"), None);
        assert_eq!(said("delay(read=50us)/null(1m)"), None);
    }

    #[test]
    fn two_point_takes_one_in_a_hundred() {
        let slow = sorted(Distribution::TwoPoint, 50, 400)
            .iter()
            .filter(|t| **t == 400)
            .count();
        assert!((150..=250).contains(&slow), "{slow} of 20000");
        assert!(
            sorted(Distribution::TwoPoint, 50, 0)
                .iter()
                .all(|t| *t == 50)
        );
    }

    #[test]
    fn the_others_have_their_middles() {
        assert!(
            sorted(Distribution::Fixed, 50, 400)
                .iter()
                .all(|t| *t == 50)
        );
        let exp = sorted(Distribution::Exp, 1000, 0);
        let mean = exp.iter().sum::<u64>() / exp.len() as u64;
        assert!((950..1050).contains(&mean), "mean {mean}");
        let log = sorted(Distribution::LogNormal, 1000, 5000);
        assert!((950..1050).contains(&log[10_000]), "median {}", log[10_000]);
        assert!((4500..5600).contains(&log[19_800]), "p99 {}", log[19_800]);
    }
}
