//! The kernel's `percpu_counter`, without its lock.

use std::cmp::Ordering;

use crate::backend::Effective;
use crate::batched_field::BatchedField;
use crate::builder::{Build, Builder, Parts};
use crate::counter::CounterOps;
use crate::error::BatchError;
use crate::slot::SlotValue;
use crate::store::Store;

/// A signed counter with a cheap approximate read: each slot publishes its part when that reaches the batch.
///
/// [`sum`](Self::sum) is exact and looks at every slot; [`read`](Self::read) looks at one word and is off by at
/// most [`bound`](Self::bound) at rest. An amount of a whole batch or more skips the slots.
///
/// The approximate read may be off by more while adds are running: each running add may hide up to two
/// batches, or its amount if that is larger. [`read_bounds`](Self::read_bounds) and
/// [`compare`](Self::compare) count that in.
///
/// *Ordering*: as [`Counter`](crate::Counter).
///
/// ```
/// use std::cmp::Ordering;
/// use cairn_percpu::Batched;
///
/// let dirty = Batched::new();
/// for _ in 0..100 {
///     dirty.add(1);
/// }
/// assert_eq!(dirty.sum(), 100);
/// assert!(dirty.read().abs_diff(100) <= dirty.bound());
/// assert_eq!(dirty.compare(1_000_000), Ordering::Less); // no slot was looked at for this
/// ```
#[derive(Debug)]
pub struct Batched {
    store: Store<1, 1>,
}

impl Batched {
    /// A counter at 0, on the process's [`effective_backend`](crate::effective_backend), with the default batch.
    /// Allocates nothing until the first add.
    pub const fn new() -> Self {
        Self {
            store: Store::new(1),
        }
    }

    /// Chooses backend, slots and batch.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    #[inline(always)]
    fn field(&self) -> BatchedField<'_, 1, 1> {
        BatchedField::new(&self.store, 0, 0, 0)
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`, which may be negative, modulo 2^64.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        self.field().add(n);
    }

    /// Adds `n` from a signal handler.
    pub fn add_signal_safe(&self, n: i64) {
        self.field().add_signal_safe(n);
    }

    /// The approximate sum: two loads, however many slots there are.
    #[inline]
    pub fn read(&self) -> i64 {
        self.field().read()
    }

    /// The exact sum, modulo 2^64. Looks at every slot.
    pub fn sum(&self) -> i64 {
        self.field().sum()
    }

    /// How far [`read`](Self::read) may be from [`sum`](Self::sum) while no add is running: the slots in use
    /// times one less than the batch.
    pub fn bound(&self) -> u64 {
        self.field().bound()
    }

    /// Between which values the exact sum is, with adds running.
    ///
    /// Where the number of threads that may be inside an add is not known (see
    /// [`Builder::writers`]), both ends are the exact sum, which looks at every slot.
    pub fn read_bounds(&self) -> (i64, i64) {
        self.field().read_bounds()
    }

    /// How the exact sum compares to `rhs`. Looks at the slots only when the approximate sum is too close to
    /// tell.
    pub fn compare(&self, rhs: i64) -> Ordering {
        self.field().compare(rhs)
    }

    /// Publishes what the calling thread's (or this CPU's) slot holds back. Those of others only they can
    /// publish, or [`settle`](Self::settle).
    pub fn sync(&self) {
        self.field().sync();
    }

    /// The batch in force.
    pub fn batch(&self) -> u32 {
        self.store.batch_or_default()
    }

    /// Changes the batch while others add; the next add of each thread uses it.
    ///
    /// The bound stays right. When the batch is raised, bounds grow first. When it is lowered, a slot keeps
    /// what the larger batch let it hold back until its next add, so from then on [`bound`](Self::bound)
    /// counts each slot with the larger of the new limit and what it holds, and running adds with the
    /// largest batch there ever was. [`settle`](Self::settle) ends that.
    ///
    /// # Errors
    /// A batch of 0, or one above [`MAX_BATCH`](crate::MAX_BATCH); the batch is then unchanged.
    pub fn set_batch(&self, batch: u32) -> Result<(), BatchError> {
        self.store.set_batch(BatchError::check(batch)?);
        Ok(())
    }

    /// Publishes every slot, so that `read` equals `sum`. Nobody can be adding.
    pub fn settle(&mut self) {
        settle(&mut self.store, &[(0, 0, 0)]);
    }

    /// Every slot with its label, total and unpublished part.
    pub fn slots(&self) -> impl Iterator<Item = SlotValue<i64>> {
        self.field().slots()
    }

    /// The exact sum so far, and zero from here on.
    pub fn drain(&mut self) -> i64 {
        let sum = self.sum();
        self.store.clear();
        sum
    }

    /// Forgets what the parent process counted. Without it the child of a fork goes on from the parent's sum,
    /// and its `read` may be off by what vanished threads were about to publish.
    pub fn reset_after_fork(&mut self) {
        self.store.clear();
    }

    /// The backend that counts, and why it is that one. Allocates the slots if there are none.
    pub fn backend(&self) -> Effective {
        self.store.effective()
    }

    /// Bytes in use, this value included.
    pub fn memory(&self) -> usize {
        self.store.bytes()
    }
}

/// Publishes all slots of the batched fields, each given as word, early field and shared words.
pub(crate) fn settle<const L: usize, const F: usize>(
    store: &mut Store<L, F>,
    fields: &[(usize, usize, usize)],
) {
    for &(word, field, shared) in fields {
        let sum = BatchedField::new(store, word, field, shared).sum();
        let early = store
            .early(field)
            .load(std::sync::atomic::Ordering::Relaxed);
        if let Some(table) = store.get_mut() {
            table.settle(word, shared, sum.cast_unsigned().wrapping_sub(early));
        }
    }
    store.forget_batches();
}

impl Default for Batched {
    fn default() -> Self {
        Self::new()
    }
}

impl Build for Batched {
    fn from_parts(parts: Parts) -> Self {
        Self {
            store: parts.store(1),
        }
    }
}

/// Amounts above `i64::MAX` count as the negative numbers they equal modulo 2^64.
impl CounterOps for Batched {
    #[inline(always)]
    fn inc(&self) {
        self.inc();
    }

    #[inline(always)]
    fn add(&self, n: u64) {
        self.add(n.cast_signed());
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.sum().cast_unsigned()
    }
}
