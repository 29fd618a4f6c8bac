//! One job: what fio calls a thread definition, with every option in its typed field.
//!
//! The fields are grouped by what they are about, so that an engine can hand each part of itself the
//! part of the job it needs.

use std::ops::Range;

use crate::plan::{Given, Ignored};

mod access;
mod control;
mod data;
mod engine;
mod extent;
mod pace;
mod queue;
mod replay;
mod report;
mod verify;

pub use access::{
    Access, Ddir, Distribution, PerDir, Random, RandomGenerator, RwMode, RwSequencer, RwStep,
    ShapedDistribution, Share, ZoneShare,
};
pub use control::{Control, CpusPolicy, ErrorMask, ExitWhat};
pub use data::{Buffers, DedupeMode, Pattern, PatternPart};
pub use engine::{CpuLoad, EngineClass, EngineOptions, IoEngine};
pub use extent::{Amount, BlockSizes, Extent, Fallocate, FileService, FileServiceType, Files};
pub use pace::{LatencyTarget, Pace, RateProcess, ThinkBlocksType};
pub use queue::{Durability, Queue, SubmitMode, SyncFileRange, SyncIo};
pub use replay::{Replay, ReplaySkip};
pub use report::{Logs, Report, SteadyLimit, SteadyMetric, SteadyState, UnifiedReporting};
pub use verify::{Verify, VerifyKind};

/// A job as the engine runs it; its clones (`numjobs`) come from [`Plan::clones`](crate::Plan::clones).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// Name in reports: the section, or what `name=` made of it.
    pub name: String,
    /// The section's own name, which `--section` selects by.
    pub section: String,
    /// `description=`, printed with the results.
    pub description: Option<String>,
    /// Reporting group, counted from 0; a stonewall or `new_group` starts the next one.
    pub group: u32,
    /// Which of [`Plan::globals`](crate::Plan::globals) were in force when the job started: those of its own
    /// file before it, and for the first file those of the command line.
    pub globals: Range<usize>,
    /// The job's own options in the order given.
    pub given: Vec<Given>,
    /// Unknown options that `--lenient` let pass.
    pub ignored: Vec<Ignored>,
    /// Direction, order, block sizes and mix.
    pub access: Access,
    /// Random sequences.
    pub random: Random,
    /// How much, from where, how large.
    pub extent: Extent,
    /// Which files, and how they are made.
    pub files: Files,
    /// Engine and depth.
    pub queue: Queue,
    /// Options that belong to one engine.
    pub engine: EngineOptions,
    /// Flushes and synchronous writes.
    pub durability: Durability,
    /// Rates, think time, latency targets.
    pub pace: Pace,
    /// What the buffers hold.
    pub buffers: Buffers,
    /// Checking what was written.
    pub verify: Verify,
    /// Clones, order, time, ends.
    pub control: Control,
    /// What is measured and how it is shown.
    pub report: Report,
    /// Log files.
    pub logs: Logs,
    /// I/O taken from, or written to, a log.
    pub replay: Replay,
}

impl Job {
    /// Whether every number that describes the workload, as opposed to its name, equals `other`'s.
    pub fn same_workload(&self, other: &Self) -> bool {
        let strip = |job: &Self| Self {
            name: String::new(),
            section: String::new(),
            group: 0,
            globals: 0..0,
            given: Vec::new(),
            ignored: Vec::new(),
            ..job.clone()
        };
        strip(self) == strip(other)
    }

    /// Smallest block any direction issues, in bytes.
    pub fn min_block(&self) -> u64 {
        Ddir::ALL
            .iter()
            .filter(|d| self.access.rw.has(**d))
            .map(|d| self.access.bs.get(*d).min())
            .min()
            .unwrap_or(self.access.bs.read.min())
    }

    /// Largest block any direction issues, in bytes: what a buffer must hold.
    pub fn max_block(&self) -> u64 {
        Ddir::ALL
            .iter()
            .filter(|d| self.access.rw.has(**d))
            .map(|d| self.access.bs.get(*d).max())
            .max()
            .unwrap_or(self.access.bs.read.max())
    }
}
