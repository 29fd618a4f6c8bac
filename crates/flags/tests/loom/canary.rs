//! Does loom see every execution? Actor A ends by making the word 1, actor B looks: B may see 0 or
//! 1, whatever A began with. With the main thread as B, the shapes that begin with a load wrongly
//! show 0 only.

use std::collections::BTreeSet;
use std::sync::Arc;

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;

use crate::{actor, outcomes};

fn seen_beside(a: fn(&AtomicU32)) -> BTreeSet<u32> {
    outcomes(move || {
        let word = Arc::new(AtomicU32::new(0));
        let setter = actor(&word, move |w| a(w));
        let looker = actor(&word, |w| w.load(Relaxed));
        setter.join().unwrap();
        looker.join().unwrap()
    })
}

#[test]
fn loom_canary_store() {
    assert_eq!(seen_beside(|w| w.store(1, Relaxed)), [0, 1].into());
}

#[test]
fn loom_canary_load_store() {
    let a = |w: &AtomicU32| {
        if w.load(Relaxed) == 0 {
            w.store(1, Relaxed);
        }
    };
    assert_eq!(seen_beside(a), [0, 1].into());
}

#[test]
fn loom_canary_load_fetch_or() {
    let a = |w: &AtomicU32| {
        if w.load(Relaxed) == 0 {
            w.fetch_or(1, Relaxed);
        }
    };
    assert_eq!(seen_beside(a), [0, 1].into());
}

#[test]
fn loom_canary_fetch_or_fetch_or() {
    let a = |w: &AtomicU32| {
        w.fetch_or(0, Relaxed);
        w.fetch_or(1, Relaxed);
    };
    assert_eq!(seen_beside(a), [0, 1].into());
}

#[test]
fn loom_canary_load_cas() {
    let a = |w: &AtomicU32| {
        let old = w.load(Relaxed);
        let _ = w.compare_exchange(old, 1, Relaxed, Relaxed);
    };
    assert_eq!(seen_beside(a), [0, 1].into());
}

/// Two check-first setters of different bits: each may or may not see the other's.
#[test]
fn loom_canary_check_first_pairs() {
    let pairs = outcomes(|| {
        let word = Arc::new(AtomicU32::new(0));
        let set = |bit: u32| {
            move |w: &AtomicU32| {
                if w.load(Relaxed) & bit == 0 {
                    w.fetch_or(bit, Relaxed)
                } else {
                    unreachable!("nobody else sets it")
                }
            }
        };
        let a = actor(&word, set(1));
        let b = actor(&word, set(2));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_eq!(pairs, [(0, 1), (2, 0)].into());
}
