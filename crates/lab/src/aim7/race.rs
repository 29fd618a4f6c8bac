//! The race of the tasks: all begin at once, and the last one ends it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use cairn_buffer::NoProbe;

use super::{CreatClo, FILES_PER_JOB};
use crate::engine::run::Stop;
use crate::files::Work;
use crate::fio::usage;
use crate::lab::LabError;
use crate::load;

/// Stack of a task's thread: thousands of them must fit.
const TASK_STACK: usize = 128 << 10;

/// How long tasks may take to come to the start line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time between two looks at whether the run is over.
const LOOK: Duration = Duration::from_millis(10);

/// Files that a task works on between two looks at the clock: far below a millisecond.
const FILES_PER_LOOK: u64 = 64;

/// What a task came to.
pub(super) struct Time {
    pub(super) files: u64,
    pub(super) took: Duration,
}

/// What all tasks came to.
pub(super) struct Race {
    pub(super) times: Vec<Time>,
    pub(super) took: Duration,
    pub(super) cpu_us: u64,
}

/// The start line: tasks wait at it until it says whether the race is on.
struct Line {
    on: RwLock<bool>,
    ready: AtomicUsize,
    began: OnceLock<Instant>,
    /// How long the race lasts, when time ends it.
    duration: Option<Duration>,
}

/// Lets all tasks begin at once and waits for the last.
pub(super) fn race(run: &CreatClo, works: Vec<Work<NoProbe>>) -> Result<Race, LabError> {
    let stop = Arc::new(Stop::default());
    let line = Arc::new(Line {
        on: RwLock::new(false),
        ready: AtomicUsize::new(0),
        began: OnceLock::new(),
        duration: run.duration,
    });
    let files = match run.duration {
        Some(_) => u64::MAX,
        None => u64::from(run.loops) * FILES_PER_JOB,
    };
    let mut held = line.on.write().unwrap_or_else(PoisonError::into_inner);
    let mut threads = Vec::with_capacity(run.tasks);
    let mut refused = None;
    for (number, work) in works.into_iter().enumerate() {
        let (stop, line) = (Arc::clone(&stop), Arc::clone(&line));
        let spawned = thread::Builder::new()
            .name(format!("creat-clo.{number}"))
            .stack_size(TASK_STACK)
            .spawn(move || task(work, files, &stop, &line));
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(e) => {
                refused = Some(e);
                break;
            }
        }
    }
    let until = Instant::now() + PATIENCE;
    while line.ready.load(Ordering::Acquire) < threads.len() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    *held = refused.is_none();
    let cpu_before = usage::process();
    let began = *line.began.get_or_init(Instant::now);
    drop(held);
    let deadline = run.duration.map(|d| began + d);
    while threads.iter().any(|t| !t.is_finished()) {
        let now = Instant::now();
        let cancelled = run
            .cancel
            .as_ref()
            .is_some_and(|c| c.load(Ordering::Relaxed));
        if cancelled || deadline.is_some_and(|at| now >= at) {
            stop.now();
        }
        let left = deadline.map_or(LOOK, |at| at.saturating_duration_since(now));
        thread::sleep(left.clamp(Duration::from_micros(200), LOOK));
    }
    let cpu = usage::since(usage::process(), cpu_before);
    let mut times = Vec::with_capacity(run.tasks);
    let mut failure = None;
    for thread in threads {
        match thread.join() {
            Ok(Ok(time)) => times.extend(time),
            Ok(Err(what)) => failure = Some(what),
            Err(panic) => failure = Some(format!("a task panicked: {}", load::said(&*panic))),
        }
    }
    if let Some(e) = refused {
        return Err(LabError::Thread(e));
    }
    if let Some(message) = failure {
        return Err(LabError::Failed {
            workload: "creat-clo".to_owned(),
            message,
        });
    }
    let took = times.iter().map(|t| t.took).max().unwrap_or_default();
    Ok(Race {
        times,
        took,
        cpu_us: cpu.user_us + cpu.sys_us,
    })
}

/// One task; `None` if the race was called off.
fn task(
    mut work: Work<NoProbe>,
    files: u64,
    stop: &Stop,
    line: &Line,
) -> Result<Option<Time>, String> {
    let held = work.begin();
    line.ready.fetch_add(1, Ordering::Release);
    let on = *line.on.read().unwrap_or_else(PoisonError::into_inner);
    let mut held = held?;
    if !on {
        return Ok(None);
    }
    // A task's time is counted from the common start: with more tasks than cores it includes the wait
    // for one.
    let began = *line.began.get_or_init(Instant::now);
    let until = line.duration.map(|d| began + d);
    let mut done = 0;
    while done < files && !stop.asked() {
        // Thousands of tasks can keep the thread that waits for them off the cores, so each looks itself.
        if done.is_multiple_of(FILES_PER_LOOK) && until.is_some_and(|at| Instant::now() >= at) {
            stop.now();
            break;
        }
        held.step()?;
        done += 1;
    }
    Ok(Some(Time {
        files: done,
        took: began.elapsed(),
    }))
}

#[cfg(test)]
mod tests {
    use cairn_buffer::{BufferCache, CacheConfig};
    use cairn_extents::{Config, ExtentCache};

    use super::*;
    use crate::layout::BLOCK_USIZE;
    use crate::pattern::{DIR_INO, Pattern};
    use crate::registry::Registry;
    use crate::switches::Switches;

    #[test]
    fn a_task_sees_the_end_of_the_race_without_being_told() {
        let stack = Registry::default().block_registry().open("ram(32m)");
        let buffers = BufferCache::new(
            Arc::clone(stack.unwrap().device()),
            CacheConfig::new(BLOCK_USIZE, 64),
        );
        let cache = ExtentCache::new(Config::new());
        let dir = cache.map(DIR_INO);
        Pattern::<NoProbe>::map_dir(&dir);
        let pattern = Pattern::new(
            Arc::new(buffers.unwrap()),
            0,
            dir,
            cache.map(1 << 32),
            Arc::new(Switches::new()),
        );
        let line = Line {
            on: RwLock::new(true),
            ready: AtomicUsize::new(0),
            began: OnceLock::new(),
            duration: Some(Duration::from_millis(20)),
        };
        let stop = Stop::default();
        // Work for a minute at least; nobody else says stop.
        let time = task(Work::Pattern(pattern), 1 << 26, &stop, &line)
            .unwrap()
            .unwrap();
        assert!(stop.asked() && time.files < 1 << 26, "{} files", time.files);
    }
}
