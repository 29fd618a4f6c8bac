//! The engine, its depth, and what is flushed when.

use crate::job::engine::IoEngine;
use crate::words::words;

words! {
    /// `io_submit_mode=`.
    pub enum SubmitMode {
        /// The job's own thread submits.
        Inline = "inline",
        /// A pool of threads submits.
        Offload = "offload",
    }
}

/// Engine and depth.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// `ioengine=` (default psync).
    pub ioengine: IoEngine,
    /// `iodepth=` (default 1).
    pub iodepth: u32,
    /// `iodepth_batch=` (default 1): I/Os submitted in one go; 0 means as many as fit.
    pub batch: u32,
    /// `iodepth_batch_complete_min=` (default 1): completions reaped at least.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max=`: completions reaped at most; `None` means as the minimum.
    pub batch_complete_max: Option<u32>,
    /// `iodepth_low=`: fill the queue again when it has drained to this; `None` means `iodepth`.
    pub iodepth_low: Option<u32>,
    /// `serialize_overlap=` (default 0): I/Os that overlap one in flight wait for it.
    pub serialize_overlap: bool,
    /// `io_submit_mode=`.
    pub submit_mode: SubmitMode,
    /// `direct=` (default 0); `buffered=` is its negation, and the last one given wins.
    pub direct: bool,
    /// `atomic=` (default 0).
    pub atomic: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            ioengine: IoEngine::Psync,
            iodepth: 1,
            batch: 1,
            batch_complete_min: 1,
            batch_complete_max: None,
            iodepth_low: None,
            serialize_overlap: false,
            submit_mode: SubmitMode::Inline,
            direct: false,
            atomic: false,
        }
    }
}

impl Queue {
    /// Depth the engine really reaches: 1 for the synchronous ones unless submission is offloaded.
    pub fn effective_depth(&self) -> u32 {
        if self.ioengine.is_async() || self.submit_mode == SubmitMode::Offload {
            self.iodepth.max(1)
        } else {
            1
        }
    }
}

words! {
    /// `sync=`: whether each write is durable when it completes.
    pub enum SyncIo {
        /// No.
        None = "none" | "0",
        /// Data and metadata (`O_SYNC`).
        Sync = "sync" | "1",
        /// Data (`O_DSYNC`).
        Dsync = "dsync",
    }
}

/// `sync_file_range=write:N` and its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncFileRange {
    /// Every this many writes; 0 is never.
    pub every: u32,
    /// Wait for write-out already under way.
    pub wait_before: bool,
    /// Start write-out.
    pub write: bool,
    /// Wait for it.
    pub wait_after: bool,
}

/// Flushes and synchronous writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Durability {
    /// `fsync=`: every this many writes; 0 is never.
    pub fsync: u32,
    /// `fdatasync=`: every this many writes; 0 is never.
    pub fdatasync: u32,
    /// `sync_file_range=`.
    pub sync_file_range: SyncFileRange,
    /// `write_barrier=`: every this many writes; 0 is never.
    pub write_barrier: u32,
    /// `end_fsync=` (default 0): once at the end of the job.
    pub end_fsync: bool,
    /// `fsync_on_close=` (default 0): at each close.
    pub fsync_on_close: bool,
    /// `sync=` (default none).
    pub sync: SyncIo,
}

impl Default for Durability {
    fn default() -> Self {
        Self {
            fsync: 0,
            fdatasync: 0,
            sync_file_range: SyncFileRange::default(),
            write_barrier: 0,
            end_fsync: false,
            fsync_on_close: false,
            sync: SyncIo::None,
        }
    }
}
