//! A job that does no I/O and keeps a CPU busy for a share of the time.

use std::time::{Duration, Instant};

use cairn_fio::job::CpuLoad;

use super::run::Stop;

/// Longest sleep between two looks at whether to stop.
const NAP: Duration = Duration::from_millis(20);

/// How a CPU is kept busy: so long, then a pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burn {
    busy: Duration,
    pause: Duration,
}

impl Burn {
    pub(crate) fn new(load: &CpuLoad) -> Self {
        let busy = Duration::from_micros(load.chunk_us);
        let percent = u32::from(load.load_percent.clamp(1, 100));
        Self {
            busy,
            pause: busy * (100 - percent) / percent,
        }
    }

    /// Burns until somebody says stop.
    pub(crate) fn run(self, stop: &Stop) {
        let mut next = Instant::now();
        while !stop.asked() {
            next += self.busy;
            while Instant::now() < next && !stop.asked() {
                std::hint::spin_loop();
            }
            // From where it was meant to end: a late wake makes the pause after it shorter.
            next += self.pause;
            loop {
                let left = next.saturating_duration_since(Instant::now());
                if left.is_zero() || stop.asked() {
                    break;
                }
                std::thread::sleep(left.min(NAP));
            }
            next = next.max(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_makes_the_share() {
        let burn = |load_percent| {
            Burn::new(&CpuLoad {
                load_percent,
                chunk_us: 10_000,
                exit_on_io_done: false,
            })
        };
        assert_eq!(burn(25).pause, Duration::from_millis(30));
        assert_eq!(burn(100).pause, Duration::ZERO);
    }
}
