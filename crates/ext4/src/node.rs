//! Nodes of extent trees: the header and both kinds of entries.

use crate::crc::crc;
use crate::error::{Error, Object, Result};
use crate::num::{low16, low32, part, put_u16, put_u32, u16_at, u32_at};
use crate::superblock::Geometry;

/// Magic number of a node.
const MAGIC: u16 = 0xf30a;
/// Bytes of the header, and of an entry.
pub(crate) const ENTRY: usize = 12;
/// Entries of the root.
pub(crate) const ROOT_ENTRIES: usize = 4;
/// Deepest tree that the format has.
pub(crate) const MAX_DEPTH: u16 = 5;
/// Longest written run.
pub(crate) const MAX_WRITTEN: u32 = 32_768;
/// Longest unwritten run.
pub(crate) const MAX_UNWRITTEN: u32 = 32_767;

/// A run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) lblk: u32,
    pub(crate) len: u32,
    pub(crate) start: u64,
    pub(crate) unwritten: bool,
}

impl Run {
    /// First logical block after it.
    pub(crate) const fn end(&self) -> u32 {
        self.lblk.saturating_add(self.len)
    }

    /// The part within `from..to`, if there is any.
    pub(crate) fn within(&self, from: u32, to: u32) -> Option<Self> {
        let (a, b) = (self.lblk.max(from), self.end().min(to));
        (a < b).then(|| Self {
            lblk: a,
            len: b - a,
            start: self.start + u64::from(a - self.lblk),
            unwritten: self.unwritten,
        })
    }

    /// Whether `next` goes on where this ends, and both fit one entry.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        let most = if self.unwritten {
            MAX_UNWRITTEN
        } else {
            MAX_WRITTEN
        };
        self.end() == next.lblk
            && self.start + u64::from(self.len) == next.start
            && self.unwritten == next.unwritten
            && self.len + next.len <= most
    }
}

/// An entry of an index node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) lblk: u32,
    pub(crate) block: u64,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entries {
    Leaf(Vec<Run>),
    Index(Vec<Child>),
}

/// Entries that a block has room for.
pub(crate) const fn capacity(geometry: &Geometry) -> usize {
    (geometry.block_size - ENTRY) / ENTRY
}

/// What is known of a node before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expect {
    pub(crate) ino: u32,
    /// The block, or 0 for the root in the inode.
    pub(crate) block: u64,
    /// `None` for the root, whose depth is its own.
    pub(crate) depth: Option<u16>,
    /// First logical block that it may have.
    pub(crate) from: u32,
}

impl Expect {
    pub(crate) const fn object(&self) -> Object {
        if self.block == 0 {
            Object::Inode(self.ino)
        } else {
            Object::ExtentBlock {
                ino: self.ino,
                block: self.block,
            }
        }
    }
}

/// Depth of a node, without a look at anything else.
pub(crate) fn depth(bytes: &[u8]) -> u16 {
    u16_at(bytes, 6)
}

/// Number of entries, without a look at anything else.
pub(crate) fn count(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, 2)).min(bytes.len() / ENTRY)
}

/// The run at `index` of a leaf.
#[inline]
pub(crate) fn run_at(bytes: &[u8], index: usize) -> Run {
    let at = ENTRY * (index + 1);
    let len = u32::from(u16_at(bytes, at + 4));
    let unwritten = len > MAX_WRITTEN;
    Run {
        lblk: u32_at(bytes, at),
        len: if unwritten { len - MAX_WRITTEN } else { len },
        start: u64::from(u32_at(bytes, at + 8)) | u64::from(u16_at(bytes, at + 6)) << 32,
        unwritten,
    }
}

/// The child at `index` of an index node.
#[inline]
pub(crate) fn child_at(bytes: &[u8], index: usize) -> Child {
    let at = ENTRY * (index + 1);
    Child {
        lblk: u32_at(bytes, at),
        block: u64::from(u32_at(bytes, at + 4)) | u64::from(u16_at(bytes, at + 8)) << 32,
    }
}

/// Number of entries whose first block is at or before `lblk`.
#[inline]
pub(crate) fn upper(bytes: &[u8], lblk: u32) -> usize {
    let (mut low, mut high) = (0, count(bytes));
    while low < high {
        let middle = usize::midpoint(low, high);
        if u32_at(bytes, ENTRY * (middle + 1)) <= lblk {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Checks a node, and its checksum if it is a block.
pub(crate) fn check(geometry: &Geometry, seed: u32, bytes: &[u8], expect: &Expect) -> Result<()> {
    let wrong = |why: String| Err(Error::corrupt(expect.object(), why));
    if u16_at(bytes, 0) != MAGIC {
        return wrong(format!(
            "extent node with magic {:#06x}, 0xf30a would be right",
            u16_at(bytes, 0)
        ));
    }
    let (entries, max) = (usize::from(u16_at(bytes, 2)), usize::from(u16_at(bytes, 4)));
    let most = if expect.block == 0 {
        ROOT_ENTRIES
    } else {
        capacity(geometry)
    };
    if max > most || max == 0 || entries > max {
        return wrong(format!(
            "extent node with {entries} of {max} entries, room for {most}"
        ));
    }
    let depth = depth(bytes);
    if expect.depth.map_or(depth > MAX_DEPTH, |d| d != depth) {
        return wrong(format!("extent node of depth {depth} where it cannot be"));
    }
    if depth > 0 && entries == 0 {
        return wrong("extent node without children".to_owned());
    }
    if expect.block != 0 && geometry.checksums {
        let at = ENTRY + ENTRY * max;
        let right = crc(seed, part(bytes, 0, at));
        if u32_at(bytes, at) != right {
            return wrong(format!(
                "checksum {:#010x}, {right:#010x} would be right",
                u32_at(bytes, at)
            ));
        }
    }
    let mut from = u64::from(expect.from);
    for index in 0..entries {
        if depth == 0 {
            let run = run_at(bytes, index);
            let end = u64::from(run.lblk) + u64::from(run.len);
            if u64::from(run.lblk) < from || run.len == 0 || end > u64::from(u32::MAX) {
                return wrong(format!(
                    "extent of {} blocks at {} after one that ends at {from}",
                    run.len, run.lblk
                ));
            }
            if !geometry.holds(run.start, u64::from(run.len)) {
                return wrong(format!(
                    "extent at {} maps {} blocks from {}, past the file system",
                    run.lblk, run.len, run.start
                ));
            }
            from = end;
        } else {
            let child = child_at(bytes, index);
            if u64::from(child.lblk) < from {
                return wrong(format!("index entry {} out of order", child.lblk));
            }
            if !geometry.holds(child.block, 1) {
                return wrong(format!(
                    "index entry {} leads to block {}",
                    child.lblk, child.block
                ));
            }
            from = u64::from(child.lblk) + 1;
        }
    }
    Ok(())
}

/// All entries of a node that was checked.
pub(crate) fn entries(bytes: &[u8]) -> Entries {
    let n = count(bytes);
    if depth(bytes) == 0 {
        Entries::Leaf((0..n).map(|i| run_at(bytes, i)).collect())
    } else {
        Entries::Index((0..n).map(|i| child_at(bytes, i)).collect())
    }
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf(runs) => runs.len(),
            Self::Index(children) => children.len(),
        }
    }

    /// First logical block.
    pub(crate) fn first(&self) -> u32 {
        match self {
            Self::Leaf(runs) => runs.first().map_or(0, |r| r.lblk),
            Self::Index(children) => children.first().map_or(0, |c| c.lblk),
        }
    }

    /// Keeps the first `at` entries and returns the others.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        match self {
            Self::Leaf(runs) => Self::Leaf(runs.split_off(at)),
            Self::Index(children) => Self::Index(children.split_off(at)),
        }
    }

    /// Writes the node; `bytes` is the root's field or a whole block.
    pub(crate) fn store(&self, bytes: &mut [u8], depth: u16, max: usize) {
        bytes.fill(0);
        put_u16(bytes, 0, MAGIC);
        put_u16(bytes, 2, low16(self.len() as u64));
        put_u16(bytes, 4, low16(max as u64));
        put_u16(bytes, 6, depth);
        match self {
            Self::Leaf(runs) => {
                for (index, run) in runs.iter().enumerate() {
                    let at = ENTRY * (index + 1);
                    let len = if run.unwritten {
                        run.len + MAX_WRITTEN
                    } else {
                        run.len
                    };
                    put_u32(bytes, at, run.lblk);
                    put_u16(bytes, at + 4, low16(u64::from(len)));
                    put_u16(bytes, at + 6, low16(run.start >> 32));
                    put_u32(bytes, at + 8, low32(run.start));
                }
            }
            Self::Index(children) => {
                for (index, child) in children.iter().enumerate() {
                    let at = ENTRY * (index + 1);
                    put_u32(bytes, at, child.lblk);
                    put_u32(bytes, at + 4, low32(child.block));
                    put_u16(bytes, at + 8, low16(child.block >> 32));
                }
            }
        }
    }

    /// The node as a whole block with its checksum.
    pub(crate) fn block(&self, geometry: &Geometry, seed: u32, depth: u16) -> Vec<u8> {
        let mut bytes = vec![0; geometry.block_size];
        let max = capacity(geometry);
        self.store(&mut bytes, depth, max);
        if geometry.checksums {
            let at = ENTRY + ENTRY * max;
            let sum = crc(seed, part(&bytes, 0, at));
            put_u32(&mut bytes, at, sum);
        }
        bytes
    }
}

/// The field of an inode without blocks.
pub(crate) fn empty_root(bytes: &mut [u8]) {
    Entries::Leaf(Vec::new()).store(bytes, 0, ROOT_ENTRIES);
}
