//! Why an operation was refused. Nothing changed, whatever the reason.

use core::fmt;

/// Why an operation was refused; the map is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The range ends past the last legal block.
    Range {
        /// First block asked for.
        lblk: u32,
        /// Blocks asked for.
        len: u32,
    },
    /// The physical run does not fit in 48 bits.
    Physical {
        /// First logical block.
        lblk: u32,
        /// Blocks.
        len: u32,
        /// First physical block.
        physical: u64,
    },
    /// Delayed and unwritten at once, in a map that was not built for it.
    LegacyStatus {
        /// First logical block.
        lblk: u32,
        /// Blocks.
        len: u32,
    },
    /// The map changed since the sequence number was read, or is about to.
    Stale {
        /// The number the caller holds.
        expected: u64,
        /// The number of the map.
        current: u64,
        /// Whether the range lies under a modification token.
        modifying: bool,
    },
    /// A leaf's entries are out of order, overlap or leave the leaf's range.
    Unordered {
        /// Where the entry must start at the earliest.
        at_least: u32,
        /// Where it may end at the latest (exclusive).
        at_most: u32,
        /// Where it starts.
        lblk: u32,
        /// Its length.
        len: u32,
    },
    /// Entries cannot be moved there.
    Shift {
        /// First block to move.
        from: u32,
        /// How far.
        by: u32,
        /// What is in the way.
        reason: ShiftReason,
    },
    /// The map's arena is used up.
    NoMemory,
}

/// What stands in the way of moving entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShiftReason {
    /// A block number would leave the legal range.
    OutOfRange,
    /// Something is known of the blocks that the entries would move onto.
    Occupied,
    /// Start or distance is no multiple of the cluster size.
    Unaligned,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Range { lblk, len } => write!(
                f,
                "{len} blocks from {lblk} end past block 4294967294, the last that can be known"
            ),
            Self::Physical {
                lblk,
                len,
                physical,
            } => write!(
                f,
                "{len} blocks from {lblk} at physical block {physical}: the run must end below 2^48 - 1"
            ),
            Self::LegacyStatus { lblk, len } => write!(
                f,
                "{len} blocks from {lblk} are delayed and unwritten at once: only a map built with legacy_ud takes them"
            ),
            Self::Stale {
                expected,
                current,
                modifying: false,
            } => write!(
                f,
                "sequence number {expected} is stale, the map is at {current}: map the blocks again"
            ),
            Self::Stale {
                current, modifying, ..
            } => {
                debug_assert!(modifying);
                write!(
                    f,
                    "the range is being modified (sequence number {current}): map the blocks again afterwards"
                )
            }
            Self::Unordered {
                at_least,
                at_most,
                lblk,
                len,
            } => write!(
                f,
                "leaf entry of {len} blocks at {lblk} must hold at least one block and lie within {at_least}..{at_most}"
            ),
            Self::Shift { from, by, reason } => {
                write!(f, "cannot move the entries from block {from} by {by}: ")?;
                f.write_str(match reason {
                    ShiftReason::OutOfRange => "a block number would leave 0..4294967295",
                    ShiftReason::Occupied => {
                        "something is known of the blocks they would move onto, remove it first"
                    }
                    ShiftReason::Unaligned => "both must be multiples of the cluster size",
                })
            }
            Self::NoMemory => f.write_str("no memory for the map, nothing was changed"),
        }
    }
}

impl std::error::Error for Error {}
