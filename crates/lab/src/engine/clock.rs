//! Which I/Os are timed, and with what.
//!
//! The clock is the processor's time stamp counter where it runs at one rate whatever the processor does, and
//! where two calibrations against the system's clock agree; it costs less than half of a call for the system's
//! monotonic clock, which stands in everywhere else. The counter is read without a fence, as fio reads it: a
//! fence would wait for all bytes of a copy and keep the next one from beginning.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fastrand::Rng;

/// How far two calibrations may be apart.
const AGREE: f64 = 1e-3;

/// What tells the time of an I/O.
#[derive(Debug, Clone)]
pub(crate) enum Watch {
    /// The processor's counter.
    Counter(quanta::Clock),
    /// The system's monotonic clock, since this moment.
    System(Instant),
}

impl Watch {
    /// The best that there is here; looked for once in a process.
    pub(crate) fn get() -> &'static Self {
        static WATCH: OnceLock<Watch> = OnceLock::new();
        WATCH.get_or_init(|| match counter() {
            Some(clock) => Self::Counter(clock),
            None => Self::System(Instant::now()),
        })
    }

    /// What it is called in a report.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Counter(_) => "tsc, calibrated",
            Self::System(_) => "monotonic",
        }
    }

    /// Now, in a unit of its own.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        match self {
            Self::Counter(clock) => clock.raw(),
            Self::System(base) => nanos(base.elapsed()),
        }
    }

    /// Nanoseconds since a mark.
    #[inline]
    pub(crate) fn since(&self, mark: u64) -> u64 {
        match self {
            Self::Counter(clock) => clock.delta_as_nanos(mark, clock.raw()),
            Self::System(base) => nanos(base.elapsed()).saturating_sub(mark),
        }
    }

    /// What one look costs here, in nanoseconds.
    pub(crate) fn cost(&self) -> f64 {
        const LOOKS: u32 = 2000;
        let began = Instant::now();
        for _ in 0..LOOKS {
            std::hint::black_box(self.mark());
        }
        began.elapsed().as_secs_f64() * 1e9 / f64::from(LOOKS)
    }
}

// 2^64 ns are 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The counter, if it is a clock.
fn counter() -> Option<quanta::Clock> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    if !is_steady(&info) {
        return None;
    }
    let clock = quanta::Clock::new();
    // A thread that loses its processor between two looks spoils a calibration, not the counter.
    let agrees = (0..5).any(|_| {
        let [a, b] = [(); 2].map(|()| calibrate(&clock));
        (a / b - 1.0).abs() < AGREE && (a - 1.0).abs() < AGREE
    });
    agrees.then_some(clock)
}

/// Whether the counter of every processor runs on at one rate.
fn is_steady(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("flags"))
        .peekable();
    flags.peek().is_some()
        && flags.all(|line| {
            let has = |flag| line.split_whitespace().any(|word| word == flag);
            has("constant_tsc") && has("nonstop_tsc")
        })
}

/// Nanoseconds by the counter for one by the system.
fn calibrate(clock: &quanta::Clock) -> f64 {
    let (began, mark) = (Instant::now(), clock.raw());
    while began.elapsed() < Duration::from_millis(1) {
        std::hint::spin_loop();
    }
    let (system, counter) = (began.elapsed(), clock.raw());
    clock.delta_as_nanos(mark, counter) as f64 / nanos(system).max(1) as f64
}

/// Times all, none, or one in so many I/Os.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// No I/O: two reads of the clock cost more than a null I/O itself.
    Off,
    /// Every I/O.
    Every,
    /// One in `n` on average, at random distances, so that a workload with a period is not seen at one phase of
    /// it only.
    Sampled { n: u32, left: u32, rng: Rng },
}

impl Clock {
    pub(crate) fn new(on: bool, sample: u32, seed: u64) -> Self {
        match (on, sample) {
            (false, _) => Self::Off,
            (true, 0 | 1) => Self::Every,
            (true, n) => {
                let mut rng = Rng::with_seed(seed);
                let left = rng.u32(0..n);
                Self::Sampled { n, left, rng }
            }
        }
    }

    /// Whether the next I/O is timed.
    #[inline]
    pub(crate) fn due(&mut self) -> bool {
        match self {
            Self::Off => false,
            Self::Every => true,
            Self::Sampled { left, .. } if *left > 0 => {
                *left -= 1;
                false
            }
            Self::Sampled { n, left, rng } => {
                // From 0 to 2n - 2 others until the next: n - 1 on average.
                *left = rng.u32(0..2 * *n - 1);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_on_average_and_at_no_fixed_distance() {
        let mut clock = Clock::new(true, 64, 3);
        let timed: Vec<u32> = (0..640_000).filter(|_| clock.due()).collect();
        assert!((9500..10_500).contains(&timed.len()), "{}", timed.len());
        let odd = timed.iter().filter(|i| *i % 2 == 1).count();
        assert!((0.45..0.55).contains(&(odd as f64 / timed.len() as f64)));
        assert!(Clock::new(true, 1, 0).due() && !Clock::new(false, 64, 0).due());
    }

    #[test]
    fn both_watches_tell_the_time() {
        let system = Watch::System(Instant::now());
        for watch in [Watch::get(), &system] {
            let (began, mark) = (Instant::now(), watch.mark());
            std::thread::sleep(Duration::from_millis(20));
            let (by_watch, by_system) = (watch.since(mark), nanos(began.elapsed()));
            // Looked at one after the other, so that the first is never more, but for the calibration.
            assert!(by_watch >= 19_900_000, "{by_watch}");
            assert!(
                by_watch as f64 <= by_system as f64 * 1.002,
                "{by_watch} {by_system}"
            );
            assert!(watch.cost() > 0.0 && !watch.name().is_empty());
        }
    }

    #[test]
    fn a_counter_that_may_stop_is_no_clock() {
        assert!(is_steady(
            "flags\t: fpu constant_tsc nonstop_tsc\nflags\t: constant_tsc nonstop_tsc\n"
        ));
        assert!(!is_steady(
            "flags\t: constant_tsc nonstop_tsc\nflags\t: constant_tsc\n"
        ));
        assert!(!is_steady("Features : fp asimd\n") && !is_steady(""));
    }
}
