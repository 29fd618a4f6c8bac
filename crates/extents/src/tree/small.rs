//! Up to four runs without a node: two buffers, of which one is current.
//!
//! The version says which: bit 1. The writer fills the other one and then raises the version, so a
//! reader is disturbed only by the change after the next, and then the version has changed. A
//! writer that is put to sleep in the middle of a change disturbs nobody.

use crate::sync::{AtomicU64, Ordering};
use crate::value::{Item, Run, Value};

/// Runs that fit.
pub(super) const SMALL_RUNS: usize = 4;

/// Boundaries that the runs can have, with the gaps around them.
pub(super) const SMALL_ITEMS: usize = 2 * SMALL_RUNS + 1;

const WORDS: usize = 2 * SMALL_RUNS;

/// Start and exclusive end, then the value, for each run in order; 0 and 0 for none.
type Buffer = [AtomicU64; WORDS];

pub(super) struct Small {
    buffers: [Buffer; 2],
    /// Four bits for each buffer.
    marks: AtomicU64,
}

fn pack(start: u32, end: u32) -> u64 {
    u64::from(start) << 32 | u64::from(end)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of the word")]
fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn which(version: u64) -> usize {
    usize::from(version & 2 != 0)
}

impl Small {
    pub(super) fn new() -> Self {
        Self {
            buffers: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            marks: AtomicU64::new(0),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "two buffers")]
    fn buffer(&self, version: u64) -> &Buffer {
        &self.buffers[which(version)]
    }

    /// The run that contains `lblk` in the buffer current at `version`, and the bit of its mark.
    /// The caller checks that the version did not change meanwhile.
    #[inline]
    pub(super) fn run_at(&self, version: u64, lblk: u32) -> (Run, Option<u32>) {
        let mut unknown = Run::unknown(0, u32::MAX);
        let bits = 4 * u32::from(version & 2 != 0)..;
        for (bit, words) in bits.zip(self.buffer(version).chunks_exact(2)) {
            let [ends, value] = words else { break };
            let (start, end) = unpack(ends.load(Ordering::Relaxed));
            if start == end {
                break;
            }
            if lblk < start {
                unknown.end = start;
                break;
            }
            if lblk < end {
                let value = Value::from_word(value.load(Ordering::Relaxed));
                return (Run::new(start, end, value, false), Some(bit));
            }
            unknown.start = end;
        }
        (unknown, None)
    }

    /// Whether a run was marked; `mark` marks it.
    #[inline]
    pub(super) fn mark(&self, bit: u32, mark: bool) -> bool {
        let was = self.marks.load(Ordering::Relaxed) >> bit & 1 != 0;
        if was || !mark {
            return was;
        }
        self.marks.fetch_or(1 << bit, Ordering::Relaxed) >> bit & 1 != 0
    }

    /// Takes the mark of the run with this number off.
    pub(super) fn unmark(&self, version: u64, at: u32) {
        let bit = 4 * u32::from(version & 2 != 0) + at;
        self.marks.fetch_and(!(1 << bit), Ordering::Relaxed);
    }

    /// The runs current at `version`, as boundaries from block 0 on. Only by the writer.
    pub(super) fn items(&self, version: u64, mut put: impl FnMut(Item)) {
        let mut gap_at = 0;
        for (at, words) in (0..).zip(self.buffer(version).chunks_exact(2)) {
            let [ends, value] = words else { break };
            let (start, end) = unpack(ends.load(Ordering::Relaxed));
            if start == end {
                break;
            }
            if start > gap_at {
                put(unknown_from(gap_at));
            }
            put(Item {
                key: start,
                value: Value::from_word(value.load(Ordering::Relaxed)),
                referenced: self.mark(4 * u32::from(version & 2 != 0) + at, false),
            });
            gap_at = end;
        }
        if gap_at < u32::MAX {
            put(unknown_from(gap_at));
        }
    }

    /// Writes the runs between `items` into the buffer that is current after `version`. At most
    /// [`SMALL_RUNS`] of them are known.
    pub(super) fn fill(&self, version: u64, items: &[Item]) {
        let next = version.wrapping_add(2);
        let mut words = self.buffer(next).iter();
        let mut marks = 0;
        let mut at = 0;
        for (i, item) in items.iter().enumerate() {
            if !item.value.is_known() {
                continue;
            }
            let end = items.get(i + 1).map_or(u32::MAX, |next| next.key);
            if let (Some(ends), Some(value)) = (words.next(), words.next()) {
                ends.store(pack(item.key, end), Ordering::Relaxed);
                value.store(item.value.word(), Ordering::Relaxed);
            }
            marks |= u64::from(item.referenced) << at;
            at += 1;
        }
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
        let shift = 4 * u32::from(next & 2 != 0);
        self.marks.fetch_and(!(0xf << shift), Ordering::Relaxed);
        self.marks.fetch_or(marks << shift, Ordering::Relaxed);
    }
}

fn unknown_from(key: u32) -> Item {
    Item {
        key,
        value: Value::UNKNOWN,
        referenced: false,
    }
}
