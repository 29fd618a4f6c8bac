//! Operations, bytes and errors of a workload, counted without a line that two workers share.

use cairn_percpu::{BackendKind, CounterField};

use crate::recorder::{DIRS, SYNC};

cairn_percpu::counter_group! {
    /// Twelve counters, so that all that a worker counts lies in one pair of cache lines.
    struct Group {
        reads, read_bytes, read_errors,
        writes, write_bytes, write_errors,
        trims, trim_bytes, trim_errors,
        syncs, sync_bytes, sync_errors,
    }
}

type Field<'a> = CounterField<'a, 1, 12>;

impl Group {
    /// Operations, bytes and errors of a direction.
    #[inline]
    fn dir(&self, dir: usize) -> [Field<'_>; 3] {
        match dir {
            0 => [self.reads(), self.read_bytes(), self.read_errors()],
            1 => [self.writes(), self.write_bytes(), self.write_errors()],
            2 => [self.trims(), self.trim_bytes(), self.trim_errors()],
            _ => [self.syncs(), self.sync_bytes(), self.sync_errors()],
        }
    }
}

/// Above so many threads the slots are those of the CPUs: a slot for each thread in each clone of a job
/// would take memory by the square of their number.
const OWN_SLOTS: usize = 64;

/// What the counters said at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ops: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
}

impl Counts {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            ops: self.ops + other.ops,
            bytes: self.bytes + other.bytes,
            errors: self.errors + other.errors,
        }
    }

    /// What came since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            ops: self.ops.saturating_sub(before.ops),
            bytes: self.bytes.saturating_sub(before.bytes),
            errors: self.errors.saturating_sub(before.errors),
        }
    }
}

/// What a workload has done, or one clone of a job.
#[derive(Debug)]
pub(crate) struct Operations {
    /// Until the reset, and from there on. No counter ever goes back: that would lose what its owner adds
    /// at the same moment. Each worker goes over to the second group when it learns of the reset.
    phases: [Group; 2],
}

/// Which of the two groups a worker counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The only one for those that are never reset.
    First,
    AfterReset,
}

impl Operations {
    /// Counters for workers of a process that has `threads` of them in all.
    pub(crate) fn new(threads: usize) -> Self {
        let group = || {
            let builder = Group::builder();
            if threads > OWN_SLOTS {
                builder
                    .backend(BackendKind::RseqCpu)
                    .max_slots(OWN_SLOTS)
                    .build()
            } else {
                builder.slots(threads + 1).build()
            }
        };
        Self {
            phases: [group(), group()],
        }
    }

    #[inline]
    fn phase(&self, phase: Phase) -> &Group {
        let [first, after] = &self.phases;
        match phase {
            Phase::First => first,
            Phase::AfterReset => after,
        }
    }

    /// An operation succeeded.
    #[inline]
    pub(crate) fn done(&self, phase: Phase, dir: usize, len: u64) {
        let [ops, bytes, _] = self.phase(phase).dir(dir);
        ops.inc();
        bytes.add(len);
    }

    /// An operation failed.
    pub(crate) fn failed(&self, phase: Phase, dir: usize) {
        let [_, _, errors] = self.phase(phase).dir(dir);
        errors.inc();
    }

    /// The exact sums of a direction.
    pub(crate) fn dir(&self, phase: Phase, dir: usize) -> Counts {
        let [ops, bytes, errors] = self.phase(phase).dir(dir);
        Counts {
            ops: ops.sum(),
            bytes: bytes.sum(),
            errors: errors.sum(),
        }
    }

    /// All data operations; flushes are left out.
    pub(crate) fn data(&self, phase: Phase) -> Counts {
        (0..DIRS)
            .filter(|dir| *dir != SYNC)
            .map(|dir| self.dir(phase, dir))
            .fold(Counts::default(), Counts::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn many_workers_lose_nothing_with_slots_of_their_own_and_without() {
        for threads in [8, 100] {
            let operations = Operations::new(threads);
            thread::scope(|scope| {
                for worker in 0..8 {
                    let operations = &operations;
                    scope.spawn(move || {
                        for _ in 0..10_000 {
                            operations.done(Phase::First, worker % DIRS, 512);
                        }
                        operations.failed(Phase::AfterReset, worker % DIRS);
                    });
                }
            });
            for dir in 0..DIRS {
                let counts = operations.dir(Phase::First, dir);
                assert_eq!((counts.ops, counts.bytes), (20_000, 20_000 * 512));
                assert_eq!(operations.dir(Phase::AfterReset, dir).errors, 2);
            }
            assert_eq!(operations.data(Phase::First).ops, 60_000);
        }
    }

    #[test]
    fn memory_does_not_grow_by_the_square_of_the_threads() {
        let operations = Operations::new(3000);
        let [first, _] = &operations.phases;
        assert!(first.memory() < 256 * 1024, "{} bytes", first.memory());
    }
}
