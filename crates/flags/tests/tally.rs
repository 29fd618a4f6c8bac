//! The counting probe: exact over many threads, those that have ended included.

#![cfg(all(feature = "std", not(loom)))]

use std::cell::Cell;
use std::thread;

use cairn_flags::{SetPolicy, state_bits, tally_probe};

state_bits! {
    struct State: u32 {
        const VERIFIED = hint(0);
        const DIRTY = work(1);
        const LOCK = lock(30, waiters = 31);
    }
}

#[test]
fn counts_are_exact_when_all_threads_have_ended() {
    tally_probe! { struct Storm; }
    let word = AtomicState::<Storm>::probed();
    // In waves, so that later threads take over the blocks of earlier ones.
    for _ in 0..4 {
        thread::scope(|scope| {
            for i in 0..8 {
                let word = &word;
                scope.spawn(move || {
                    let policy = SetPolicy::ALL[i % 2];
                    for _ in 0..1000 {
                        word.set_verified_with(policy);
                        word.mark_dirty();
                    }
                });
            }
        });
    }
    let verified = Storm::tally().bit(0);
    assert_eq!(verified.rmw + verified.avoided, 32_000);
    // Half of the sets never look; the first of the others may all have found the bit clear.
    assert!((16_000..=16_008).contains(&verified.rmw), "{verified:?}");
    // Judged by a look just before, at which each of the first threads may have found the bit clear, and one has.
    let changed = verified.rmw - verified.redundant;
    assert!((1..=8).contains(&changed), "{verified:?}");
    let dirty = Storm::tally().bit(1);
    assert_eq!(dirty.rmw + dirty.avoided, 32_000);
}

#[test]
fn differences_are_taken_between_readings() {
    tally_probe! { struct Readings; }
    let word = AtomicState::<Readings>::probed_with(State::VERIFIED);
    word.set_verified();
    let before = Readings::tally().bit(0);
    word.set_verified_always();
    word.clear_verified();
    let added = Readings::tally().bit(0).since(before);
    assert_eq!((added.rmw, added.avoided, added.redundant), (2, 0, 1));
}

#[test]
fn a_lock_counts_its_attempts() {
    tally_probe! { struct Attempts; }
    let word = AtomicState::<Attempts>::probed();
    let guard = word.try_lock();
    assert!(word.try_lock().is_none());
    drop(guard);
    let count = Attempts::tally().bit(30);
    assert_eq!((count.rmw, count.avoided, count.redundant), (2, 1, 0));
}

/// Reports made while a thread's locals are destroyed are counted too.
#[test]
fn late_reports_count() {
    tally_probe! { struct Late; }

    struct SetsInDrop;
    impl Drop for SetsInDrop {
        fn drop(&mut self) {
            let word = AtomicState::<Late>::probed();
            word.set_verified();
            word.set_verified();
        }
    }
    thread_local!(static LAST: Cell<Option<SetsInDrop>> = const { Cell::new(None) });

    for probe_first in [false, true] {
        thread::spawn(move || {
            if probe_first {
                AtomicState::<Late>::probed().set_verified();
            }
            LAST.set(Some(SetsInDrop));
            if !probe_first {
                AtomicState::<Late>::probed().set_verified();
            }
        })
        .join()
        .unwrap();
    }
    let count = Late::tally().bit(0);
    assert_eq!((count.rmw, count.avoided), (4, 2));
}
