//! From a scenario to a composed stack and workloads that are ready to start.

use std::sync::Arc;

use cairn_extents::{Config, CounterMode, ExtentCache};
use cairn_fio::Plan;
use cairn_flags::SetPolicy;

use crate::engine::run::{Stop, Worker};
use crate::fio::accept;
use crate::fio::clones::{self, CloneSpec, Found, Making};
use crate::fio::ground::{Ground, lay_out};
use crate::fio_error::FioError;
use crate::lab::{LabError, Options};
use crate::policy::{Apply, PolicyInfo};
use crate::recorder::{Cell, Epoch};
use crate::registry::{BATCHES, Registry, builtin_policies};
use crate::sample::Unit;
use crate::scenario::{FioSource, Scenario, WorkloadKind, WorkloadSpec};
use crate::shared::{Shared, Workload};
use crate::switches::Switches;

/// A workload that can be started again and again.
pub(crate) enum Load {
    Fio(Vec<CloneSpec>),
}

/// One worker of a start.
pub(crate) enum Job {
    Fio(Box<Worker>),
}

impl Load {
    /// Fresh workers, at the beginning of their sequences.
    pub(crate) fn jobs(&self, epoch: &Arc<Epoch>) -> Vec<(Job, Arc<Cell>)> {
        match self {
            Self::Fio(specs) => specs
                .iter()
                .flat_map(|spec| spec.workers(epoch))
                .map(|(worker, cell)| (Job::Fio(Box::new(worker)), cell))
                .collect(),
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
            Self::Fio(mut worker) => worker.run(stop).map_err(|failed| failed.error.to_string()),
        }
    }
}

/// A lab before anything runs.
pub(crate) struct Built {
    pub(crate) shared: Shared,
    pub(crate) loads: Vec<Load>,
    pub(crate) policies: Vec<(PolicyInfo, Apply)>,
}

/// Composes everything a scenario names.
///
/// # Errors
/// What the scenario names and cannot be had.
pub(crate) fn build(
    scenario: &Scenario,
    registry: &Registry,
    _options: &Options,
) -> Result<Built, LabError> {
    let stack = registry.block_registry().open(&scenario.stack)?;
    let cache = ExtentCache::new(Config::new());
    let switches = Arc::new(Switches::new());
    let mut ground = Ground::new(stack, cache.clone(), Arc::clone(&switches));
    let mut loads = Vec::new();
    let mut workloads = Vec::new();
    for (number, spec) in scenario.workloads.iter().enumerate() {
        let (load, workload) = match &spec.kind {
            WorkloadKind::Fio(source) => {
                fio(spec, source, &mut ground, scenario.seed, number as u64)?
            }
            WorkloadKind::CreatClo { .. } => {
                return Err(LabError::Workload {
                    workload: spec.name.clone(),
                    message: "needs the buffer cache".to_owned(),
                });
            }
        };
        loads.push(load);
        workloads.push(workload);
    }
    let policies = policies(registry, &cache, &switches);
    let first_file = ground.files().first().map(|(_, file)| Arc::clone(file));
    Ok(Built {
        shared: Shared::new(ground.stack().clone(), cache, first_file, workloads),
        loads,
        policies,
    })
}

fn fio(
    spec: &WorkloadSpec,
    source: &FioSource,
    ground: &mut Ground,
    seed: u64,
    number: u64,
) -> Result<(Load, Workload), LabError> {
    let jobs = |source| LabError::Jobs {
        workload: spec.name.clone(),
        source,
    };
    let broken = |source: FioError| LabError::Fio {
        workload: spec.name.clone(),
        source,
    };
    let plan = match source {
        FioSource::Options(options) => {
            let mut words = vec![format!("--name={}", spec.name)];
            words.extend(options.split_whitespace().map(str::to_owned));
            cairn_fio::parse_command_line(words).map_err(jobs)?
        }
        FioSource::Job(path) => {
            cairn_fio::parse_job_file(&path.display().to_string()).map_err(jobs)?
        }
    };
    for job in &plan.jobs {
        accept::accept(&plan, job, &mut |_| {}).map_err(broken)?;
    }
    let len = ground.len();
    let needs = clones::needs(&plan, |_| Some(len)).map_err(broken)?;
    let merged = clones::merge(&plan, &needs, None);
    ground.make(&merged).map_err(broken)?;
    prefault(ground, &merged).map_err(broken)?;
    let making = Making {
        seed: crate::engine::generate::mix(seed, number, 0),
        for_ever: true,
    };
    let slow = clones::has_latency(ground.stack());
    let mut specs = clones::specs(&plan, needs, making, |path| {
        ground.get(path).map(|target| Found {
            target: target.clone(),
            ground: Some(0),
            slow,
        })
    })
    .map_err(broken)?;
    for clone in &mut specs {
        clone.never_give_up();
    }
    let workers = specs.iter().map(CloneSpec::lanes).sum();
    let workload = Workload::new(
        &spec.name,
        &about(&plan),
        Unit::Io,
        workers,
        spec.warmup,
        spec.runtime,
    );
    Ok((Load::Fio(specs), workload))
}

fn about(plan: &Plan) -> String {
    match plan.jobs.as_slice() {
        [only] => clones::about(only),
        several => format!("{} fio jobs", several.len()),
    }
}

/// Touches every block that will be written, so that the first touch of memory is no part of what is
/// measured.
fn prefault(ground: &Ground, needs: &[crate::fio::ground::Need]) -> Result<(), FioError> {
    for need in needs {
        if need.read {
            // Laid out when it was made.
            continue;
        }
        if let Some(window) = ground.window(&need.path) {
            lay_out(ground.device(), window.start, window.end - window.start, 0).map_err(
                |source| FioError::Layout {
                    path: need.path.clone(),
                    source,
                },
            )?;
        }
    }
    Ok(())
}

/// The policies with what each of them switches.
pub(crate) fn policies(
    registry: &Registry,
    cache: &ExtentCache,
    switches: &Arc<Switches>,
) -> Vec<(PolicyInfo, Apply)> {
    let flags = Arc::clone(switches);
    let counters = cache.clone();
    let lookups = Arc::clone(switches);
    let batch = cache.clone();
    let hooks: [Apply; 4] = [
        Arc::new(move |arm| {
            flags.flag_set.set(match arm {
                0 => SetPolicy::AlwaysRmw,
                _ => SetPolicy::CheckFirst,
            });
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
                batch.set_counter_batch(*n);
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
