//! The creat-clo test of AIM7 with the metrics that AIM7 prints.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use cairn_buffer::{BufferCache, CacheConfig, NoProbe};
use cairn_ext4::Ext4;
use cairn_extents::{Config, ExtentCache};
use serde::Serialize;

use crate::engine::run::Stop;
use crate::files::{self, FileTask, Work};
use crate::fio::ground::{Ground, On};
use crate::fio::usage;
use crate::lab::LabError;
use crate::layout::{BLOCK, BLOCK_USIZE};
use crate::load;
use crate::pattern::{AREA_BLOCKS, DIR_INO, DIRTIES, LOOKS, Pattern, SETS, TOUCHES};
use crate::policy::resolve;
use crate::registry::{DEFAULT_ARMS, Registry};
use crate::scenario::MAX_TASKS;
use crate::summary::PolicySummary;
use crate::switches::Switches;
use crate::tasks::Buffers;

/// Files that make one job.
pub const FILES_PER_JOB: u64 = 1000;

/// Stack of a task's thread: thousands of them must fit.
const TASK_STACK: usize = 128 << 10;

/// The stack of files unless another is asked for.
const FILES_STACK: &str = "ram(1g)";

/// How long tasks may take to come to the start line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time between two looks at whether the run is over.
const LOOK: Duration = Duration::from_millis(10);

/// Files that a task works on between two looks at the clock: far below a millisecond.
const FILES_PER_LOOK: u64 = 64;

/// Version of the data form.
const SCHEMA_VERSION: u32 = 1;

/// Which of the two loads of this name is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Each iteration opens a new file, closes it and deletes it, as the check-before-set change to
    /// Linux describes its benchmark.
    #[default]
    Patch,
    /// AIM's own: one name is created and closed 1000 times, then deleted once.
    Aim7,
}

/// A creat-clo run.
///
/// # Examples
/// ```
/// use cairn_lab::{CreatClo, Registry, run_creat_clo};
///
/// let run = CreatClo { tasks: 4, loops: 2, ..CreatClo::default() };
/// let result = run_creat_clo(&run, &Registry::default())?;
/// assert_eq!(result.jobs, 8.0);
/// assert_eq!(result.per_file.sets, 42);
/// # Ok::<(), cairn_lab::LabError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CreatClo {
    /// Tasks, each a thread.
    pub tasks: usize,
    /// Jobs each task runs; one job is 1000 files.
    pub loops: u32,
    /// Run this long instead; every task then runs as many jobs as it can.
    pub duration: Option<Duration>,
    /// Which load.
    pub variant: Variant,
    /// The stack; by default a `ram` that holds the pattern's blocks, or a file system.
    pub stack: Option<String>,
    /// `On::File` works on files of the ext4 layer, `None` runs the access pattern on buffers.
    pub on: Option<On>,
    /// Arms of policies, by name.
    pub policies: Vec<(String, String)>,
    /// Set from outside to end the run early.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Default for CreatClo {
    /// Eight tasks with one job each.
    fn default() -> Self {
        Self {
            tasks: 8,
            loops: 1,
            duration: None,
            variant: Variant::Patch,
            stack: None,
            on: None,
            policies: Vec::new(),
            cancel: None,
        }
    }
}

/// What is done for each file, by the definition of the pattern; a counting run in the tests agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PerFile {
    /// Buffer look-ups.
    pub touches: u64,
    /// Dirty calls.
    pub dirties: u64,
    /// Set calls on bits that are set already.
    pub sets: u64,
    /// Look-ups in the extent status cache.
    pub lookups: u64,
}

/// What a creat-clo run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CreatCloResult {
    /// Version of this form.
    pub schema_version: u32,
    /// Tasks.
    pub tasks: usize,
    /// Jobs done; not whole when time ended the run.
    pub jobs: f64,
    /// Files created, closed and deleted.
    pub files: u64,
    /// Real time, from the start of all tasks to the end of the last.
    pub seconds: f64,
    /// CPU time of the tasks.
    pub cpu_seconds: f64,
    /// 60 x jobs / seconds.
    pub jobs_per_minute: f64,
    /// The same for each task.
    pub jobs_per_minute_per_task: f64,
    /// Job timing index: 100 x (1 - deviation / mean) of the tasks' times for a job.
    pub jti: f64,
    /// Standard deviation of the tasks' times for a job, in seconds.
    pub deviation_seconds: f64,
    /// Files a second.
    pub files_per_second: f64,
    /// What is done for each file.
    pub per_file: PerFile,
    /// The stack.
    pub stack: String,
    /// Policies and their arms.
    pub policies: Vec<PolicySummary>,
    /// Which part of the original load was run.
    pub part: String,
}

impl CreatCloResult {
    /// Prints the result as text, AIM7's columns first.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(to, "{}", self.part)?;
        writeln!(to, "stack {}", self.stack)?;
        for policy in &self.policies {
            writeln!(to, "policy {} {}", policy.name, policy.arm)?;
        }
        writeln!(
            to,
            "{:>6} {:>12} {:>6} {:>14} {:>10} {:>10}",
            "Tasks", "jobs/min", "jti", "jobs/min/task", "real", "cpu"
        )?;
        writeln!(
            to,
            "{:>6} {:>12.1} {:>6.1} {:>14.4} {:>10.3} {:>10.3}",
            self.tasks,
            self.jobs_per_minute,
            self.jti,
            self.jobs_per_minute_per_task,
            self.seconds,
            self.cpu_seconds
        )?;
        writeln!(
            to,
            "{:.2} jobs, {} files, {:.0} files/s, deviation of a job {:.6} s",
            self.jobs, self.files, self.files_per_second, self.deviation_seconds
        )?;
        let per = &self.per_file;
        writeln!(
            to,
            "per file: {} look-ups and {} dirty calls on 4 shared buffers, {} set calls on set bits, {} extent look-ups",
            per.touches, per.dirties, per.sets, per.lookups
        )
    }
}

/// Runs creat-clo, on files or as its access pattern on shared buffer heads, on flag words without a probe.
///
/// # Errors
/// [`LabError`] when the request is wrong or a thread cannot be had; nothing was measured then.
pub fn run_creat_clo(run: &CreatClo, registry: &Registry) -> Result<CreatCloResult, LabError> {
    prepare_creat_clo(run, registry)?.run()
}

/// A creat-clo run that nothing stands in the way of; made by [`prepare_creat_clo`].
pub struct PreparedCreatClo {
    run: CreatClo,
    stack: String,
    works: Vec<Work<NoProbe>>,
    policies: Vec<PolicySummary>,
    part: String,
    /// The file system, to be checked and ended after the race.
    files: Option<Arc<Ext4>>,
}

impl fmt::Debug for PreparedCreatClo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedCreatClo")
            .field("run", &self.run)
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}

impl PreparedCreatClo {
    /// Lets the tasks begin, and waits for the last.
    ///
    /// # Errors
    /// [`LabError`] when a thread cannot be had or a task broke off.
    pub fn run(self) -> Result<CreatCloResult, LabError> {
        let run = &self.run;
        let counts = |fs: &Arc<Ext4>| {
            let info = fs.extents().info();
            (fs.buffers().stats().hits, info.hits + info.misses)
        };
        let before = self.files.as_ref().map(counts);
        let race = race(run, self.works)?;
        let mut result = sum_up(run, &race, self.stack, self.policies, self.part);
        if let (Some(fs), Some((touches, lookups))) = (&self.files, before) {
            // A directory of several blocks is searched in all of them: what was done is counted.
            let after = counts(fs);
            let each = |n: u64| (n + result.files / 2) / result.files.max(1);
            result.per_file.touches = each(after.0 - touches);
            result.per_file.lookups = each(after.1 - lookups);
            end(fs)?;
        }
        Ok(result)
    }
}

/// Checks a creat-clo run and builds what it runs on, so that whoever announces it knows that it will
/// begin.
///
/// # Errors
/// [`LabError`] when the request is wrong.
pub fn prepare_creat_clo(
    run: &CreatClo,
    registry: &Registry,
) -> Result<PreparedCreatClo, LabError> {
    let refuse = |message: &str| {
        Err(LabError::Workload {
            workload: "creat-clo".to_owned(),
            message: message.to_owned(),
        })
    };
    if run.tasks == 0 || run.tasks > MAX_TASKS {
        return refuse(&format!("{} tasks are not in 1..={MAX_TASKS}", run.tasks));
    }
    if run.loops == 0 {
        return refuse("0 loops do nothing; give at least 1");
    }
    if run.duration == Some(Duration::ZERO) {
        return refuse("a duration of 0 does nothing; give for example 5s");
    }
    match run.on {
        Some(On::File) => return prepare_files(run, registry),
        Some(On::Device) => {
            return refuse("files or the pattern are what it can work on, a device has no names");
        }
        None if run.variant == Variant::Aim7 => {
            return refuse(
                "variant `aim7` needs files: how it uses buffers was not recorded; take `patch`",
            );
        }
        None => {}
    }
    let spec = match &run.stack {
        Some(spec) => spec.clone(),
        None => format!("ram({})", AREA_BLOCKS * BLOCK),
    };
    let stack = registry.block_registry().open(&spec)?;
    let cache = ExtentCache::new(Config::new().with_counter_slots(run.tasks + 1));
    let switches = Arc::new(Switches::new());
    let mut ground = Ground::new(stack, cache.clone(), Arc::clone(&switches));
    ground
        .reserve("the buffers of creat-clo", AREA_BLOCKS * BLOCK)
        .map_err(|source| LabError::Fio {
            workload: "creat-clo".to_owned(),
            source: Box::new(source),
        })?;
    let buffers = Arc::new(BufferCache::new(
        Arc::clone(ground.device()),
        CacheConfig::new(BLOCK_USIZE, 64),
    )?);
    let plain = Buffers::Plain(Arc::clone(&buffers));
    let policies = choose(run, registry, &cache, &switches, &plain)?;
    let dir = cache.map(DIR_INO);
    Pattern::<NoProbe>::map_dir(&dir);
    let works = (0..run.tasks)
        .map(|task| {
            Work::Pattern(Pattern::new(
                Arc::clone(&buffers),
                0,
                Arc::clone(&dir),
                cache.map((1 << 32) + task as u64),
                Arc::clone(&switches),
            ))
        })
        .collect();
    let part = format!(
        "creat-clo, variant patch, as its access pattern on the buffer cache: what Linux 6.18 does to \
         four shared buffers when it creates, closes and deletes a file. Not a file system; the original \
         ran 3000 tasks of 100 jobs on ext4, this run {} tasks of {}",
        run.tasks,
        amount(run)
    );
    Ok(PreparedCreatClo {
        run: run.clone(),
        stack: ground.spec().to_owned(),
        works,
        policies,
        part,
        files: None,
    })
}

/// How much each task does.
fn amount(run: &CreatClo) -> String {
    match run.duration {
        Some(d) => format!("{:.1} s", d.as_secs_f64()),
        None => format!("{} jobs", run.loops),
    }
}

/// Builds a file system for tasks that work on files.
fn prepare_files(run: &CreatClo, registry: &Registry) -> Result<PreparedCreatClo, LabError> {
    let failed = |e: cairn_ext4::Error| LabError::Workload {
        workload: "creat-clo".to_owned(),
        message: format!("the file layer: {e}"),
    };
    let spec = run.stack.clone().unwrap_or_else(|| FILES_STACK.to_owned());
    let stack = registry.block_registry().open(&spec)?;
    let cache = ExtentCache::new(Config::new().with_counter_slots(run.tasks + 1));
    let switches = Arc::new(Switches::new());
    let files = files::make(
        stack.device(),
        &cache,
        &switches,
        run.tasks + 1,
        run.tasks as u64,
    )
    .map_err(failed)?;
    let dir = files::shared_dir(&files).map_err(failed)?;
    let buffers = Buffers::Plain(Arc::clone(files.buffers()));
    let policies = choose(run, registry, &cache, &switches, &buffers)?;
    let (variant, round) = match run.variant {
        Variant::Patch => ("patch", 1),
        Variant::Aim7 => ("aim7", FILES_PER_JOB),
    };
    let works = (0..run.tasks)
        .map(|task| Work::Files(FileTask::new(&files, &dir, task, round)))
        .collect();
    let part = format!(
        "creat-clo, variant {variant}, on files of the ext4 layer without a journal, all in one directory; \
         the original ran 3000 tasks of 100 jobs on the ext4 of Linux, this run {} tasks of {}",
        run.tasks,
        amount(run)
    );
    Ok(PreparedCreatClo {
        run: run.clone(),
        stack: stack.spec().to_string(),
        works,
        policies,
        part,
        files: Some(files),
    })
}

/// Unmounts the file system of a race and checks it.
fn end(files: &Ext4) -> Result<(), LabError> {
    let failed = |message: String| LabError::Failed {
        workload: "creat-clo".to_owned(),
        message,
    };
    files
        .unmount()
        .map_err(|e| failed(format!("the file layer: {e}")))?;
    let report = cairn_ext4::check(files.device())
        .map_err(|e| failed(format!("the file system is damaged: {e}")))?;
    match report.findings.first() {
        None => Ok(()),
        Some(first) => Err(failed(format!(
            "the file system is damaged: {first} ({} findings)",
            report.findings.len()
        ))),
    }
}

fn choose(
    run: &CreatClo,
    registry: &Registry,
    cache: &ExtentCache,
    switches: &Arc<Switches>,
    buffers: &Buffers,
) -> Result<Vec<PolicySummary>, LabError> {
    let policies = load::policies(registry, cache, switches, Some(buffers));
    let infos: Vec<_> = policies.iter().map(|(info, _)| info.clone()).collect();
    let mut arms = vec![0; infos.len()];
    for (slot, arm) in arms.iter_mut().zip(DEFAULT_ARMS) {
        *slot = arm;
    }
    for (policy, arm) in &run.policies {
        let (policy, arm) = resolve(&infos, policy, arm)?;
        if let Some(slot) = arms.get_mut(policy) {
            *slot = arm;
        }
    }
    Ok(policies
        .iter()
        .zip(arms)
        .map(|((info, apply), arm)| {
            apply(arm);
            PolicySummary {
                name: info.name.clone(),
                arm: info.arms.get(arm).cloned().unwrap_or_default(),
            }
        })
        .collect())
}

/// What a task came to.
struct Time {
    files: u64,
    took: Duration,
}

/// What all tasks came to.
struct Race {
    times: Vec<Time>,
    took: Duration,
    cpu_us: u64,
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
fn race(run: &CreatClo, works: Vec<Work<NoProbe>>) -> Result<Race, LabError> {
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

fn sum_up(
    run: &CreatClo,
    race: &Race,
    stack: String,
    policies: Vec<PolicySummary>,
    part: String,
) -> CreatCloResult {
    let files: u64 = race.times.iter().map(|t| t.files).sum();
    let seconds = race.took.as_secs_f64().max(1e-9);
    let jobs = files as f64 / FILES_PER_JOB as f64;
    let per_job: Vec<f64> = race
        .times
        .iter()
        .filter(|t| t.files > 0)
        .map(|t| t.took.as_secs_f64() * FILES_PER_JOB as f64 / t.files as f64)
        .collect();
    let (mean, deviation) = spread(&per_job);
    let per_minute = 60.0 * jobs / seconds;
    CreatCloResult {
        schema_version: SCHEMA_VERSION,
        tasks: run.tasks,
        jobs,
        files,
        seconds,
        cpu_seconds: race.cpu_us as f64 / 1e6,
        jobs_per_minute: per_minute,
        jobs_per_minute_per_task: per_minute / run.tasks as f64,
        jti: if mean > 0.0 {
            (100.0 * (1.0 - deviation / mean)).max(0.0)
        } else {
            0.0
        },
        deviation_seconds: deviation,
        files_per_second: files as f64 / seconds,
        per_file: match run.variant {
            Variant::Patch => PerFile {
                touches: TOUCHES,
                dirties: DIRTIES,
                sets: SETS,
                lookups: LOOKS,
            },
            // Nearly always the name is there already, and opening it looks at a block of the directory.
            Variant::Aim7 => PerFile {
                touches: 1,
                dirties: 0,
                sets: 0,
                lookups: 1,
            },
        },
        stack,
        policies,
        part,
    }
}

/// Mean and standard deviation (of the population: the tasks are all there are).
fn spread(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_follow_their_definitions() {
        let run = CreatClo {
            tasks: 2,
            ..CreatClo::default()
        };
        let time = |files, secs| Time {
            files,
            took: Duration::from_secs(secs),
        };
        let race = Race {
            times: vec![time(1000, 8), time(1000, 12)],
            took: Duration::from_secs(12),
            cpu_us: 5_000_000,
        };
        let r = sum_up(&run, &race, String::new(), Vec::new(), String::new());
        assert_eq!((r.files, r.jobs), (2000, 2.0));
        assert!((r.jobs_per_minute - 10.0).abs() < 1e-9);
        assert!((r.jobs_per_minute_per_task - 5.0).abs() < 1e-9);
        // Mean 10, deviation 2.
        assert!((r.jti - 80.0).abs() < 1e-9);
        assert!((r.cpu_seconds - 5.0).abs() < 1e-9);
    }

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

    #[test]
    fn policies_have_the_form_that_summaries_have() {
        let run = CreatClo {
            tasks: 1,
            duration: Some(Duration::from_millis(1)),
            ..CreatClo::default()
        };
        let result = run_creat_clo(&run, &Registry::default()).unwrap();
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["policies"][0]["name"], "flag-set");
        assert_eq!(json["policies"][0]["arm"], "check-first");
    }

    #[test]
    fn wrong_requests_are_refused_with_what_would_be_right() {
        let registry = Registry::default();
        let says = |run: CreatClo| run_creat_clo(&run, &registry).unwrap_err().to_string();
        let base = CreatClo::default;
        assert!(says(CreatClo { tasks: 0, ..base() }).contains("1..=4096"));
        assert!(
            says(CreatClo {
                tasks: 5000,
                ..base()
            })
            .contains("1..=4096")
        );
        assert!(says(CreatClo { loops: 0, ..base() }).contains("at least 1"));
        assert!(
            says(CreatClo {
                variant: Variant::Aim7,
                ..base()
            })
            .contains("patch")
        );
        assert!(
            says(CreatClo {
                on: Some(On::Device),
                ..base()
            })
            .contains("pattern")
        );
        assert!(
            says(CreatClo {
                stack: Some("ram(1m)".into()),
                ..base()
            })
            .contains("1048576")
        );
        assert!(
            says(CreatClo {
                stack: Some("rum(1g)".into()),
                ..base()
            })
            .contains("rum")
        );
    }
}
