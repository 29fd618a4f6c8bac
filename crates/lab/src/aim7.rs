//! The creat-clo test of AIM7 with the metrics that AIM7 prints.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cairn_buffer::{BufferCache, CacheConfig, NoProbe};
use cairn_ext4::Ext4;
use cairn_extents::{Config, ExtentCache};

use crate::files::{self, FileTask, Work};
use crate::fio::ground::{Ground, On};
use crate::lab::LabError;
use crate::layout::{BLOCK, BLOCK_USIZE};
use crate::load;
use crate::pattern::{AREA_BLOCKS, DIR_INO, Pattern};
use crate::policy::resolve;
use crate::registry::{DEFAULT_ARMS, Registry};
use crate::scenario::MAX_TASKS;
use crate::summary::PolicySummary;
use crate::switches::Switches;
use crate::tasks::Buffers;

mod race;
mod result;

pub use result::{CreatCloResult, PerFile};

use race::race;
use result::sum_up;

/// Files that make one job.
pub const FILES_PER_JOB: u64 = 1000;

/// The stack of files unless another is asked for.
const FILES_STACK: &str = "ram(1g)";

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

#[cfg(test)]
mod tests {
    use super::*;

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
