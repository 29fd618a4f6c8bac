//! When a running plan reports, and the rates it reports.

use std::time::{Duration, Instant};

use crate::fio_run::FioOptions;

/// When something is to be told, and what the rates are.
pub(crate) struct Pace {
    progress_every: Duration,
    progress_at: Instant,
    status_every: Duration,
    status_at: Instant,
    wants_progress: bool,
    before: ([(u64, u64); 3], Instant),
}

impl Pace {
    pub(crate) fn new(options: &FioOptions<'_>, began: Instant) -> Self {
        let progress_every = options.progress_interval.max(Duration::from_millis(250));
        Self {
            progress_every,
            progress_at: began + progress_every,
            status_every: if options.status.is_some() {
                options.status_interval
            } else {
                Duration::ZERO
            },
            status_at: began + options.status_interval,
            wants_progress: options.progress.is_some(),
            before: ([(0, 0); 3], began),
        }
    }

    /// When the next report is due, if any is wanted.
    pub(crate) fn next(&self) -> Option<Instant> {
        let progress = self.wants_progress.then_some(self.progress_at);
        let status = (self.status_every > Duration::ZERO).then_some(self.status_at);
        progress.into_iter().chain(status).min()
    }

    pub(crate) fn progress_due(&mut self, now: Instant) -> bool {
        let due = now >= self.progress_at;
        if due {
            self.progress_at = now + self.progress_every;
        }
        due
    }

    pub(crate) fn status_due(&mut self, now: Instant) -> bool {
        let due = self.status_every > Duration::ZERO && now >= self.status_at;
        if due {
            self.status_at = now + self.status_every;
        }
        due
    }

    pub(crate) fn rates(&mut self, now: Instant, totals: [(u64, u64); 3]) -> ([f64; 3], [f64; 3]) {
        let (before, at) = std::mem::replace(&mut self.before, (totals, now));
        let seconds = now.saturating_duration_since(at).as_secs_f64().max(1e-9);
        let mut bytes = [0.0; 3];
        let mut ios = [0.0; 3];
        for ((b, i), (now, old)) in bytes
            .iter_mut()
            .zip(&mut ios)
            .zip(totals.iter().zip(before))
        {
            *b = now.0.saturating_sub(old.0) as f64 / seconds;
            *i = now.1.saturating_sub(old.1) as f64 / seconds;
        }
        (bytes, ios)
    }
}
