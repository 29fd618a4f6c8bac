//! What the buffers hold.
//!
//! By default fio fills a buffer with random bytes once and then changes a little of it before each
//! write, so that no two blocks are equal and neither compression nor deduplication below can cheat.
//! Here each 512 byte piece gets its own offset in the file and the number of the write, which also
//! lets a reader check what it finds.

use cairn_fio::job::{Buffers, Pattern, PatternPart};
use fastrand::Rng;

/// Bytes that get a stamp of their own.
pub(crate) const PIECE: usize = 512;

/// How buffers are prepared before a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Left as they are.
    Keep,
    /// Zeros.
    Zero,
    /// Stamped a little.
    Scramble,
    /// Filled anew.
    Refill,
    /// A pattern, with the block's offset where the parts say so.
    Pattern(Vec<Part>),
}

/// A piece of a pattern whose files have been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    Offset,
}

impl Fill {
    /// The way a job asks for; a pattern's files are read here.
    ///
    /// # Errors
    /// The file that cannot be read, and why.
    pub(crate) fn new(buffers: &Buffers) -> Result<Self, (String, std::io::Error)> {
        if let Some(pattern) = &buffers.pattern {
            let parts = parts(pattern)?;
            if parts.iter().any(|p| *p != Part::Bytes(Vec::new())) {
                return Ok(Self::Pattern(parts));
            }
        }
        Ok(match buffers {
            b if b.zero => Self::Zero,
            b if b.refill => Self::Refill,
            b if b.scramble => Self::Scramble,
            _ => Self::Keep,
        })
    }
}

/// A pattern with its files read.
///
/// # Errors
/// The file that cannot be read, and why.
pub(crate) fn parts(pattern: &Pattern) -> Result<Vec<Part>, (String, std::io::Error)> {
    let mut parts = Vec::new();
    for part in &pattern.parts {
        parts.push(match part {
            PatternPart::Bytes(bytes) => Part::Bytes(bytes.clone()),
            PatternPart::Offset => Part::Offset,
            PatternPart::File(path) => {
                Part::Bytes(std::fs::read(path).map_err(|e| (path.clone(), e))?)
            }
        });
    }
    Ok(parts)
}

/// A worker's buffer and what fills it.
#[derive(Debug)]
pub(crate) struct Filler {
    buf: Vec<u8>,
    fill: Fill,
    rng: Rng,
    writes: u64,
}

impl Filler {
    /// A buffer of `len` bytes, filled once.
    pub(crate) fn new(len: usize, fill: Fill, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut buf = vec![0; len];
        if fill != Fill::Zero {
            rng.fill(&mut buf);
        }
        Self {
            buf,
            fill,
            rng,
            writes: 0,
        }
    }

    /// The buffer to read `len` bytes into.
    #[inline]
    pub(crate) fn for_read(&mut self, len: u64) -> &mut [u8] {
        let len = usize::try_from(len)
            .unwrap_or(usize::MAX)
            .min(self.buf.len());
        self.buf.get_mut(..len).unwrap_or_default()
    }

    /// The bytes to write at `offset` of a file, to be changed once more where they are.
    #[inline]
    pub(crate) fn for_write(&mut self, offset: u64, len: u64) -> &mut [u8] {
        let len = usize::try_from(len)
            .unwrap_or(usize::MAX)
            .min(self.buf.len());
        let buf = self.buf.get_mut(..len).unwrap_or_default();
        self.writes = self.writes.wrapping_add(1);
        match &self.fill {
            Fill::Keep => {}
            Fill::Zero => buf.fill(0),
            Fill::Scramble => stamp(buf, offset, self.writes),
            Fill::Refill => self.rng.fill(buf),
            Fill::Pattern(parts) => lay(buf, parts, offset),
        }
        buf
    }
}

/// Writes offset and number into the head of each piece.
#[inline]
fn stamp(buf: &mut [u8], offset: u64, number: u64) {
    let mut at = offset;
    for piece in buf.chunks_mut(PIECE) {
        if let Some(head) = piece.first_chunk_mut::<16>() {
            let both = u128::from(number) << 64 | u128::from(at);
            *head = both.to_le_bytes();
        }
        at = at.wrapping_add(PIECE as u64);
    }
}

/// Repeats the parts over the buffer.
pub(crate) fn lay(buf: &mut [u8], parts: &[Part], offset: u64) {
    if parts.iter().all(|p| *p == Part::Bytes(Vec::new())) {
        return;
    }
    let number = offset.to_ne_bytes();
    let mut rest = buf;
    'buffer: loop {
        for part in parts {
            let bytes: &[u8] = match part {
                Part::Bytes(bytes) => bytes,
                Part::Offset => &number,
            };
            let n = bytes.len().min(rest.len());
            let (now, later) = rest.split_at_mut(n);
            now.copy_from_slice(bytes.get(..n).unwrap_or_default());
            rest = later;
            if rest.is_empty() {
                break 'buffer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_scrambled_blocks_are_equal_and_each_tells_its_offset() {
        let mut filler = Filler::new(4096, Fill::Scramble, 1);
        let first = filler.for_write(8192, 4096).to_vec();
        let second = filler.for_write(8192, 4096).to_vec();
        assert_ne!(first, second);
        for (i, piece) in first.chunks(PIECE).enumerate() {
            let at = u64::from_le_bytes(*piece.first_chunk().unwrap());
            assert_eq!(at, 8192 + (i * PIECE) as u64);
        }
    }

    #[test]
    fn refilled_blocks_follow_the_seed() {
        let blocks = |seed| {
            let mut filler = Filler::new(64, Fill::Refill, seed);
            (
                filler.for_write(0, 64).to_vec(),
                filler.for_write(0, 64).to_vec(),
            )
        };
        assert_eq!(blocks(1), blocks(1));
        assert_ne!(blocks(1), blocks(2));
        assert_ne!(blocks(1).0, blocks(1).1);
    }

    #[test]
    fn a_pattern_is_repeated_with_the_offset_in_place() {
        let parts = vec![Part::Bytes(vec![1, 2]), Part::Offset];
        let mut filler = Filler::new(25, Fill::Pattern(parts), 1);
        let mut want = Vec::new();
        for _ in 0..3 {
            want.extend([1, 2]);
            want.extend(77_u64.to_ne_bytes());
        }
        want.truncate(25);
        assert_eq!(filler.for_write(77, 25), want);
    }

    #[test]
    fn zero_and_kept_buffers() {
        let mut zero = Filler::new(8, Fill::Zero, 1);
        zero.for_read(8).fill(9);
        assert_eq!(zero.for_write(0, 8), [0; 8]);
        let mut keep = Filler::new(8, Fill::Keep, 1);
        let first = keep.for_write(0, 8).to_vec();
        assert_eq!(keep.for_write(512, 8), first);
        assert_eq!(keep.for_write(0, 99).len(), 8);
    }
}
