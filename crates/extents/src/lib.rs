#![doc = include_str!("../README.md")]

#[allow(unsafe_code, reason = "hands out raw memory of nodes")]
mod arena;
mod audit;
#[allow(unsafe_code, reason = "calls membarrier(2)")]
#[cfg_attr(loom, path = "models/barrier.rs")]
mod barrier;
mod cache;
mod config;
mod counters;
mod error;
mod info;
mod leaf;
#[allow(unsafe_code, reason = "keeps uninitialised memory on the stack")]
mod list;
#[allow(unsafe_code, reason = "vouches for being the only writer of its tree")]
mod map;
#[cfg(all(test, loom))]
#[allow(unsafe_code, reason = "vouches for being the only writer of a tree")]
mod models;
mod modify;
#[allow(unsafe_code, reason = "holds a slot that outlives its thread")]
#[cfg_attr(loom, path = "models/pin.rs")]
mod pin;
#[allow(unsafe_code, reason = "follows a list of leaked slots")]
mod reclaim;
pub mod reference;
mod seq;
mod sync;
#[allow(unsafe_code, reason = "reads and writes nodes through raw links")]
mod tree;
mod types;
mod value;

pub use arena::MemoryReport;
pub use audit::Broken;
pub use cache::{ExtentCache, Scan};
pub use cairn_percpu::BackendKind;
pub use config::{Config, DroppedDelayed, Generation, Rules};
pub use counters::{CounterMode, CounterReport, Counters, Reading, SlotRow};
pub use error::{Error, ShiftReason};
pub use info::{Averages, Info, Largest};
pub use map::{Cursor, ExtentMap, Iter, Modify, Reader};
pub use types::{
    Cached, Extent, Kind, Loaded, Lookup, MAX_BLOCK, MAX_PHYSICAL, Match, Released, Status,
};
