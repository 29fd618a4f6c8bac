//! What the buffers hold.
//!
//! By default fio fills a buffer with random bytes once and then changes a little of it before each
//! write, so that no two blocks are equal and neither compression nor deduplication below can cheat.
//! Here each 512 byte piece gets its own offset in the file and the number of the write, which also
//! lets a reader check what it finds.

use cairn_fio::job::{Amount, DedupeMode, Job, Pattern, PatternPart};
use fastrand::Rng;

use super::generate::mix;

/// What the buffers are aligned to.
const PAGE: usize = 4096;

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
    /// Filled anew so that a part of it compresses, and a part of the buffers repeats.
    Shaped(Shape),
}

/// How well buffers compress, and how many of them repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Percent of each piece that is the same everywhere, and what stands there: zeros without parts.
    same: usize,
    piece: usize,
    parts: Vec<Part>,
    /// Percent of the buffers that are one that was written before.
    repeats: u8,
    /// Seeds of the buffers that repeats are chosen from: so many, from this seed on. With none a repeat is
    /// the buffer before.
    set: (u64, u64),
    last: u64,
}

impl Shape {
    /// The shape that a job asks for, if any.
    fn new(job: &Job, parts: Vec<Part>, seed: u64) -> Option<Self> {
        let b = &job.buffers;
        let same = b.compress_percent.filter(|n| *n > 0);
        let repeats = b.dedupe_percent.unwrap_or(0);
        if b.zero || (same.is_none() && repeats == 0) {
            return None;
        }
        let blocks = match job.extent.size {
            Some(Amount::Bytes(n)) => n / job.min_block().max(1),
            _ => 1 << 20,
        };
        let set = match b.dedupe_mode {
            DedupeMode::Repeat => 0,
            DedupeMode::WorkingSet => {
                (blocks.saturating_mul(u64::from(b.dedupe_working_set_percent)) / 100).max(1)
            }
        };
        let from = if b.dedupe_global { 0 } else { seed };
        Some(Self {
            same: usize::from(same.unwrap_or(0).min(100)),
            piece: usize::try_from(b.compress_chunk)
                .unwrap_or(usize::MAX)
                .max(1),
            parts,
            repeats,
            set: (set, from),
            last: seed,
        })
    }

    /// Fills a buffer that goes to `offset`.
    fn fill(&mut self, buf: &mut [u8], offset: u64, rng: &mut Rng) {
        let repeated = self.repeats > 0 && rng.u8(0..100) < self.repeats;
        let seed = match (repeated, self.set) {
            (true, (0, _)) => self.last,
            (true, (set, from)) => mix(from, rng.u64(0..set), 11),
            (false, _) => rng.u64(..),
        };
        self.last = seed;
        let mut content = Rng::with_seed(seed);
        for piece in buf.chunks_mut(self.piece) {
            let random = piece.len() - piece.len() * self.same / 100;
            let (random, same) = piece.split_at_mut(random);
            content.fill(random);
            if self.parts.is_empty() {
                same.fill(0);
            } else {
                lay(same, &self.parts, offset);
            }
        }
    }
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
    pub(crate) fn new(job: &Job, seed: u64) -> Result<Self, (String, std::io::Error)> {
        let buffers = &job.buffers;
        let parts = match &buffers.pattern {
            Some(pattern) => parts(pattern)?,
            None => Vec::new(),
        };
        let parts = if parts.iter().all(|p| *p == Part::Bytes(Vec::new())) {
            Vec::new()
        } else {
            parts
        };
        if let Some(shape) = Shape::new(job, parts.clone(), seed) {
            return Ok(Self::Shaped(shape));
        }
        if !parts.is_empty() {
            return Ok(Self::Pattern(parts));
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
    /// A page more than is used.
    buf: Vec<u8>,
    /// Where in it the bytes begin: at a page, as direct I/O wants it, and as a copy from page to page is
    /// fastest.
    from: usize,
    len: usize,
    fill: Fill,
    rng: Rng,
    writes: u64,
}

impl Filler {
    /// A buffer of `len` bytes, filled once.
    pub(crate) fn new(len: usize, fill: Fill, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut buf = vec![0; len + PAGE];
        let from = buf.as_ptr().align_offset(PAGE).min(PAGE);
        if fill != Fill::Zero {
            rng.fill(buf.get_mut(from..from + len).unwrap_or_default());
        }
        Self {
            buf,
            from,
            len,
            fill,
            rng,
            writes: 0,
        }
    }

    /// The buffer to read `len` bytes into.
    #[inline]
    pub(crate) fn for_read(&mut self, len: u64) -> &mut [u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(self.len);
        let part = self.from..self.from + len;
        self.buf.get_mut(part).unwrap_or_default()
    }

    /// The bytes to write at `offset` of a file, to be changed once more where they are.
    #[inline]
    pub(crate) fn for_write(&mut self, offset: u64, len: u64) -> &mut [u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(self.len);
        let part = self.from..self.from + len;
        let buf = self.buf.get_mut(part).unwrap_or_default();
        self.writes = self.writes.wrapping_add(1);
        match &mut self.fill {
            Fill::Keep => {}
            Fill::Zero => buf.fill(0),
            Fill::Scramble => stamp(buf, offset, self.writes),
            Fill::Refill => self.rng.fill(buf),
            Fill::Pattern(parts) => lay(buf, parts, offset),
            Fill::Shaped(shape) => shape.fill(buf, offset, &mut self.rng),
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
    fn buffers_begin_at_a_page() {
        let mut filler = Filler::new(5000, Fill::Keep, 1);
        let buf = filler.for_write(0, 5000);
        assert_eq!((buf.len(), buf.as_ptr().addr() % PAGE), (5000, 0));
        assert_eq!(filler.for_read(9999).as_ptr().addr() % PAGE, 0);
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

    fn shaped(text: &str) -> Filler {
        let text = format!("[j]\nrw=write\nsize=4m\nbs=4k\n{text}\n");
        let plan = cairn_fio::parse_job_text("t", &text).unwrap();
        Filler::new(4096, Fill::new(&plan.jobs[0], 5).unwrap(), 1)
    }

    #[test]
    fn as_much_of_each_piece_compresses_as_was_asked_for() {
        let mut filler = shaped("buffer_compress_percentage=75\nbuffer_compress_chunk=1k");
        for piece in filler.for_write(0, 4096).chunks(1024) {
            assert!(piece[256..].iter().all(|b| *b == 0));
            assert!(piece[..256].iter().map(|b| u32::from(*b == 0)).sum::<u32>() < 16);
        }
        let mut filler = shaped("buffer_compress_percentage=50\nbuffer_pattern=0xab");
        let buf = filler.for_write(0, 4096);
        assert!(buf[256..512].iter().all(|b| *b == 0xab) && buf[..256] != buf[512..768]);
    }

    #[test]
    fn as_many_buffers_repeat_as_was_asked_for() {
        let different = |text: &str| {
            let mut filler = shaped(text);
            let mut seen = std::collections::HashSet::new();
            for i in 0..2000_u64 {
                seen.insert(filler.for_write(i * 4096, 4096).to_vec());
            }
            seen.len()
        };
        let n = different("dedupe_percentage=60");
        assert!((740..860).contains(&n), "{n}");
        assert_eq!(different("dedupe_percentage=100"), 1);
        // A set of 5 % of 1024 blocks.
        let n = different("dedupe_percentage=100\ndedupe_mode=working_set");
        assert_eq!(n, 51);
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
