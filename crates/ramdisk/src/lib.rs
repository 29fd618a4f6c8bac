#![doc = include_str!("../README.md")]

#[expect(unsafe_code, reason = "zeroed memory becomes atomic words")]
mod bitmap;
mod clear;
mod config;
mod copy;
mod error;
mod fill;
mod guard;
#[expect(
    unsafe_code,
    reason = "bytes are copied to and from memory that others use too"
)]
mod map;
mod mapped;
mod memory;
mod quick;
mod ram;
mod recent;
mod register;
mod save;
mod space;
mod store;
mod stripes;
#[cfg(test)]
mod stripes_tests;
mod sync;
mod thread;
mod volatile;

pub use config::{Backing, FileIo, Fill, HugePage, Numa, RamConfig, Reserve};
pub use error::RamError;
pub use ram::Ram;
pub use register::register;
pub use volatile::VolatileRam;
