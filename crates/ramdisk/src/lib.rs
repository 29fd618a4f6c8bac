#![doc = include_str!("../README.md")]

#[expect(unsafe_code, reason = "zeroed words become atomic ones")]
mod bitmap;
mod clear;
mod config;
#[expect(
    unsafe_code,
    reason = "bytes are copied to and from memory that others use too"
)]
mod map;
mod mapped;
mod memory;
mod ram;
mod register;
mod space;
mod store;
mod stripes;

pub use config::{Backing, RamConfig, RamError, Reserve};
pub use ram::Ram;
pub use register::register;
