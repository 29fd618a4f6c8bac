//! An amount that many threads draw from and that is never overdrawn.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::Effective;
use crate::builder::Builder;
use crate::counter::Counter;
use crate::error::BudgetError;
use crate::protocol::credit::Purse;
use crate::store::Store;

/// Credits that a slot fetches at once, at most.
const MAX_CHUNK: u64 = 1024;
/// The slots together keep at most this part of a budget that is far from used up.
const KEPT_PART: u64 = 8;

/// A limited amount: blocks of a device, bytes of memory, requests in flight.
///
/// Each slot keeps some credits, so that taking and giving back rarely meets another thread. Before anything
/// is refused the credits of all slots are called back, so credits never make a budget look empty. Near the
/// limit nothing is kept, and everybody works on the one shared word.
///
/// Never more than the capacity is taken and not given back. A refusal says that less than the amount was
/// free, leaving out what other calls had in hand at that moment; with no other call running it is exact.
/// Giving back more than was taken makes the budget larger by the difference: only the caller can know.
///
/// *Ordering*: `give` releases, and the `try_take` that gets the amount acquires it.
///
/// ```
/// use cairn_percpu::Budget;
///
/// let blocks = Budget::new(100_u64)?;
/// assert!(blocks.try_take(60));
/// assert!(!blocks.try_take(60));
/// blocks.give(20);
/// assert!(blocks.try_take(60));
/// assert_eq!(blocks.available(), 0);
/// # Ok::<(), cairn_percpu::BudgetError>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    shared: Shared,
    store: Store<1, 1>,
    capacity: u64,
    chunk: u64,
}

/// The shared word, on lines of its own.
#[repr(align(128))]
#[derive(Debug)]
struct Shared {
    avail: AtomicU64,
}

impl Budget {
    /// A budget of `capacity`, all of it free.
    ///
    /// # Errors
    /// A capacity below zero or above `i64::MAX`.
    pub fn new(capacity: impl Into<i128>) -> Result<Self, BudgetError> {
        Self::with_slots_of(capacity, Counter::builder())
    }

    /// A budget whose credits are kept in slots as the builder of a counter chooses them.
    ///
    /// # Errors
    /// A capacity below zero or above `i64::MAX`.
    pub fn with_slots_of(
        capacity: impl Into<i128>,
        slots: Builder<Counter>,
    ) -> Result<Self, BudgetError> {
        let limit = capacity.into();
        if limit < 0 {
            return Err(BudgetError::Negative { limit });
        }
        let capacity = i64::try_from(limit)
            .map_err(|_| BudgetError::TooLarge { limit })?
            .unsigned_abs();
        let store: Store<1, 1> = slots.into_store();
        let slots = store.table().slots().len() as u64;
        Ok(Self {
            shared: Shared {
                avail: AtomicU64::new(capacity),
            },
            capacity,
            chunk: (capacity / KEPT_PART / slots).min(MAX_CHUNK),
            store,
        })
    }

    fn purse(&self) -> Purse<'_> {
        Purse {
            avail: &self.shared.avail,
            mine: self.store.table().any_word(0),
            chunk: self.chunk,
            near: self.capacity / KEPT_PART,
        }
    }

    /// Takes `n`, or nothing if less than that is free.
    #[must_use = "without the amount the caller must not go on"]
    pub fn try_take(&self, n: u64) -> bool {
        let purse = self.purse();
        purse.try_take(n) || n <= self.capacity && purse.recall(self.store.table().words(0), n)
    }

    /// Gives back `n` of what was taken.
    pub fn give(&self, n: u64) {
        self.purse().give(n);
    }

    /// How much there is to take in all.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How much is free: exact while nobody takes or gives.
    pub fn available(&self) -> u64 {
        // The shared word last: an amount that moves from a slot to it is counted twice rather than not at
        // all, and one that moves the other way not at all rather than twice.
        let credits = self.store.sum(0, 0);
        let avail = self.shared.avail.load(Ordering::Acquire);
        credits.saturating_add(avail).min(self.capacity)
    }

    /// How much is taken: exact while nobody takes or gives.
    pub fn used(&self) -> u64 {
        self.capacity - self.available()
    }

    /// The backend that picks slots, and why it is that one.
    pub fn backend(&self) -> Effective {
        self.store.effective()
    }

    /// Bytes in use, this value included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Store<1, 1>>() + self.store.bytes()
    }
}
