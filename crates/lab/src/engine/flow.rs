//! Jobs that share I/Os by their weights: of all I/Os of a flow, each job may have done its share and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::run::Stop;

/// Longest sleep between two looks at whether to stop.
const NAP: Duration = Duration::from_millis(20);

/// What all members of a flow did.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Flow {
    ios: AtomicU64,
    weights: AtomicU64,
}

/// One job of a flow, with all its lanes.
#[derive(Debug)]
pub(crate) struct Member {
    flow: Arc<Flow>,
    weight: u64,
    pause: Duration,
    ios: AtomicU64,
    lanes: AtomicUsize,
}

impl Member {
    pub(crate) fn new(flow: Arc<Flow>, weight: u32, pause: Duration) -> Self {
        Self {
            flow,
            weight: u64::from(weight),
            pause,
            ios: AtomicU64::new(0),
            lanes: AtomicUsize::new(0),
        }
    }

    /// A lane begins; the first brings the weight of the job in.
    pub(crate) fn join(&self) {
        if self.lanes.fetch_add(1, Ordering::AcqRel) == 0 {
            self.flow.weights.fetch_add(self.weight, Ordering::Relaxed);
        }
    }

    /// A lane ends; with the last one the job's I/Os leave the flow, so that nobody waits for it.
    pub(crate) fn part(&self) {
        if self.lanes.fetch_sub(1, Ordering::AcqRel) == 1 {
            let ios = self.ios.swap(0, Ordering::Relaxed);
            self.flow.ios.fetch_sub(ios, Ordering::Relaxed);
            self.flow.weights.fetch_sub(self.weight, Ordering::Relaxed);
        }
    }

    fn is_ahead(&self) -> bool {
        let ios = u128::from(self.ios.load(Ordering::Relaxed));
        let all = u128::from(self.flow.ios.load(Ordering::Relaxed));
        let weights = u128::from(self.flow.weights.load(Ordering::Relaxed));
        ios * weights > all * u128::from(self.weight)
    }

    /// Waits until the job may do an I/O, and counts it; false if somebody said stop before.
    pub(crate) fn turn(&self, stop: &Stop) -> bool {
        while self.is_ahead() {
            if stop.asked() {
                return false;
            }
            if self.pause.is_zero() {
                std::thread::yield_now();
            } else {
                std::thread::sleep(self.pause.min(NAP));
            }
        }
        self.ios.fetch_add(1, Ordering::Relaxed);
        self.flow.ios.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_gets_its_share() {
        let flow = Arc::new(Flow::default());
        let members = [1, 3].map(|w| Member::new(Arc::clone(&flow), w, Duration::ZERO));
        let stop = Stop::default();
        stop.now();
        members.iter().for_each(Member::join);
        let mut done = [0_u32; 2];
        for _ in 0..4000 {
            for (member, done) in members.iter().zip(&mut done) {
                *done += u32::from(member.turn(&stop));
            }
        }
        let share = f64::from(done[0]) / f64::from(done[0] + done[1]);
        assert!((share - 0.25).abs() < 0.01, "{done:?}");
        // Without the other there is nobody to wait for.
        members[0].part();
        assert!((0..100).all(|_| members[1].turn(&stop)));
    }
}
