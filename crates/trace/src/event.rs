//! What a line of a trace says.

use core::fmt;

use cairn_extents::{Extent, Status};

/// A device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

/// Seconds (or ticks) and nanoseconds of a trace clock; only its order is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// The whole part.
    pub whole: u64,
    /// The fraction, in billionths.
    pub nanos: u32,
}

/// Who did it. A thread keeps its number when its name changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Thread id, 0 for the idle task.
    pub pid: u32,
    /// CPU, where the line has it.
    pub cpu: Option<u32>,
}

/// One line of a trace that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// An operation on the extent status cache.
    Es(EsEvent),
    /// Text that the workload wrote into the trace, without trailing blanks.
    Marker {
        /// When.
        time: Time,
        /// The text.
        text: &'a [u8],
    },
    /// Events were lost; 0 if their number is not known.
    Lost(u64),
    /// An event that does not concern the cache.
    Foreign,
    /// An event whose name begins like ours, but is not known.
    Unknown(&'a [u8]),
}

/// An operation on the extent status cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EsEvent {
    /// Who.
    pub task: Task,
    /// When.
    pub time: Time,
    /// On which device.
    pub dev: Device,
    /// What.
    pub op: Op,
}

/// A printed range with its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First block.
    pub lblk: u32,
    /// Blocks, possibly 0.
    pub len: u32,
    /// Status; without a block for delayed ranges and holes, whatever is printed there.
    pub status: Status,
}

/// What was done, or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// `ext4_es_insert_extent`.
    Insert {
        /// Inode.
        ino: u64,
        /// What became true.
        mapping: Mapping,
        /// Whether the line ends in a sequence number, as newer kernels print.
        has_seq: bool,
    },
    /// `ext4_es_cache_extent`.
    Cache {
        /// Inode.
        ino: u64,
        /// What was read.
        mapping: Mapping,
        /// Whether the line ends in a sequence number.
        has_seq: bool,
    },
    /// `ext4_es_insert_delayed_block` or `_extent`.
    InsertDelayed {
        /// Inode.
        ino: u64,
        /// First block.
        lblk: u32,
        /// Blocks.
        len: u32,
        /// The first block's cluster is allocated.
        start_alloc: bool,
        /// The last block's cluster is allocated.
        end_alloc: bool,
        /// Whether the line ends in a sequence number.
        has_seq: bool,
    },
    /// `ext4_es_remove_extent`.
    Remove {
        /// Inode.
        ino: u64,
        /// First block.
        lblk: u32,
        /// Blocks, cut at the end of the block space.
        len: u32,
    },
    /// `ext4_es_lookup_extent_enter`.
    LookupEnter {
        /// Inode.
        ino: u64,
        /// Block asked for.
        lblk: u32,
    },
    /// `ext4_es_lookup_extent_exit`.
    LookupExit {
        /// Inode.
        ino: u64,
        /// The entry found, as it was before the look-up.
        answer: Option<Extent>,
    },
    /// `ext4_es_find_extent_range_enter` and its older names.
    RangeEnter {
        /// Inode.
        ino: u64,
        /// Block to search from.
        lblk: u32,
    },
    /// `ext4_es_find_extent_range_exit` and its older names.
    RangeExit {
        /// Inode.
        ino: u64,
        /// The entry found.
        answer: Option<Extent>,
    },
    /// `ext4_es_shrink_count`.
    ShrinkCount {
        /// Asked for.
        nr_to_scan: u64,
        /// The approximate number of reclaimable entries.
        cache_cnt: i64,
    },
    /// `ext4_es_shrink_scan_enter`.
    ShrinkEnter {
        /// Entries to visit.
        nr_to_scan: u64,
        /// The approximate number of reclaimable entries.
        cache_cnt: i64,
    },
    /// `ext4_es_shrink_scan_exit`.
    ShrinkExit {
        /// Entries freed.
        nr_shrunk: u64,
        /// The approximate number of reclaimable entries.
        cache_cnt: i64,
    },
    /// `ext4_es_shrink`.
    Shrink {
        /// Entries freed.
        nr_shrunk: u64,
        /// Microseconds taken.
        scan_time: u64,
        /// Maps passed over.
        nr_skipped: u64,
        /// Whether there was a second pass.
        retried: bool,
    },
}
