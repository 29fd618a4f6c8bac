//! The batched counter: an exact sum and a cheap approximate one, without a lock.
//!
//! Each slot holds its cumulative `total` and the part of it already `published`; two shared words hold
//! `base` (adds that went past the slots) and `central` (what a read gives).
//!
//! The exact sum is `base` plus all totals. It never looks at `central` or `published`, so a fold in flight can
//! be neither missed nor counted twice. (Swapping a slot to zero and then adding the loot to `central`, the
//! obvious way, has a moment in which the loot is nowhere.)

use crate::sync::{AtomicU64, Ordering};

/// The words that all slots of one batched counter share. They change once per batch.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    /// What was added past the slots.
    pub(crate) base: &'a AtomicU64,
    /// The approximate sum.
    pub(crate) central: &'a AtomicU64,
    /// The largest magnitude that was ever added past the slots at once.
    pub(crate) largest: &'a AtomicU64,
}

impl Shared<'_> {
    /// Adds past the slots: amounts of a batch or more, and writers without a slot.
    ///
    /// `largest` is raised first, and `base` released, so that whoever sees the amount in a sum also sees it
    /// in the bound.
    pub(crate) fn add_past(self, n: i64) {
        let size = n.unsigned_abs();
        if self.largest.load(Ordering::Relaxed) < size {
            self.largest.fetch_max(size, Ordering::Relaxed);
        }
        self.base.fetch_add(n.cast_unsigned(), Ordering::Release);
        self.publish(n);
    }

    /// Adds what a slot has published to the approximate sum.
    pub(crate) fn publish(self, n: i64) {
        self.central.fetch_add(n.cast_unsigned(), Ordering::Release);
    }
}

/// Adds `n`, less than a batch in magnitude, to a slot that only the caller writes.
#[inline(always)]
pub(crate) fn add_owned(
    total: &AtomicU64,
    published: &AtomicU64,
    n: i64,
    batch: u32,
) -> Option<i64> {
    let new = total
        .load(Ordering::Relaxed)
        .wrapping_add(n.cast_unsigned());
    total.store(new, Ordering::Relaxed);
    let residue = new
        .wrapping_sub(published.load(Ordering::Relaxed))
        .cast_signed();
    if residue.unsigned_abs() < u64::from(batch) {
        return None;
    }
    published.store(new, Ordering::Relaxed);
    Some(residue)
}

/// Adds `n`, less than a batch in magnitude, to a slot that others write too; gives what must go to
/// [`Shared::publish`].
///
/// Whoever moves `published` by an exchange has the difference to hand on, so nothing is handed on twice. It looks
/// again after its exchange: the total it published may have been overtaken, and then the rest is its to
/// publish.
///
/// *Ordering*: an exchange releases and each look acquires, so that nobody who sees what was published still
/// sees an older total, and publishes backwards.
pub(crate) fn add_striped(
    total: &AtomicU64,
    published: &AtomicU64,
    n: i64,
    batch: u32,
) -> Option<i64> {
    add_striped_as(total, published, n, batch, Ordering::Acquire)
}

/// [`add_striped`] with the ordering of its look.
pub(crate) fn add_striped_as(
    total: &AtomicU64,
    published: &AtomicU64,
    n: i64,
    batch: u32,
    look: Ordering,
) -> Option<i64> {
    total.fetch_add(n.cast_unsigned(), Ordering::Relaxed);
    let mut mine: Option<i64> = None;
    loop {
        let done = published.load(look);
        let all = total.load(Ordering::Relaxed);
        let residue = all.wrapping_sub(done).cast_signed();
        if residue.unsigned_abs() < u64::from(batch) {
            return mine;
        }
        let moved = published.compare_exchange(done, all, Ordering::Release, Ordering::Relaxed);
        if moved.is_ok() {
            mine = Some(mine.unwrap_or(0).wrapping_add(residue));
        }
    }
}

/// Publishes all of a slot that only the caller writes; what it gives must go to [`Shared::publish`].
pub(crate) fn fold_owned(total: &AtomicU64, published: &AtomicU64) -> i64 {
    let all = total.load(Ordering::Relaxed);
    let residue = all
        .wrapping_sub(published.load(Ordering::Relaxed))
        .cast_signed();
    published.store(all, Ordering::Relaxed);
    residue
}

/// How a section that adds below the batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "made by builds that have sections, and by tests")]
pub(crate) enum Below {
    /// The amount is in the slot.
    Added,
    /// Nothing was stored: the residue would have reached the batch.
    Full,
    /// Nothing was stored: this CPU has no slot.
    NoSlot,
}

/// The restartable sections of a per-CPU slot pair, each with one store as its last act.
///
/// A trait so that tests can run the protocol on CPUs of their own making.
pub(crate) trait Sections {
    /// `total += n` on the CPU it runs on, unless the residue would reach the batch there.
    fn add_below(&self, n: i64, batch: u32) -> Below;
    /// `published := total` on the CPU it runs on; gives what was published by it, or none without a slot.
    fn publish(&self) -> Option<i64>;
}

/// Adds `n`, less than a batch in magnitude, through per-CPU sections.
///
/// The section that adds and the one that publishes may run on different CPUs, so the amount that would have
/// filled the first slot does not go into it: it goes past the slots. Were it committed first and published
/// second, a migration in between would publish another CPU's residue and leave this one above the bound.
#[inline(always)]
pub(crate) fn add_on_cpu<'a>(
    sections: &impl Sections,
    shared: impl FnOnce() -> Shared<'a>,
    n: i64,
    batch: u32,
) {
    match sections.add_below(n, batch) {
        Below::Added => {}
        Below::Full => add_full(sections, shared(), n),
        Below::NoSlot => shared().add_past(n),
    }
}

/// Publishes a full slot together with the amount that did not go into it.
#[cold]
#[inline(never)]
fn add_full(sections: &impl Sections, shared: Shared<'_>, n: i64) {
    let Some(residue) = sections.publish() else {
        return shared.add_past(n);
    };
    shared.base.fetch_add(n.cast_unsigned(), Ordering::Release);
    shared.publish(residue.wrapping_add(n));
}
