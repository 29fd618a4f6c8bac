#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod ab;
mod aim7;
mod auto;
mod checks;
mod compare;
mod duration;
mod engine;
mod environment;
mod file;
mod files;
mod fio;
mod fio_error;
mod fio_run;
mod folder;
mod lab;
mod latency;
mod layer_watch;
mod layout;
mod load;
mod look;
mod operations;
mod pattern;
mod permute;
mod pin;
mod policy;
mod recorder;
mod registry;
mod report;
mod rundir;
mod sample;
mod sampler;
mod scenario;
mod shared;
mod shrinker;
mod slots;
mod stats;
mod student;
mod summary;
mod switches;
mod tasks;

pub use ab::{
    Ab, AbError, AbResult, Better, Cost, Count, Explained, Finding, Metric, PairedEffect, Quantile,
    Resolution, RunRecord, run_ab,
};
pub use aim7::{
    CreatClo, CreatCloResult, FILES_PER_JOB, PerFile, PreparedCreatClo, Variant, prepare_creat_clo,
    run_creat_clo,
};
pub use auto::AutoPlan;
pub use checks::{Check, Checks};
pub use duration::parse_duration;
pub use environment::{Environment, Limits, Weather};
pub use fio::ground::On;
pub use fio_error::FioError;
pub use fio_run::{FioOptions, LogTaker, Progress, run_fio};
pub use lab::{Lab, LabError, Options};
pub use layer_watch::LayerWatch;
pub use policy::{POLICY_KEYS, Policies, PolicyError, PolicyInfo};
pub use registry::{Listed, Registry, RegistryError};
pub use report::{ReportError, RunComparison, RunDir, compare_runs};
pub use rundir::{RunWriter, Screen};
pub use sample::*;
pub use scenario::{FioSource, PresetInfo, Scenario, ScenarioError, WorkloadKind, WorkloadSpec};
pub use shrinker::Shrink;
pub use summary::{
    CounterSummary, FlagSummary, LatencySummary, PolicySummary, SUMMARY_SCHEMA_VERSION,
    ShrinkSummary, Summary, WorkloadSummary,
};
