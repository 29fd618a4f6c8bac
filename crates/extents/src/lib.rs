#![doc = include_str!("../README.md")]

mod cache;
mod config;
mod counters;
mod error;
mod info;
mod map;
mod modify;
pub mod reference;
mod seq;
mod types;

pub use cache::{ExtentCache, Scan};
pub use config::{Config, DroppedDelayed, Generation, Rules};
pub use counters::{CounterMode, CounterReport, Counters, Reading, SlotRow};
pub use error::{Error, ShiftReason};
pub use info::{Averages, Info, Largest};
pub use map::{ExtentMap, Iter, Modify};
pub use types::{
    Cached, Extent, Kind, Loaded, Lookup, MAX_BLOCK, MAX_PHYSICAL, Match, Released, Status,
};
