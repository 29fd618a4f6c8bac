//! From a scenario to a composed stack and workloads that are ready to start.

use std::sync::Arc;

use cairn_buffer::{BufferCache, CacheConfig};
use cairn_extents::{Config, CounterMode, ExtentCache};
use cairn_fio::Plan;
use cairn_fio::job::{EngineClass, IoEngine, Job as FioJob, VerifyKind};
use cairn_flags::SetPolicy;

use crate::engine::run::{Stop, Worker};
use crate::fio::accept;
use crate::fio::clones::{self, CloneSpec, Found, Making};
use crate::fio::ground::{Ground, On};
use crate::fio::needs;
use crate::fio_error::FioError;
use crate::lab::{LabError, Options};
use crate::layout::{BLOCK, BLOCK_USIZE};
use crate::operations::Operations;
use crate::pattern::AREA_BLOCKS;
use crate::policy::{Apply, Mechanism, PolicyInfo};
use crate::recorder::{Cell, Epoch};
use crate::registry::{BACKENDS, BATCHES, Registry, builtin_policies};
use crate::sample::Unit;
use crate::scenario::{FioSource, Scenario, WorkloadKind, WorkloadSpec};
use crate::shared::{Shared, Workload};
use crate::shrinker::LIMITS;
use crate::switches::Switches;
use crate::tasks::{Buffers, Files, Task, Tasks};

/// A workload that can be started again and again.
pub(crate) enum Load {
    Fio(Vec<CloneSpec>),
    CreatClo(Tasks),
}

/// One worker of a start.
pub(crate) enum Job {
    Fio(Box<Worker>),
    CreatClo(Box<Task>),
}

impl Load {
    /// Fresh workers, at the beginning of their sequences, and the cells they count in.
    pub(crate) fn jobs(
        &self,
        epoch: &Arc<Epoch>,
        operations: &Arc<Operations>,
    ) -> (Vec<Job>, Vec<Arc<Cell>>) {
        match self {
            Self::Fio(specs) => specs
                .iter()
                .flat_map(|spec| spec.workers(epoch, operations).workers)
                .map(|(worker, cell)| (Job::Fio(Box::new(worker)), cell))
                .unzip(),
            Self::CreatClo(tasks) => {
                let (tasks, cells) = tasks.start(epoch, operations);
                let jobs = tasks.into_iter().map(|t| Job::CreatClo(Box::new(t)));
                (jobs.collect(), cells)
            }
        }
    }
}

impl Job {
    /// Works until told to stop.
    ///
    /// # Errors
    /// What ended it, in words.
    pub(crate) fn run(self, stop: &Stop) -> Result<(), String> {
        match self {
            Self::Fio(mut worker) => worker.run(stop).map_err(|failed| failed.text),
            Self::CreatClo(task) => task.run(stop),
        }
    }
}

/// A lab before anything runs.
pub(crate) struct Built {
    pub(crate) shared: Shared,
    pub(crate) loads: Vec<Load>,
    pub(crate) policies: Vec<(PolicyInfo, Apply)>,
    /// What files are made on, in one line, where there are any.
    pub(crate) file_layer: Option<String>,
}

/// Composes everything a scenario names.
///
/// # Errors
/// What the scenario names and cannot be had.
pub(crate) fn build(
    scenario: &Scenario,
    registry: &Registry,
    options: &Options,
) -> Result<Built, LabError> {
    let stack = registry.block_registry().open(&scenario.stack)?;
    let mut plans = Vec::new();
    let mut threads = 0;
    for spec in &scenario.workloads {
        plans.push(match &spec.kind {
            WorkloadKind::Fio(source) => {
                let plan = parse(spec, source)?;
                threads += plan.clones().len();
                Some(plan)
            }
            WorkloadKind::CreatClo { tasks } | WorkloadKind::CreatCloFiles { tasks } => {
                threads += tasks;
                None
            }
        });
    }
    // One slot more than there are workers: the thread that composes the lab counts too.
    let cache = ExtentCache::new(Config::new().with_counter_slots(threads + 1));
    let switches = Arc::new(Switches::new());
    let mut ground = Ground::new(stack, cache.clone(), Arc::clone(&switches));
    let (files, buffers) = under_tasks(scenario, &mut ground, threads, options.probe)?;
    let mut loads = Vec::new();
    let mut workloads = Vec::new();
    for (number, (spec, plan)) in scenario.workloads.iter().zip(plans).enumerate() {
        let (load, workload) = match (plan, &spec.kind, &buffers) {
            (Some(plan), _, _) => fio(spec, &plan, &mut ground, scenario.seed, number as u64)?,
            (
                None,
                WorkloadKind::CreatClo { tasks } | WorkloadKind::CreatCloFiles { tasks },
                Some(buffers),
            ) => {
                let tasks = Tasks {
                    files: files.clone(),
                    buffers: buffers.clone(),
                    base: 0,
                    cache: cache.clone(),
                    switches: Arc::clone(&switches),
                    count: *tasks,
                };
                creat_clo(spec, tasks)
            }
            // A workload without a plan has tasks, and then there are buffers.
            _ => continue,
        };
        loads.push(load);
        workloads.push(workload);
    }
    let policies = policies(registry, &cache, &switches, buffers.as_ref());
    let shrinker = switches.shrinker(&cache);
    let audited = buffers.clone().or_else(|| ground.buffers());
    Ok(Built {
        file_layer: ground.layer(),
        shared: Shared::new(
            ground.stack().clone(),
            cache,
            shrinker,
            buffers,
            audited,
            ground.files().to_vec(),
            workloads,
        ),
        loads,
        policies,
    })
}

/// What the tasks of creat-clo work on: a file system as soon as one workload asks for files, else
/// buffers over a part of the device.
fn under_tasks(
    scenario: &Scenario,
    ground: &mut Ground,
    threads: usize,
    probe: bool,
) -> Result<(Option<Files>, Option<Buffers>), LabError> {
    let broken = |source: FioError| LabError::fio(&scenario.name, source);
    let kinds = || scenario.workloads.iter().map(|w| &w.kind);
    if kinds().any(|k| matches!(k, WorkloadKind::CreatCloFiles { .. })) {
        let files = ground.files_for_tasks(threads, probe).map_err(broken)?;
        let buffers = files.buffers();
        return Ok((Some(files), Some(buffers)));
    }
    if kinds().any(|k| matches!(k, WorkloadKind::CreatClo { .. })) {
        // Before any file, so that block numbers are those that were recorded.
        ground
            .reserve("the buffers of creat-clo", AREA_BLOCKS * BLOCK)
            .map_err(broken)?;
        return Ok((None, Some(buffers(ground, probe)?)));
    }
    Ok((None, None))
}

fn parse(spec: &WorkloadSpec, source: &FioSource) -> Result<Plan, LabError> {
    let parsed = match source {
        FioSource::Options(options) => {
            // A quote may stand inside a value, as in buffer_pattern="abc", but holds no words together.
            let stray = options.split_whitespace().find(|word| {
                let odd = |quote| word.matches(quote).count() % 2 == 1;
                word.starts_with(['"', '\'']) || odd('"') || odd('\'')
            });
            if let Some(word) = stray {
                return Err(LabError::Workload {
                    workload: spec.name.clone(),
                    message: format!(
                        "options are split at blanks and quotes hold nothing together, but one is in \
                         {word}; leave it out, or put the job in a job file"
                    ),
                });
            }
            let mut words = vec![format!("--name={}", spec.name)];
            words.extend(options.split_whitespace().map(str::to_owned));
            cairn_fio::parse_command_line(words)
        }
        FioSource::Job(path) => cairn_fio::parse_job_file(&path.display().to_string()),
    };
    parsed.map_err(|source| LabError::Jobs {
        workload: spec.name.clone(),
        source: Box::new(source),
    })
}

/// A buffer cache over the whole stack; the pattern uses four of its blocks.
fn buffers(ground: &Ground, probe: bool) -> Result<Buffers, LabError> {
    const CAPACITY: usize = 1024;
    let config = CacheConfig::new(BLOCK_USIZE, CAPACITY);
    let device = Arc::clone(ground.device());
    Ok(if probe {
        Buffers::Counted(Arc::new(BufferCache::probed(device, config)?))
    } else {
        Buffers::Plain(Arc::new(BufferCache::new(device, config)?))
    })
}

fn creat_clo(spec: &WorkloadSpec, tasks: Tasks) -> (Load, Workload) {
    let mut workload = Workload::new(
        &spec.name,
        if tasks.files.is_some() {
            "create-close-unlink on files of the ext4 layer"
        } else {
            "create-close-unlink, access pattern on buffers"
        },
        Unit::Op,
        tasks.count,
        spec.warmup,
        spec.runtime,
    );
    // Its buffers stay in the cache, so in steady state no I/O passes the stack.
    workload.uses = vec![Mechanism::BufferHeads, Mechanism::ExtentCache];
    (Load::CreatClo(tasks), workload)
}

fn fio(
    spec: &WorkloadSpec,
    plan: &Plan,
    ground: &mut Ground,
    seed: u64,
    number: u64,
) -> Result<(Load, Workload), LabError> {
    let broken = |source: FioError| LabError::fio(&spec.name, source);
    for job in &plan.jobs {
        accept::accept(plan, job, &mut |_| {})
            .and_then(|()| accept::no_commands(job))
            .map_err(broken)?;
        if matches!(
            job.queue.ioengine,
            IoEngine::FileDelete | IoEngine::DirCreate | IoEngine::DirDelete
        ) {
            let why = "jobs of a scenario go on for ever, and a name is made or deleted once only; creat-clo makes \
                       and deletes files";
            return Err(broken(FioError::option(&job.name, "ioengine", why)));
        }
        let logs = &job.logs;
        if logs.bw.is_some() || logs.lat.is_some() || logs.iops.is_some() || logs.hist.is_some() {
            let why =
                "a scenario writes a run directory and no logs of fio; leave the log options out";
            return Err(broken(FioError::job(&job.name, why)));
        }
        for (option, set) in [
            ("write_iolog", job.replay.write_iolog.is_some()),
            ("latency_target", !job.pace.latency.target.is_zero()),
            ("steadystate", !job.report.steadystate.duration.is_zero()),
            ("wait_for", job.control.wait_for.is_some()),
            ("exitall", job.control.exitall),
        ] {
            if set {
                let why = "jobs of a scenario go on for ever, all side by side; leave it out";
                return Err(broken(FioError::option(&job.name, option, why)));
            }
        }
        if job.verify.kind != VerifyKind::None {
            let why = "jobs of a scenario go on for ever and are never read back; leave verify out";
            return Err(broken(FioError::option(&job.name, "verify", why)));
        }
    }
    let len = ground.len();
    let asked = needs::needs(plan, |_| Some(len)).map_err(broken)?;
    let merged = needs::merge(plan, &asked, None);
    ground.make(&merged).map_err(broken)?;
    let making = Making {
        seed: crate::engine::generate::mix(seed, number, 0),
        for_ever: true,
        sample: 0,
    };
    let slow = clones::has_latency(ground.stack());
    let mut specs = clones::specs(plan, asked, making, |job, path, len| {
        ground.target(job, path, len).map(|target| Found {
            target,
            ground: Some(0),
            slow,
        })
    })
    .map_err(broken)?;
    for clone in &mut specs {
        clone.never_give_up();
    }
    let workers = specs.iter().map(CloneSpec::lanes).sum();
    let mut workload = Workload::new(
        &spec.name,
        &about(plan),
        Unit::Io,
        workers,
        spec.warmup,
        spec.runtime,
    );
    let null = |job: &FioJob| job.queue.ioengine.class() == EngineClass::Null;
    if !plan.jobs.iter().all(null) {
        if merged.iter().any(|need| need.on == On::File) {
            workload.uses.push(Mechanism::ExtentCache);
        }
        workload.uses.push(Mechanism::BlockIo);
    }
    Ok((Load::Fio(specs), workload))
}

fn about(plan: &Plan) -> String {
    match plan.jobs.as_slice() {
        [only] => clones::about(only),
        several => format!("{} fio jobs", several.len()),
    }
}

/// The policies with what each of them switches.
pub(crate) fn policies(
    registry: &Registry,
    cache: &ExtentCache,
    switches: &Arc<Switches>,
    buffers: Option<&Buffers>,
) -> Vec<(PolicyInfo, Apply)> {
    let flags = buffers.cloned();
    let counters = cache.clone();
    let lookups = Arc::clone(switches);
    let batch = cache.clone();
    let backend = cache.clone();
    let shrinker = switches.shrinker(cache);
    let hooks: [Apply; 6] = [
        Arc::new(move |arm| {
            if let Some(buffers) = &flags {
                buffers.set_policy(match arm {
                    0 => SetPolicy::AlwaysRmw,
                    _ => SetPolicy::CheckFirst,
                });
            }
        }),
        Arc::new(move |arm| {
            counters.set_counter_mode(match arm {
                0 => CounterMode::Shared,
                _ => CounterMode::PerCpu,
            });
        }),
        Arc::new(move |arm| lookups.set_extent_cache(arm != 0)),
        Arc::new(move |arm| {
            if let Some(n) = BATCHES.get(arm) {
                // Each of the batches is legal.
                let _ = batch.set_counter_batch(*n);
            }
        }),
        Arc::new(move |arm| {
            if let Some(kind) = BACKENDS.get(arm) {
                backend.set_counter_backend(*kind);
            }
        }),
        Arc::new(move |arm| {
            if let Some(limit) = LIMITS.get(arm) {
                shrinker.set_limit(*limit);
            }
        }),
    ];
    builtin_policies()
        .into_iter()
        .zip(hooks)
        .chain(registry.added_policies())
        .collect()
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
