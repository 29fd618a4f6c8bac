//! The sections on x86-64.
//!
//! ```text
//!     70: lea  d, descriptor          an abort lands here: the kernel has disarmed the area, so arm it again
//!         mov  fs:[area + 8], d       arm
//!     71: mov  c, fs:[id]            the section begins
//!         cmp  c, len                 -1 and -2 (not registered) are above every length
//!         jae  no slot
//!         shl  c, SHIFT
//!         add  c, first
//!         ...                         registers only
//!         mov  [c], x                 the one store
//!     72:                             the section ends
//! ```
//!
//! Rules that each section keeps: one store, last; no stack, no call, no system call between 71 and 72; inputs
//! are never changed, since an abort starts again from them; the words are naturally aligned 8-byte accesses,
//! and the assembly is assumed to touch memory (no `nomem`), so that it mixes with the atomic accesses of
//! readers. Labels are two digits since assemblers read those made of 0 and 1 as binary numbers.

use std::arch::asm;

use super::Words;
use crate::backend::Refusal;
use crate::protocol::batch::Below;

/// A section between its frame: the descriptor, arming, reading the id, and the place an abort goes to.
///
/// The descriptor (version, flags, start, length, abort) lies in relocated read-only data. The four bytes
/// before the abort address are the signature that glibc registers (`RSEQ_SIG` of sys/rseq.h), dressed as an
/// undefined instruction.
macro_rules! section {
    ($($body:literal),+ $(,)?) => {
        concat!(
            ".pushsection .data.rel.ro.cairn_rseq, \"aw\", @progbits\n",
            ".balign 32\n",
            "73:\n",
            ".long 0, 0\n",
            ".quad 71f, 72f - 71f, 74f\n",
            ".popsection\n",
            "70:\n",
            "lea {d}, [rip + 73b]\n",
            "mov qword ptr fs:[{area} + 8], {d}\n",
            "71:\n",
            "mov {c:e}, dword ptr fs:[{id}]\n",
            $($body, "\n",)+
            "72:\n",
            ".pushsection .text.cairn_rseq_abort, \"ax\", @progbits\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "74:\n",
            "jmp 70b\n",
            ".popsection\n",
        )
    };
}

/// Exact adds are enough for the self-test: these sections are proven by storms of 10^10 adds, and on an idle
/// machine two threads may not preempt each other in time.
pub(super) const MUST_SEE_RESTARTS: bool = false;

/// After a section: sets `found`, to 1 on the way out of the section and to 0 where it jumped to 75.
macro_rules! found {
    () => {
        concat!(
            "mov {found:e}, 1\n",
            "76:\n",
            ".pushsection .text.cairn_rseq_abort, \"ax\", @progbits\n",
            "75:\n",
            "xor {found:e}, {found:e}\n",
            "jmp 76b\n",
            ".popsection\n",
        )
    };
}

/// Nothing stands against the sections of this architecture.
#[expect(clippy::unnecessary_wraps, reason = "other architectures have reasons")]
pub(super) fn proven() -> Result<(), Refusal> {
    Ok(())
}

/// Addresses of `__rseq_offset` and `__rseq_size`, null where the C library has none.
pub(super) fn libc_symbols() -> (*const isize, *const u32) {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: two loads from the global offset table, where the linker puts 0 for a weak symbol that nothing
    // defines.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
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
            "mov {now:e}, dword ptr fs:[{at}]",
            at = in(reg) at,
            now = lateout(reg) now,
            options(nostack, preserves_flags, readonly),
        );
    }
    now
}

/// `first[id] += n`; false if the id has no slot.
///
/// Success is a number and not a jump of the assembly, since the compiler does not unswitch a loop around such
/// a jump, and a handle's loop is twice as fast unswitched.
///
/// The sum is made by `lea` and not by adding to memory: cores of Intel since Golden Cove carry a value from a
/// store to the next load through a register rename, which `lea` and immediate adds keep up and an add of a
/// register does not (measured: 0.28 against 1.9 ns for repeated adds).
///
/// # Safety
/// `words` are those of real slots, and their area is registered.
#[inline(always)]
pub(super) unsafe fn add<const L: usize>(words: Words<'_, L>, n: u64) -> bool {
    let found: u32;
    // SAFETY: the id is below `len`, so the store hits the word of an existing slot, which is atomic and so
    // may change behind a shared reference; it commits only on the CPU (or under the concurrency id) whose
    // slot it is.
    unsafe {
        asm!(
            section!(
                "cmp {c}, {len}",
                "jae 75f",
                "shl {c}, {shift}",
                "add {c}, {first}",
                "mov {d}, qword ptr [{c}]",
                "lea {d}, [{d} + {n}]",
                "mov qword ptr [{c}], {d}",
            ),
            found!(),
            area = in(reg) words.area.offset,
            id = in(reg) words.area.id,
            len = in(reg) words.len,
            first = in(reg) words.first.as_ptr(),
            n = in(reg) n,
            shift = const Words::<L>::SHIFT,
            c = out(reg) _,
            d = out(reg) _,
            found = lateout(reg) found,
            options(nostack),
        );
    }
    found != 0
}

/// [`add`] whose store releases: on this architecture every store does.
///
/// # Safety
/// As [`add`].
#[inline(always)]
pub(super) unsafe fn add_release<const L: usize>(words: Words<'_, L>, n: u64) -> bool {
    // SAFETY: the caller's.
    unsafe { add(words, n) }
}

/// `total += n` unless that leaves `limit` or more unpublished, `limit` being one less than the batch.
///
/// # Safety
/// As [`add`]; the word after `words.first` is the published part.
#[inline(always)]
pub(super) unsafe fn add_below<const L: usize>(words: Words<'_, L>, n: i64, limit: u64) -> Below {
    // SAFETY: as in `add`. -limit <= residue <= limit is tested as residue + limit <= 2 * limit, unsigned.
    unsafe {
        asm!(
            section!(
                "cmp {c}, {len}",
                "jae {no_slot}",
                "shl {c}, {shift}",
                "add {c}, {first}",
                "mov {total}, qword ptr [{c}]",
                "lea {total}, [{total} + {n}]",
                "mov {d}, {total}",
                "sub {d}, qword ptr [{c} + 8]",
                "add {d}, {limit}",
                "cmp {d}, {twice}",
                "ja {full}",
                "mov qword ptr [{c}], {total}",
            ),
            area = in(reg) words.area.offset,
            id = in(reg) words.area.id,
            len = in(reg) words.len,
            first = in(reg) words.first.as_ptr(),
            n = in(reg) n,
            limit = in(reg) limit,
            twice = in(reg) 2 * limit,
            shift = const Words::<L>::SHIFT,
            c = out(reg) _,
            d = out(reg) _,
            total = out(reg) _,
            no_slot = label { return Below::NoSlot },
            full = label { return Below::Full },
            options(nostack),
        );
    }
    Below::Added
}

/// `published := total`; gives the difference.
///
/// # Safety
/// As [`add_below`].
pub(super) unsafe fn publish<const L: usize>(words: Words<'_, L>) -> Option<i64> {
    let residue: i64;
    let found: u32;
    // SAFETY: as in `add`. Outputs cannot go together with label operands, so success is a number, set
    // outside the section.
    unsafe {
        asm!(
            section!(
                "cmp {c}, {len}",
                "jae 75f",
                "shl {c}, {shift}",
                "add {c}, {first}",
                "mov {d}, qword ptr [{c}]",
                "mov {residue}, {d}",
                "sub {residue}, qword ptr [{c} + 8]",
                "mov qword ptr [{c} + 8], {d}",
            ),
            found!(),
            area = in(reg) words.area.offset,
            id = in(reg) words.area.id,
            len = in(reg) words.len,
            first = in(reg) words.first.as_ptr(),
            shift = const Words::<L>::SHIFT,
            c = out(reg) _,
            d = out(reg) _,
            residue = out(reg) residue,
            found = out(reg) found,
            options(nostack),
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
        asm!(
            "xor {begun:e}, {begun:e}",
            section!(
                "inc {begun}",
                "cmp {c}, {len}",
                "jae 75f",
                "shl {c}, {shift}",
                "add {c}, {first}",
                "mov {total}, qword ptr [{c}]",
                "mov {d}, {gap}",
                "77:",
                "dec {d}",
                "jnz 77b",
                "inc {total}",
                "mov qword ptr [{c}], {total}",
            ),
            found!(),
            area = in(reg) words.area.offset,
            id = in(reg) words.area.id,
            len = in(reg) words.len,
            first = in(reg) words.first.as_ptr(),
            gap = in(reg) gap.max(1),
            shift = const Words::<L>::SHIFT,
            begun = out(reg) begun,
            c = out(reg) _,
            d = out(reg) _,
            total = out(reg) _,
            found = out(reg) found,
            options(nostack),
        );
    }
    (found != 0).then(|| begun - 1)
}
