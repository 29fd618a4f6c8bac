//! Changes of a map.

use super::{Exclusive, ExtentMap};
use crate::error::Error;
use crate::types::{Cached, Loaded, Released, Status, last_block};

impl ExtentMap {
    /// The truth changed: the range has this status from now on, whatever was known.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Physical`], [`Error::LegacyStatus`] or [`Error::NoMemory`].
    pub fn insert(&self, lblk: u32, len: u32, status: Status) -> Result<Released, Error> {
        self.change(len, |own| own.insert(lblk, len, status))
    }

    /// Blocks were reserved for writing later. `start_alloc` and `end_alloc` say that the cluster
    /// of the first or last block is allocated already.
    ///
    /// # Errors
    /// [`Error::Range`] or [`Error::NoMemory`].
    pub fn insert_delayed(
        &self,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error> {
        self.change(len, |own| {
            own.insert_delayed(lblk, len, start_alloc, end_alloc)
        })
    }

    /// [`insert_delayed`](Self::insert_delayed) if nothing changed since `seq` was read.
    ///
    /// # Errors
    /// [`Error::Stale`] otherwise; then as `insert_delayed`.
    pub fn insert_delayed_if(
        &self,
        seq: u64,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error> {
        self.change(len, |own| {
            check_seq(own, seq)?;
            own.insert_delayed(lblk, len, start_alloc, end_alloc)
        })
    }

    /// The range is not known any more.
    ///
    /// # Errors
    /// [`Error::Range`] or [`Error::NoMemory`].
    pub fn remove(&self, lblk: u32, len: u32) -> Result<Released, Error> {
        self.change(len, |own| own.remove(lblk, len))
    }

    /// [`remove`](Self::remove) if nothing changed since `seq` was read.
    ///
    /// # Errors
    /// [`Error::Stale`] otherwise; then as `remove`.
    pub fn remove_if(&self, seq: u64, lblk: u32, len: u32) -> Result<Released, Error> {
        self.change(len, |own| {
            check_seq(own, seq)?;
            own.remove(lblk, len)
        })
    }

    /// This was read on disk. Never changes the sequence number or a reservation.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Physical`] or [`Error::LegacyStatus`];
    /// [`Error::Stale`] while the range is being modified.
    pub fn cache(&self, lblk: u32, len: u32, status: Status) -> Result<Cached, Error> {
        self.learn(|own| {
            check_tokens(own, lblk, len, own.map.seq())?;
            own.cache(lblk, len, status)
        })
        .unwrap_or(Ok(Cached::Ignored))
    }

    /// [`cache`](Self::cache) if nothing changed since `seq` was read.
    ///
    /// # Errors
    /// [`Error::Stale`] otherwise; then as `cache`.
    pub fn cache_if(&self, seq: u64, lblk: u32, len: u32, status: Status) -> Result<Cached, Error> {
        self.learn(|own| {
            check_seq(own, seq)?;
            check_tokens(own, lblk, len, seq)?;
            own.cache(lblk, len, status)
        })
        .unwrap_or(Ok(Cached::Ignored))
    }

    /// Caches a leaf read from disk: the holes between its entries, then the entries. Entries are
    /// first block, blocks, status; all must lie within `range`, in order.
    ///
    /// # Errors
    /// [`Error::Unordered`], [`Error::Range`], [`Error::Physical`], [`Error::LegacyStatus`] or
    /// [`Error::Stale`].
    pub fn load_leaf(
        &self,
        entries: &[(u32, u32, Status)],
        range: core::ops::Range<u32>,
    ) -> Result<Loaded, Error> {
        self.learn(|own| {
            let len = range.end.saturating_sub(range.start);
            check_tokens(own, range.start, len, own.map.seq())?;
            own.load_leaf(entries, range.clone())
        })
        .unwrap_or(Ok(Loaded::default()))
    }

    /// Drops what can be read from disk again, keeps what is delayed; clears the precached mark.
    pub fn clear(&self) {
        let _ = self.learn(|own| {
            own.clear();
        });
        self.set_precached(false);
    }

    /// Moves the entries from block `from` on to the left; see
    /// [`ReferenceMap::shift_left`](crate::reference::ReferenceMap::shift_left).
    ///
    /// # Errors
    /// [`Error::Shift`] or [`Error::NoMemory`]; nothing moved.
    pub fn shift_left(&self, from: u32, by: u32) -> Result<(), Error> {
        if by == 0 {
            return Ok(());
        }
        self.change(by, |own| own.shift_left(from, by))
    }

    /// Moves the entries from block `from` on to the right.
    ///
    /// # Errors
    /// [`Error::Shift`] or [`Error::NoMemory`]; nothing moved.
    pub fn shift_right(&self, from: u32, by: u32) -> Result<(), Error> {
        if by == 0 {
            return Ok(());
        }
        self.change(by, |own| own.shift_right(from, by))
    }

    /// Announces that the range is about to change on disk: until the token is dropped, nothing
    /// read from disk is cached there, and the drop makes earlier answers stale.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn begin_modify(&self, lblk: u32, len: u32) -> Result<Modify<'_>, Error> {
        let id = match last_block(lblk, len)? {
            Some(last) => self.write().tokens().add(lblk, last),
            None => 0,
        };
        Ok(Modify { map: self, id })
    }

    /// Runs a change that makes earlier answers stale if it succeeds.
    fn change<T: Default>(
        &self,
        len: u32,
        run: impl FnOnce(&mut Exclusive<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.group.is_inert() {
            return Ok(T::default());
        }
        let mut own = self.write();
        let before = self.counts();
        self.seq.begin();
        let result = run(&mut own);
        if result.is_ok() && len > 0 {
            self.seq.commit();
        } else {
            self.seq.abort();
        }
        own.account(before);
        result
    }

    /// Runs a change of what is known that leaves the truth as it is. `None` in an inert map.
    fn learn<T>(&self, run: impl FnOnce(&mut Exclusive<'_>) -> T) -> Option<T> {
        if self.group.is_inert() {
            return None;
        }
        let mut own = self.write();
        let before = self.counts();
        let result = run(&mut own);
        own.account(before);
        Some(result)
    }
}

fn check_seq(own: &Exclusive<'_>, expected: u64) -> Result<(), Error> {
    let current = own.map.seq();
    if current == expected {
        Ok(())
    } else {
        Err(Error::Stale {
            expected,
            current,
            modifying: false,
        })
    }
}

fn check_tokens(own: &mut Exclusive<'_>, lblk: u32, len: u32, expected: u64) -> Result<(), Error> {
    match last_block(lblk, len)? {
        Some(last) if own.tokens().cover(lblk, last) => Err(Error::Stale {
            expected,
            current: own.map.seq(),
            modifying: true,
        }),
        _ => Ok(()),
    }
}

/// A range under modification, see [`ExtentMap::begin_modify`].
#[derive(Debug)]
#[must_use = "the range is under modification until this is dropped"]
pub struct Modify<'a> {
    map: &'a ExtentMap,
    id: u64,
}

impl Drop for Modify<'_> {
    fn drop(&mut self) {
        if self.id == 0 {
            return;
        }
        let mut own = self.map.write();
        self.map.seq.begin();
        own.tokens().remove(self.id);
        self.map.seq.commit();
    }
}
