//! Memory of one slot, and how slots are named to people.

use std::fmt;
use std::sync::atomic::AtomicU64;

/// Words in one line pair.
pub(crate) const LINE_WORDS: usize = 16;

/// `L` line pairs that one thread or CPU writes.
///
/// Two lines of 64 bytes, since x86 prefetchers fetch lines in aligned pairs (Intel's optimisation manual, "spatial
/// prefetcher") and some arm64 and POWER cores have lines of 128 bytes.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slot<const L: usize>([[AtomicU64; LINE_WORDS]; L]);

impl<const L: usize> Slot<L> {
    /// All zero.
    fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; LINE_WORDS] }; L])
    }

    /// `n` slots, all zero.
    pub(crate) fn many(n: usize) -> Box<[Self]> {
        (0..n).map(|_| Self::new()).collect()
    }

    /// One word of the slot.
    #[inline(always)]
    #[expect(
        clippy::indexing_slicing,
        reason = "word numbers are constants of a type or of counter_group!, which sizes L to hold them"
    )]
    pub(crate) fn word(&self, word: usize) -> &AtomicU64 {
        &self.0[word / LINE_WORDS][word % LINE_WORDS]
    }

    /// Zeroes every word.
    pub(crate) fn clear(&mut self) {
        for word in self.0.as_flattened_mut() {
            *word.get_mut() = 0;
        }
    }

    /// Sets one word.
    pub(crate) fn set(&mut self, word: usize, value: u64) {
        if let Some(word) = self.0.as_flattened_mut().get_mut(word) {
            *word.get_mut() = value;
        }
    }
}

/// Whose slot it is.
///
/// Displays as the row label of a table: `cpu 3`, `thread 0`, `overflow 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SlotLabel {
    /// Written by whatever runs on this CPU.
    Cpu(u32),
    /// Written by whatever holds this per-process concurrency id.
    Cid(u32),
    /// Written by the thread that owns this id (an id of this crate, not of the system).
    Thread(u32),
    /// Shared by threads that hash here.
    Stripe(u32),
    /// Shared by threads and CPUs that have no slot of their own.
    Overflow(u32),
    /// What went past all slots: adds before there were any, and, for a batched counter, amounts of a whole
    /// batch or more.
    Base,
}

impl fmt::Display for SlotLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(n) => write!(f, "cpu {n}"),
            Self::Cid(n) => write!(f, "cid {n}"),
            Self::Thread(n) => write!(f, "thread {n}"),
            Self::Stripe(n) => write!(f, "stripe {n}"),
            Self::Overflow(n) => write!(f, "overflow {n}"),
            Self::Base => f.write_str("base"),
        }
    }
}

/// What one slot of a counter holds, for a row of a table or a bar of a chart.
///
/// The values of all slots of a counter add up to its sum (modulo 2^64).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotValue<T> {
    /// Whose slot it is.
    pub label: SlotLabel,
    /// What it holds.
    pub value: T,
    /// The part of `value` that a batched counter's approximate read does not show yet; 0 for other types.
    pub pending: T,
}
