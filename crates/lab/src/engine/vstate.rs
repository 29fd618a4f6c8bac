//! What a job that verifies leaves for a later run: fio's state file, version 3.
//!
//! The file says how many writes the job issued and which of them were the last to complete, so that a later job that
//! reads knows where to stop: a write that was issued and did not complete may be there or not. All numbers are little
//! endian.
//!
//! ```text
//! header  u64 version 3, u64 length of the rest, u64 CRC32C of the rest (not inverted at the end)
//! rest    u64 completions listed, u32 depth, u32 files, u64 writes issued, u64 number of the job,
//!         56 bytes of a random generator, 64 bytes of the job's name,
//!         then for each completion, the latest first: u64 number of the file, u64 offset
//! ```
//!
//! The generator's bytes stay zero: fio reads them and does nothing with them, and its generator is not this one.

use std::collections::{BTreeMap, VecDeque};

use cairn_fio::job::{Ddir, Job, VerifyKind};

use super::digest;

const VERSION: u64 = 3;

/// Bytes before the rest.
const HEADER: usize = 24;

/// Bytes of the rest before the list of completions.
const FIXED: usize = 152;

/// Where in the rest the name stands, and how long it is.
const NAME: std::ops::Range<usize> = 88..152;

/// Bytes of a completion.
const ENTRY: usize = 16;

/// Most completions that a file may list: far more than any queue is deep.
const MOST: usize = 1 << 20;

/// The name of the file of a job, `number` counting the clones of the run from 0.
pub(crate) fn file_name(job: &str, number: u32) -> String {
    format!("local-{}-{number}-verify.state", job.replace('/', "."))
}

/// Whether a job leaves such a file.
pub(crate) fn saves(job: &Job) -> bool {
    let verify = &job.verify;
    verify.kind != VerifyKind::None
        && verify.state_save
        && !verify.only
        && job.access.rw.has(Ddir::Write)
}

/// The last writes of a job that completed.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Offsets by file, the latest at the end.
    files: BTreeMap<usize, VecDeque<u64>>,
    /// How many of each file are kept.
    depth: usize,
}

impl Recent {
    /// Keeps this many of each file.
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            files: BTreeMap::new(),
            depth,
        }
    }

    /// A write to a file completed.
    pub(crate) fn add(&mut self, file: usize, offset: u64) {
        if self.depth == 0 {
            return;
        }
        let list = self.files.entry(file).or_default();
        if list.len() >= self.depth {
            list.pop_front();
        }
        list.push_back(offset);
    }

    /// File and offset of each, the latest of a file first.
    pub(crate) fn list(&self) -> Vec<(u64, u64)> {
        let of = |(file, list): (&usize, &VecDeque<u64>)| {
            let file = *file as u64;
            list.iter().rev().map(move |at| (file, *at)).collect()
        };
        self.files
            .iter()
            .flat_map(|f| -> Vec<_> { of(f) })
            .collect()
    }
}

/// Where a job stood when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct State {
    pub(crate) depth: u32,
    pub(crate) files: u32,
    /// Writes issued.
    pub(crate) writes: u64,
    /// Number of the clone in the run, from 0.
    pub(crate) number: u64,
    pub(crate) name: String,
    /// File and offset of the last completed writes.
    pub(crate) completed: Vec<(u64, u64)>,
}

impl State {
    /// The file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::with_capacity(FIXED + ENTRY * self.completed.len());
        rest.extend((self.completed.len() as u64).to_le_bytes());
        rest.extend(self.depth.to_le_bytes());
        rest.extend(self.files.to_le_bytes());
        rest.extend(self.writes.to_le_bytes());
        rest.extend(self.number.to_le_bytes());
        rest.resize(NAME.start, 0);
        // One byte of the name's room ends it.
        rest.extend(self.name.bytes().take(NAME.len() - 1));
        rest.resize(NAME.end, 0);
        for (file, offset) in &self.completed {
            rest.extend(file.to_le_bytes());
            rest.extend(offset.to_le_bytes());
        }
        let sum = u64::from(digest::header(&rest) ^ u32::MAX);
        let head = [VERSION, rest.len() as u64, sum];
        let mut all: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
        all.append(&mut rest);
        all
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, with what would be right.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let Some((head, rest)) = bytes.split_at_checked(HEADER) else {
            return Err(format!(
                "{} bytes are shorter than the header of {HEADER}",
                bytes.len()
            ));
        };
        let version = long(head, 0);
        if version != VERSION {
            return Err(format!("version {version} is not {VERSION}"));
        }
        let len = long(head, 8);
        if len != rest.len() as u64 || rest.len() < FIXED {
            return Err(format!(
                "{} bytes follow the header, which says {len}; {FIXED} is the least",
                rest.len()
            ));
        }
        let sum = u64::from(digest::header(rest) ^ u32::MAX);
        if long(head, 16) != sum {
            return Err(format!(
                "its checksum is {sum:#x}, and {:#x} is written in it",
                long(head, 16)
            ));
        }
        let count = long(rest, 0);
        let list = rest.get(FIXED..).unwrap_or_default();
        if count > MOST as u64 || list.len() as u64 != count * ENTRY as u64 {
            return Err(format!(
                "{count} completions do not fill {} bytes",
                list.len()
            ));
        }
        let name = rest.get(NAME).unwrap_or_default();
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "the halves of a long")]
        let halves = (long(rest, 8) as u32, (long(rest, 8) >> 32) as u32);
        Ok(Self {
            depth: halves.0,
            files: halves.1,
            writes: long(rest, 16),
            number: long(rest, 24),
            name: String::from_utf8_lossy(name).into_owned(),
            completed: list
                .chunks_exact(ENTRY)
                .map(|entry| (long(entry, 0), long(entry, 8)))
                .collect(),
        })
    }

    /// Whether a job that has read `done` blocks is to stop before this one, as it may not have been written.
    pub(crate) fn ends_at(&self, done: u64, file: usize, offset: u64) -> bool {
        let depth = u64::from(self.depth);
        let open = self.writes.saturating_sub(done);
        // Well before the end every write has completed.
        if self.writes > depth && (done < depth || open > depth) {
            return false;
        }
        !self.completed.contains(&(file as u64, offset))
    }
}

/// The number that begins at a byte; what is missing is zero.
fn long(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    for (to, from) in number.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut recent = Recent::new(2);
        for at in [0, 4096, 8192] {
            recent.add(0, at);
        }
        recent.add(1, 512);
        State {
            depth: 2,
            files: 2,
            writes: 4,
            number: 1,
            name: "w".to_owned(),
            completed: recent.list(),
        }
    }

    #[test]
    fn what_was_saved_is_loaded() {
        let state = state();
        assert_eq!(state.completed, [(0, 8192), (0, 4096), (1, 512)]);
        let bytes = state.encode();
        assert_eq!(bytes.len(), 24 + 152 + 3 * 16);
        assert_eq!(State::decode(&bytes).unwrap(), state);
        assert_eq!(file_name("a/b", 3), "local-a.b-3-verify.state");
    }

    #[test]
    fn a_damaged_file_is_refused_whatever_byte_is_wrong() {
        let bytes = state().encode();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(State::decode(&bad).is_err(), "byte {at}");
            assert!(State::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_file_of_fio_itself() {
        // Sixteen writes of 4 KiB in order at depth 1 by fio 3.33; the random state is all zeros there.
        let mut bytes = vec![0_u8; 192];
        for (at, value) in [
            (0, 3_u64),
            (8, 168),
            (16, 0x9f1d_e9c4),
            (24, 1),
            (32, 0x1_0000_0001),
            (40, 16),
            (112, 0x77),
            (184, 0xf000),
        ] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let state = State::decode(&bytes).unwrap();
        assert_eq!((state.writes, state.depth, state.files), (16, 1, 1));
        assert_eq!(
            (state.name.as_str(), &state.completed[..]),
            ("w", &[(0, 0xf000)][..])
        );
        assert_eq!(state.encode(), bytes);
    }

    #[test]
    fn reading_stops_behind_the_last_write() {
        let state = State {
            depth: 1,
            files: 1,
            writes: 8,
            completed: vec![(0, 7 * 4096)],
            ..State::default()
        };
        let first = (0..16).find(|n| state.ends_at(*n, 0, n * 4096));
        assert_eq!(first, Some(8));
        // One that was issued last and did not complete.
        let cut = State {
            completed: vec![(0, 6 * 4096)],
            ..state
        };
        assert_eq!((0..16).find(|n| cut.ends_at(*n, 0, n * 4096)), Some(7));
    }
}
