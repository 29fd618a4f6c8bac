//! A slot with one writer: plain load, add, store.
//!
//! On x86-64 the three fold into one `add [mem], r` without a lock prefix. It is right only because the slot
//! has one writer at a time, and because ownership is handed over by release and acquire (see
//! [`registry`](super::registry)): the next owner then loads what the last one stored.

use crate::sync::{AtomicU64, Ordering};

/// Adds `n` to a slot that only the caller writes.
///
/// *Ordering*: relaxed. The sum of a counter promises no order, only totals.
#[inline(always)]
pub(crate) fn add(slot: &AtomicU64, n: u64) {
    add_as(slot, n, Ordering::Relaxed);
}

/// Adds `n` to the decrement half of a gauge.
///
/// *Ordering*: release, so that a reader who sees this decrement also sees every increment before it.
#[inline(always)]
pub(crate) fn add_release(slot: &AtomicU64, n: u64) {
    add_as(slot, n, Ordering::Release);
}

/// The two above; the store's ordering is a parameter so that a model can weaken it.
#[inline(always)]
pub(crate) fn add_as(slot: &AtomicU64, n: u64, store: Ordering) {
    slot.store(slot.load(Ordering::Relaxed).wrapping_add(n), store);
}

/// Sums words while others may add to them.
///
/// Each word is monotone as its writer sees it, so the result lies between the adds that happen before the
/// call and those begun before it returns.
pub(crate) fn sum<'a>(words: impl Iterator<Item = &'a AtomicU64>) -> u64 {
    words.fold(0, |total, word| {
        total.wrapping_add(word.load(Ordering::Relaxed))
    })
}

/// What a gauge stands at: increments less decrements, never below zero for nested use.
///
/// All decrements are loaded first, with acquire: each decrement seen brings the increment it belongs to into
/// view, which the second pass then counts. The other way round, a decrement made between the passes would
/// be counted without its increment.
pub(crate) fn gauge<'a>(
    decrements: impl Iterator<Item = &'a AtomicU64>,
    increments: impl Iterator<Item = &'a AtomicU64>,
) -> i64 {
    let down = decrements.fold(0_u64, |total, word| {
        total.wrapping_add(word.load(Ordering::Acquire))
    });
    sum(increments).wrapping_sub(down).cast_signed()
}
