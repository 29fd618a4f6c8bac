//! The four counters of a cache, each in two arms.
//!
//! Arm [`CounterMode::Shared`] is one contended atomic per counter, as Linux had it until commit
//! 520f897a3554; arm [`CounterMode::PerCpu`] counts in a slot of its own per CPU or thread and
//! folds batches. The per-CPU arm exists once per backend, and one of them receives. Both switches may be
//! thrown while others count: each counter's value is the sum of all of them, so nothing is lost. A
//! backend that never received adds nothing to a bound.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cairn_percpu::{BackendKind, BatchError, Effective, SharedCounter, SlotValue};

use crate::info::{Averages, Info, Largest};

cairn_percpu::counter_group! {
    /// The per-CPU arm: one slot holds all four.
    struct PerCpu {
        batched hits,
        batched misses,
        batched all,
        batched reclaimable,
    }
}

/// The shared arm of one counter, on lines of its own: what is measured is this word, not its
/// neighbours.
#[derive(Default)]
#[repr(align(128))]
struct Shared(SharedCounter);

/// The backends that the per-CPU arm can count with, the default first.
const BACKENDS: [BackendKind; 3] = [
    BackendKind::RseqCpu,
    BackendKind::Owned,
    BackendKind::Striped,
];

/// Which arm receives what is counted from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CounterMode {
    /// One atomic per counter, shared by all threads.
    Shared,
    /// A slot per CPU where restartable sequences are available, else per thread.
    #[default]
    PerCpu,
}

/// One counter, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Every slot summed up.
    pub exact: i64,
    /// What is read without visiting the slots.
    pub approximate: i64,
    /// How far the approximate value may be off at rest, up or down.
    pub bound: u64,
}

/// One slot of the per-CPU arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    /// `cpu n`, `thread n` or `stripe n`, as it is; `base` for what went past the slots.
    pub label: String,
    /// The backend asked for that the slot belongs to; with its label it names the slot.
    pub backend: BackendKind,
    /// Look-ups that hit, counted here.
    pub hits: i64,
    /// Look-ups that missed, counted here.
    pub misses: i64,
}

/// Everything about the counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterReport {
    /// The arm that receives.
    pub mode: CounterMode,
    /// The batch of the per-CPU arm.
    pub batch: u32,
    /// The per-CPU arm's mechanism and why it was chosen.
    pub backend: Effective,
    /// Look-ups that hit.
    pub hits: Reading,
    /// Look-ups that missed.
    pub misses: Reading,
    /// Entries held.
    pub all: Reading,
    /// Entries that the shrinker may take.
    pub reclaimable: Reading,
}

/// One counter of the per-CPU arm.
macro_rules! reading {
    ($self:ident, $name:ident) => {{
        let shared = $self.$name.0.sum_i64();
        let mut reading = Reading {
            exact: shared,
            approximate: shared,
            bound: 0,
        };
        for (percpu, used) in $self.percpu.iter().zip(&$self.used) {
            let percpu = percpu.$name();
            reading.exact = reading.exact.wrapping_add(percpu.sum());
            reading.approximate = reading.approximate.wrapping_add(percpu.read());
            if used.load(Ordering::Acquire) {
                reading.bound = reading.bound.saturating_add(percpu.bound());
            }
        }
        reading
    }};
}

/// Hits, misses, entries and reclaimable entries.
pub struct Counters {
    /// What receives: 0 the shared arm, n the backend numbered n - 1.
    receiver: AtomicU32,
    /// Number of the backend that receives when the per-CPU arm does.
    backend: AtomicU32,
    percpu: [PerCpu; BACKENDS.len()],
    /// Which of them have ever received.
    used: [AtomicBool; BACKENDS.len()],
    hits: Shared,
    misses: Shared,
    all: Shared,
    reclaimable: Shared,
}

impl Counters {
    /// `slots` is the number of threads that count at a time, where slots belong to threads.
    pub(crate) fn new(slots: Option<usize>) -> Self {
        Self {
            receiver: AtomicU32::new(1),
            backend: AtomicU32::new(0),
            percpu: BACKENDS.map(|backend| {
                let builder = PerCpu::builder().backend(backend);
                match slots {
                    Some(slots) => builder.slots(slots).build(),
                    None => builder.build(),
                }
            }),
            used: [true, false, false].map(AtomicBool::new),
            hits: Shared::default(),
            misses: Shared::default(),
            all: Shared::default(),
            reclaimable: Shared::default(),
        }
    }

    /// The per-CPU counters, if they receive.
    #[inline]
    fn receiving(&self) -> Option<&PerCpu> {
        // Relaxed: whatever receives, the sum is the same.
        let receiver = self.receiver.load(Ordering::Relaxed);
        self.percpu.get((receiver as usize).wrapping_sub(1))
    }

    /// The per-CPU counters that receive when that arm does.
    fn chosen(&self) -> &PerCpu {
        let [first, ..] = &self.percpu;
        let number = self.backend.load(Ordering::Relaxed) as usize;
        self.percpu.get(number).unwrap_or(first)
    }

    /// The arm that receives.
    #[inline]
    pub fn mode(&self) -> CounterMode {
        match self.receiving() {
            None => CounterMode::Shared,
            Some(_) => CounterMode::PerCpu,
        }
    }

    pub(crate) fn set_mode(&self, mode: CounterMode) {
        let receiver = match mode {
            CounterMode::Shared => 0,
            CounterMode::PerCpu => {
                let number = self.backend.load(Ordering::Relaxed);
                if let Some(used) = self.used.get(number as usize) {
                    used.store(true, Ordering::Release);
                }
                number + 1
            }
        };
        self.receiver.store(receiver, Ordering::Relaxed);
    }

    /// Chooses the backend of the per-CPU arm; one that cannot be had here counts on owned slots, as
    /// [`CounterReport::backend`] says. A kind without counters of its own is the first one.
    pub(crate) fn set_backend(&self, kind: BackendKind) {
        let number = (0..).zip(BACKENDS).find(|(_, have)| *have == kind);
        self.backend
            .store(number.map_or(0, |(n, _)| n), Ordering::Relaxed);
        if self.mode() == CounterMode::PerCpu {
            self.set_mode(CounterMode::PerCpu);
        }
    }

    /// The batch of the per-CPU arm.
    pub fn batch(&self) -> u32 {
        self.chosen().batch()
    }

    pub(crate) fn set_batch(&self, batch: u32) -> Result<(), BatchError> {
        // All accept the same batches, so the first refusal comes before any change.
        self.percpu.iter().try_for_each(|p| p.set_batch(batch))
    }

    #[inline]
    pub(crate) fn hits(&self, n: u32) {
        match self.receiving() {
            None => self.hits.0.add(u64::from(n)),
            Some(percpu) => percpu.hits().add(i64::from(n)),
        }
    }

    #[inline]
    pub(crate) fn misses(&self, n: u32) {
        match self.receiving() {
            None => self.misses.0.add(u64::from(n)),
            Some(percpu) => percpu.misses().add(i64::from(n)),
        }
    }

    pub(crate) fn all(&self, by: i64) {
        match self.receiving() {
            _ if by == 0 => {}
            None => self.all.0.add_i64(by),
            Some(percpu) => percpu.all().add(by),
        }
    }

    pub(crate) fn reclaimable(&self, by: i64) {
        match self.receiving() {
            _ if by == 0 => {}
            None => self.reclaimable.0.add_i64(by),
            Some(percpu) => percpu.reclaimable().add(by),
        }
    }

    pub(crate) fn approximate_reclaimable(&self) -> i64 {
        let shared = self.reclaimable.0.sum_i64();
        let read = self.percpu.iter().map(|p| p.reclaimable().read());
        read.fold(shared, i64::wrapping_add)
    }

    /// All four, with their error bounds.
    pub fn report(&self) -> CounterReport {
        CounterReport {
            mode: self.mode(),
            batch: self.batch(),
            backend: self.chosen().backend(),
            hits: reading!(self, hits),
            misses: reading!(self, misses),
            all: reading!(self, all),
            reclaimable: reading!(self, reclaimable),
        }
    }

    /// The slots of the per-CPU arm, backend by backend, in order. The shared arm has none.
    pub fn slots(&self) -> Vec<SlotRow> {
        let mut rows = Vec::new();
        for (percpu, backend) in self.percpu.iter().zip(BACKENDS) {
            let row = |(hits, misses): (SlotValue<i64>, SlotValue<i64>)| SlotRow {
                label: hits.label.to_string(),
                backend,
                hits: hits.value,
                misses: misses.value,
            };
            let pairs = percpu.hits().slots().zip(percpu.misses().slots());
            rows.extend(pairs.map(row));
        }
        rows
    }

    pub(crate) fn info(&self, on_list: u64, averages: Averages, largest: Option<Largest>) -> Info {
        let count = |reading: Reading| u64::try_from(reading.exact).unwrap_or(0);
        Info {
            objects: count(reading!(self, all)),
            reclaimable: count(reading!(self, reclaimable)),
            hits: count(reading!(self, hits)),
            misses: count(reading!(self, misses)),
            inodes_on_list: on_list,
            averages,
            largest,
        }
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.report().fmt(f)
    }
}
