//! One thread of a clone, and what it tells the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use cairn_fio::output::CpuUsage;

use super::track::End;
use super::usage;
use crate::engine::run::{Failed, Stop, Worker, describe};
use crate::load;

/// Errno of a panic in a worker (EIO).
const EIO: i32 = 5;

/// What threads tell the run.
pub(crate) enum Message {
    Started(usize, Instant, u32),
    Ended(usize, End),
}

/// One thread of a clone.
pub(crate) struct LaneThread {
    pub(crate) index: usize,
    pub(crate) worker: Worker,
    pub(crate) delay: Duration,
    pub(crate) stop: Arc<Stop>,
    /// Lanes of the clone that still run.
    pub(crate) lanes_left: Arc<AtomicUsize>,
    pub(crate) end_flush: bool,
    pub(crate) tell: Sender<Message>,
}

impl LaneThread {
    pub(crate) fn run(self) {
        let Self {
            index,
            mut worker,
            delay,
            stop,
            lanes_left,
            end_flush,
            tell,
        } = self;
        wait(delay, &stop);
        let before = usage::this_thread();
        worker.recorder.begin();
        // The run lives until every thread has ended; if it gave up on this one, nobody listens.
        let _ = tell.send(Message::Started(index, Instant::now(), usage::this_tid()));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            worker.run(&stop)?;
            if lanes_left.fetch_sub(1, Ordering::AcqRel) == 1 && end_flush {
                worker.end_flush()?;
            }
            Ok::<(), Failed>(())
        }));
        let at = Instant::now();
        let since = worker.recorder.since();
        let failed = match ended {
            Ok(Ok(())) => None,
            Ok(Err(failed)) => Some((failed.error.errno(), describe(&failed.step, &failed.error))),
            Err(panic) => Some((EIO, format!("a worker panicked: {}", load::said(&*panic)))),
        };
        // Hands over what was recorded.
        drop(worker);
        let used: CpuUsage = usage::since(usage::this_thread(), before);
        let end = End {
            at,
            since,
            used,
            failed,
        };
        let _ = tell.send(Message::Ended(index, end));
    }
}

/// The start delay, in steps short enough to be broken off.
fn wait(delay: Duration, stop: &Stop) {
    let until = Instant::now() + delay;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.asked() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(20)));
    }
}
