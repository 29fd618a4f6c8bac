//! The own figures, once a second, and whether the sampler still speaks.

use std::fs;
use std::time::{Duration, Instant};

use super::PULSE;
use crate::tui::guard;
use crate::tui::model::Model;
use crate::tui::update::Msg;

/// What is looked at once a second.
pub(super) struct Pulse {
    last: Instant,
    sample: Instant,
    pub(super) frames: u32,
    cpu: Option<Duration>,
}

impl Pulse {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            last: now,
            sample: now,
            frames: 0,
            cpu: thread_cpu(),
        }
    }

    pub(super) fn note(&mut self, msg: &Msg) {
        if matches!(msg, Msg::Sample(_) | Msg::Continue) {
            self.sample = Instant::now();
        }
    }

    pub(super) fn beat(&mut self, model: &mut Model) -> Option<Msg> {
        let now = Instant::now();
        let passed = now - self.last;
        if passed < PULSE {
            return None;
        }
        self.last = now;
        model.meter.fps = Some(f64::from(self.frames) / passed.as_secs_f64());
        self.frames = 0;
        let cpu = thread_cpu();
        model.meter.cpu = cpu
            .zip(self.cpu)
            .map(|(new, old)| new.saturating_sub(old).as_secs_f64() / passed.as_secs_f64());
        self.cpu = cpu;
        if let Some(text) = guard::late_panic() {
            return Some(Msg::Panic(text));
        }
        let silent = now - self.sample;
        (silent >= PULSE).then_some(Msg::Stalled(silent))
    }
}

/// Time on a CPU of this thread, where the kernel tells it.
fn thread_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}
