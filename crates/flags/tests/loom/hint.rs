//! Hint: a set is lost to nothing but a concurrent clear, and never disturbs another bit.

use cairn_flags::{SetPolicy, state_bits};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::{actor, explore, outcomes};

state_bits! {
    struct State: u32 {
        const A = hint(0);
        const B = hint(1);
    }
}

/// Two threads set a bit each and one in common, in both forms.
fn both_bits_survive(policy: SetPolicy) {
    explore(None, move || {
        let word = Arc::new(AtomicState::new());
        let a = actor(&word, move |w| {
            w.set_a_with(policy);
            w.set_b_with(policy);
        });
        let b = actor(&word, move |w| w.set_b_with(policy));
        a.join().unwrap();
        b.join().unwrap();
        assert_eq!(word.snapshot(), State::A | State::B, "a hint was lost");
    });
}

#[test]
fn loom_hint_check_first_keeps_other_bits() {
    both_bits_survive(SetPolicy::CheckFirst);
}

#[test]
fn loom_hint_always_rmw_keeps_other_bits() {
    both_bits_survive(SetPolicy::AlwaysRmw);
}

/// Mutant: the set is a load and a store.
#[test]
#[should_panic(expected = "a hint was lost")]
fn loom_hint_mutant_plain_store_loses_a_bit() {
    explore(None, || {
        let word = Arc::new(AtomicU32::new(0));
        let set = |bit: u32| {
            move |w: &AtomicU32| {
                let old = w.load(Relaxed);
                if old & bit == 0 {
                    w.store(old | bit, Relaxed);
                }
            }
        };
        let a = actor(&word, set(1));
        let b = actor(&word, set(2));
        a.join().unwrap();
        b.join().unwrap();
        assert_eq!(word.load(Relaxed), 3, "a hint was lost");
    });
}

/// The role's price: beside a clear, a set that found the bit set is lost, or is not.
#[test]
fn loom_hint_set_beside_a_clear_goes_either_way() {
    let left = outcomes(|| {
        let word = Arc::new(AtomicState::from(State::A));
        let set = actor(&word, |w| w.set_a());
        let clear = actor(&word, |w| w.clear_a());
        let changed = set.join().unwrap();
        clear.join().unwrap();
        (changed, word.a())
    });
    // Not changed and still set cannot be: then the clear came last.
    assert_eq!(left, [(false, false), (true, true)].into());
}
