//! Values as fio reads them: sizes, times, ranges, lists, patterns.
//!
//! fio's units surprise: with its default base `4k` and `4kb` are 4096 while `4kib` is 4000, that is the
//! `i` forms with a `b` are decimal. This module reads them the way fio does, and refuses what fio would
//! read as something other than it says (`1.5m`, `10sec`, `4kfoo`).

mod arith;
mod list;
mod pattern;
mod units;

pub use arith::evaluate;
pub use list::{Triple, bssplit, floats, names, range, ranges, sizes, zones};
pub use pattern::pattern;
pub use units::{Bare, amount, duration, number, size};

/// What was wrong with a value and what would be right; the caller adds the option and the place.
pub type Reason = String;
