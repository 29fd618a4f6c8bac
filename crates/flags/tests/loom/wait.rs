//! Waits for a bit: nobody sleeps through the change, and who wakes sees what was written before.

use cairn_flags::state_bits;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Condvar, Mutex};
use std::sync::Arc;

use crate::{actor, explore};

state_bits! {
    struct State: u32 {
        const READY = plain(0);
        const READY_WAITERS = plain(1);
        const BUSY = plain(2);
    }
}

struct Shared {
    data: AtomicU32,
    word: AtomicState,
}

impl Shared {
    fn new(flags: State) -> Arc<Self> {
        Arc::new(Self {
            data: AtomicU32::new(0),
            word: AtomicState::from(flags),
        })
    }
}

#[test]
fn loom_wait_set_two_waiters() {
    explore(Some(3), || {
        let shared = Shared::new(State::empty());
        let waiter = |s: &Shared| {
            s.word.as_raw().wait_set::<0, 1>();
            assert_eq!(s.data.load(Relaxed), 1, "woken, but nothing to see");
        };
        let a = actor(&shared, waiter);
        let b = actor(&shared, waiter);
        let setter = actor(&shared, |s| {
            s.data.store(1, Relaxed);
            s.word.as_raw().set_and_wake::<0, 1>(Release);
        });
        a.join().unwrap();
        b.join().unwrap();
        setter.join().unwrap();
    });
}

#[test]
fn loom_wait_clear() {
    explore(None, || {
        let shared = Shared::new(State::BUSY);
        let waiter = actor(&shared, |s| {
            s.word.as_raw().wait_clear::<2, 1>();
            assert_eq!(s.data.load(Relaxed), 1, "woken, but nothing to see");
        });
        let clearer = actor(&shared, |s| {
            s.data.store(1, Relaxed);
            s.word.as_raw().clear_and_wake::<2, 1>(Release);
        });
        waiter.join().unwrap();
        clearer.join().unwrap();
    });
}

/// Two bits share a waiters bit: who clears it wakes the waiters of both.
#[test]
fn loom_wait_two_bits_share_a_waiters_bit() {
    explore(Some(3), || {
        let shared = Shared::new(State::BUSY);
        let a = actor(&shared, |s| s.word.as_raw().wait_set::<0, 1>());
        let b = actor(&shared, |s| s.word.as_raw().wait_clear::<2, 1>());
        let changer = actor(&shared, |s| {
            s.word.as_raw().clear_and_wake::<2, 1>(Release);
            s.word.as_raw().set_and_wake::<0, 1>(Release);
        });
        a.join().unwrap();
        b.join().unwrap();
        changer.join().unwrap();
    });
}

/// Mutant: the setter does not release.
#[test]
#[should_panic(expected = "woken, but nothing to see")]
fn loom_wait_mutant_relaxed_set() {
    explore(None, || {
        let shared = Shared::new(State::empty());
        let waiter = actor(&shared, |s| {
            s.word.as_raw().wait_set::<0, 1>();
            assert_eq!(s.data.load(Relaxed), 1, "woken, but nothing to see");
        });
        let setter = actor(&shared, |s| {
            s.data.store(1, Relaxed);
            s.word.as_raw().set_and_wake::<0, 1>(Relaxed);
        });
        waiter.join().unwrap();
        setter.join().unwrap();
    });
}

const BUSY: u32 = 1;
const WAITERS: u32 = 2;

/// A waiter by the protocol beside a clearer in some form. Sleeping is a mutex and a condition
/// variable, as in the table.
struct Protocol {
    word: AtomicU32,
    sleepers: Mutex<()>,
    wakeup: Condvar,
}

impl Protocol {
    fn wait(&self) {
        loop {
            let seen = self.word.fetch_or(WAITERS, Relaxed) | WAITERS;
            // The kernel's full barrier between queueing and the last look, for the form below
            // that reads the waiters bit by a load of its own.
            fence(SeqCst);
            if self.word.load(Acquire) & BUSY == 0 {
                return;
            }
            let guard = self.sleepers.lock().unwrap();
            if self.word.load(Relaxed) == seen {
                drop(self.wakeup.wait(guard).unwrap());
            }
        }
    }

    fn wake(&self) {
        drop(self.sleepers.lock().unwrap());
        self.wakeup.notify_all();
    }
}

fn no_sleeper_is_left(clear: fn(&Protocol)) {
    explore(None, move || {
        let word = Arc::new(Protocol {
            word: AtomicU32::new(BUSY),
            sleepers: Mutex::new(()),
            wakeup: Condvar::new(),
        });
        let waiter = actor(&word, Protocol::wait);
        let clearer = actor(&word, move |w| clear(w));
        waiter.join().unwrap();
        clearer.join().unwrap();
    });
}

#[test]
fn loom_wake_waiters_bit_from_the_same_rmw() {
    no_sleeper_is_left(|w| {
        if w.word.fetch_sub(BUSY, Release) & WAITERS != 0 {
            w.wake();
        }
    });
}

#[test]
fn loom_wake_clear_fence_then_look() {
    no_sleeper_is_left(|w| {
        w.word.fetch_and(!BUSY, Release);
        fence(SeqCst);
        if w.word.load(Relaxed) & WAITERS != 0 {
            w.wake();
        }
    });
}

/// Mutant: the look comes before the clear.
#[test]
#[should_panic(expected = "deadlock")]
fn loom_wake_mutant_look_before_the_clear() {
    no_sleeper_is_left(|w| {
        let waiting = w.word.load(Relaxed) & WAITERS != 0;
        w.word.fetch_and(!BUSY, Release);
        if waiting {
            w.wake();
        }
    });
}
