//! When the I/Os of a job with a rate are meant to start, and the pauses of one that thinks.
//!
//! The schedule is made ahead, from the rate and the seed alone. An I/O that starts late because the one before
//! it was slow keeps its place, so that its response time, taken from the intended start, holds the wait too.

use std::time::{Duration, Instant};

use cairn_fio::job::{Ddir, Job, RateProcess};
use fastrand::Rng;

use super::generate::{Io, mix};
use super::run::Stop;

/// Longest sleep between two looks at whether to stop.
const NAP: Duration = Duration::from_millis(20);

/// The kernel wakes a sleeper about this late, so the rest of a wait is spent spinning.
const WAKE: Duration = Duration::from_micros(80);

/// Intended starts of one job.
#[derive(Debug)]
pub(crate) struct Schedule {
    began: Option<Instant>,
    dirs: [Option<Rate>; 3],
    rng: Option<Rng>,
}

/// The rate of a direction.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// Nanoseconds of a byte, or of an I/O whatever its length.
    per: Per,
    /// Intended start of the next one, in nanoseconds since the start.
    next: f64,
}

#[derive(Debug, Clone, Copy)]
enum Per {
    Byte(f64),
    Io(f64),
}

impl Schedule {
    /// The schedule of a job, if it has a rate.
    pub(crate) fn new(job: &Job, seed: u64) -> Option<Self> {
        let pace = &job.pace;
        if !pace.is_rated() {
            return None;
        }
        let dirs = Ddir::ALL.map(|dir| {
            let bytes = pace.rate.get(dir).filter(|n| *n > 0);
            let ios = pace.rate_iops.get(dir).filter(|n| *n > 0);
            let per = match (bytes, ios) {
                (_, Some(ios)) => Per::Io(1e9 / f64::from(ios)),
                (Some(bytes), None) => Per::Byte(1e9 / bytes as f64),
                (None, None) => return None,
            };
            Some(Rate { per, next: 0.0 })
        });
        let poisson = pace.process == RateProcess::Poisson;
        Some(Self {
            began: None,
            dirs,
            rng: poisson.then(|| Rng::with_seed(mix(seed, 0x9a7e, 0))),
        })
    }

    /// When the next I/O is meant to start; `None` for a direction without a rate.
    pub(crate) fn at(&mut self, io: &Io) -> Option<Instant> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let rate = self.dirs.get_mut(io.dir)?.as_mut()?;
        let at = began + Duration::from_nanos(whole(rate.next));
        let gap = match rate.per {
            Per::Byte(ns) => ns * io.len as f64,
            Per::Io(ns) => ns,
        };
        rate.next += match &mut self.rng {
            // Exponential gaps of the same mean; 1 - u is never 0.
            Some(rng) => -gap * (1.0 - rng.f64()).ln(),
            None => gap,
        };
        Some(at)
    }

    /// What is still to come moves by this much.
    pub(crate) fn delay(&mut self, by: Duration) {
        if let Some(began) = &mut self.began {
            *began += by;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and the cast saturates"
)]
fn whole(ns: f64) -> u64 {
    ns as u64
}

/// Waits until the time has come; false if somebody said stop before.
pub(crate) fn wait_until(at: Instant, stop: &Stop) -> bool {
    loop {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if stop.asked() {
            return false;
        }
        match left.checked_sub(WAKE) {
            Some(nap) if !nap.is_zero() => std::thread::sleep(nap.min(NAP)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Pauses between I/Os.
#[derive(Debug, Clone)]
pub(crate) struct Think {
    pause: Duration,
    /// The part of it spent spinning.
    spin: Duration,
    /// After so many I/Os.
    blocks: u32,
    done: u32,
    /// After so much time of I/O instead.
    after: Option<Duration>,
    since: Option<Instant>,
    /// A rate is not made up for.
    ignored: bool,
}

impl Think {
    /// The pauses of a job, if it has some.
    pub(crate) fn new(job: &Job) -> Option<Self> {
        let pace = &job.pace;
        (!pace.thinktime.is_zero()).then(|| Self {
            pause: pace.thinktime,
            spin: pace.thinktime_spin.min(pace.thinktime),
            blocks: pace.thinktime_blocks.max(1),
            done: 0,
            after: Some(pace.thinktime_iotime).filter(|t| !t.is_zero()),
            since: None,
            ignored: pace.ignore_thinktime,
        })
    }

    /// After an I/O: thinks if it is time to. The pause, where the rate is not to make up for it.
    pub(crate) fn after_io(&mut self, stop: &Stop) -> Option<Duration> {
        self.done += 1;
        let due = match self.after {
            Some(after) => self.since.get_or_insert_with(Instant::now).elapsed() >= after,
            None => self.done >= self.blocks,
        };
        if !due {
            return None;
        }
        self.done = 0;
        let began = Instant::now();
        let end = began + self.pause;
        while Instant::now() < began + self.spin && !stop.asked() {
            std::hint::spin_loop();
        }
        while !stop.asked() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        self.since = None;
        self.ignored.then(|| began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> Option<Schedule> {
        let plan = cairn_fio::parse_job_text("t", &format!("[j]\nsize=1m\n{text}\n")).unwrap();
        Schedule::new(&plan.jobs[0], 1)
    }

    fn io(dir: usize) -> Io {
        Io {
            dir,
            region: 0,
            offset: 0,
            len: 4096,
        }
    }

    fn starts(schedule: &mut Schedule, dir: usize, n: usize) -> Vec<f64> {
        let all: Vec<_> = (0..n).map(|_| schedule.at(&io(dir)).unwrap()).collect();
        all.iter()
            .map(|at| at.duration_since(all[0]).as_secs_f64())
            .collect()
    }

    #[test]
    fn starts_keep_their_distance() {
        let mut s = schedule("rw=randrw\nrate_iops=1000,500").unwrap();
        let reads = starts(&mut s, 0, 3);
        assert!((reads[2] - 0.002).abs() < 1e-6);
        let writes = starts(&mut s, 1, 3);
        assert!((writes[2] - 0.004).abs() < 1e-6);
        let mut s = schedule("rate=4m").unwrap();
        let reads = starts(&mut s, 0, 1025);
        assert!((reads[1024] - 1.0).abs() < 1e-6, "{}", reads[1024]);
        assert!(schedule("rw=read").is_none());
        let mut s = schedule("rw=randrw\nrate_iops=100,").unwrap();
        assert!(s.at(&io(2)).is_none() || s.dirs[2].is_some());
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_one() {
        let mut s = schedule("rate_iops=1000\nrate_process=poisson").unwrap();
        let starts = starts(&mut s, 0, 20_001);
        let gaps: Vec<f64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = crate::stats::variation(&gaps);
        assert!((mean - 0.001).abs() < 5e-5, "{mean}");
        assert!((deviation - 1.0).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn waits_end_when_somebody_says_stop() {
        let stop = Stop::default();
        assert!(wait_until(Instant::now(), &stop));
        stop.now();
        assert!(!wait_until(Instant::now() + Duration::from_hours(1), &stop));
    }
}
