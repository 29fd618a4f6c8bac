//! The locks of regions under loom, the crate's own file compiled a second time: every execution that the
//! memory model allows of a writer and one who frees, and mutants that must fail.
//!
//! `membarrier` is modelled as what it is: each other thread executes a full fence at some point while the
//! caller waits, wherever it happens to be.
#![allow(
    dead_code,
    unreachable_pub,
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a file of the crate, compiled a second time for the models, which use a part of it"
)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;

#[path = "../src/stripes.rs"]
mod stripes;

use stripes::Stripes;

/// Which form of the asymmetric fence, and what was left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Fences on both sides.
    Fences,
    /// The light side keeps order in the program only; the heavy one interrupts the others.
    Membarrier,
    NoLightFence,
    /// Neither the heavy side's fence nor the one before it, which does for it.
    NoHeavyFence,
    NoInterrupt,
    /// A writer does not fence between saying that it writes and its first look.
    NoFenceOfWriter,
    /// Who frees does not fence between closing and asking who writes.
    NoFenceOfAsker,
}

thread_local! {
    // Loom runs all threads of a model on the thread that began it.
    static FORM: Cell<Form> = const { Cell::new(Form::Fences) };
}

fn form() -> Form {
    FORM.get()
}

mod thread {
    use std::cell::Cell;

    pub(crate) const SLOTS: usize = 3;

    loom::thread_local! {
        pub(crate) static NUMBER: Cell<usize> = Cell::new(0);
    }

    pub(crate) fn number() -> usize {
        crate::interrupt::point();
        NUMBER.with(Cell::get)
    }
}

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
    use std::sync::LockResult;

    use crate::Form;

    /// A thread that waits for a lock does not run, and is not interrupted.
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
            crate::interrupt::rest();
            let guard = self.0.read();
            crate::interrupt::go_on();
            guard
        }

        pub(crate) fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
            self.0.write()
        }
    }

    /// The fences of the file itself: the first of a thread that writes, and that of who frees.
    pub(crate) fn fence(order: Ordering) {
        let writer = crate::thread::NUMBER.with(std::cell::Cell::get) != 0;
        let left_out = match crate::form() {
            Form::NoFenceOfWriter => writer,
            Form::NoFenceOfAsker | Form::NoHeavyFence => !writer,
            _ => false,
        };
        if !left_out {
            loom::sync::atomic::fence(order);
        }
    }

    pub(crate) fn wait_a_little(_: u32) {
        loom::thread::yield_now();
    }

    pub(crate) mod asymmetric {
        use loom::sync::atomic::{Ordering, fence};

        use crate::Form;

        pub(crate) fn prepare() {}

        pub(crate) fn light() {
            match crate::form() {
                Form::Fences | Form::NoHeavyFence => fence(Ordering::SeqCst),
                _ => crate::interrupt::point(),
            }
        }

        pub(crate) fn heavy() {
            match crate::form() {
                Form::NoHeavyFence => {}
                Form::Fences | Form::NoLightFence | Form::NoInterrupt => fence(Ordering::SeqCst),
                _ => {
                    fence(Ordering::SeqCst);
                    crate::interrupt::others();
                    fence(Ordering::SeqCst);
                }
            }
        }
    }
}

/// Interrupts: asked for by one thread, taken by each other one at its next point or at its end.
mod interrupt {
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

    use crate::Form;

    pub(crate) struct Interrupts {
        asked: AtomicUsize,
        taken: AtomicUsize,
        resting: AtomicBool,
    }

    loom::lazy_static! {
        static ref WRITER: Interrupts = Interrupts {
            asked: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
        };
    }

    fn modelled() -> bool {
        !matches!(
            crate::form(),
            Form::Fences | Form::NoLightFence | Form::NoHeavyFence | Form::NoInterrupt
        )
    }

    /// Where the writer may be interrupted.
    pub(crate) fn point() {
        if !of_writer() {
            return;
        }
        let asked = WRITER.asked.load(Ordering::Acquire);
        if asked != WRITER.taken.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
            WRITER.taken.store(asked, Ordering::Release);
        }
    }

    fn of_writer() -> bool {
        modelled() && crate::thread::NUMBER.with(std::cell::Cell::get) == 1
    }

    /// The writer ends or waits: it needs no interrupt, for a switch of threads is a full fence too.
    pub(crate) fn rest() {
        if of_writer() {
            fence(Ordering::SeqCst);
            WRITER.resting.store(true, Ordering::Release);
        }
    }

    /// It runs again, behind another such fence.
    pub(crate) fn go_on() {
        if of_writer() {
            WRITER.resting.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn others() {
        let asked = WRITER.asked.load(Ordering::Relaxed) + 1;
        WRITER.asked.store(asked, Ordering::Release);
        while WRITER.taken.load(Ordering::Acquire) < asked
            && !WRITER.resting.load(Ordering::Acquire)
        {
            loom::thread::yield_now();
        }
    }
}

/// Bytes of a page: whoever frees it and whoever copies to it must not do so at once.
struct Page(UnsafeCell<u64>);

impl Page {
    fn touch(&self) {
        // SAFETY: loom's cell; two accesses that no order separates are what the model looks for.
        self.0.with_mut(|bytes| unsafe { *bytes += 1 });
    }
}

/// A writer that copies `times`, and one who frees.
fn one_at_a_time(form: Form, times: usize) {
    FORM.set(form);
    let mut models = loom::model::Builder::new();
    models.max_branches = 10_000;
    // Two copies make many executions: those with few switches of threads in odd places do.
    models.preemption_bound = (times > 1).then_some(3);
    models.check(move || {
        let stripes = Arc::new(Stripes::new(1));
        let page = Arc::new(Page(UnsafeCell::new(0)));
        let writer = {
            let (stripes, page) = (Arc::clone(&stripes), Arc::clone(&page));
            loom::thread::spawn(move || {
                thread::NUMBER.with(|n| n.set(1));
                for _ in 0..times {
                    let share = stripes.share(0);
                    page.touch();
                    drop(share);
                }
                interrupt::rest();
            })
        };
        let freer = {
            let (stripes, page) = (Arc::clone(&stripes), Arc::clone(&page));
            loom::thread::spawn(move || {
                let alone = stripes.own(0);
                page.touch();
                drop(alone);
            })
        };
        writer.join().unwrap();
        freer.join().unwrap();
        page.touch();
    });
}

#[test]
fn loom_who_frees_is_alone() {
    for form in [Form::Fences, Form::Membarrier] {
        one_at_a_time(form, 1);
    }
    one_at_a_time(Form::Membarrier, 2);
}

#[test]
fn loom_mutants_of_the_locks() {
    for form in [
        Form::NoLightFence,
        Form::NoHeavyFence,
        Form::NoInterrupt,
        Form::NoFenceOfWriter,
        Form::NoFenceOfAsker,
    ] {
        let run = catch_unwind(AssertUnwindSafe(|| one_at_a_time(form, 1)));
        let why = run.expect_err("the mutant passed every execution");
        let why = why.downcast_ref::<String>().map_or("", String::as_str);
        // Found as what it is, not as a model that went wrong.
        assert!(why.contains("Causality violation"), "{form:?}: {why}");
    }
}
