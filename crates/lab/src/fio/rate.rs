//! Jobs with a rate: whether the least rate is kept, and both kinds of time of their I/Os.

use std::time::Duration;

use cairn_fio::job::{Ddir, Job, Pace};
use cairn_fio::output::Json;

use crate::latency::{self, Hist};
use crate::operations::Counts;

/// Whether a least rate is set.
pub(crate) fn has_floor(pace: &Pace) -> bool {
    Ddir::ALL.iter().any(|dir| floors(pace, *dir) != (0, 0))
}

/// Bytes and I/Os a second that must be kept; 0 is none.
fn floors(pace: &Pace, dir: Ddir) -> (u64, u64) {
    (
        pace.rate_min.get(dir).unwrap_or(0),
        u64::from(pace.rate_iops_min.get(dir).unwrap_or(0)),
    )
}

/// What was below its least rate over a cycle, in words.
pub(crate) fn below(job: &Job, done: &[Counts; 3], over: Duration) -> Option<String> {
    let seconds = over.as_secs_f64().max(1e-9);
    let used = Ddir::ALL.into_iter().zip(done);
    let mut used = used.filter(|(dir, _)| job.access.rw.has(*dir));
    used.find_map(|(dir, done)| {
        let (bytes, ios) = floors(&job.pace, dir);
        let had = [done.bytes as f64 / seconds, done.ops as f64 / seconds];
        let [had_bytes, had_ios] = had;
        if bytes > 0 && had_bytes < bytes as f64 {
            Some(format!(
                "{} at {had_bytes:.0} bytes a second, below rate_min={bytes}",
                dir.word()
            ))
        } else if ios > 0 && had_ios < ios as f64 {
            Some(format!(
                "{} at {had_ios:.0} IOPS, below rate_iops_min={ios}",
                dir.word()
            ))
        } else {
            None
        }
    })
}

/// Both times of a direction.
pub(crate) struct Times<'h> {
    pub(crate) dir: Ddir,
    pub(crate) service: &'h Hist,
    pub(crate) response: &'h Hist,
}

impl Times<'_> {
    /// As a line for people.
    pub(crate) fn line(&self) -> String {
        let (s, r) = (
            latency::summary(self.service),
            latency::summary(self.response),
        );
        let us = |ns: u64| ns as f64 / 1e3;
        format!(
            "{} us: service p50 {:.1} p99 {:.1} max {:.1}; response, from the intended start, p50 {:.1} p99 {:.1} max {:.1}",
            self.dir.word(),
            us(s.p50),
            us(s.p99),
            us(s.max),
            us(r.p50),
            us(r.p99),
            us(r.max)
        )
    }

    /// As an object of the results.
    pub(crate) fn json(&self) -> Json {
        Json::object([
            ("svc_ns", object(self.service)),
            ("resp_ns", object(self.response)),
        ])
    }
}

fn object(hist: &Hist) -> Json {
    let l = latency::summary(hist);
    let mut parts = vec![("n".to_owned(), Json::from(l.n))];
    for (name, value) in [
        ("min", l.min),
        ("p50", l.p50),
        ("p90", l.p90),
        ("p99", l.p99),
        ("p999", l.p999),
        ("max", l.max),
    ] {
        parts.push((name.to_owned(), Json::from(value)));
    }
    Json::Object(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_below_the_floor_is_named() {
        let text = "[j]\nrw=randrw\nsize=1m\nrate_min=1m,\nrate_iops_min=,100\n";
        let plan = cairn_fio::parse_job_text("t", text).unwrap();
        let job = &plan.jobs[0];
        assert!(has_floor(&job.pace));
        let done = |bytes, ops| Counts {
            ops,
            bytes,
            errors: 0,
        };
        let second = Duration::from_secs(1);
        let good = [done(2 << 20, 10), done(1, 100), done(0, 0)];
        assert_eq!(below(job, &good, second), None);
        let why = below(job, &good, 3 * second).unwrap();
        assert!(
            why.starts_with("read at ") && why.ends_with("below rate_min=1048576"),
            "{why}"
        );
        let why = below(job, &[done(2 << 20, 10), done(1, 99), done(0, 0)], second).unwrap();
        assert!(why.contains("write at 99 IOPS"), "{why}");
    }
}
