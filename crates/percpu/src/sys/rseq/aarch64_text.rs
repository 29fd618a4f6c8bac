//! The sections of aarch64, as text: in a file of their own so that a test on another machine can have them
//! assembled. They follow the x86-64 ones step by step.
//!
//! Untested on real hardware: see [`Refusal::Unproven`](crate::Refusal::Unproven).

/// A section between its frame, as `section!` of x86-64: `t` becomes the thread pointer, `a` the area.
///
/// The word before the abort address is the signature that glibc registers on this architecture, a BRK
/// instruction.
macro_rules! section {
    ($($body:literal),+ $(,)?) => {
        concat!(
            ".pushsection .data.rel.ro.cairn_rseq, \"aw\", %progbits\n",
            ".balign 32\n",
            "73:\n",
            ".long 0, 0\n",
            ".quad 71f, 72f - 71f, 74f\n",
            ".popsection\n",
            "mrs {t}, tpidr_el0\n",
            "add {a}, {t}, {area}\n",
            "70:\n",
            "adrp {d}, 73b\n",
            "add {d}, {d}, :lo12:73b\n",
            "str {d}, [{a}, #8]\n",
            "71:\n",
            "ldr {c:w}, [{t}, {id}]\n",
            "cmp {c}, {len}\n",
            "b.hs 75f\n",
            $($body, "\n",)+
            "72:\n",
            ".pushsection .text.cairn_rseq_abort, \"ax\", %progbits\n",
            ".inst 0xd428bc00\n",
            "74:\n",
            "b 70b\n",
            ".popsection\n",
        )
    };
}

/// After a section: sets `found`, to 1 on the way out of the section and to 0 where it jumped to 75.
macro_rules! found {
    () => {
        concat!(
            "mov {found:w}, #1\n",
            "b 76f\n",
            "75:\n",
            "mov {found:w}, wzr\n",
            "76:\n",
        )
    };
}

macro_rules! add {
    ($commit:literal) => {
        concat!(
            section!(
                "lsl {c}, {c}, #{shift}",
                "add {c}, {c}, {first}",
                "ldr {d}, [{c}]",
                "add {d}, {d}, {n}",
                $commit,
            ),
            found!(),
        )
    };
}

macro_rules! add_relaxed {
    () => {
        add!("str {d}, [{c}]")
    };
}

macro_rules! add_release {
    () => {
        add!("stlr {d}, [{c}]")
    };
}

/// `found` is 1 if the amount is in the slot, 2 if it would fill it, 0 if there is no slot.
macro_rules! add_below {
    () => {
        concat!(
            section!(
                "lsl {c}, {c}, #{shift}",
                "add {c}, {c}, {first}",
                "ldr {total}, [{c}]",
                "add {total}, {total}, {n}",
                "ldr {d}, [{c}, #8]",
                "sub {d}, {total}, {d}",
                "add {d}, {d}, {limit}",
                "cmp {d}, {twice}",
                "b.hi 77f",
                "str {total}, [{c}]",
            ),
            "mov {found:w}, #1\n",
            "b 76f\n",
            "77:\n",
            "mov {found:w}, #2\n",
            "b 76f\n",
            "75:\n",
            "mov {found:w}, wzr\n",
            "76:\n",
        )
    };
}

macro_rules! publish {
    () => {
        concat!(
            section!(
                "lsl {c}, {c}, #{shift}",
                "add {c}, {c}, {first}",
                "ldr {d}, [{c}]",
                "ldr {residue}, [{c}, #8]",
                "sub {residue}, {d}, {residue}",
                "str {d}, [{c}, #8]",
            ),
            found!(),
        )
    };
}

macro_rules! add_slowly {
    () => {
        concat!(
            "mov {begun}, xzr\n",
            section!(
                "add {begun}, {begun}, #1",
                "lsl {c}, {c}, #{shift}",
                "add {c}, {c}, {first}",
                "ldr {total}, [{c}]",
                "mov {d}, {gap}",
                "77:",
                "subs {d}, {d}, #1",
                "b.ne 77b",
                "add {total}, {total}, #1",
                "str {total}, [{c}]",
            ),
            found!(),
        )
    };
}

macro_rules! libc_symbols {
    () => {
        concat!(
            ".weak __rseq_offset\n",
            ".weak __rseq_size\n",
            "adrp {offset}, :got:__rseq_offset\n",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]\n",
            "adrp {size}, :got:__rseq_size\n",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]\n",
        )
    };
}

macro_rules! id {
    () => {
        concat!("mrs {t}, tpidr_el0\n", "ldr {now:w}, [{t}, {at}]\n")
    };
}

// The first three are what the others are made of, and must be in scope where those are used.
pub(super) use {add, found, section};
pub(super) use {add_below, add_relaxed, add_release, add_slowly, id, libc_symbols, publish};
