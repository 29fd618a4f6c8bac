//! Blocks in the order a job lists them: `random_distribution=sequence:2,0,1`.

use std::sync::Arc;

use cairn_fio::job::Distribution;

/// A list of blocks that is worked through over and over.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    blocks: Arc<[u64]>,
    /// Each round lies behind the one before, by as many blocks as the list has.
    stride: bool,
}

impl Listed {
    /// The list of a distribution; an empty one of any other.
    pub(crate) fn new(distribution: &Distribution, stride: bool) -> Self {
        let blocks: &[u64] = match distribution {
            Distribution::Sequence(blocks) => blocks,
            _ => &[],
        };
        Self {
            blocks: blocks.into(),
            stride,
        }
    }

    /// The block of I/O number `n`, from the start again past the last of `places`.
    pub(crate) fn block(&self, n: u64, places: u64) -> Option<u64> {
        let len = self.blocks.len() as u64;
        let at = usize::try_from(n.checked_rem(len)?).ok()?;
        let round = if self.stride { n - n % len } else { 0 };
        let block = round.wrapping_add(*self.blocks.get(at)?);
        block.checked_rem(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(stride: bool, places: u64) -> Vec<Option<u64>> {
        let listed = Listed::new(&Distribution::Sequence(vec![2, 0, 1]), stride);
        (0..7).map(|n| listed.block(n, places)).collect()
    }

    #[test]
    fn a_list_is_repeated_or_moves_on() {
        assert_eq!(blocks(false, 12), [2, 0, 1, 2, 0, 1, 2].map(Some));
        assert_eq!(blocks(true, 12), [2, 0, 1, 5, 3, 4, 8].map(Some));
        // Past the end it begins again.
        assert_eq!(blocks(true, 4), [2, 0, 1, 1, 3, 0, 0].map(Some));
        assert_eq!(blocks(true, 0), [None; 7]);
        let none = Listed::new(&Distribution::Uniform, true);
        assert_eq!(none.block(0, 5), None);
    }
}
