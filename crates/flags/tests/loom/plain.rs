//! Plain: the ordered `test_and_set`, and two bits that change together.

use cairn_flags::{AtomicFlags, state_bits};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::Arc;

use crate::{actor, explore};

state_bits! {
    struct State: u32 {
        const PENDING = plain(0);
        const CHECKED = plain(1);
        const VALID = plain(2);
    }
}

type Raw = AtomicFlags<State>;

/// The work-queue pattern: a submitter writes and sets "pending"; when it was set before, somebody
/// else's run must see what it wrote.
fn failed_test_and_set_is_ordered(submit: fn(&Raw) -> bool) {
    explore(None, move || {
        let shared = Arc::new((AtomicU32::new(0), AtomicState::from(State::PENDING)));
        let submitter = actor(&shared, move |s| {
            s.0.store(1, Relaxed);
            submit(s.1.as_raw())
        });
        let runner = actor(&shared, |s| {
            s.1.clear_pending(AcqRel);
            s.0.load(Relaxed)
        });
        let was_pending = submitter.join().unwrap();
        let ran_with = runner.join().unwrap();
        assert!(!was_pending || ran_with == 1, "an item was lost");
    });
}

#[test]
fn loom_plain_test_and_set_is_ordered_when_it_fails() {
    failed_test_and_set_is_ordered(|w| w.test_and_set::<0>(AcqRel));
}

/// Mutant: looks first, as Linux did until 2022.
#[test]
#[should_panic(expected = "an item was lost")]
fn loom_plain_mutant_test_and_set_looks_first() {
    failed_test_and_set_is_ordered(|w| w.contains(State::PENDING) || w.test_and_set::<0>(AcqRel));
}

/// "Checked" without its result must never be seen.
fn never_checked_without_result(finish: fn(&Raw)) {
    explore(None, move || {
        let word = Arc::new(AtomicState::new());
        let checker = actor(&word, move |w| finish(w.as_raw()));
        let reader = actor(&word, |w| {
            let seen = w.snapshot();
            assert!(
                !seen.contains(State::CHECKED) || seen.contains(State::VALID),
                "checked, but no result"
            );
        });
        checker.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn loom_plain_update_mask_changes_both_at_once() {
    never_checked_without_result(|w| {
        w.update_mask(State::empty(), State::CHECKED | State::VALID);
    });
}

/// Mutant: one bit after the other.
#[test]
#[should_panic(expected = "checked, but no result")]
fn loom_plain_mutant_two_sets() {
    never_checked_without_result(|w| {
        w.set(State::CHECKED, Relaxed);
        w.set(State::VALID, Relaxed);
    });
}

/// Two threads, one clears "valid" unless "pending", the other sets "pending" and looks at "valid":
/// not both may have it their way.
fn clear_unless_excludes(clear: fn(&Raw) -> bool) {
    explore(None, move || {
        let word = Arc::new(AtomicState::from(State::VALID));
        let clearer = actor(&word, move |w| clear(w.as_raw()));
        let user = actor(&word, |w| {
            w.as_raw()
                .fetch_set(State::PENDING, AcqRel)
                .contains(State::VALID)
        });
        let cleared = clearer.join().unwrap();
        let used = user.join().unwrap();
        // Who set "pending" while "valid" was set may rely on it.
        assert_eq!(used, !cleared, "cleared in use");
        assert_eq!(used, word.valid(Relaxed), "cleared in use");
    });
}

#[test]
fn loom_plain_clear_unless_respects_the_test() {
    clear_unless_excludes(|w| w.clear_unless(State::VALID, State::PENDING));
}

/// Mutant: test, then clear.
#[test]
#[should_panic(expected = "cleared in use")]
fn loom_plain_mutant_clear_unless_in_two_steps() {
    clear_unless_excludes(|w| {
        let refused = w.contains(State::PENDING);
        if !refused {
            w.clear(State::VALID, AcqRel);
        }
        !refused
    });
}
