//! Invariants of what lies below the workloads, checked by the sampler while everything runs.
//!
//! One of the three is looked at each [`PACE`], and each look is bounded, so that no worker waits for more
//! than a moment. What another thread may change between two looks is compared under its lock, if that is
//! free, or only when the sequence numbers say that nobody did: a fault that is told is one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_extents::{Extent, ExtentCache, ExtentMap, Reading, Status};

use crate::files::AnyFile;
use crate::layout::BLOCK;
use crate::shared::Shared;
use crate::tasks::Buffers;

/// Time between two checks; each of the three comes around once a second.
const PACE: Duration = Duration::from_millis(333);

/// Entries that one check of the extents walks over.
const ENTRIES: u32 = 4096;

/// Maps whose entries are summed up; more take too long to be looked at in one moment.
const MAPS: usize = 1024;

/// What checks came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Check {
    /// There was nothing to check yet.
    #[default]
    Nothing,
    /// It held, for so many things at the last look.
    Held(u64),
    /// It did not hold: where, and what would have been right. Stays so.
    Broken(Arc<str>),
}

impl Check {
    /// What did not hold.
    pub fn broken(&self) -> Option<&str> {
        match self {
            Self::Broken(what) => Some(what),
            Self::Nothing | Self::Held(_) => None,
        }
    }

    fn take(&mut self, found: Result<u64, String>) {
        if self.broken().is_some() {
            return;
        }
        *self = match found {
            // With nothing to look at this time, what was seen before stands.
            Ok(0) => return,
            Ok(n) => Self::Held(n),
            Err(what) => Self::Broken(what.into()),
        };
    }
}

/// The invariants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// Entries of the files' extent maps: as many as counted, in order, inside the device, and no block of
    /// the device twice.
    pub extents: Check,
    /// References of the buffer cache: each leads to a buffer of its block that was not given up, and what
    /// waits to be written has valid data.
    pub references: Check,
    /// Counters: the approximate value of each within its bound of the exact sum, which never goes back, and
    /// no more entries in the maps than are counted.
    pub sums: Check,
}

impl Checks {
    /// The invariants with their names.
    pub fn all(&self) -> [(&'static str, &Check); 3] {
        [
            ("extents", &self.extents),
            ("references", &self.references),
            ("sums", &self.sums),
        ]
    }

    /// The first that did not hold, by name, and what was found.
    pub fn broken(&self) -> Option<(&'static str, &str)> {
        let mut all = self.all().into_iter();
        all.find_map(|(name, check)| Some((name, check.broken()?)))
    }
}

/// Makes the checks, one at a time.
pub(crate) struct Checker {
    last: Instant,
    turn: u32,
    /// The file that is next, and the block that its check goes on from.
    next: (usize, u32),
    /// Largest batch of the counters so far: slots may hold what it allowed.
    batch: u32,
    done: Checks,
}

impl Checker {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last: now,
            turn: 0,
            next: (0, 0),
            batch: 0,
            done: Checks::default(),
        }
    }

    /// Makes a check if it is time, and tells what all came to.
    pub(crate) fn take(&mut self, shared: &Shared, now: Instant) -> Checks {
        if now.saturating_duration_since(self.last) >= PACE {
            self.last = now;
            self.turn = self.turn.wrapping_add(1);
            match self.turn % 3 {
                0 => {
                    let found = self.extents(shared);
                    self.done.extents.take(found);
                }
                1 => {
                    let found = shared.audited.as_ref().map_or(Ok(0), Buffers::audit);
                    self.done.references.take(found);
                }
                _ => {
                    let workers: usize = shared.workloads.iter().map(|w| w.workers).sum();
                    let found = self.sums(&shared.cache, workers);
                    self.done.sums.take(found);
                }
            }
        }
        self.done.clone()
    }

    /// Looks at the next file's entries, and compares those of all files if they are few.
    fn extents(&mut self, shared: &Shared) -> Result<u64, String> {
        let files = &shared.files;
        let blocks = shared.stack.device().info().len / BLOCK;
        let (at, from) = self.next;
        let Some((path, file)) = files.get(at).or_else(|| files.first()) else {
            return Ok(0);
        };
        let named = |what: String| format!("{path}: {what}");
        let seq = file.map().seq();
        let (entries, rest) = if from == 0 {
            match file.map().audit(ENTRIES) {
                Some(Ok(entries)) => (entries, None),
                Some(Err(broken)) => return Err(named(broken.to_string())),
                None => walk(file.map(), from),
            }
        } else {
            walk(file.map(), from)
        };
        self.next = match rest {
            Some(rest) => (at, rest),
            None => ((at + 1) % files.len(), 0),
        };
        inside(&entries, blocks).map_err(named)?;
        if file.map().is_current(seq) {
            apart(entries.iter()).map_err(named)?;
        }
        let lens: u64 = files.iter().map(|(_, f)| u64::from(f.map().len())).sum();
        if files.len() == 1 || lens > u64::from(ENTRIES) {
            return Ok(entries.len() as u64);
        }
        all_apart(files)
    }

    /// Compares each counter's readings, and the entries of all maps with their count.
    fn sums(&mut self, cache: &ExtentCache, workers: usize) -> Result<u64, String> {
        let (first, second) = (cache.counters().report(), cache.counters().report());
        self.batch = self.batch.max(first.batch).max(second.batch);
        // Between its commit and its addition to the approximate value, an add hides no more than a residue
        // and its own amount.
        let under_way = (workers as u64 + 1) * 2 * u64::from(self.batch);
        for (name, one, two) in [
            ("hits", first.hits, second.hits),
            ("misses", first.misses, second.misses),
        ] {
            close(name, one, two, under_way)?;
        }
        match cache.audit(MAPS) {
            Some(Ok(maps)) => Ok(2 + maps as u64),
            Some(Err(broken)) => Err(broken.to_string()),
            None => Ok(2),
        }
    }
}

/// Entries from a block on, as they are one after the other, and where the rest begins.
fn walk(map: &ExtentMap, from: u32) -> (Vec<Extent>, Option<u32>) {
    let mut entries = Vec::new();
    for extent in map.iter_from(from) {
        if entries.len() == ENTRIES as usize {
            return (entries, Some(extent.lblk));
        }
        entries.push(extent);
    }
    (entries, None)
}

/// The place of an entry on the device.
fn place(extent: &Extent) -> Option<u64> {
    match extent.status {
        Status::Written(at) | Status::Unwritten(at) => Some(at),
        _ => None,
    }
}

/// Entries are in order, hold something, and lie on the device.
fn inside(entries: &[Extent], blocks: u64) -> Result<(), String> {
    let mut end = 0;
    for extent in entries {
        let (from, len) = (u64::from(extent.lblk), u64::from(extent.len));
        if len == 0 || from < end {
            return Err(format!(
                "an entry of {len} blocks at {from} where the one before it ends at {end}"
            ));
        }
        end = from + len;
        if let Some(at) = place(extent)
            && at.checked_add(len).is_none_or(|end| end > blocks)
        {
            return Err(format!(
                "blocks {from} to {end} lie at {at} of the device, which has {blocks} blocks"
            ));
        }
    }
    Ok(())
}

/// No block of the device belongs to two entries.
fn apart<'a>(entries: impl Iterator<Item = &'a Extent>) -> Result<(), String> {
    let mut places: Vec<(u64, u64, u32)> = entries
        .filter_map(|e| Some((place(e)?, u64::from(e.len), e.lblk)))
        .collect();
    places.sort_unstable();
    let pairs = places.iter().zip(places.iter().skip(1));
    for ((at, len, one), (next, _, two)) in pairs {
        if at + len > *next {
            return Err(format!(
                "block {next} of the device belongs to the entries at {one} and at {two}"
            ));
        }
    }
    Ok(())
}

/// The same over all files, in those moments in which no mapping changes.
fn all_apart(files: &[(String, Arc<AnyFile>)]) -> Result<u64, String> {
    let seqs: Vec<u64> = files.iter().map(|(_, file)| file.map().seq()).collect();
    let walks: Vec<_> = files.iter().map(|(_, file)| walk(file.map(), 0)).collect();
    let all = || walks.iter().flat_map(|(entries, _)| entries);
    let mut maps = seqs.iter().zip(files);
    if maps.all(|(seq, (_, file))| file.map().is_current(*seq)) {
        apart(all()).map_err(|what| format!("all files: {what}"))?;
    }
    Ok(all().count() as u64)
}

/// Two reports of a counter that only grows, one after the other: each approximate value is within the bound
/// of what the exact sum was when it was read, and that lies between the two sums.
fn close(name: &str, one: Reading, two: Reading, under_way: u64) -> Result<(), String> {
    if one.exact > two.exact {
        return Err(format!(
            "the exact {name} went back from {} to {}",
            one.exact, two.exact
        ));
    }
    let bound = |r: Reading| r.bound.saturating_add(under_way);
    let over = one.approximate.saturating_sub(two.exact);
    let under = one.exact.saturating_sub(two.approximate);
    for (off, reading) in [(over, one), (under, two)] {
        if u64::try_from(off).is_ok_and(|off| off > bound(reading)) {
            return Err(format!(
                "approximate {name} {} where the sum is {} to {}, off by more than the bound {}",
                reading.approximate, one.exact, two.exact, reading.bound
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
