//! How a value of each kind reaches its field.

use std::time::Duration;

use crate::job::{Amount, Job};
use crate::value::{Bare, Reason, Triple};

/// Kind of a value together with what it does to the job.
pub(crate) enum Set {
    /// Nothing, 0 or 1; alone it is 1 and stays out of JSON.
    Flag(fn(&mut Job, bool)),
    /// 0 or 1.
    Bool(fn(&mut Job, bool)),
    /// A number from .. to.
    Int(u64, u64, fn(&mut Job, u64)),
    /// One to three numbers from .. to.
    Sizes(u64, u64, fn(&mut Job, Triple<u64>)),
    /// Bytes or percent.
    Amount(fn(&mut Job, Amount)),
    /// A time.
    Time(Bare, fn(&mut Job, Duration)),
    /// A text that must be there.
    Text(fn(&mut Job, &str)),
    /// A text or nothing.
    OptText(fn(&mut Job, &str)),
    /// One of some words.
    Words(&'static [&'static str], fn(&mut Job, &str)),
    /// Anything else, with what it takes in words.
    Custom(&'static str, fn(&mut Job, &str) -> Result<(), Reason>),
    /// Not supported, and why.
    Refused(&'static str),
}

/// Largest value of fio's plain integers.
pub(super) const U32: u64 = u32::MAX as u64;

/// Into 32 bits; the table's limits keep the value in range.
pub(super) fn n32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Into 8 bits; for percentages, which the table limits to 100.
pub(super) fn n8(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// Stores a word in a field whose type knows it.
macro_rules! word {
    ($type:ty, $($field:ident).+) => {
        Set::Words(<$type>::WORDS, |job, word| {
            if let Some(value) = <$type>::from_word(word) {
                job.$($field).+ = value;
            }
        })
    };
}
pub(super) use word;

/// Stores a bool.
macro_rules! flag {
    ($($field:ident).+) => { Set::Flag(|job, on| job.$($field).+ = on) };
}
pub(super) use flag;

/// Stores a bool.
macro_rules! boolean {
    ($($field:ident).+) => { Set::Bool(|job, on| job.$($field).+ = on) };
}
pub(super) use boolean;
