//! Where the blocks of a flat file lie in its window of the device.
//!
//! The file is cut into runs of equal length, and the runs lie in reverse order, so that no two
//! neighbours touch: the map has several entries whatever merges them. A run is at most as long as an
//! ext4 extent (32768 blocks), and a file of ordinary size has about 32 of them.

use cairn_extents::{Extent, Status};

/// Bytes in a block.
pub(crate) const BLOCK: u64 = 4096;

/// The same for memory.
pub(crate) const BLOCK_USIZE: usize = 4096;

/// Longest run: the length field of an ext4 extent.
const LONGEST_RUN: u32 = 32_768;

/// Runs a file is cut into unless they would become too long.
const RUNS: u32 = 32;

/// The fixed mapping of a file's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// First physical block.
    start: u64,
    /// Blocks of the file.
    blocks: u32,
    /// log2 of the blocks in a run.
    shift: u32,
    /// Runs of full length.
    full: u32,
}

impl Layout {
    /// A file of `blocks` blocks in the device's blocks from `start` on.
    pub(crate) fn new(start: u64, blocks: u32) -> Self {
        let run = (blocks / RUNS).clamp(1, LONGEST_RUN);
        let shift = run.ilog2();
        Self {
            start,
            blocks,
            shift,
            full: blocks >> shift,
        }
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The run that holds block `lblk`: its first block, its length and where it lies.
    #[inline]
    pub(crate) fn run(&self, lblk: u32) -> (u32, u32, u64) {
        let index = lblk >> self.shift;
        let first = index << self.shift;
        // The last run may be short; it stays last, so that the file fits its window exactly.
        let (slot, len) = if index < self.full {
            (self.full - 1 - index, 1 << self.shift)
        } else {
            (index, self.blocks - first)
        };
        (first, len, self.start + (u64::from(slot) << self.shift))
    }

    /// The run as an entry of the extent status cache.
    pub(crate) fn written(&self, lblk: u32) -> Extent {
        let (first, len, physical) = self.run(lblk);
        Extent {
            lblk: first,
            len,
            status: Status::Written(physical),
            referenced: false,
        }
    }

    /// First block of every run, in file order.
    pub(crate) fn run_starts(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.blocks).step_by(1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn maps_every_block_to_its_own_place(blocks in 1_u32..20_000, start in 0_u64..1000) {
            let layout = Layout::new(start, blocks);
            let mut seen = HashSet::new();
            for lblk in 0..blocks {
                let (first, len, physical) = layout.run(lblk);
                prop_assert!(first <= lblk && lblk - first < len);
                let place = physical + u64::from(lblk - first);
                prop_assert!((start..start + u64::from(blocks)).contains(&place));
                prop_assert!(seen.insert(place));
            }
        }
    }

    #[test]
    fn neighbouring_runs_never_touch() {
        for blocks in [2, 31, 64, 1000, 65_536, 1_310_720] {
            let layout = Layout::new(7, blocks);
            let runs: Vec<_> = layout.run_starts().map(|l| layout.run(l)).collect();
            for pair in runs.windows(2) {
                // The short rest behind the file's second-to-last run may follow it in place only
                // when there is just one full run.
                let touches = pair[0].2 + u64::from(pair[0].1) == pair[1].2;
                assert!(!touches || layout.full == 1, "{blocks} blocks: {pair:?}");
            }
        }
    }

    #[test]
    fn sizes_of_the_presets() {
        assert_eq!(Layout::new(0, 65_536).run_starts().count(), 32);
        assert_eq!(Layout::new(0, 1_310_720).run_starts().count(), 40);
        assert_eq!(Layout::new(0, 1).run(0), (0, 1, 0));
    }
}
