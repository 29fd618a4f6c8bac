//! The rules, as the map's writer carries them out.

use super::{ExtentMap, Writer};
use crate::arena::OutOfMemory;
use crate::config::Generation;
use crate::error::{Error, ShiftReason};
use crate::leaf::{check_leaf, tally};
use crate::modify::Tokens;
use crate::sync::{MutexGuard, Ordering};
use crate::tree::SPLICE_ITEMS;
use crate::types::{Cached, Extent, Loaded, MAX_BLOCK, Released, Status, check_status, last_block};
use crate::value::{Item, Run, Value};

/// The map, with the right to change it.
pub(crate) struct Exclusive<'a> {
    pub(super) map: &'a ExtentMap,
    pub(super) writer: MutexGuard<'a, Writer>,
}

impl<'a> Exclusive<'a> {
    pub(super) fn new(map: &'a ExtentMap, writer: MutexGuard<'a, Writer>) -> Self {
        Self { map, writer }
    }

    /// Brings the group's counters and list up to date after a change.
    pub(super) fn account(&self, before: (u32, u32)) {
        self.map.group.account(self.map, before, self.map.counts());
    }

    pub(super) fn tokens(&mut self) -> &mut Tokens {
        &mut self.writer.tokens
    }

    pub(super) fn insert(
        &mut self,
        lblk: u32,
        len: u32,
        status: Status,
    ) -> Result<Released, Error> {
        check_status(lblk, len, status, self.map.rules().legacy_ud)?;
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Released::default());
        };
        let delayed = self.reserved_pieces(lblk, last);
        self.put(lblk, last, Value::new(lblk, status), true)?;
        let delayed_clusters = self.release(lblk, last, &delayed);
        let new_pendings = if status.is_mapped() {
            self.revise_pendings(lblk, last)
        } else {
            0
        };
        Ok(Released {
            delayed_clusters,
            new_pendings,
        })
    }

    pub(super) fn insert_delayed(
        &mut self,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error> {
        let Some(last) = last_block(lblk, len)? else {
            return Ok(());
        };
        self.put(lblk, last, Value::new(lblk, Status::Delayed), true)?;
        let rules = self.map.rules();
        if rules.cluster_bits > 0 {
            if start_alloc {
                self.writer.pendings.insert(rules.cluster(lblk));
            }
            if end_alloc {
                self.writer.pendings.insert(rules.cluster(last));
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, lblk: u32, len: u32) -> Result<Released, Error> {
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Released::default());
        };
        let delayed = self.reserved_pieces(lblk, last);
        self.put(lblk, last, Value::UNKNOWN, true)?;
        Ok(Released {
            delayed_clusters: self.release(lblk, last, &delayed),
            new_pendings: 0,
        })
    }

    pub(super) fn cache(&mut self, lblk: u32, len: u32, status: Status) -> Result<Cached, Error> {
        check_status(lblk, len, status, self.map.rules().legacy_ud)?;
        let Some(last) = last_block(lblk, len)? else {
            return Ok(Cached::Covered);
        };
        let value = Value::new(lblk, status);
        let first = self.run(lblk);
        if !first.value().is_known() && first.end > last {
            return Ok(self.learn(lblk, last, value, false));
        }
        if first.value() == value && first.end > last {
            return Ok(Cached::Covered);
        }
        match self.map.rules().generation {
            Generation::VacantOnly => Ok(Cached::Ignored),
            Generation::Overwrite => Ok(self.overwrite(lblk, last, status)),
        }
    }

    /// Entries of the range's kind give way to the new one; one of another kind stops it.
    fn overwrite(&mut self, lblk: u32, last: u32, status: Status) -> Cached {
        let value = Value::new(lblk, status);
        let first = self.run(lblk);
        if let Some(covering) = first.extent().filter(|e| e.last() >= last)
            && covering.status.kind() == status.kind()
        {
            return Cached::Conflict(covering);
        }
        let mut remapped = false;
        let mut at = lblk;
        while at <= last {
            let run = self.run(at);
            if let Some(met) = run.extent() {
                if met.status.kind() != status.kind() {
                    return self.conflict(lblk, met, status);
                }
                remapped |= run.value() != value;
            }
            at = run.end;
        }
        self.learn(lblk, last, value, remapped)
    }

    fn conflict(&mut self, lblk: u32, other: Extent, status: Status) -> Cached {
        if self.map.rules().upstream_conflicts && other.lblk > lblk {
            // Linux removes as it walks: what it passed before the conflict is gone. If memory
            // runs out, it stays, which is what it should do.
            let _ = self.put(lblk, other.lblk - 1, Value::UNKNOWN, false);
        }
        if status == Status::Hole && other.status == Status::Delayed {
            Cached::HoleOverDelayed
        } else {
            Cached::Conflict(other)
        }
    }

    fn learn(&mut self, lblk: u32, last: u32, value: Value, remapped: bool) -> Cached {
        match self.put(lblk, last, value, false) {
            Ok(()) => Cached::Inserted { remapped },
            // It can be read again.
            Err(_) => Cached::Ignored,
        }
    }

    pub(super) fn load_leaf(
        &mut self,
        entries: &[(u32, u32, Status)],
        range: core::ops::Range<u32>,
    ) -> Result<Loaded, Error> {
        let holes = check_leaf(entries, range, self.map.rules().legacy_ud)?;
        let mut loaded = Loaded::default();
        if self.load_vacant(entries) {
            loaded.inserted = u32::try_from(entries.len() + holes.len()).unwrap_or(u32::MAX);
            return Ok(loaded);
        }
        for &(lblk, len) in &holes {
            tally(&mut loaded, self.cache(lblk, len, Status::Hole)?);
        }
        for &(lblk, len, status) in entries {
            tally(&mut loaded, self.cache(lblk, len, status)?);
        }
        Ok(loaded)
    }

    /// Loads a checked leaf of whose range nothing is known, a tree leaf at a time; whether it
    /// was so.
    fn load_vacant(&mut self, entries: &[(u32, u32, Status)]) -> bool {
        let (Some(&(from, ..)), Some(&(start, len, _))) = (entries.first(), entries.last()) else {
            return true;
        };
        let run = self.run(from);
        if run.value().is_known() || run.end < start + len {
            return false;
        }
        let mut items: Vec<Item> = Vec::with_capacity(2 * entries.len());
        let mut put = |key: u32, status: Status| {
            let value = Value::new(key, status);
            if items.last().is_none_or(|last| last.value != value) {
                items.push(Item {
                    key,
                    value,
                    referenced: false,
                });
            }
        };
        let mut end = from;
        for &(lblk, len, status) in entries {
            if lblk > end {
                put(end, Status::Hole);
            }
            put(lblk, status);
            end = lblk + len;
        }
        let mut parts = items.chunks(SPLICE_ITEMS).peekable();
        while let Some(part) = parts.next() {
            let to = parts
                .peek()
                .and_then(|next| next.first())
                .map_or(end, |next| next.key);
            let from = part.first().map_or(to, |first| first.key);
            if self.splice(from, to, part, false).is_err() {
                break; // it can be read again
            }
        }
        true
    }

    /// Drops what can be read from disk again. If memory for the rest cannot be had, it all stays.
    pub(super) fn clear(&mut self) {
        let mut items = Vec::new();
        self.each_run(0, |run| {
            let value = if run.value().must_keep() {
                run.value()
            } else {
                Value::UNKNOWN
            };
            push(
                &mut items,
                run.start,
                value,
                run.referenced() && value.is_known(),
            );
        });
        let _ = self.set_all(&items);
    }

    pub(super) fn shift_left(&mut self, from: u32, by: u32) -> Result<(), Error> {
        self.check_alignment(from, by)?;
        let target = from
            .checked_sub(by)
            .ok_or_else(|| refused(from, by, ShiftReason::OutOfRange))?;
        let run = self.run(target);
        if run.value().is_known() || run.end < from {
            return Err(refused(from, by, ShiftReason::Occupied));
        }
        self.shift(from, |lblk| lblk - by)
    }

    pub(super) fn shift_right(&mut self, from: u32, by: u32) -> Result<(), Error> {
        self.check_alignment(from, by)?;
        let mut end = 0;
        self.each_run(from, |run| {
            if run.value().is_known() {
                end = run.end;
            }
        });
        if end.checked_add(by).is_none() {
            return Err(refused(from, by, ShiftReason::OutOfRange));
        }
        self.shift(from, |lblk| lblk + by)
    }

    fn check_alignment(&self, from: u32, by: u32) -> Result<(), Error> {
        let mask = (1 << self.map.rules().cluster_bits) - 1;
        if (from | by) & mask == 0 {
            Ok(())
        } else {
            Err(refused(from, by, ShiftReason::Unaligned))
        }
    }

    fn shift(&mut self, from: u32, moved: impl Fn(u32) -> u32) -> Result<(), Error> {
        let mut runs = Vec::new();
        self.each_run(0, |run| runs.push(run));
        let mut items = Vec::with_capacity(runs.len() + 2);
        push(&mut items, 0, Value::UNKNOWN, false);
        for run in runs.iter().filter(|r| r.start < from) {
            push(&mut items, run.start, run.value(), run.referenced());
        }
        let first = moved(from);
        items.retain(|item: &Item| item.key < first);
        push(&mut items, first.min(from), Value::UNKNOWN, false);
        for run in runs.iter().filter(|r| r.end > from) {
            let start = run.start.max(from);
            let Some(extent) = run.extent() else { continue };
            let status = extent.status.advanced(start - run.start);
            let (to, end) = (moved(start), moved(run.end));
            push(&mut items, to, Value::new(to, status), run.referenced());
            if end < MAX_BLOCK {
                push(&mut items, end, Value::UNKNOWN, false);
            }
        }
        self.set_all(&items)
            .map_err(|OutOfMemory| Error::NoMemory)?;
        let rules = self.map.rules();
        let pendings = self.writer.pendings.split_off(&rules.cluster(from));
        self.writer.pendings.extend(
            pendings
                .into_iter()
                .map(|c| rules.cluster(moved(rules.cluster_first(c)))),
        );
        Ok(())
    }

    pub(super) fn run(&self, lblk: u32) -> Run {
        self.map.tree.run_at(lblk, false)
    }

    /// Calls `each` for the runs from the one that contains `lblk` on, known or not.
    pub(super) fn each_run(&self, lblk: u32, mut each: impl FnMut(Run)) {
        let mut at = lblk;
        while at < MAX_BLOCK {
            let run = self.run(at);
            each(run);
            at = run.end;
        }
    }

    /// Gives the range a value. Where that must not fail for lack of memory (`urgent`), the
    /// reserve is used, and as the last resort everything that can be read again is forgotten.
    fn put(&mut self, lblk: u32, last: u32, value: Value, urgent: bool) -> Result<(), Error> {
        let item = Item {
            key: lblk,
            value,
            referenced: false,
        };
        match self.splice(lblk, last + 1, &[item], urgent) {
            Ok(()) => Ok(()),
            Err(OutOfMemory) if urgent && self.keep_only_delayed(lblk, last, value) => Ok(()),
            Err(OutOfMemory) => Err(Error::NoMemory),
        }
    }

    /// Without any memory: keeps what is delayed outside of the range, and the range itself if it
    /// is delayed, as far as that fits into the small map. Whether it did.
    fn keep_only_delayed(&mut self, lblk: u32, last: u32, value: Value) -> bool {
        let mut items = Vec::new();
        let mut put = |start: u32, value: Value, referenced: bool| {
            let value = if value.must_keep() {
                value
            } else {
                Value::UNKNOWN
            };
            push(&mut items, start, value, referenced && value.is_known());
        };
        self.each_run(0, |run| {
            if run.start < lblk {
                put(run.start, run.value(), run.referenced());
            }
            if run.start <= lblk && lblk < run.end {
                put(lblk, value, false);
            }
            if run.end > last + 1 {
                put(run.start.max(last + 1), run.value(), run.referenced());
            }
        });
        // SAFETY: this is the map's writer.
        unsafe { self.map.tree.set_small(self.map.group.arena(), &items) }
    }

    pub(super) fn splice(
        &mut self,
        from: u32,
        to: u32,
        items: &[Item],
        urgent: bool,
    ) -> Result<(), OutOfMemory> {
        let arena = self.map.group.arena();
        // SAFETY: this is the map's writer, and the arena its group's.
        unsafe { self.map.tree.splice(arena, urgent, (from, to), items) }
    }

    fn set_all(&mut self, items: &[Item]) -> Result<(), OutOfMemory> {
        let arena = self.map.group.arena();
        // SAFETY: this is the map's writer, and the arena its group's.
        unsafe { self.map.tree.rebuild(arena, items) }
    }

    pub(super) fn set_resume(&self, lblk: u32) {
        self.map.resume.store(lblk, Ordering::Relaxed);
    }
}

/// Appends a boundary unless the run before it goes on. One at the same block replaces the last.
fn push(items: &mut Vec<Item>, key: u32, value: Value, referenced: bool) {
    if items.last().is_some_and(|last| last.key == key) {
        items.pop();
    }
    match items.last_mut() {
        Some(last) if last.value == value => last.referenced |= referenced,
        _ => items.push(Item {
            key,
            value,
            referenced,
        }),
    }
}

fn refused(from: u32, by: u32, reason: ShiftReason) -> Error {
    Error::Shift { from, by, reason }
}
