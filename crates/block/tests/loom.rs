//! The pair of `asymmetric` fences, and what a switch's worker builds on it, under loom: every execution
//! that the memory model allows, and mutants that must fail.
//!
//! `membarrier` is modelled as what it is: each other thread executes a full fence at some point while the
//! caller waits, wherever it happens to be.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use loom::thread;

/// What stands on the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A fence on each side.
    Fences,
    /// Nothing but the order of the program on the light side, interrupts on the heavy one.
    Membarrier,
    // The mutants.
    NoLightFence,
    NoHeavyFence,
    NoInterrupt,
    /// The compiler moved the light side's look before its store.
    LookFirst,
}

impl Form {
    const RIGHT: [Self; 2] = [Self::Fences, Self::Membarrier];
    const MUTANTS: [Self; 4] = [
        Self::NoLightFence,
        Self::NoHeavyFence,
        Self::NoInterrupt,
        Self::LookFirst,
    ];

    const fn interrupts(self) -> bool {
        matches!(self, Self::Membarrier | Self::LookFirst)
    }
}

/// The two sides of the pair, and the interrupts that the heavy one sends.
struct Pair {
    form: Form,
    asked: AtomicBool,
    taken: AtomicBool,
}

impl Pair {
    fn new(form: Form) -> Self {
        Self {
            form,
            asked: AtomicBool::new(false),
            taken: AtomicBool::new(false),
        }
    }

    /// A place where the light thread may be interrupted.
    fn point(&self) {
        if self.form.interrupts() && self.asked.load(Ordering::Acquire) {
            self.take();
        }
    }

    /// The light thread ends: a switch of threads is a full fence too.
    fn take(&self) {
        if self.form.interrupts() {
            fence(Ordering::SeqCst);
            self.taken.store(true, Ordering::Release);
        }
    }

    /// A store, the light fence, a look; in this order but for the mutant.
    fn light<T>(&self, store: impl FnOnce(), look: impl FnOnce() -> T) -> T {
        self.point();
        if self.form == Form::LookFirst {
            let seen = look();
            self.point();
            store();
            return seen;
        }
        store();
        match self.form {
            Form::Fences | Form::NoHeavyFence => fence(Ordering::SeqCst),
            _ => self.point(),
        }
        look()
    }

    fn heavy(&self) {
        match self.form {
            Form::NoHeavyFence => {}
            Form::Fences | Form::NoLightFence | Form::NoInterrupt => fence(Ordering::SeqCst),
            Form::Membarrier | Form::LookFirst => {
                fence(Ordering::SeqCst);
                self.asked.store(true, Ordering::Release);
                while !self.taken.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                fence(Ordering::SeqCst);
            }
        }
    }
}

/// At least one of two sees what the other stored before its fence.
fn one_sees_the_other(form: Form) {
    loom::model(move || {
        let shared = Arc::new((Pair::new(form), AtomicUsize::new(0), AtomicUsize::new(0)));
        let of = |shared: &Arc<(Pair, AtomicUsize, AtomicUsize)>| Arc::clone(shared);
        let light = of(&shared);
        let light = thread::spawn(move || {
            let (pair, a, b) = &*light;
            let seen = pair.light(
                || a.store(1, Ordering::Relaxed),
                || b.load(Ordering::Relaxed),
            );
            pair.take();
            seen
        });
        let heavy = of(&shared);
        let heavy = thread::spawn(move || {
            let (pair, a, b) = &*heavy;
            b.store(1, Ordering::Relaxed);
            pair.heavy();
            a.load(Ordering::Relaxed)
        });
        let (x, y) = (light.join().unwrap(), heavy.join().unwrap());
        assert!(x == 1 || y == 1, "neither saw the other");
    });
}

/// A stack that is dropped: nobody may use it then. Loom finds who uses the cell meanwhile, `alive` tells
/// who comes after.
struct Stack {
    cell: UnsafeCell<()>,
    alive: AtomicBool,
}

impl Stack {
    fn new() -> Self {
        Self {
            cell: UnsafeCell::new(()),
            alive: AtomicBool::new(true),
        }
    }
}

/// A worker's request, and an exchange that waits for it before the old stack goes.
fn exchange(form: Form) {
    loom::model(move || {
        let shared = Arc::new((
            Pair::new(form),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            [Stack::new(), Stack::new()],
        ));
        let worker = Arc::clone(&shared);
        let worker = thread::spawn(move || {
            let (pair, seq, entry, stacks) = &*worker;
            let now = pair.light(
                || seq.store(1, Ordering::Relaxed),
                || entry.load(Ordering::Acquire),
            );
            let stack = stacks.get(now).unwrap();
            let alive = stack.cell.with(|_| stack.alive.load(Ordering::Relaxed));
            assert!(alive, "the stack was dropped under its user");
            seq.store(2, Ordering::Release);
            pair.take();
        });
        let exchanger = Arc::clone(&shared);
        let exchanger = thread::spawn(move || {
            let (pair, seq, entry, stacks) = &*exchanger;
            entry.swap(1, Ordering::AcqRel);
            pair.heavy();
            let seen = seq.load(Ordering::Acquire);
            while seen % 2 == 1 && seq.load(Ordering::Acquire) == seen {
                thread::yield_now();
            }
            let [old, _] = stacks;
            old.cell
                .with_mut(|_| old.alive.store(false, Ordering::Relaxed));
        });
        worker.join().unwrap();
        exchanger.join().unwrap();
    });
}

fn holds_and_bites(model: fn(Form)) {
    for form in Form::RIGHT {
        model(form);
    }
    for form in Form::MUTANTS {
        let run = catch_unwind(AssertUnwindSafe(|| model(form)));
        let why = run.expect_err("the mutant passed every execution");
        let why = why.downcast_ref::<String>().map_or_else(
            || why.downcast_ref::<&str>().copied().unwrap_or_default(),
            String::as_str,
        );
        // Found as what it is, not as a model that went wrong.
        let found = ["neither saw", "dropped under", "Causality violation"];
        assert!(found.iter().any(|f| why.contains(f)), "{form:?}: {why}");
    }
}

#[test]
fn loom_one_of_the_two_sees_the_other() {
    holds_and_bites(one_sees_the_other);
}

#[test]
fn loom_an_exchange_waits_for_the_worker() {
    holds_and_bites(exchange);
}
