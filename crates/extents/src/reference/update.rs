//! Changes: what became true, what was read from disk, what is no longer known.

use super::{Entry, ReferenceMap};
use crate::config::Generation;
use crate::error::{Error, ShiftReason};
use crate::leaf::{check_leaf, tally};
use crate::types::{
    Cached, Extent, Loaded, MAX_BLOCK, Match, Released, Status, check_status, last_block,
};

impl ReferenceMap {
    /// The truth changed: the range has this status from now on.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Physical`] or [`Error::LegacyStatus`].
    pub fn insert(&mut self, lblk: u32, len: u32, status: Status) -> Result<Released, Error> {
        check_status(lblk, len, status, self.rules.legacy_ud)?;
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Released::default());
        };
        let cut = self.cut(lblk, last);
        let delayed_clusters = self.release(lblk, last, &cut);
        self.insert_vacant(lblk, len, status);
        let new_pendings = if status.is_mapped() {
            self.revise_pendings(lblk, last)
        } else {
            0
        };
        self.seq += 1;
        Ok(Released {
            delayed_clusters,
            new_pendings,
        })
    }

    /// Blocks were reserved for writing later. `start_alloc` and `end_alloc` say that the cluster
    /// of the first or last block is allocated already.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn insert_delayed(
        &mut self,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error> {
        let Some(last) = last_block(lblk, len)? else {
            return Ok(());
        };
        self.cut(lblk, last);
        self.insert_vacant(lblk, len, Status::Delayed);
        if self.rules.cluster_bits > 0 {
            if start_alloc {
                self.pendings.insert(self.rules.cluster(lblk));
            }
            if end_alloc {
                self.pendings.insert(self.rules.cluster(last));
            }
        }
        self.seq += 1;
        Ok(())
    }

    /// The range is not known any more.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn remove(&mut self, lblk: u32, len: u32) -> Result<Released, Error> {
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Released::default());
        };
        let cut = self.cut(lblk, last);
        let delayed_clusters = self.release(lblk, last, &cut);
        self.seq += 1;
        Ok(Released {
            delayed_clusters,
            new_pendings: 0,
        })
    }

    /// This was read on disk; what is known already goes first, as the generation says.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Physical`] or [`Error::LegacyStatus`].
    pub fn cache(&mut self, lblk: u32, len: u32, status: Status) -> Result<Cached, Error> {
        check_status(lblk, len, status, self.rules.legacy_ud)?;
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Cached::Covered);
        };
        let Some(first) = self.at_or_after(lblk).filter(|e| e.lblk <= last) else {
            self.insert_vacant(lblk, len, status);
            return Ok(Cached::Inserted { remapped: false });
        };
        let covers = first.lblk <= lblk && first.last() >= last;
        let same = covers && first.status.advanced(lblk.wrapping_sub(first.lblk)) == status;
        if same {
            return Ok(Cached::Covered);
        }
        match self.rules.generation {
            Generation::VacantOnly => Ok(Cached::Ignored),
            Generation::Overwrite if covers && first.status.kind() == status.kind() => {
                Ok(Cached::Conflict(first))
            }
            Generation::Overwrite => Ok(self.overwrite(lblk, last, status)),
        }
    }

    /// Entries of the range's kind give way to the new one; one of another kind stops it.
    fn overwrite(&mut self, lblk: u32, last: u32, status: Status) -> Cached {
        let met: Vec<Extent> = self.from(lblk).take_while(|e| e.lblk <= last).collect();
        let other = met.iter().find(|e| e.status.kind() != status.kind());
        if let Some(&other) = other {
            if self.rules.upstream_conflicts && other.lblk > lblk {
                // Linux removes as it walks: what it passed before the conflict is gone.
                self.cut(lblk, other.lblk - 1);
            }
            return if status == Status::Hole && other.status == Status::Delayed {
                Cached::HoleOverDelayed
            } else {
                Cached::Conflict(other)
            };
        }
        let remapped = met.iter().any(|e| {
            let from = e.lblk.max(lblk);
            e.status.advanced(from - e.lblk) != status.advanced(from - lblk)
        });
        self.cut(lblk, last);
        self.insert_vacant(lblk, last - lblk + 1, status);
        Cached::Inserted { remapped }
    }

    /// Caches a whole leaf read from disk: the holes between its entries, then the entries.
    ///
    /// # Errors
    /// [`Error::Unordered`] if entries are empty, out of order, overlap or leave `range`;
    /// [`Error::Physical`] or [`Error::LegacyStatus`] for a single bad entry.
    pub fn load_leaf(
        &mut self,
        entries: &[(u32, u32, Status)],
        range: core::ops::Range<u32>,
    ) -> Result<Loaded, Error> {
        let holes = check_leaf(entries, range, self.rules.legacy_ud)?;
        let mut loaded = Loaded::default();
        for &(lblk, len) in &holes {
            tally(&mut loaded, self.cache(lblk, len, Status::Hole)?);
        }
        for &(lblk, len, status) in entries {
            tally(&mut loaded, self.cache(lblk, len, status)?);
        }
        Ok(loaded)
    }

    /// Moves every entry from block `from` on by `by` blocks to the left; the blocks before
    /// `from` that they move onto must be unknown.
    ///
    /// # Errors
    /// [`Error::Shift`]; nothing moved.
    pub fn shift_left(&mut self, from: u32, by: u32) -> Result<(), Error> {
        if by == 0 {
            return Ok(());
        }
        self.check_alignment(from, by)?;
        let target = from
            .checked_sub(by)
            .ok_or_else(|| refused(from, by, ShiftReason::OutOfRange))?;
        if self.at_or_after(target).is_some_and(|e| e.lblk < from) {
            return Err(refused(from, by, ShiftReason::Occupied));
        }
        self.shift(from, |lblk| lblk - by);
        Ok(())
    }

    /// Moves every entry from block `from` on by `by` blocks to the right.
    ///
    /// # Errors
    /// [`Error::Shift`] if the last block would leave the legal range; nothing moved.
    pub fn shift_right(&mut self, from: u32, by: u32) -> Result<(), Error> {
        if by == 0 {
            return Ok(());
        }
        self.check_alignment(from, by)?;
        let end = self.iter().last().map_or(0, |e| e.end());
        if end > from && end.checked_add(by).is_none() {
            return Err(refused(from, by, ShiftReason::OutOfRange));
        }
        self.shift(from, |lblk| lblk + by);
        Ok(())
    }

    fn check_alignment(&self, from: u32, by: u32) -> Result<(), Error> {
        let mask = (1 << self.rules.cluster_bits) - 1;
        if (from | by) & mask == 0 {
            Ok(())
        } else {
            Err(refused(from, by, ShiftReason::Unaligned))
        }
    }

    fn shift(&mut self, from: u32, moved: impl Fn(u32) -> u32) {
        let tail: Vec<Extent> = self
            .from(from)
            .map(|e| if e.lblk < from { e.tail_at(from) } else { e })
            .collect();
        self.cut(from, MAX_BLOCK - 1);
        for e in tail {
            self.insert_merging(Extent {
                lblk: moved(e.lblk),
                ..e
            });
        }
        let first = self.rules.cluster(from);
        let pendings = self.pendings.split_off(&first);
        self.pendings.extend(
            pendings
                .into_iter()
                .map(|c| self.rules.cluster(moved(self.rules.cluster_first(c)))),
        );
        self.seq += 1;
    }

    /// Takes `lblk..=last` out of every entry; returns the pieces taken, in order.
    pub(super) fn cut(&mut self, lblk: u32, last: u32) -> Vec<Extent> {
        let met: Vec<Extent> = self.from(lblk).take_while(|e| e.lblk <= last).collect();
        met.into_iter()
            .map(|e| {
                self.take(e.lblk);
                let piece = self.keep_left(e, lblk);
                self.keep_right(piece, last)
            })
            .collect()
    }

    /// Puts the part of `e` left of `lblk` back; returns the rest.
    fn keep_left(&mut self, e: Extent, lblk: u32) -> Extent {
        if e.lblk >= lblk {
            return e;
        }
        self.put(
            e.lblk,
            Entry {
                len: lblk - e.lblk,
                status: e.status,
                referenced: e.referenced,
            },
        );
        e.tail_at(lblk)
    }

    /// Puts the part of `e` right of `last` back; returns the rest.
    fn keep_right(&mut self, e: Extent, last: u32) -> Extent {
        if e.last() <= last {
            return e;
        }
        let right = e.tail_at(last + 1);
        self.put(
            right.lblk,
            Entry {
                len: right.len,
                status: right.status,
                referenced: right.referenced,
            },
        );
        Extent {
            len: last - e.lblk + 1,
            ..e
        }
    }

    /// Fills a range of which nothing is known and merges with both neighbours.
    pub(super) fn insert_vacant(&mut self, lblk: u32, len: u32, status: Status) {
        self.insert_merging(Extent {
            lblk,
            len,
            status,
            referenced: false,
        });
    }

    fn insert_merging(&mut self, mut new: Extent) {
        let left = new.lblk.checked_sub(1).and_then(|l| self.containing(l));
        if let Some(left) = left
            && left.status.continues(left.len, new.status)
        {
            self.take(left.lblk);
            new = Extent {
                lblk: left.lblk,
                len: left.len + new.len,
                status: left.status,
                referenced: left.referenced || new.referenced,
            };
        }
        if let Some(right) = self.containing(new.end())
            && new.status.continues(new.len, right.status)
        {
            self.take(right.lblk);
            new.len += right.len;
            new.referenced |= right.referenced;
        }
        self.put(
            new.lblk,
            Entry {
                len: new.len,
                status: new.status,
                referenced: new.referenced,
            },
        );
    }

    /// Whether a block of a wanted kind lies in `lblk..=last`.
    pub fn scan_range(&self, wanted: Match, lblk: u32, last: u32) -> bool {
        self.find(wanted, lblk, last).is_some()
    }

    /// Whether a block of a wanted kind lies in the cluster of `lblk`.
    pub fn scan_cluster(&self, wanted: Match, lblk: u32) -> bool {
        let cluster = self.rules.cluster(lblk);
        self.scan_range(
            wanted,
            self.rules.cluster_first(cluster),
            self.rules.cluster_last(cluster),
        )
    }
}

fn refused(from: u32, by: u32, reason: ShiftReason) -> Error {
    Error::Shift { from, by, reason }
}
