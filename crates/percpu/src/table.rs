//! The slots of a counter or a group, under the backend that was chosen for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{BackendKind, Effective, choose};
use crate::protocol::batch::{self, Sections, Shared};
use crate::protocol::owner;
use crate::slot::{LINE_WORDS, Slot, SlotLabel};
use crate::sys::rseq::{self, Area, Words};
use crate::{cpus, thread};

/// Owned slots without a builder: enough for the CPUs, and for a small program's threads.
const MIN_OWNED: usize = thread::NEAR;
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
    /// Slots by thread, CPU or stripe; then overflow slots, which anyone may write; then the words that all
    /// slots of a batched field share. One allocation, so that a sum is one loop.
    all: Box<[Slot<L>]>,
    /// How many of the first kind.
    slots: usize,
    /// How many of the second.
    overflow: usize,
    /// Where the sections find the CPU, under the rseq backends.
    area: Option<Area>,
    /// Times an overflow slot was used. Adds that find their slot do not come here, so it disturbs nobody else.
    overflow_hits: AtomicU64,
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
        let shared = (SHARED_WORDS * batched).div_ceil(LINE_WORDS * L);
        Self {
            all: Slot::many(slots + overflow + shared),
            slots,
            overflow,
            area,
            overflow_hits: AtomicU64::new(0),
            effective,
        }
    }

    pub(crate) fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Bytes allocated, this header included.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.all)
    }

    /// The first add of a thread, a stripe, or an overflow slot.
    #[cold]
    pub(crate) fn add_slow(&self, word: usize, n: u64, order: Ordering) {
        if let Some(slot) = self.own_slot() {
            return owner::add_as(slot.word(word), n, order);
        }
        if let Some(words) = self.per_cpu(word)
            && words.add_as(n, order)
        {
            return;
        }
        match self.stripe() {
            Some(stripe) => _ = stripe.word(word).fetch_add(n, order),
            None => self.add_overflow(thread::hint() as usize, word, n, order),
        }
    }

    /// The slot that the calling thread owns, claimed if this is its first use.
    fn own_slot(&self) -> Option<&Slot<L>> {
        self.owned().get(thread::claim())
    }

    /// The stripe of the calling thread, under that backend.
    fn stripe(&self) -> Option<&Slot<L>> {
        if self.effective.kind() != BackendKind::Striped {
            return None;
        }
        self.slots().get(thread::hint() as usize % self.slots)
    }

    /// Adds to an overflow slot, which anyone may write, with a locked add.
    fn add_overflow(&self, hint: usize, word: usize, n: u64, order: Ordering) {
        self.overflow_hits.fetch_add(1, Ordering::Relaxed);
        self.overflow_slot(hint).word(word).fetch_add(n, order);
    }

    /// Adds from a signal handler: nothing is claimed, allocated or assumed to have one writer.
    pub(crate) fn add_from_signal(&self, word: usize, n: u64, order: Ordering) {
        self.add_overflow(0, word, n, order);
    }

    /// The calling thread's word for a handle, with the lease that keeps it.
    pub(crate) fn lease(&self, word: usize) -> Option<(thread::Lease, &AtomicU64)> {
        if self.owned().is_empty() {
            return None;
        }
        let (lease, id) = thread::Lease::take()?;
        let slot = self.owned().get(id)?;
        Some((lease, slot.word(word)))
    }

    /// Times an overflow slot was used.
    pub(crate) fn overflow_hits(&self) -> u64 {
        self.overflow_hits.load(Ordering::Relaxed)
    }

    /// The shared words of the batched field `field`.
    pub(crate) fn batch_words(&self, field: usize) -> Shared<'_> {
        let first = SHARED_WORDS * field;
        Shared {
            base: self.shared_word(first),
            central: self.shared_word(first + 1),
            largest: self.shared_word(first + 2),
        }
    }

    /// A word that all slots share.
    #[expect(
        clippy::indexing_slicing,
        reason = "new() allocates room for every shared word that a field of the type names"
    )]
    fn shared_word(&self, word: usize) -> &AtomicU64 {
        let per_slot = LINE_WORDS * L;
        self.all[self.slots + self.overflow + word / per_slot].word(word % per_slot)
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
        if let Some(words) = self.per_cpu(word) {
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
        let residue = if let Some(words) = self.per_cpu(word) {
            words.publish()
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

    /// Slots that threads own: none under other backends.
    pub(crate) fn owned(&self) -> &[Slot<L>] {
        if self.effective.kind() == BackendKind::Owned {
            self.slots()
        } else {
            &[]
        }
    }

    /// One word of the slots of all CPUs, or of all concurrency ids.
    pub(crate) fn per_cpu(&self, word: usize) -> Option<Words<'_, L>> {
        self.area?.words(self.slots(), word)
    }

    /// The offsets of the rseq area, under the rseq backends.
    pub(crate) fn area_offsets(&self) -> Option<(isize, isize)> {
        self.area.map(Area::offsets)
    }

    /// Slots by thread, CPU or stripe: all but overflow slots.
    pub(crate) fn slots(&self) -> &[Slot<L>] {
        self.all.get(..self.slots).unwrap_or(&self.all)
    }

    /// Those, and the overflow slots.
    fn with_overflow(&self) -> &[Slot<L>] {
        self.all
            .get(..self.slots + self.overflow)
            .unwrap_or(&self.all)
    }

    /// One of the overflow slots.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is at least one overflow slot"
    )]
    fn overflow_slot(&self, hint: usize) -> &Slot<L> {
        &self.all[self.slots + hint % self.overflow]
    }

    /// One word of every slot, the overflow slots last.
    pub(crate) fn words(&self, word: usize) -> impl Iterator<Item = &AtomicU64> {
        self.with_overflow().iter().map(move |slot| slot.word(word))
    }

    /// The sum of one word over all slots.
    #[inline]
    pub(crate) fn sum(&self, word: usize) -> u64 {
        owner::sum(self.words(word))
    }

    /// Every slot with its name, the overflow slots last.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (SlotLabel, &Slot<L>)> {
        let label = match self.effective.kind() {
            BackendKind::Owned => SlotLabel::Thread,
            BackendKind::RseqCpu => SlotLabel::Cpu,
            BackendKind::RseqCid => SlotLabel::Cid,
            BackendKind::Striped => SlotLabel::Stripe,
        };
        let labels = (0..).map(label).take(self.slots);
        let labels = labels.chain((0..).map(SlotLabel::Overflow));
        labels.zip(self.with_overflow())
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

    /// The word of the caller's slot, or of one that it may share, for operations that are atomic anyway.
    pub(crate) fn any_word(&self, word: usize) -> &AtomicU64 {
        let slot = self.own_slot().or_else(|| {
            let index = self.area.map_or_else(thread::hint, Area::id_now) as usize;
            let shared = self.owned().is_empty();
            self.slots().get(index % self.slots).filter(|_| shared)
        });
        slot.unwrap_or_else(|| self.overflow_slot(thread::hint() as usize))
            .word(word)
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        *self.overflow_hits.get_mut() = 0;
        self.all.iter_mut().for_each(Slot::clear);
    }

    /// Publishes every residue, and sets the approximate sum to `exact`.
    pub(crate) fn settle(&mut self, word: usize, field: usize, exact: u64) {
        for slot in self.all.iter_mut().take(self.slots) {
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
            .field("slots", &self.slots)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}
