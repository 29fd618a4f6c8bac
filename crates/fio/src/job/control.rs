//! Clones, order, time and ends.

use std::time::Duration;

use crate::words::words;

words! {
    /// `exit_what=`: what `exitall` ends.
    pub enum ExitWhat {
        /// The group.
        Group = "group",
        /// Up to the next stonewall.
        Stonewall = "stonewall",
        /// Everything.
        All = "all",
    }
}

words! {
    /// `continue_on_error=`: which errors do not end the job.
    pub enum ErrorMask {
        /// None (default).
        None = "none" | "0",
        /// Of reads.
        Read = "read",
        /// Of writes.
        Write = "write",
        /// Of reads and writes.
        Io = "io",
        /// Verify mismatches.
        Verify = "verify",
        /// All.
        All = "all" | "1",
    }
}

words! {
    /// `cpus_allowed_policy=`.
    pub enum CpusPolicy {
        /// All clones share the set.
        Shared = "shared",
        /// Each clone gets one CPU of it.
        Split = "split",
    }
}

/// Clones, order, time and ends.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Control {
    /// `numjobs=` (default 1).
    pub numjobs: u32,
    /// `thread`: a thread instead of a process.
    pub thread: bool,
    /// `stonewall`: wait for all jobs before this one.
    pub stonewall: bool,
    /// `new_group`: a new reporting group without waiting.
    pub new_group: bool,
    /// `wait_for=`: name of a job to wait for.
    pub wait_for: Option<String>,
    /// `startdelay=`: smallest and largest delay; drawn when they differ.
    pub startdelay: (Duration, Duration),
    /// `runtime=`; zero is none.
    pub runtime: Duration,
    /// `time_based`: repeat until the runtime is over.
    pub time_based: bool,
    /// `ramp_time=`: run this long before measuring.
    pub ramp_time: Duration,
    /// `loops=` (default 1).
    pub loops: u32,
    /// `exitall`: all jobs end when this one does.
    pub exitall: bool,
    /// `exit_what=`.
    pub exit_what: ExitWhat,
    /// `exitall_on_error`.
    pub exitall_on_error: bool,
    /// `continue_on_error=`.
    pub continue_on_error: ErrorMask,
    /// `cpus_allowed=` or `cpumask=`, as CPU numbers; empty is all.
    pub cpus_allowed: Vec<u32>,
    /// `cpus_allowed_policy=`.
    pub cpus_policy: CpusPolicy,
    /// `flow=`: weight in flow control; 0 is none.
    pub flow: u32,
    /// `flow_id=`: which flow.
    pub flow_id: u32,
    /// `flow_sleep=`: pause after being held back.
    pub flow_sleep: Duration,
    /// `exec_prerun=`: a command of this machine; an engine should ask for leave before it runs one.
    pub exec_prerun: Option<String>,
    /// `exec_postrun=`.
    pub exec_postrun: Option<String>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            numjobs: 1,
            thread: false,
            stonewall: false,
            new_group: false,
            wait_for: None,
            startdelay: (Duration::ZERO, Duration::ZERO),
            runtime: Duration::ZERO,
            time_based: false,
            ramp_time: Duration::ZERO,
            loops: 1,
            exitall: false,
            exit_what: ExitWhat::Group,
            exitall_on_error: false,
            continue_on_error: ErrorMask::None,
            cpus_allowed: Vec::new(),
            cpus_policy: CpusPolicy::Shared,
            flow: 0,
            flow_id: 0,
            flow_sleep: Duration::ZERO,
            exec_prerun: None,
            exec_postrun: None,
        }
    }
}
