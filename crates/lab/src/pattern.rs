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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use cairn_buffer::{CacheConfig, CountingProbe};
    use cairn_extents::{Config, ExtentCache};
    use cairn_flags::SetPolicy;

    use super::*;

    /// The steps of a capture, in order.
    fn recorded() -> Vec<Step> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/traces/buffers/creatclo_nojournal.trace.gz"
        );
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        let block = |line: &str| {
            let number: u64 = line
                .split("sector=")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next())
                .unwrap()
                .parse()
                .unwrap();
            [Ib, Gd, It, Dir]
                .into_iter()
                .find(|b| b.number() == number)
                .unwrap_or_else(|| panic!("another block: {line}"))
        };
        text.lines()
            .skip_while(|l| !l.contains("OP creatclo"))
            .filter_map(|line| {
                if line.contains(" block_touch_buffer: ") {
                    Some(Touch(block(line)))
                } else if line.contains(" block_dirty_buffer: ") {
                    Some(Dirty(block(line)))
                } else if line.contains(" ext4_es_lookup_extent_exit: ") {
                    assert!(line.contains("ino 12 found 1 [0/1) 4247 W"), "{line}");
                    Some(Look)
                } else if line.contains(" ext4_es_remove_extent: ") {
                    assert!(line.contains("es [0/4294967295)"), "{line}");
                    Some(Remove)
                } else {
                    None
                }
            })
            .collect()
    }

    #[test]
    fn the_sequence_is_the_one_that_the_kernel_made() {
        let recorded = recorded();
        // The first 50 names had been used before: there the look for the name is answered from
        // memory. The other 50 are fresh.
        let used = &TRIPLE[2..];
        let want: Vec<Step> = std::iter::repeat_n(used, 50)
            .chain(std::iter::repeat_n(&TRIPLE[..], 50))
            .flatten()
            .copied()
            .collect();
        assert_eq!(recorded.len(), want.len());
        for (at, (got, want)) in recorded.iter().zip(&want).enumerate() {
            assert_eq!(got, want, "step {at}");
        }
    }

    #[test]
    fn the_counts_are_those_of_the_measurement() {
        assert_eq!((TOUCHES, DIRTIES, SETS, LOOKS), (14, 14, 42, 3));
        let dirty = |block| TRIPLE.iter().filter(|s| **s == Dirty(block)).count();
        assert_eq!([Ib, Gd, It, Dir].map(dirty), [2, 2, 8, 2]);
    }

    #[test]
    fn a_counting_run_does_what_the_definition_says() {
        let mut registry = cairn_block::Registry::new();
        cairn_ramdisk::register(&mut registry);
        let stack = registry.open("ram(32m)").unwrap();
        let buffers = BufferCache::<CountingProbe>::probed(
            Arc::clone(stack.device()),
            CacheConfig::new(4096, 64),
        );
        let buffers = Arc::new(buffers.unwrap());
        let cache = ExtentCache::new(Config::new());
        let dir = cache.map(DIR_INO);
        Pattern::<CountingProbe>::map_dir(&dir);
        let pattern = Pattern::new(
            Arc::clone(&buffers),
            0,
            dir,
            cache.map(13),
            Arc::new(Switches::new()),
        );
        let mut held = pattern.held().unwrap();
        held.triple().unwrap();
        for policy in [SetPolicy::AlwaysRmw, SetPolicy::CheckFirst] {
            buffers.set_policy(policy);
            let before = (CountingProbe::counts(), buffers.stats(), cache.info());
            let n = 100;
            for _ in 0..n {
                held.triple().unwrap();
            }
            let after = (CountingProbe::counts(), buffers.stats(), cache.info());
            let (mut rmws, mut avoided) = (0, 0);
            for (now, then) in after.0.iter().zip(&before.0) {
                let bit = now.since(then);
                match now.name {
                    "META" | "PRIO" | "UPTODATE" => {
                        rmws += bit.rmw;
                        avoided += bit.avoided;
                    }
                    // The fourth thing a dirty call does: it finds the buffer dirty.
                    "DIRTY" => assert_eq!(bit.asked(), n * DIRTIES),
                    _ => assert_eq!(bit.asked(), 0, "{}", now.name),
                }
            }
            let want = match policy {
                SetPolicy::AlwaysRmw => (n * SETS, 0),
                SetPolicy::CheckFirst => (0, n * SETS),
            };
            assert_eq!((rmws, avoided), want, "{policy}");
            assert_eq!(after.1.hits - before.1.hits, n * TOUCHES);
            assert_eq!(after.2.hits - before.2.hits, n * LOOKS);
            assert_eq!(after.2.misses, before.2.misses);
        }
    }
}
