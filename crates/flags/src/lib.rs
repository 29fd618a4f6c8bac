#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(feature = "std", test, loom)), no_std)]
#![allow(
    unsafe_code,
    reason = "the futex call, an empty inline-assembly block and the unsafe retract of a publish bit"
)]
#![allow(
    clippy::inline_always,
    reason = "masks and orderings must arrive as constants, or single-bit RMWs become loops"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "flag sets are integers; bitflags passes them by value too, Copy or not"
)]

mod atomic;
mod check;
mod layout;
mod lock;
mod macros;
mod ops;
#[cfg(any(feature = "std", loom))]
mod park;
mod policy;
mod probe;
mod roles;
mod sync;
#[cfg(feature = "std")]
mod tally;
#[cfg(any(feature = "std", loom))]
mod wait;
mod word;

pub use atomic::AtomicFlags;
pub use layout::{Role, StateBit};
pub use lock::BitGuard;
pub use policy::{PolicyCell, SetPolicy, UnknownPolicy};
pub use probe::{NoProbe, Probe};
#[cfg(feature = "std")]
pub use tally::{BitCount, Tally};
pub use word::{Storage, Word};

#[doc(hidden)]
pub mod __private {
    //! What the expansion of `state_bits!` names. No part of the public interface.

    pub use bitflags::bitflags;
    pub use core::sync::atomic::Ordering;
    pub use pastey::paste;

    pub use crate::atomic::write_names;
    pub use crate::check::{bit, check_layout};
    #[cfg(feature = "std")]
    pub use crate::tally::{Counts, Kind, NOBODY, enter};
}
