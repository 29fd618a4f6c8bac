//! Work: no mark is lost. The bit starts set; the dirtier writes data and marks, the cleaner takes
//! the mark and reads the data. At the end the bit is set, or the cleaner saw the data.

use cairn_flags::{AtomicFlags, state_bits};
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use loom::sync::atomic::{AtomicU32, fence};
use std::sync::Arc;

use crate::{actor, explore};

state_bits! {
    struct State: u32 {
        const DIRTY = work(0);
    }
}

type Raw = AtomicFlags<State>;
const DIRTY: State = State::DIRTY;

struct Shared {
    data: AtomicU32,
    word: AtomicState,
}

fn no_lost_work(mark: fn(&Raw), take: fn(&Raw)) {
    explore(None, move || {
        let shared = Arc::new(Shared {
            data: AtomicU32::new(0),
            word: AtomicState::from(DIRTY),
        });
        let dirtier = actor(&shared, move |s| {
            s.data.store(1, Relaxed);
            mark(s.word.as_raw());
        });
        let cleaner = actor(&shared, move |s| {
            take(s.word.as_raw());
            s.data.load(Relaxed)
        });
        dirtier.join().unwrap();
        let cleaned = cleaner.join().unwrap();
        assert!(shared.word.dirty() || cleaned == 1, "work was lost");
    });
}

fn mark(w: &Raw) {
    w.mark_work(DIRTY);
}

fn take(w: &Raw) {
    w.take_work(DIRTY);
}

#[test]
fn loom_work_mark_and_take() {
    no_lost_work(mark, take);
}

#[test]
fn loom_work_mark_always_and_take() {
    no_lost_work(
        |w| {
            w.mark_work_always(DIRTY);
        },
        take,
    );
}

/// The unconditional mark needs no fence at the taker either.
#[test]
fn loom_work_mark_always_and_unfenced_take() {
    no_lost_work(
        |w| {
            w.mark_work_always(DIRTY);
        },
        |w| w.clear(DIRTY, AcqRel),
    );
}

/// The other sound form: fence, look, RMW if clear.
#[test]
fn loom_work_fence_first() {
    no_lost_work(
        |w| {
            fence(SeqCst);
            if !w.contains(DIRTY) {
                w.set(DIRTY, AcqRel);
            }
        },
        take,
    );
}

/// Two dirtiers and a cleaner.
#[test]
fn loom_work_two_markers() {
    explore(Some(3), || {
        let shared = Arc::new((
            [AtomicU32::new(0), AtomicU32::new(0)],
            AtomicState::from(DIRTY),
        ));
        let dirtier = |i: usize| {
            move |s: &([AtomicU32; 2], AtomicState)| {
                s.0[i].store(1, Relaxed);
                s.1.mark_dirty();
            }
        };
        let a = actor(&shared, dirtier(0));
        let b = actor(&shared, dirtier(1));
        let cleaner = actor(&shared, |s| {
            s.1.take_dirty();
            s.0[0].load(Relaxed) + s.0[1].load(Relaxed)
        });
        a.join().unwrap();
        b.join().unwrap();
        let cleaned = cleaner.join().unwrap();
        assert!(shared.1.dirty() || cleaned == 2, "work was lost");
    });
}

/// Mutant: the look has no fence.
#[test]
#[should_panic(expected = "work was lost")]
fn loom_work_mutant_relaxed_look() {
    no_lost_work(
        |w| {
            w.set_if_clear(DIRTY);
        },
        take,
    );
}

/// Mutant: an acquire look instead of the fence.
#[test]
#[should_panic(expected = "work was lost")]
fn loom_work_mutant_acquire_look() {
    no_lost_work(
        |w| {
            if !w.contains_acquire(DIRTY) {
                w.set(DIRTY, AcqRel);
            }
        },
        take,
    );
}

/// Mutant: a look and RMWs that are `SeqCst`, but no fence between them and the data.
#[test]
#[should_panic(expected = "work was lost")]
fn loom_work_mutant_seqcst_without_fences() {
    no_lost_work(
        |w| {
            if !w.load(SeqCst).contains(DIRTY) {
                w.set(DIRTY, SeqCst);
            }
        },
        |w| w.clear(DIRTY, SeqCst),
    );
}

/// Mutant: the taker has no fence.
#[test]
#[should_panic(expected = "work was lost")]
fn loom_work_mutant_unfenced_take() {
    no_lost_work(mark, |w| w.clear(DIRTY, AcqRel));
}

/// Mutant: the mark's fence comes before its look only in part: no second look after it.
#[test]
#[should_panic(expected = "work was lost")]
fn loom_work_mutant_fence_after_the_look() {
    no_lost_work(
        |w| {
            let set = w.load(Acquire).contains(DIRTY);
            fence(SeqCst);
            if !set {
                w.set(DIRTY, AcqRel);
            }
        },
        take,
    );
}
