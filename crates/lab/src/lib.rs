#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod aim7;
mod compare;
mod duration;
mod engine;
mod file;
mod files;
mod fio;
mod fio_error;
mod fio_run;
mod lab;
mod latency;
mod layout;
mod load;
mod look;
mod pattern;
mod permute;
mod policy;
mod recorder;
mod registry;
mod sample;
mod sampler;
mod scenario;
mod shared;
mod slots;
mod student;
mod summary;
mod switches;
mod tasks;

pub use aim7::{
    CreatClo, CreatCloResult, FILES_PER_JOB, PerFile, PreparedCreatClo, Variant, prepare_creat_clo,
    run_creat_clo,
};
pub use duration::parse_duration;
pub use fio::ground::On;
pub use fio_error::FioError;
pub use fio_run::{FioOptions, Progress, run_fio};
pub use lab::{Lab, LabError, Options};
pub use policy::{POLICY_KEYS, Policies, PolicyError, PolicyInfo};
pub use registry::{Listed, Registry, RegistryError};
pub use sample::*;
pub use scenario::{FioSource, PresetInfo, Scenario, ScenarioError, WorkloadKind, WorkloadSpec};
pub use summary::{
    CounterSummary, FlagSummary, LatencySummary, PolicySummary, SUMMARY_SCHEMA_VERSION, Summary,
    WorkloadSummary,
};
