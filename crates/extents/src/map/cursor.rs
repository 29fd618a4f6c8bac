//! Cheaper look-ups for those who make many.

use super::ExtentMap;
use crate::pin::{Pin, pin};
use crate::tree::Place;
use crate::types::{Extent, Lookup, MAX_BLOCK};
use crate::value::Run;

/// Look-ups that a cursor makes before it adds them to the counters.
const UNCOUNTED: u32 = 64;

/// Look-ups under one pin, see [`ExtentMap::reader`].
pub struct Reader<'a> {
    map: &'a ExtentMap,
    pin: Pin,
}

/// Look-ups that go on where the last one ended, see [`ExtentMap::cursor`].
pub struct Cursor<'a> {
    map: &'a ExtentMap,
    place: Place,
    hits: u32,
    misses: u32,
}

impl ExtentMap {
    /// Holds freed memory back while it lives, and so spares each look-up the announcement that
    /// it reads. Keep it short: what writers replace meanwhile is not used again before.
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            map: self,
            pin: pin(),
        }
    }

    /// Remembers the last answer: a look-up in the same entry or the next one is found there, as
    /// long as nothing changed. Holds nothing back between look-ups. Hits and misses reach the
    /// counters a few dozen at a time, the last ones when it is dropped.
    ///
    /// ```
    /// use cairn_extents::{Config, ExtentMap, Status};
    /// let map = ExtentMap::standalone(12, Config::new());
    /// map.cache(0, 8, Status::Written(1000))?;
    /// map.cache(8, 8, Status::Written(5000))?;
    /// let mut cursor = map.cursor();
    /// let blocks: Vec<u64> = (6..10)
    ///     .filter_map(|l| cursor.lookup(l)?.extent.physical_at(l))
    ///     .collect();
    /// assert_eq!(blocks, [1006, 1007, 5000, 5001]);
    /// # Ok::<(), cairn_extents::Error>(())
    /// ```
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            map: self,
            place: Place::nowhere(),
            hits: 0,
            misses: 0,
        }
    }
}

impl Reader<'_> {
    /// See [`ExtentMap::lookup`].
    #[inline]
    pub fn lookup(&self, lblk: u32) -> Option<Lookup> {
        if self.map.group.is_inert() {
            return None;
        }
        let seq = self.map.seq();
        let run = if lblk == MAX_BLOCK {
            Run::unknown(0, MAX_BLOCK)
        } else {
            self.map.tree.pinned_run_at(&self.pin, lblk, true)
        };
        self.map.count(run.is_known());
        run.extent().map(|extent| Lookup { extent, seq })
    }

    /// See [`ExtentMap::containing`].
    #[inline]
    pub fn containing(&self, lblk: u32) -> Option<Extent> {
        if lblk == MAX_BLOCK {
            return None;
        }
        let run = self.map.tree.pinned_run_at(&self.pin, lblk, false);
        run.extent()
    }
}

impl Cursor<'_> {
    /// See [`ExtentMap::lookup`].
    #[inline]
    pub fn lookup(&mut self, lblk: u32) -> Option<Lookup> {
        if self.map.group.is_inert() {
            return None;
        }
        let seq = self.map.seq();
        let found = match self.map.tree.same_run(&self.place, lblk) {
            Some(extent) => Some(extent),
            None => self.move_to(lblk),
        };
        if found.is_some() {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        if self.hits + self.misses >= UNCOUNTED {
            self.count();
        }
        found.map(|extent| Lookup { extent, seq })
    }

    #[inline(never)]
    fn move_to(&mut self, lblk: u32) -> Option<Extent> {
        if lblk == MAX_BLOCK {
            return None;
        }
        self.map.tree.run_from(&mut self.place, lblk).extent()
    }

    /// Adds the look-ups made since the last time to the counters.
    #[cold]
    #[inline(never)]
    fn count(&mut self) {
        self.map.group.counters.hits(std::mem::take(&mut self.hits));
        let misses = std::mem::take(&mut self.misses);
        self.map.group.counters.misses(misses);
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        self.count();
    }
}
