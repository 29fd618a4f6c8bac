//! A per-CPU counter that forgot its restartable sequence.

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(align(128))]
struct Line(AtomicU64);

/// One word per CPU.
pub(crate) struct Naked {
    lines: Vec<Line>,
}

impl Naked {
    pub(crate) fn new(cpus: usize) -> Self {
        Self {
            lines: (0..cpus).map(|_| Line(AtomicU64::new(0))).collect(),
        }
    }

    /// Reads the CPU id, loads, dawdles, stores.
    pub(crate) fn inc(&self) {
        // SAFETY: no argument.
        let cpu = unsafe { libc::sched_getcpu() };
        let word = &self.lines[usize::try_from(cpu).unwrap()].0;
        // SAFETY: naturally aligned accesses of an atomic word.
        unsafe {
            asm!(
                "mov {value}, qword ptr [{word}]",
                "77:",
                "dec {turns}",
                "jnz 77b",
                "inc {value}",
                "mov qword ptr [{word}], {value}",
                word = in(reg) word.as_ptr(),
                value = out(reg) _,
                turns = inout(reg) 1_000_u64 => _,
                options(nostack),
            );
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        let words = self.lines.iter().map(|line| &line.0);
        words.map(|word| word.load(Ordering::Relaxed)).sum()
    }
}
