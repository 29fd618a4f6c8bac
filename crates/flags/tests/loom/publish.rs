//! Publish: whoever sees the bit by the acquire test sees what its publisher wrote.

use cairn_flags::{AtomicFlags, state_bits};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::{actor, explore};

state_bits! {
    struct State: u32 {
        const UPTODATE = publish(0);
    }
}

type Raw = AtomicFlags<State>;

struct Shared {
    data: AtomicU32,
    word: AtomicState,
}

/// Two publishers that write the same data, and one reader.
fn reader_sees_the_data(publish: fn(&Raw), test: fn(&Raw) -> bool) {
    explore(None, move || {
        let shared = Arc::new(Shared {
            data: AtomicU32::new(0),
            word: AtomicState::new(),
        });
        let publisher = move |s: &Shared| {
            s.data.store(1, Relaxed);
            publish(s.word.as_raw());
        };
        let a = actor(&shared, publisher);
        let b = actor(&shared, publisher);
        let reader = actor(&shared, move |s| {
            if test(s.word.as_raw()) {
                assert_eq!(s.data.load(Relaxed), 1, "published, but not visible");
            }
        });
        a.join().unwrap();
        b.join().unwrap();
        reader.join().unwrap();
        assert!(shared.word.uptodate());
    });
}

#[test]
fn loom_publish_reader_sees_the_data() {
    reader_sees_the_data(
        |w| {
            w.publish(State::UPTODATE);
        },
        |w| w.contains_acquire(State::UPTODATE),
    );
}

/// Mutant: the setter does not release.
#[test]
#[should_panic(expected = "published, but not visible")]
fn loom_publish_mutant_relaxed_set() {
    reader_sees_the_data(
        |w| {
            w.set_if_clear(State::UPTODATE);
        },
        |w| w.contains_acquire(State::UPTODATE),
    );
}

/// Mutant: the test does not acquire.
#[test]
#[should_panic(expected = "published, but not visible")]
fn loom_publish_mutant_relaxed_test() {
    reader_sees_the_data(
        |w| {
            w.publish(State::UPTODATE);
        },
        |w| w.contains(State::UPTODATE),
    );
}

/// Mutant: a failed `publish` taken for an acquire test.
#[test]
#[should_panic(expected = "published, but not visible")]
fn loom_publish_mutant_result_used_as_acquire() {
    explore(None, || {
        let shared = Arc::new(Shared {
            data: AtomicU32::new(0),
            word: AtomicState::new(),
        });
        let a = actor(&shared, |s| {
            s.data.store(1, Relaxed);
            s.word.publish_uptodate();
        });
        let b = actor(&shared, |s| {
            if !s.word.publish_uptodate() {
                assert_eq!(s.data.load(Relaxed), 1, "published, but not visible");
            }
        });
        a.join().unwrap();
        b.join().unwrap();
    });
}

/// A retract by the exclusive owner, then a second life handed over by a release.
#[test]
fn loom_publish_retract_and_publish_again() {
    explore(None, || {
        let shared = Arc::new(Shared {
            data: AtomicU32::new(0),
            word: AtomicState::new(),
        });
        let a = actor(&shared, |s| {
            s.data.store(1, Relaxed);
            s.word.publish_uptodate();
        });
        a.join().unwrap();
        // SAFETY: the only other thread has been joined; the next ones are spawned after.
        unsafe { shared.word.retract_uptodate() };
        shared.data.store(2, Relaxed);
        let b = actor(&shared, |s| {
            s.data.store(3, Relaxed);
            s.word.publish_uptodate();
        });
        let reader = actor(&shared, |s| {
            if s.word.uptodate() {
                assert_eq!(s.data.load(Relaxed), 3, "published, but not visible");
            }
        });
        b.join().unwrap();
        reader.join().unwrap();
    });
}
