//! The slots of a counter or a group, under the backend that was chosen for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{BackendKind, Effective, choose};
use crate::protocol::batch::{self, Sections, Shared};
use crate::protocol::owner;
use crate::slot::{LINE_WORDS, Slot, SlotLabel};
use crate::sys::rseq::{self, Area};
use crate::{cpus, thread};

/// Owned slots without a builder: enough for the CPUs, and for a small program's threads.
const MIN_OWNED: usize = 16;
/// One overflow slot for this many slots.
const SLOTS_PER_OVERFLOW: usize = 16;
/// Shared words of a batched field: base, central, largest.
const SHARED_WORDS: usize = 3;

/// What a builder says about the slots.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) backend: Option<BackendKind>,
    pub(crate) at_least: Option<usize>,
    pub(crate) at_most: Option<usize>,
}

impl Shape {
    /// How many slots `kind` gets.
    fn slots(self, kind: BackendKind) -> usize {
        let at_least = self.at_least.unwrap_or(0);
        let wanted = match kind {
            BackendKind::Owned => cpus::possible()
                .max(MIN_OWNED)
                .max(at_least)
                .next_power_of_two(),
            BackendKind::RseqCpu | BackendKind::RseqCid => cpus::possible().max(at_least),
            BackendKind::Striped => cpus::possible().max(at_least).next_power_of_two(),
        };
        wanted.min(self.at_most.unwrap_or(wanted)).max(1)
    }
}

/// The memory of `16 * L` words per slot.
pub(crate) struct Table<const L: usize> {
    /// Slots that threads own; empty under every other backend.
    owned: Box<[Slot<L>]>,
    /// Slots per CPU, or stripes; empty under the owned backend.
    shared: Box<[Slot<L>]>,
    /// Where the sections find the CPU, under the rseq backends.
    area: Option<Area>,
    /// Overflow slots, then the words that all slots share.
    rest: Box<[Slot<L>]>,
    overflow: usize,
    effective: Effective,
}

impl<const L: usize> Table<L> {
    /// Allocates the slots of `shape`, with the shared words of `batched` batched fields.
    pub(crate) fn new(shape: Shape, batched: usize) -> Self {
        let effective = choose(shape.backend);
        let kind = effective.kind();
        let area = match kind {
            BackendKind::RseqCpu => rseq::cpu_area().ok(),
            BackendKind::RseqCid => rseq::cid_area().ok(),
            BackendKind::Owned | BackendKind::Striped => None,
        };
        let slots = shape.slots(kind);
        let overflow = (slots / SLOTS_PER_OVERFLOW).max(1);
        let words = 1 + SHARED_WORDS * batched;
        let (owned, shared) = if kind == BackendKind::Owned {
            (slots, 0)
        } else {
            (0, slots)
        };
        Self {
            owned: Slot::many(owned),
            shared: Slot::many(shared),
            area,
            rest: Slot::many(overflow + words.div_ceil(LINE_WORDS * L)),
            overflow,
            effective,
        }
    }

    pub(crate) fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Bytes allocated, this header included.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + (self.owned.len() + self.shared.len() + self.rest.len()) * size_of::<Slot<L>>()
    }

    /// The first add of a thread, a stripe, or an overflow slot.
    #[cold]
    pub(crate) fn add_slow(&self, word: usize, n: u64, order: Ordering) {
        if let Some(slot) = self.own_slot() {
            return owner::add_as(slot.word(word), n, order);
        }
        if let Some(area) = self.area {
            let words = area.words(&self.shared, word);
            if words.is_some_and(|words| words.add_as(n, order)) {
                return;
            }
        }
        match self.stripe() {
            Some(stripe) => _ = stripe.word(word).fetch_add(n, order),
            None => self.add_overflow(thread::hint() as usize, word, n, order),
        }
    }

    /// The slot that the calling thread owns, claimed if this is its first use.
    fn own_slot(&self) -> Option<&Slot<L>> {
        if self.owned.is_empty() {
            return None;
        }
        self.owned.get(thread::claim() / size_of::<Slot<1>>())
    }

    /// The stripe of the calling thread, under that backend.
    fn stripe(&self) -> Option<&Slot<L>> {
        if self.area.is_some() || self.shared.is_empty() {
            return None;
        }
        self.shared.get(thread::hint() as usize % self.shared.len())
    }

    /// Adds to an overflow slot, which anyone may write, with a locked add.
    fn add_overflow(&self, hint: usize, word: usize, n: u64, order: Ordering) {
        self.shared_word(0).fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.rest.get(hint % self.overflow) {
            slot.word(word).fetch_add(n, order);
        }
    }

    /// Adds from a signal handler: nothing is claimed, allocated or assumed to have one writer.
    pub(crate) fn add_from_signal(&self, word: usize, n: u64, order: Ordering) {
        self.add_overflow(0, word, n, order);
    }

    /// The calling thread's word for a handle, with the lease that keeps it.
    pub(crate) fn lease(&self, word: usize) -> Option<(thread::Lease, &AtomicU64)> {
        if self.owned.is_empty() {
            return None;
        }
        let (lease, offset) = thread::Lease::take()?;
        let slot = self.owned.get(offset / size_of::<Slot<1>>())?;
        Some((lease, slot.word(word)))
    }

    /// A word all slots share.
    #[expect(
        clippy::indexing_slicing,
        reason = "new() allocates room for every shared word that a field of the type names"
    )]
    fn shared_word(&self, word: usize) -> &AtomicU64 {
        let per_slot = LINE_WORDS * L;
        self.rest[self.overflow + word / per_slot].word(word % per_slot)
    }

    /// Times an overflow slot was used.
    pub(crate) fn overflow_hits(&self) -> u64 {
        self.shared_word(0).load(Ordering::Relaxed)
    }

    /// The shared words of the batched field `field`.
    pub(crate) fn batch_words(&self, field: usize) -> Shared<'_> {
        let first = 1 + SHARED_WORDS * field;
        Shared {
            base: self.shared_word(first),
            central: self.shared_word(first + 1),
            largest: self.shared_word(first + 2),
        }
    }

    /// The fold, once per batch.
    #[cold]
    pub(crate) fn publish(&self, field: usize, residue: i64) {
        self.batch_words(field).publish(residue);
    }

    /// The first add of a thread, one to a stripe, or one without a slot.
    #[cold]
    pub(crate) fn add_batched_slow(&self, word: usize, field: usize, n: i64, batch: u32) {
        if n.unsigned_abs() >= u64::from(batch) {
            return self.add_past(field, n);
        }
        if let Some(words) = self.area.and_then(|area| area.words(&self.shared, word)) {
            return batch::add_on_cpu(&words, || self.batch_words(field), n, batch);
        }
        let residue = if let Some(slot) = self.own_slot() {
            batch::add_owned(slot.word(word), slot.word(word + 1), n, batch)
        } else if let Some(slot) = self.stripe() {
            batch::add_striped(slot.word(word), slot.word(word + 1), n, batch)
        } else {
            return self.add_past(field, n);
        };
        if let Some(residue) = residue {
            self.publish(field, residue);
        }
    }

    /// Adds past the slots.
    #[cold]
    pub(crate) fn add_past(&self, field: usize, n: i64) {
        self.batch_words(field).add_past(n);
    }

    /// Publishes the residue of the caller's slot.
    pub(crate) fn sync(&self, word: usize, field: usize) {
        let residue = if let Some(area) = self.area {
            let words = area.words(&self.shared, word);
            words.and_then(|words| words.publish())
        } else if let Some(slot) = self.stripe() {
            // A batch of 1 leaves nothing unpublished.
            batch::add_striped(slot.word(word), slot.word(word + 1), 0, 1)
        } else {
            self.own_slot()
                .map(|slot| batch::fold_owned(slot.word(word), slot.word(word + 1)))
        };
        if let Some(residue) = residue
            && residue != 0
        {
            self.publish(field, residue);
        }
    }

    /// Slots that threads own.
    pub(crate) fn owned(&self) -> &[Slot<L>] {
        &self.owned
    }

    /// The offset of the rseq area, if slots go by CPU id.
    pub(crate) fn cpu_area(&self) -> Option<isize> {
        self.area.and_then(Area::with_cpu_ids)
    }

    /// Slots by thread, CPU or stripe: all but overflow slots.
    pub(crate) fn slots(&self) -> &[Slot<L>] {
        if self.owned.is_empty() {
            &self.shared
        } else {
            &self.owned
        }
    }

    /// Overflow slots.
    fn overflow(&self) -> &[Slot<L>] {
        self.rest.get(..self.overflow).unwrap_or(&[])
    }

    /// One word of every slot, the overflow slots last.
    pub(crate) fn words(&self, word: usize) -> impl Iterator<Item = &AtomicU64> {
        self.slots()
            .iter()
            .chain(self.overflow())
            .map(move |slot| slot.word(word))
    }

    /// The sum of one word over all slots.
    #[inline]
    pub(crate) fn sum(&self, word: usize) -> u64 {
        let sum = |slots: &[Slot<L>]| owner::sum(slots.iter().map(|slot| slot.word(word)));
        sum(self.slots()).wrapping_add(sum(self.overflow()))
    }

    /// Every slot with its name, the overflow slots last.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (SlotLabel, &Slot<L>)> {
        let label = match self.effective.kind() {
            BackendKind::Owned => SlotLabel::Thread,
            BackendKind::RseqCpu => SlotLabel::Cpu,
            BackendKind::RseqCid => SlotLabel::Cid,
            BackendKind::Striped => SlotLabel::Stripe,
        };
        let slots = (0..).map(label).zip(self.slots());
        slots.chain((0..).map(SlotLabel::Overflow).zip(self.overflow()))
    }

    /// Slots that can hold a residue: those that a thread or CPU may have written.
    pub(crate) fn slots_in_use(&self) -> &[Slot<L>] {
        let slots = self.slots();
        let used = match self.effective.kind() {
            BackendKind::Owned => slots.len().min(thread::high_water() as usize),
            BackendKind::RseqCpu | BackendKind::RseqCid | BackendKind::Striped => slots.len(),
        };
        slots.get(..used).unwrap_or(slots)
    }

    /// How many threads can be inside an add at once, where that is known.
    pub(crate) fn writers(&self) -> Option<u64> {
        (self.effective.kind() == BackendKind::Owned).then(|| u64::from(thread::high_water()))
    }

    /// The word of the caller's slot, or of a stripe or overflow slot, for operations that are atomic anyway.
    pub(crate) fn any_word(&self, word: usize) -> &AtomicU64 {
        let slot = self.own_slot().or_else(|| {
            let index = self.area.map_or_else(thread::hint, Area::id_now) as usize;
            let len = self.shared.len().max(1);
            self.shared.get(index % len)
        });
        slot.or_else(|| self.rest.first())
            .map_or_else(|| self.shared_word(0), |slot| slot.word(word))
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        let all = self.owned.iter_mut().chain(&mut self.shared);
        all.chain(&mut self.rest).for_each(Slot::clear);
    }

    /// Publishes every residue, and sets the approximate sum to `exact`.
    pub(crate) fn settle(&mut self, word: usize, field: usize, exact: u64) {
        for slot in self.owned.iter_mut().chain(&mut self.shared) {
            let total = slot.word(word).load(Ordering::Relaxed);
            slot.set(word + 1, total);
        }
        self.batch_words(field)
            .central
            .store(exact, Ordering::Relaxed);
    }
}

impl<const L: usize> fmt::Debug for Table<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("backend", &self.effective)
            .field("slots", &self.slots().len())
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}
