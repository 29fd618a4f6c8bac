//! A count that only goes up.

use crate::backend::Effective;
use crate::builder::{Build, Builder, Parts};
use crate::field::CounterField;
use crate::handle::Handle;
use crate::slot::SlotValue;
use crate::store::Store;

/// What the counters of this crate and its rivals have in common.
///
/// `inc` and `add` return nothing: an old value to return would have to be agreed on by all threads.
pub trait CounterOps {
    /// Adds 1.
    fn inc(&self);
    /// Adds `n`, modulo 2^64.
    fn add(&self, n: u64);
    /// The total, modulo 2^64.
    fn sum(&self) -> u64;
}

/// A monotone count, spread over slots.
///
/// `new` is constant and allocates nothing; the slots (about 2 KiB on machines of up to 16 CPUs) are
/// allocated at the first add.
///
/// *Ordering*: none. A sum lies between the adds that happen before it and those begun before it returns, and
/// is exact once the adding threads are joined, or anything else orders them before it.
///
/// ```
/// use cairn_percpu::Counter;
///
/// static REQUESTS: Counter = Counter::new();
/// std::thread::scope(|s| {
///     for _ in 0..4 {
///         s.spawn(|| (0..1000).for_each(|_| REQUESTS.inc()));
///     }
/// });
/// assert_eq!(REQUESTS.sum(), 4000);
/// ```
#[derive(Debug)]
pub struct Counter {
    store: Store<1, 1>,
}

impl Counter {
    /// A counter at 0, on the process's [`effective_backend`](crate::effective_backend).
    pub const fn new() -> Self {
        Self {
            store: Store::new(0),
        }
    }

    /// A counter that stays a single atomic word until a second thread adds to it, and then spreads out.
    /// For counters that come in thousands and are mostly cold.
    ///
    /// ```
    /// let opened = cairn_percpu::Counter::cold();
    /// opened.add(3);
    /// assert_eq!((opened.sum(), opened.memory()), (3, size_of_val(&opened)));
    /// ```
    pub const fn cold() -> Self {
        Self {
            store: Store::cold(0),
        }
    }

    /// Chooses backend and slots.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    #[inline(always)]
    fn field(&self) -> CounterField<'_, 1, 1> {
        CounterField::new(&self.store, 0, 0)
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`, modulo 2^64.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.store.add(0, 0, n);
    }

    /// Adds `n` from a signal handler: takes no lock, allocates nothing and shares no slot with the code that
    /// the signal interrupted. A plain [`add`](Self::add) there may lose counts under the owned backend.
    pub fn add_signal_safe(&self, n: u64) {
        self.field().add_signal_safe(n);
    }

    /// The total, modulo 2^64.
    #[inline]
    pub fn sum(&self) -> u64 {
        self.store.sum(0, 0)
    }

    /// The calling thread's slot, found once: the fastest way to add many times.
    #[inline(always)]
    pub fn handle(&self) -> Handle<'_, 1, 1> {
        self.field().handle()
    }

    /// The total, to be compared with a later one.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { sum: self.sum() }
    }

    /// Every slot with its label; the values add up to [`sum`](Self::sum).
    pub fn slots(&self) -> impl Iterator<Item = SlotValue<u64>> {
        CounterField::new(&self.store, 0, 0).slots()
    }

    /// The total so far, and zero from here on.
    pub fn drain(&mut self) -> u64 {
        let sum = self.sum();
        self.store.clear();
        sum
    }

    /// Forgets what the parent process counted. Without it the child of a fork goes on from the parent's
    /// total.
    pub fn reset_after_fork(&mut self) {
        self.store.clear();
    }

    /// The backend that counts, and why it is that one. Allocates the slots if there are none.
    pub fn backend(&self) -> Effective {
        self.store.effective()
    }

    /// How many adds found no slot of their own and went to a shared overflow slot.
    pub fn overflow_hits(&self) -> u64 {
        self.store.overflow_hits()
    }

    /// Bytes in use, this value included.
    pub fn memory(&self) -> usize {
        self.store.bytes()
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Build for Counter {
    fn from_parts(parts: Parts) -> Self {
        Self {
            store: parts.store(0),
        }
    }
}

impl CounterOps for Counter {
    #[inline(always)]
    fn inc(&self) {
        self.inc();
    }

    #[inline(always)]
    fn add(&self, n: u64) {
        self.add(n);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.sum()
    }
}

/// A total at one moment. Rates come from two of these: a running counter is never reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    sum: u64,
}

impl Snapshot {
    /// The total then.
    pub fn value(self) -> u64 {
        self.sum
    }

    /// What was added since `earlier`; right across a wrap.
    ///
    /// ```
    /// let ops = cairn_percpu::Counter::new();
    /// let before = ops.snapshot();
    /// ops.add(7);
    /// assert_eq!(ops.snapshot().since(before), 7);
    /// ```
    pub fn since(self, earlier: Self) -> u64 {
        self.sum.wrapping_sub(earlier.sum)
    }
}
