//! create, close, unlink as the buffer cache sees it.
//!
//! The sequence was recorded from Linux 6.18 (ext4 without journal, steady state, a name that was not
//! used before): per file 14 look-ups and 14 dirty calls on four buffers that all tasks share, three
//! look-ups of the directory's block in the extent status cache and one removal. Each dirty call sets
//! Meta, Prio and Uptodate, which are set already: 42 set calls for nothing.

use std::sync::Arc;

use cairn_buffer::{BufferCache, BufferError, BufferRef};
use cairn_extents::{ExtentMap, MAX_BLOCK, Status};
use cairn_flags::Probe;

use crate::switches::Switches;

/// The shared buffers, by what they are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Block {
    /// Inode bitmap.
    Ib,
    /// Group descriptors.
    Gd,
    /// Inode table.
    It,
    /// Directory.
    Dir,
}

impl Block {
    /// Block number in the file system that was recorded (1 GiB, 4 KiB blocks, one directory).
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Gd => 1,
            Self::Ib => 137,
            Self::It => 145,
            Self::Dir => 4247,
        }
    }
}

/// Blocks that the pattern's area must have.
pub(crate) const AREA_BLOCKS: u64 = 4248;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Look the buffer up.
    Touch(Block),
    /// Mark the buffer dirty.
    Dirty(Block),
    /// Look the directory's block 0 up in the extent status cache.
    Look,
    /// Empty the removed inode's extent map.
    Remove,
}

use Block::{Dir, Gd, Ib, It};
use Step::{Dirty, Look, Remove, Touch};

/// One file, from the look-up of its name to the end of its inode.
#[rustfmt::skip]
pub(crate) const TRIPLE: [Step; 32] = [
    // Is there such a name?
    Look, Touch(Dir),
    // create: find a free inode, take it, fill it in.
    Touch(Ib), Touch(It), Dirty(Ib), Dirty(Gd), Touch(It), Dirty(It), Touch(It), Dirty(It),
    // Enter it in the directory; both inodes change.
    Look, Touch(Dir), Touch(It), Dirty(It), Dirty(Dir), Touch(It), Dirty(It),
    // unlink: the other way round.
    Look, Touch(Dir), Dirty(Dir), Touch(It), Dirty(It), Touch(It), Dirty(It),
    // evict: the inode goes, then its bit.
    Touch(It), Dirty(It), Touch(It), Dirty(It), Remove, Touch(Ib), Dirty(Gd), Dirty(Ib),
];

/// How often a kind of step occurs.
const fn count(kind: u8) -> u64 {
    let mut n = 0;
    let mut rest = TRIPLE.as_slice();
    while let Some((step, later)) = rest.split_first() {
        let this = match step {
            Touch(_) => 0,
            Dirty(_) => 1,
            Look => 2,
            Remove => 3,
        };
        if this == kind {
            n += 1;
        }
        rest = later;
    }
    n
}

/// Buffer look-ups for each file.
pub(crate) const TOUCHES: u64 = count(0);
/// Dirty calls for each file.
pub(crate) const DIRTIES: u64 = count(1);
/// Look-ups in the extent status cache for each file.
pub(crate) const LOOKS: u64 = count(2);
/// Set calls for each file: Meta, Prio and Uptodate at each dirty call.
pub(crate) const SETS: u64 = 3 * DIRTIES;

/// Inode of the directory.
pub(crate) const DIR_INO: u64 = 12;

/// What a task works on.
pub(crate) struct Pattern<P: Probe> {
    buffers: Arc<BufferCache<P>>,
    /// First block of the area.
    base: u64,
    dir: Arc<ExtentMap>,
    /// The map of the inode that comes and goes.
    inode: Arc<ExtentMap>,
    switches: Arc<Switches>,
}

impl<P: Probe> Pattern<P> {
    pub(crate) fn new(
        buffers: Arc<BufferCache<P>>,
        base: u64,
        dir: Arc<ExtentMap>,
        inode: Arc<ExtentMap>,
        switches: Arc<Switches>,
    ) -> Self {
        Self {
            buffers,
            base,
            dir,
            inode,
            switches,
        }
    }

    /// The directory's one block, as the file system has it mapped.
    pub(crate) fn map_dir(dir: &ExtentMap) {
        // A legal range, and nothing is reserved.
        let _ = dir.insert(0, 1, Status::Written(Block::Dir.number()));
    }

    /// Holds the buffers as a mounted file system does, and works on them.
    ///
    /// # Errors
    /// A buffer that cannot be read.
    pub(crate) fn held(&self) -> Result<Held<'_, P>, BufferError> {
        let get = |block: Block| self.buffers.get(self.base + block.number());
        Ok(Held {
            pattern: self,
            refs: [get(Ib)?, get(Gd)?, get(It)?, get(Dir)?],
        })
    }
}

/// A task with its references.
pub(crate) struct Held<'p, P: Probe> {
    pattern: &'p Pattern<P>,
    /// The reference last had of each block, ib, gd, it, dir.
    refs: [BufferRef<'p, P>; 4],
}

impl<'p, P: Probe> Held<'p, P> {
    /// Creates, closes and removes one file.
    ///
    /// # Errors
    /// A buffer that was given up and cannot be read again.
    #[inline]
    pub(crate) fn triple(&mut self) -> Result<(), BufferError> {
        let pattern = self.pattern;
        for step in TRIPLE {
            match step {
                Touch(block) => {
                    let found = pattern.buffers.get(pattern.base + block.number())?;
                    *self.slot(block) = found;
                }
                Dirty(block) => self.slot(block).mark_dirty(),
                Look => {
                    if pattern.switches.extent_cache() {
                        std::hint::black_box(pattern.dir.lookup(0));
                    }
                }
                Remove => {
                    // Nothing was delayed, so nothing is released.
                    let _ = pattern.inode.remove(0, MAX_BLOCK);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn slot(&mut self, block: Block) -> &mut BufferRef<'p, P> {
        let [ib, gd, it, dir] = &mut self.refs;
        match block {
            Ib => ib,
            Gd => gd,
            It => it,
            Dir => dir,
        }
    }
}
