//! The models, for whichever checker compiles them: each runs the crate's own protocol files, and each has a
//! mutant that must fail.
//!
//! The including file provides `sync` (atomics), `thread` (`spawn`) and the protocol modules. Main only spawns
//! and joins: loom misses executions when main takes part and a spawned thread starts with a load.

use std::sync::Arc;

use crate::batch::{Shared, add_owned, add_striped, add_striped_as};
use crate::credit::Purse;
use crate::owner;
use crate::registry::Registry;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::thread::spawn;

/// A word at zero.
fn word() -> AtomicU64 {
    AtomicU64::new(0)
}

/// Runs `work` on a thread of its own for each of `shares`, and waits for all.
fn actors<T: Send + Sync + 'static>(state: &Arc<T>, work: &[fn(&T)]) {
    let threads: Vec<_> = work
        .iter()
        .map(|work| {
            let (state, work) = (Arc::clone(state), *work);
            spawn(move || work(&state))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two threads that may come by the same id one after the other; their adds must all be counted.
pub fn hand_over(take: Ordering, hand_on: Ordering) {
    struct State {
        ids: Registry<1>,
        slots: [AtomicU64; 2],
        take: Ordering,
        hand_on: Ordering,
    }
    fn come_and_go(state: &State) {
        let id = state.ids.claim_as(state.take).unwrap();
        owner::add(&state.slots[id as usize], 1);
        state.ids.release_as(id, state.hand_on);
    }
    let state = Arc::new(State {
        ids: Registry::over([word()], AtomicU32::new(0)),
        slots: [word(), word()],
        take,
        hand_on,
    });
    actors(&state, &[come_and_go, come_and_go]);
    assert_eq!(owner::sum(state.slots.iter()), 2, "an add was lost");
}

/// A gauge whose ups and downs are made by one thread; `read` must never find it below zero.
pub struct Gauge {
    pub up: [AtomicU64; 2],
    pub down: [AtomicU64; 2],
    pub handed: AtomicU64,
    pub release: Ordering,
    pub read: fn(&Gauge) -> i64,
}

impl Gauge {
    pub fn new(release: Ordering, read: fn(&Self) -> i64) -> Arc<Self> {
        Arc::new(Self {
            up: [word(), word()],
            down: [word(), word()],
            handed: word(),
            release,
            read,
        })
    }

    /// As the crate reads it.
    pub fn right(&self) -> i64 {
        owner::gauge(self.down.iter(), self.up.iter())
    }

    /// The mutant that looks at increments first.
    pub fn ups_first(&self) -> i64 {
        let up = owner::sum(self.up.iter());
        let down = self
            .down
            .iter()
            .fold(0, |sum, word| sum + word.load(Ordering::Acquire));
        up.wrapping_sub(down).cast_signed()
    }

    /// The mutant with one signed word per slot, made of the two halves so that the writers are the same.
    pub fn slot_by_slot(&self) -> i64 {
        let halves = self.up.iter().zip(&self.down);
        halves.fold(0, |sum, (up, down)| {
            let up = up.load(Ordering::Relaxed);
            let down = down.load(Ordering::Acquire);
            sum + up.wrapping_sub(down).cast_signed()
        })
    }
}

/// One thread goes up and down, another reads.
pub fn gauge(release: Ordering, read: fn(&Gauge) -> i64) {
    let state = Gauge::new(release, read);
    actors(
        &state,
        &[
            |gauge| {
                owner::add(&gauge.up[0], 1);
                owner::add_as(&gauge.down[0], 1, gauge.release);
            },
            |gauge| assert!((gauge.read)(gauge) >= 0, "below zero"),
        ],
    );
    assert_eq!(state.right(), 0);
}

/// One thread goes up, hands over to another that goes down, and a third reads.
pub fn gauge_across(release: Ordering, read: fn(&Gauge) -> i64) {
    let state = Gauge::new(release, read);
    actors(
        &state,
        &[
            |gauge| {
                owner::add(&gauge.up[0], 1);
                gauge.handed.store(1, Ordering::Release);
            },
            |gauge| {
                if gauge.handed.load(Ordering::Acquire) == 1 {
                    owner::add_as(&gauge.down[1], 1, gauge.release);
                }
            },
            |gauge| assert!((gauge.read)(gauge) >= 0, "below zero"),
        ],
    );
}

/// A batched counter of two slots.
pub struct Batch {
    pub total: [AtomicU64; 2],
    pub published: [AtomicU64; 2],
    pub base: AtomicU64,
    pub central: AtomicU64,
    pub largest: AtomicU64,
}

const BATCH: u32 = 2;

impl Batch {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            total: [word(), word()],
            published: [word(), word()],
            base: word(),
            central: word(),
            largest: word(),
        })
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            base: &self.base,
            central: &self.central,
            largest: &self.largest,
        }
    }

    fn add(&self, slot: usize, n: i64) {
        if n.unsigned_abs() >= u64::from(BATCH) {
            return self.shared().add_past(n);
        }
        if let Some(residue) = add_owned(&self.total[slot], &self.published[slot], n, BATCH) {
            self.shared().publish(residue);
        }
    }

    pub fn add_to_stripe(&self, n: i64) {
        if let Some(residue) = add_striped(&self.total[0], &self.published[0], n, BATCH) {
            self.shared().publish(residue);
        }
    }

    /// The mutant that may see what was published, but not yet the total.
    pub fn add_to_stripe_with_a_relaxed_look(&self, n: i64) {
        let (total, published) = (&self.total[0], &self.published[0]);
        if let Some(residue) = add_striped_as(total, published, n, BATCH, Ordering::Relaxed) {
            self.shared().publish(residue);
        }
    }

    /// Any amount: below the batch to the stripe, else past it.
    pub fn add_past_or_stripe(&self, n: i64) {
        if n.unsigned_abs() >= u64::from(BATCH) {
            self.shared().add_past(n);
        } else {
            self.add_to_stripe(n);
        }
    }

    fn sum(&self) -> u64 {
        let base = self.base.load(Ordering::Acquire);
        owner::sum(self.total.iter()).wrapping_add(base)
    }

    pub fn check_at_rest(&self, exact: u64) {
        assert_eq!(self.sum(), exact);
        let mut hidden: u64 = 0;
        for (total, published) in self.total.iter().zip(&self.published) {
            let published = published.load(Ordering::Relaxed);
            let residue = total.load(Ordering::Relaxed).wrapping_sub(published);
            assert!(residue.cast_signed().unsigned_abs() < u64::from(BATCH));
            hidden = residue.wrapping_add(hidden);
        }
        let read = self.central.load(Ordering::Relaxed);
        assert_eq!(read.wrapping_add(hidden), exact, "a fold was lost");
    }
}

/// Two writers of a slot each: the sum is exact, and what a read misses is in the slots.
pub fn batched_writers() {
    let state = Batch::new();
    actors(
        &state,
        &[
            |batch| (0..3).for_each(|_| batch.add(0, 1)),
            |batch| {
                batch.add(1, 1);
                batch.add(1, 5);
            },
        ],
    );
    state.check_at_rest(9);
}

/// Two writers of one stripe.
pub fn striped_writers() {
    let state = Batch::new();
    actors(
        &state,
        &[
            |batch| (0..2).for_each(|_| batch.add_to_stripe(1)),
            |batch| (0..2).for_each(|_| batch.add_to_stripe(1)),
        ],
    );
    state.check_at_rest(4);
}

/// The same with the mutant.
pub fn striped_writers_with_a_relaxed_look() {
    let state = Batch::new();
    actors(
        &state,
        &[
            |batch| (0..2).for_each(|_| batch.add_to_stripe_with_a_relaxed_look(1)),
            |batch| (0..2).for_each(|_| batch.add_to_stripe_with_a_relaxed_look(1)),
        ],
    );
    state.check_at_rest(4);
}

/// A writer that folds, and a reader whose exact sums must not go back.
pub fn batched_reader() {
    let state = Batch::new();
    actors(
        &state,
        &[
            |batch| (0..2).for_each(|_| batch.add(0, 1)),
            |batch| {
                let first = batch.sum();
                assert!(batch.sum() >= first, "the sum went back");
            },
        ],
    );
}

/// The mutant that swaps a full slot to zero and then adds the loot to the central word.
pub fn batched_reader_of_swapped_slots() {
    fn sum(batch: &Batch) -> u64 {
        batch.central.load(Ordering::Acquire) + owner::sum(batch.total.iter())
    }
    let state = Batch::new();
    actors(
        &state,
        &[
            |batch| {
                owner::add(&batch.total[0], 2);
                let loot = batch.total[0].swap(0, Ordering::AcqRel);
                batch.central.fetch_add(loot, Ordering::AcqRel);
            },
            |batch| {
                let first = sum(batch);
                assert!(sum(batch) >= first, "the sum went back");
            },
        ],
    );
}

/// A budget of three in two slots, which fetches one more than asked for.
pub struct Budget {
    avail: AtomicU64,
    credits: [AtomicU64; 2],
    taken: AtomicU64,
    take: fn(&Budget, usize, u64) -> bool,
}

impl Budget {
    fn purse(&self, slot: usize) -> Purse<'_> {
        Purse {
            avail: &self.avail,
            mine: &self.credits[slot],
            chunk: 1,
            near: 1,
        }
    }

    /// As the crate takes.
    pub fn right(&self, slot: usize, n: u64) -> bool {
        let purse = self.purse(slot);
        purse.try_take(n) || purse.recall(self.credits.iter(), n)
    }

    /// The mutant that looks, and then takes.
    pub fn look_then_take(&self, _: usize, n: u64) -> bool {
        let enough = self.avail.load(Ordering::Acquire) >= n;
        if enough {
            self.avail.fetch_sub(n, Ordering::AcqRel);
        }
        enough
    }

    fn work(&self, slot: usize, n: u64) {
        if (self.take)(self, slot, n) {
            let taken = self.taken.fetch_add(n, Ordering::AcqRel) + n;
            assert!(taken <= 3, "{taken} taken of 3");
        }
    }
}

/// Two takers of 1 and 2, and one more of 1 each: never more than 3, and nothing vanishes.
pub fn budget(take: fn(&Budget, usize, u64) -> bool) {
    let state = Arc::new(Budget {
        avail: AtomicU64::new(3),
        credits: [word(), word()],
        taken: word(),
        take,
    });
    actors(
        &state,
        &[
            |budget| (1..3).for_each(|n| budget.work(0, n)),
            |budget| budget.work(1, 2),
        ],
    );
    let credits = owner::sum(state.credits.iter());
    let avail = state.avail.load(Ordering::Acquire);
    let taken = state.taken.load(Ordering::Acquire);
    assert_eq!(avail + credits + taken, 3, "credits appeared or vanished");
}

/// What is given back by one can be taken by another, once.
pub fn budget_returned() {
    let state = Arc::new(Budget {
        avail: AtomicU64::new(3),
        credits: [word(), word()],
        taken: word(),
        take: Budget::right,
    });
    actors(
        &state,
        &[
            |budget| {
                if budget.right(0, 2) {
                    budget.purse(0).give(2);
                }
            },
            |budget| {
                if budget.right(1, 2) {
                    budget.purse(1).give(2);
                }
            },
        ],
    );
    let credits = owner::sum(state.credits.iter());
    assert_eq!(state.avail.load(Ordering::Acquire) + credits, 3);
    assert!(state.right(0, 3), "everything is free, and was refused");
}
