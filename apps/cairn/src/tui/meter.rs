//! What the dashboard costs: time a frame takes, frames a second, bytes written, share of a core.

use std::collections::VecDeque;
use std::time::Duration;

/// Frames looked back over.
const FRAMES: usize = 64;

/// The figures of the last frames.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    draws: VecDeque<(Duration, usize)>,
    /// Frames a second, over about a second; `None` before the first.
    pub fps: Option<f64>,
    /// Share of one core that the drawing thread used, over about a second; `None` where the
    /// system does not tell.
    pub cpu: Option<f64>,
}

impl Meter {
    /// Notes a frame: the time it took and the bytes it wrote.
    pub fn drawn(&mut self, took: Duration, bytes: usize) {
        if self.draws.len() == FRAMES {
            self.draws.pop_front();
        }
        self.draws.push_back((took, bytes));
    }

    /// Mean and maximum of the time a frame took.
    pub fn draw(&self) -> Option<(Duration, Duration)> {
        let n = u32::try_from(self.draws.len()).ok().filter(|n| *n > 0)?;
        let sum: Duration = self.draws.iter().map(|d| d.0).sum();
        Some((sum / n, self.draws.iter().map(|d| d.0).max()?))
    }

    /// Mean number of bytes a frame wrote.
    pub fn bytes(&self) -> Option<usize> {
        let sum: usize = self.draws.iter().map(|d| d.1).sum();
        sum.checked_div(self.draws.len())
    }
}
