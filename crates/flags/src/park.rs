//! Sleeping on a word and waking by its address.
//!
//! Two ways with one contract: [`wait`] sleeps only if the word still holds the value given, and a
//! wake-up that comes after the word has changed finds every sleeper that went to sleep before the
//! change. `u32` words on 64-bit Linux use the futex; everything else, and the models, a table of
//! condition variables.

use std::time::Instant;

use crate::word::Word;

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(loom)))]
mod futex;
mod table;

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A wake-up came, or the system made one up.
    Woken,
    /// The word had changed before.
    Changed,
    /// The deadline passed.
    TimedOut,
}

/// Whether `deadline` has passed.
pub(crate) fn expired(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| Instant::now() >= at)
}

/// Whether words of this width sleep in the futex.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(loom)))]
const fn by_futex<W: Word>() -> bool {
    W::BITS == 32
}

/// Sleeps under `label` unless the word differs from `seen`.
pub(crate) fn wait<W: Word>(
    cell: &W::Atomic,
    seen: W,
    label: u32,
    deadline: Option<Instant>,
) -> Outcome {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(loom)))]
    if by_futex::<W>() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the word has 32 bits, as by_futex says"
        )]
        let seen = seen.to_u64() as u32;
        return futex::wait((&raw const *cell).cast(), seen, 1 << label, deadline);
    }
    table::wait::<W>(cell, seen, label, deadline)
}

/// Wakes one sleeper under `label`, or more.
pub(crate) fn wake_one<W: Word>(address: *const (), label: u32) {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(loom)))]
    if by_futex::<W>() {
        futex::wake(address, 1, 1 << label);
        return;
    }
    table::wake_one(address, label);
}

/// Wakes all sleepers under `label`.
pub(crate) fn wake_all<W: Word>(address: *const (), label: u32) {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(loom)))]
    if by_futex::<W>() {
        futex::wake(address, i32::MAX, 1 << label);
        return;
    }
    table::wake_all(address, label);
}
