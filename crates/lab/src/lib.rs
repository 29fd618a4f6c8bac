#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod sample;

pub use sample::*;
