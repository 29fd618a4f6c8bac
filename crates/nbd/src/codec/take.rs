//! Big-endian fields off the front of a slice.

/// The rest of a slice; every taker answers `None` when too little is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// A string behind its `u32` length, which is compared before anything is computed with it.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u32()?).ok()?;
        self.bytes(len)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A length as the wire has it.
///
/// What this crate sends is bounded far below 4 GiB, so saturating never happens.
pub(crate) fn len32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_past_the_end() {
        let mut take = Take(&[0, 0, 0, 2, b'a', b'b', 1]);
        assert_eq!(take.counted(), Some(&b"ab"[..]));
        assert_eq!(take.u16(), None);
        assert_eq!(take.array::<1>(), Some([1]));
        assert!(take.is_empty());
        assert_eq!(Take(&[0xff; 4]).counted(), None);
    }
}
