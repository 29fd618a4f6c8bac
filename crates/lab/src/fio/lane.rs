//! One thread of a clone, and what it tells the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use cairn_fio::output::CpuUsage;

use super::exec::Commands;
use super::track::End;
use super::usage;
use crate::engine::run::{Failed, Stop, Worker};
use crate::load;
use crate::pin;

/// Errno of a panic in a worker, and of a command that failed (EIO).
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
    /// What the job runs before and after itself.
    pub(crate) commands: Option<Arc<Commands>>,
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
            commands,
            cpus,
            tell,
        } = self;
        wait(delay, &stop);
        // What keeps the job from beginning.
        let mut ready = pin::to(&cpus).map_err(|e| (EINVAL, format!("cpus_allowed: {e}")));
        if let (Ok(()), Some(commands)) = (&ready, &commands) {
            ready = commands.before().map_err(|e| (EIO, e));
        }
        let before = usage::this_thread();
        worker.recorder.begin();
        if let Some(logger) = &mut worker.logger {
            logger.begin();
        }
        // The run lives until every thread has ended; if it gave up on this one, nobody listens.
        let _ = tell.send(Message::Started(index, Instant::now(), usage::this_tid()));
        let mut last = false;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            if ready.is_err() {
                return Ok(());
            }
            worker.run(&stop)?;
            if lanes_left.fetch_sub(1, Ordering::AcqRel) == 1 {
                worker.read_back(&stop)?;
                if end_flush {
                    worker.end_flush()?;
                }
                last = true;
            }
            Ok::<(), Failed>(())
        }));
        let at = Instant::now();
        let after = match &commands {
            Some(commands) if last => commands.after(),
            _ => Ok(()),
        };
        let since = worker.recorder.since();
        let failed = match ended {
            _ if ready.is_err() => ready.err(),
            Ok(Ok(())) => {
                let verdict = worker.verify.as_ref().and_then(|v| v.verdict());
                verdict.or_else(|| after.err().map(|e| (EIO, e)))
            }
            Ok(Err(failed)) => Some((failed.errno, failed.text)),
            Err(panic) => Some((EIO, format!("a worker panicked: {}", load::said(&*panic)))),
        };
        let (logs, lines_lost) = worker
            .logger
            .take()
            .map_or((Vec::new(), 0), |logger| logger.finish());
        let mut dumps = worker.verify.take().map_or(Vec::new(), |v| v.dumps);
        dumps.extend(commands.iter().flat_map(|c| c.take_said()));
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
