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
use crate::engine::run::{Failed, Stop, Worker};
use crate::load;
use crate::pin;

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
    /// CPUs it may run on; all where there are none.
    pub(crate) cpus: Vec<u32>,
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
            cpus,
            tell,
        } = self;
        wait(delay, &stop);
        let pinned = pin::to(&cpus).map_err(|e| format!("cpus_allowed: {e}"));
        let before = usage::this_thread();
        worker.recorder.begin();
        if let Some(logger) = &mut worker.logger {
            logger.begin();
        }
        // The run lives until every thread has ended; if it gave up on this one, nobody listens.
        let _ = tell.send(Message::Started(index, Instant::now(), usage::this_tid()));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            if pinned.is_err() {
                return Ok(());
            }
            worker.run(&stop)?;
            if lanes_left.fetch_sub(1, Ordering::AcqRel) == 1 {
                worker.read_back(&stop)?;
                if end_flush {
                    worker.end_flush()?;
                }
            }
            Ok::<(), Failed>(())
        }));
        let at = Instant::now();
        let since = worker.recorder.since();
        let failed = match ended {
            _ if pinned.is_err() => pinned.err().map(|e| (EINVAL, e)),
            Ok(Ok(())) => worker.verify.as_ref().and_then(|v| v.verdict()),
            Ok(Err(failed)) => Some((failed.errno, failed.text)),
            Err(panic) => Some((EIO, format!("a worker panicked: {}", load::said(&*panic)))),
        };
        let (logs, lines_lost) = worker
            .logger
            .take()
            .map_or((Vec::new(), 0), |logger| logger.finish());
        let dumps = worker.verify.take().map_or(Vec::new(), |v| v.dumps);
        // Hands over what was recorded.
        drop(worker);
        let used: CpuUsage = usage::since(usage::this_thread(), before);
        let end = End {
            at,
            since,
            used,
            failed,
            logs,
            lines_lost,
            dumps,
        };
        let _ = tell.send(Message::Ended(index, end));
    }
}

/// Errno of a CPU that is not there.
const EINVAL: i32 = 22;

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
