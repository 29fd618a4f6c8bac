//! Whether a job has become steady, as `steadystate` asks.
//!
//! Each second, or as often as the job says, one sample of IOPS and of bandwidth goes into a window. When the window is full, either every
//! sample must lie near their mean, or the straight line through them must be nearly flat.

use std::collections::VecDeque;
use std::time::Instant;

use cairn_fio::job::{SteadyLimit, SteadyMetric, SteadyState};
use cairn_fio::output::SteadyResult;

use crate::operations::Counts;

/// The watch over the jobs of one report.
#[derive(Debug, Clone)]
pub(crate) struct Steady {
    rule: SteadyState,
    /// Samples of a full window.
    len: usize,
    samples: VecDeque<(u64, u64)>,
    /// When the next sample ends.
    next: Option<Instant>,
    /// When the sample under way began, and what had been done then.
    begun: Option<(Instant, Counts)>,
    judged: Judged,
}

/// The window as it stands.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    attained: bool,
    criterion: f64,
    max_deviation: f64,
    slope: f64,
}

impl Steady {
    /// The watch that a job asks for, if it does.
    pub(crate) fn new(rule: SteadyState) -> Option<Self> {
        let len = rule.duration.as_nanos() / rule.interval.as_nanos().max(1);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        (len > 0).then(|| Self {
            rule,
            len,
            samples: VecDeque::new(),
            next: None,
            begun: None,
            judged: Judged::default(),
        })
    }

    /// When it wants to look again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next.filter(|_| !self.judged.attained)
    }

    /// Takes in what the jobs have done so far, all of them being measured; true when they have just become
    /// steady.
    pub(crate) fn look(&mut self, counts: Counts, now: Instant) -> bool {
        if self.judged.attained {
            return false;
        }
        match self.next {
            None => self.next = Some(now + self.rule.ramp),
            Some(at) if now < at => return false,
            Some(_) => {
                // The first one that is due only begins a sample.
                if let Some((since, before)) = self.begun.replace((now, counts)) {
                    let seconds = now.saturating_duration_since(since).as_secs_f64();
                    self.push(counts.since(before), seconds.max(1e-3));
                }
                self.next = Some(now + self.rule.interval);
            }
        }
        self.judged.attained
    }

    fn push(&mut self, done: Counts, seconds: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rates are not negative, and a float saturates"
        )]
        let rate = |n: u64| (n as f64 / seconds) as u64;
        if self.samples.len() >= self.len {
            self.samples.pop_front();
        }
        self.samples.push_back((rate(done.ops), rate(done.bytes)));
        if self.samples.len() >= self.len {
            self.judge();
        }
    }

    fn judge(&mut self) {
        use SteadyMetric::{Bw, BwSlope, Iops, IopsSlope};
        let metric = self.rule.metric;
        let values: Vec<f64> = self
            .samples
            .iter()
            .map(|(iops, bw)| match metric {
                Iops | IopsSlope => *iops as f64,
                Bw | BwSlope => *bw as f64,
            })
            .collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let off = values.iter().map(|y| (y - mean).abs());
        let max_deviation = off.fold(0.0, f64::max);
        let middle = (n - 1.0) / 2.0;
        let xs = || (0..values.len()).map(|x| x as f64 - middle);
        let spread: f64 = xs().map(|x| x * x).sum();
        let slope = if spread > 0.0 {
            xs().zip(&values).map(|(x, y)| x * y).sum::<f64>() / spread
        } else {
            0.0
        };
        let figure = match metric {
            Iops | Bw => max_deviation,
            IopsSlope | BwSlope => slope.abs(),
        };
        let (criterion, limit) = match self.rule.limit {
            SteadyLimit::Percent(limit) => (100.0 * figure / mean.max(f64::MIN_POSITIVE), limit),
            SteadyLimit::Absolute(limit) => (figure, limit),
        };
        self.judged = Judged {
            attained: mean > 0.0 && criterion < limit,
            criterion,
            max_deviation,
            slope,
        };
    }

    /// As fio reports it.
    pub(crate) fn result(&self) -> SteadyResult {
        let (limit, percent) = match self.rule.limit {
            SteadyLimit::Percent(limit) => (limit, true),
            SteadyLimit::Absolute(limit) => (limit, false),
        };
        let judged = self.judged;
        SteadyResult {
            metric: self.rule.metric,
            limit,
            duration_s: self.rule.duration.as_secs(),
            attained: judged.attained,
            criterion: judged.criterion,
            percent,
            max_deviation: judged.max_deviation,
            slope: judged.slope,
            bw: self.samples.iter().map(|s| s.1).collect(),
            iops: self.samples.iter().map(|s| s.0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks once a second at a job with these IOPS; after how many samples it was steady.
    fn steady_after(rule: &str, iops: &[u64]) -> (Option<usize>, SteadyResult) {
        let text = format!("[j]\nsize=1m\nss_dur=4s\n{rule}\n");
        let plan = cairn_fio::parse_job_text("t", &text).unwrap();
        let mut steady = Steady::new(plan.jobs[0].report.steadystate).unwrap();
        let began = Instant::now();
        let mut counts = Counts::default();
        assert!(!steady.look(counts, began) && !steady.look(counts, began));
        for (i, n) in iops.iter().enumerate() {
            counts.ops += n;
            counts.bytes += n * 4096;
            if steady.look(counts, began + SECOND * u32::try_from(i + 1).unwrap()) {
                return (Some(i + 1), steady.result());
            }
        }
        (None, steady.result())
    }

    #[test]
    fn a_band_around_the_mean() {
        let iops = [100, 200, 300, 1000, 1010, 990, 1000, 1005];
        let (after, result) = steady_after("ss=iops:5%", &iops);
        assert_eq!(after, Some(7));
        assert_eq!(result.iops, [1000, 1010, 990, 1000]);
        assert!((result.max_deviation - 10.0).abs() < 1e-9 && result.attained);
        assert!((result.criterion - 1.0).abs() < 1e-9 && result.percent);
        assert_eq!(steady_after("ss=iops:10.5", &iops).0, Some(7));
        assert_eq!(steady_after("ss=bw:1", &iops).0, None);
    }

    #[test]
    fn samples_are_as_long_as_the_job_says() {
        let text = "[j]\nsize=1m\nss=iops:5%\nss_dur=2s\nss_interval=500ms\n";
        let plan = cairn_fio::parse_job_text("t", text).unwrap();
        let mut steady = Steady::new(plan.jobs[0].report.steadystate).unwrap();
        let began = Instant::now();
        let mut counts = Counts::default();
        assert!(!steady.look(counts, began) && !steady.look(counts, began));
        for half in 1..=4 {
            counts.ops += 50;
            let attained = steady.look(counts, began + SECOND / 2 * half);
            assert_eq!(attained, half == 4, "{half}");
        }
        assert_eq!(steady.result().iops, [100; 4]);
    }

    #[test]
    fn a_line_that_is_flat_although_its_points_are_not_near() {
        let (after, result) = steady_after("ss=iops_slope:0.3%", &[900, 1100, 1100, 900]);
        assert_eq!(after, Some(4));
        assert!(result.slope.abs() < 1e-9, "{}", result.slope);
        let (after, result) = steady_after("ss=bw_slope:0.3%", &[1000, 1010, 1020, 1030]);
        assert_eq!(after, None);
        assert!((result.slope - 40_960.0).abs() < 1e-6, "{}", result.slope);
        assert_eq!((result.bw.len(), result.duration_s), (4, 4));
    }
}
