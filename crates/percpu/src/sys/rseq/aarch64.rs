//! The sections on aarch64. Untested on real hardware, and so off unless `CAIRN_PERCPU=rseq` asks for them and
//! the self-test sees sections restarted. (Linux 6.19 is reported to have broken restarts on this architecture:
//! there the self-test is what refuses.)

use std::arch::asm;

use super::Words;
use super::aarch64_text::{self as text, add, found, section};
use crate::backend::Refusal;
use crate::protocol::batch::Below;

/// Nothing but the self-test speaks for these sections, so it must have seen something.
pub(super) const MUST_SEE_RESTARTS: bool = true;

/// Whether the sections may be used at all.
pub(super) fn proven() -> Result<(), Refusal> {
    if std::env::var_os("CAIRN_PERCPU").is_some_and(|value| value == "rseq") {
        Ok(())
    } else {
        Err(Refusal::Unproven { arch: "aarch64" })
    }
}

/// Addresses of `__rseq_offset` and `__rseq_size`, null where the C library has none.
pub(super) fn libc_symbols() -> (*const isize, *const u32) {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads from the global offset table, where the linker puts 0 for a weak symbol that nothing defines.
    unsafe {
        asm!(
            text::libc_symbols!(),
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly),
        );
    }
    (offset, size)
}

/// The id at `at` from the thread pointer.
///
/// # Safety
/// The thread has a registered area there.
#[inline]
pub(super) unsafe fn id(at: isize) -> u32 {
    let now: u32;
    // SAFETY: a load from the thread's own area. Not `pure`: the kernel changes it at any time.
    unsafe {
        asm!(
            text::id!(),
            at = in(reg) at,
            t = out(reg) _,
            now = lateout(reg) now,
            options(nostack, preserves_flags, readonly),
        );
    }
    now
}

/// The operands that every section has, and those of one.
macro_rules! section_asm {
    ($text:expr, $words:ident, $($operands:tt)*) => {
        asm!(
            $text,
            area = in(reg) $words.area.offset,
            id = in(reg) $words.area.id,
            len = in(reg) $words.len,
            first = in(reg) $words.first.as_ptr(),
            shift = const Words::<L>::SHIFT,
            t = out(reg) _,
            a = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            $($operands)*
            options(nostack),
        )
    };
}

/// `first[id] += n`; false if the id has no slot.
///
/// # Safety
/// `words` are those of real slots, and their area is registered.
#[inline(always)]
pub(super) unsafe fn add<const L: usize>(words: Words<'_, L>, n: u64) -> bool {
    let found: u32;
    // SAFETY: the id is below `len`, so the store hits the word of an existing slot, which is atomic and so may
    // change behind a shared reference; it commits only on the CPU (or under the concurrency id) whose slot it
    // is.
    unsafe {
        section_asm!(
            text::add_relaxed!(),
            words,
            n = in(reg) n,
            found = lateout(reg) found,
        );
    }
    found != 0
}

/// [`add`] with a store that releases.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub(super) unsafe fn add_release<const L: usize>(words: Words<'_, L>, n: u64) -> bool {
    let found: u32;
    // SAFETY: as in `add`.
    unsafe {
        section_asm!(
            text::add_release!(),
            words,
            n = in(reg) n,
            found = lateout(reg) found,
        );
    }
    found != 0
}

/// `total += n` unless that leaves more than `limit` unpublished, `limit` being one less than the batch.
///
/// # Safety
/// As [`add`]; the word after `words.first` is the published part.
#[inline(always)]
pub(super) unsafe fn add_below<const L: usize>(words: Words<'_, L>, n: i64, limit: u64) -> Below {
    let found: u32;
    // SAFETY: as in `add`. -limit <= residue <= limit is tested as residue + limit <= 2 * limit, unsigned.
    unsafe {
        section_asm!(
            text::add_below!(),
            words,
            n = in(reg) n,
            limit = in(reg) limit,
            twice = in(reg) 2 * limit,
            total = out(reg) _,
            found = lateout(reg) found,
        );
    }
    match found {
        0 => Below::NoSlot,
        1 => Below::Added,
        _ => Below::Full,
    }
}

/// `published := total`; gives the difference.
///
/// # Safety
/// As [`add_below`].
pub(super) unsafe fn publish<const L: usize>(words: Words<'_, L>) -> Option<i64> {
    let residue: i64;
    let found: u32;
    // SAFETY: as in `add`.
    unsafe {
        section_asm!(
            text::publish!(),
            words,
            residue = out(reg) residue,
            found = out(reg) found,
        );
    }
    (found != 0).then_some(residue)
}

/// `first[id] += 1` with a gap of `gap` loop turns between load and store; gives how often it was restarted,
/// or none if the id has no slot.
///
/// # Safety
/// As [`add`].
pub(super) unsafe fn add_slowly<const L: usize>(words: Words<'_, L>, gap: u64) -> Option<u64> {
    let begun: u64;
    let found: u32;
    // SAFETY: as in `add`. `begun` counts the attempts: it is changed inside the section on purpose, and not
    // reset by an abort.
    unsafe {
        section_asm!(
            text::add_slowly!(),
            words,
            gap = in(reg) gap.max(1),
            begun = out(reg) begun,
            total = out(reg) _,
            found = out(reg) found,
        );
    }
    (found != 0).then(|| begun - 1)
}
