#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod audit;
mod buffer;
mod cache;
mod error;
mod head;
mod index;
mod layer;
mod probe;
mod recent;
mod state;
mod stats;
mod writeback;

pub use audit::Broken;
pub use buffer::BufferRef;
pub use cache::{BufferCache, CacheConfig, Handle, HeadInfo, SharedCache};
pub use cairn_flags::{NoProbe, SetPolicy};
pub use error::BufferError;
pub use head::Head;
pub use layer::{CacheLayer, register};
pub use probe::{BitCount, CountingProbe};
pub use state::{AtomicBhState, BhState, WAITERS_BIT, bit_names};
pub use stats::BufferStats;
