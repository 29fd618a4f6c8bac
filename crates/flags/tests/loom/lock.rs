//! Lock: one owner at a time, who sees what the last one wrote; nobody sleeps forever.
//!
//! Loom reports a sleeper that nobody wakes as a deadlock. The models sleep in a table whose
//! "wake one" wakes just one, as the futex does.

use std::sync::Arc;
use std::time::Duration;

use cairn_flags::{AtomicFlags, BitGuard, NoProbe, state_bits};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use loom::sync::{Condvar, Mutex};

use crate::{actor, explore};

state_bits! {
    struct State: u32 {
        const LOCK = lock(0, waiters = 1);
        const OTHER = hint(2);
    }
}

struct Shared {
    counter: AtomicU32,
    word: AtomicState,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            counter: AtomicU32::new(0),
            word: AtomicState::new(),
        })
    }

    /// Not atomic: two threads in here at once, or one that does not see the other, lose a count.
    fn count(&self, _held: BitGuard<'_, State, NoProbe, 0, 1>) {
        self.counter.store(self.counter.load(Relaxed) + 1, Relaxed);
    }
}

fn all_count(lockers: u32, preemptions: Option<usize>) {
    explore(preemptions, move || {
        let shared = Shared::new();
        let actors: Vec<_> = (0..lockers)
            .map(|_| actor(&shared, |s| s.count(s.word.lock())))
            .collect();
        for a in actors {
            a.join().unwrap();
        }
        assert_eq!(shared.counter.load(Relaxed), lockers, "a count was lost");
        assert!(!shared.word.lock_held());
    });
}

#[test]
fn loom_lock_two_lockers() {
    all_count(2, None);
}

#[test]
fn loom_lock_three_lockers() {
    all_count(3, Some(2));
}

#[test]
fn loom_lock_beside_sets_of_another_bit() {
    explore(Some(3), || {
        let shared = Shared::new();
        let a = actor(&shared, |s| s.count(s.word.lock()));
        let b = actor(&shared, |s| s.count(s.word.lock()));
        let setter = actor(&shared, |s| s.word.set_other());
        a.join().unwrap();
        b.join().unwrap();
        setter.join().unwrap();
        assert_eq!(shared.counter.load(Relaxed), 2, "a count was lost");
        assert!(shared.word.other() && !shared.word.lock_held());
    });
}

#[test]
fn loom_lock_observer_passes_the_wakeup_on() {
    explore(Some(3), || {
        let shared = Shared::new();
        let a = actor(&shared, |s| s.count(s.word.lock()));
        let b = actor(&shared, |s| s.count(s.word.lock()));
        let observer = actor(&shared, |s| s.word.wait_lock());
        a.join().unwrap();
        b.join().unwrap();
        observer.join().unwrap();
        assert_eq!(shared.counter.load(Relaxed), 2, "a count was lost");
    });
}

/// Who gives up leaves the waiters bit to the others.
#[test]
fn loom_lock_timeout_loses_no_wakeup() {
    explore(Some(3), || {
        let shared = Shared::new();
        let a = actor(&shared, |s| s.count(s.word.lock()));
        let b = actor(&shared, |s| s.count(s.word.lock()));
        let impatient = actor(&shared, |s| {
            let guard = s.word.lock_timeout(Duration::ZERO);
            guard.map_or(0, |guard| {
                s.count(guard);
                1
            })
        });
        a.join().unwrap();
        b.join().unwrap();
        let counted = impatient.join().unwrap();
        assert_eq!(
            shared.counter.load(Relaxed),
            2 + counted,
            "a count was lost"
        );
    });
}

#[test]
fn loom_lock_released_by_another_thread() {
    explore(Some(3), || {
        let shared = Shared::new();
        let submitter = actor(&shared, |s| {
            let guard = s.word.lock();
            s.counter.store(s.counter.load(Relaxed) + 1, Relaxed);
            guard.leak();
        });
        let other = actor(&shared, |s| s.count(s.word.lock()));
        submitter.join().unwrap();
        let completion = actor(&shared, |s| s.word.release_lock());
        completion.join().unwrap();
        other.join().unwrap();
        assert_eq!(shared.counter.load(Relaxed), 2, "a count was lost");
    });
}

/// Mutants of the orderings: a lock made of an RMW with `lock` and an unlock with `unlock`.
fn hand_made_lock(lock: Ordering, unlock: Ordering) {
    explore(None, move || {
        let shared = Shared::new();
        let attempt = move |s: &Shared| {
            let raw: &AtomicFlags<State> = s.word.as_raw();
            let locked = !raw.contains(State::LOCK) && !raw.test_and_set::<0>(lock);
            if locked {
                s.counter.store(s.counter.load(Relaxed) + 1, Relaxed);
                raw.clear(State::LOCK, unlock);
            }
            u32::from(locked)
        };
        let a = actor(&shared, attempt);
        let b = actor(&shared, attempt);
        let locked = a.join().unwrap() + b.join().unwrap();
        assert_eq!(shared.counter.load(Relaxed), locked, "a count was lost");
    });
}

#[test]
fn loom_lock_hand_made() {
    hand_made_lock(Acquire, Release);
}

#[test]
#[should_panic(expected = "a count was lost")]
fn loom_lock_mutant_relaxed_lock() {
    hand_made_lock(Relaxed, Release);
}

#[test]
#[should_panic(expected = "a count was lost")]
fn loom_lock_mutant_relaxed_unlock() {
    hand_made_lock(Acquire, Relaxed);
}

/// The hand-over protocol, written out so that single steps can be left out.
#[derive(Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one step that a mutant leaves out"
)]
struct Steps {
    /// Look for waiters before unlocking instead of in the RMW that unlocks.
    look_before_unlock: bool,
    /// Lock after a sleep without setting the waiters bit.
    forget_other_sleepers: bool,
    /// A woken observer keeps the wake-up.
    keep_wakeup: bool,
    /// A locker whose time is over leaves without a last attempt that announces it.
    leave_unannounced: bool,
    /// An announcing waiter does not look again before it sleeps.
    sleep_unseen: bool,
}

const LOCK: u32 = 1;
const WAITERS: u32 = 2;

struct Protocol {
    steps: Steps,
    word: AtomicU32,
    sleepers: Mutex<()>,
    wakeup: Condvar,
}

impl Protocol {
    fn sleep_if(&self, seen: u32) -> bool {
        let guard = self.sleepers.lock().unwrap();
        if !self.steps.sleep_unseen && self.word.load(Relaxed) != seen {
            return false;
        }
        drop(self.wakeup.wait(guard).unwrap());
        true
    }

    fn wake_one(&self) {
        drop(self.sleepers.lock().unwrap());
        self.wakeup.notify_one();
    }

    fn lock_and_unlock(&self) {
        let seen = self.word.load(Relaxed);
        let mut contended = seen & WAITERS != 0;
        let mut locked = seen & LOCK == 0 && self.word.fetch_or(LOCK, Acquire) & LOCK == 0;
        let mut slept = false;
        while !locked {
            let mask = if self.steps.forget_other_sleepers && slept {
                LOCK
            } else {
                LOCK | WAITERS
            };
            let old = self.word.fetch_or(mask, Acquire);
            locked = old & LOCK == 0;
            contended = mask & WAITERS != 0;
            if !locked {
                // Even the forgetful one announces itself before it sleeps.
                let seen = self.word.fetch_or(WAITERS, Relaxed) | WAITERS;
                if seen & LOCK != 0 {
                    slept |= self.sleep_if(seen);
                }
            }
        }
        self.unlock(contended);
    }

    fn observe(&self) {
        let mut woken = false;
        loop {
            let seen = self.word.load(Acquire);
            if seen & LOCK == 0 {
                if woken && !self.steps.keep_wakeup {
                    self.wake_one();
                }
                return;
            }
            let seen = self.word.fetch_or(WAITERS, Relaxed) | WAITERS;
            if seen & LOCK != 0 {
                woken |= self.sleep_if(seen);
            }
        }
    }

    /// Locks, or gives up after one sleep.
    fn lock_impatiently(&self) {
        let mut patience = 1;
        loop {
            if self.steps.leave_unannounced && patience == 0 {
                return;
            }
            let old = self.word.fetch_or(LOCK | WAITERS, Acquire);
            if old & LOCK == 0 {
                return self.unlock(true);
            }
            if patience == 0 {
                return;
            }
            if self.sleep_if(old | WAITERS) {
                patience -= 1;
            }
        }
    }

    fn unlock(&self, contended: bool) {
        if self.steps.look_before_unlock {
            let waiting = self.word.load(Relaxed) & WAITERS != 0;
            self.word.fetch_and(!LOCK, Release);
            if waiting {
                self.word.fetch_and(!WAITERS, Relaxed);
                self.wake_one();
            }
        } else if contended {
            self.word.fetch_and(!(LOCK | WAITERS), Release);
            self.wake_one();
        } else if self.word.fetch_sub(LOCK, Release) & WAITERS != 0 {
            self.wake_one();
        }
    }
}

/// A locker that gives up must not take the only wake-up with it.
fn giving_up(steps: Steps) {
    explore(Some(3), move || {
        let lock = Arc::new(Protocol {
            steps,
            word: AtomicU32::new(LOCK | WAITERS),
            sleepers: Mutex::new(()),
            wakeup: Condvar::new(),
        });
        let owner = actor(&lock, |l| l.unlock(true));
        let impatient = actor(&lock, Protocol::lock_impatiently);
        let patient = actor(&lock, Protocol::lock_and_unlock);
        owner.join().unwrap();
        impatient.join().unwrap();
        patient.join().unwrap();
    });
}

#[test]
fn loom_lock_protocol_giving_up() {
    giving_up(Steps::default());
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_lock_mutant_leaves_unannounced() {
    giving_up(Steps {
        leave_unannounced: true,
        ..Steps::default()
    });
}

/// With `owner`, one more thread holds the lock at the start and knows of waiters.
fn hand_over(owner: bool, lockers: u32, observers: u32, steps: Steps) {
    explore(Some(3), move || {
        let lock = Arc::new(Protocol {
            steps,
            word: AtomicU32::new(if owner { LOCK | WAITERS } else { 0 }),
            sleepers: Mutex::new(()),
            wakeup: Condvar::new(),
        });
        let mut actors = Vec::new();
        if owner {
            actors.push(actor(&lock, |l| l.unlock(true)));
        }
        for _ in 0..lockers {
            actors.push(actor(&lock, Protocol::lock_and_unlock));
        }
        for _ in 0..observers {
            actors.push(actor(&lock, Protocol::observe));
        }
        for a in actors {
            a.join().unwrap();
        }
        assert_eq!(lock.word.load(Relaxed) & LOCK, 0);
    });
}

#[test]
fn loom_lock_protocol() {
    hand_over(false, 3, 0, Steps::default());
    hand_over(false, 2, 1, Steps::default());
    hand_over(true, 2, 0, Steps::default());
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_lock_mutant_looks_before_unlock() {
    let steps = Steps {
        look_before_unlock: true,
        ..Steps::default()
    };
    hand_over(false, 2, 0, steps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_lock_mutant_forgets_other_sleepers() {
    let steps = Steps {
        forget_other_sleepers: true,
        ..Steps::default()
    };
    hand_over(true, 2, 0, steps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_lock_mutant_observer_keeps_the_wakeup() {
    let steps = Steps {
        keep_wakeup: true,
        ..Steps::default()
    };
    hand_over(false, 2, 1, steps);
}

#[test]
#[should_panic(expected = "deadlock")]
fn loom_lock_mutant_sleeps_unseen() {
    let steps = Steps {
        sleep_unseen: true,
        ..Steps::default()
    };
    hand_over(false, 2, 0, steps);
}
