//! A machine of a few CPUs and one thread of execution. Preemption is a nested call: the thread that runs instead
//! does its whole add, and meets events of its own, before the first goes on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::batch::{Below, Sections, Shared, add_on_cpu};
use crate::sync::{AtomicU64, Ordering};

/// CPUs of the machine.
pub(crate) const CPUS: usize = 4;
/// CPUs that have a slot: one has none.
pub(crate) const SLOTS: usize = 3;
/// Threads that can be inside one another.
const DEPTH: usize = 4;

/// What happens at a point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Nothing,
    /// The running thread goes on on another CPU.
    Migrate(usize),
    /// Another thread runs on this CPU and adds `n`; then this one goes on, on the CPU `back_on`.
    Preempt {
        n: i64,
        back_on: usize,
    },
}

/// The right protocol, or one of the mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Right,
    NoRestart,
    FoldAfterCommit,
}

#[derive(Default)]
struct Slot {
    total: AtomicU64,
    published: AtomicU64,
}

struct Machine {
    kind: Kind,
    batch: u32,
    slots: [Slot; SLOTS],
    base: AtomicU64,
    central: AtomicU64,
    largest: AtomicU64,
    events: RefCell<std::vec::IntoIter<Event>>,
    /// Of the running thread.
    cpu: Cell<usize>,
    /// Threads inside an add, and the amounts they add.
    inside: RefCell<Vec<i64>>,
    /// What all finished adds come to.
    added: Cell<i64>,
    wrong: RefCell<Option<String>>,
}

thread_local! {
    static MACHINE: RefCell<Option<Rc<Machine>>> = const { RefCell::new(None) };
}

/// A point between two accesses of shared words.
pub(crate) fn interrupted() {
    let machine = MACHINE.with_borrow(Clone::clone);
    if let Some(machine) = machine {
        machine.point();
    }
}

/// Adds each of `adds` on a machine where `events` happen, and tells what went wrong.
pub(crate) fn run(kind: Kind, batch: u32, adds: &[i64], events: Vec<Event>) -> Result<(), String> {
    let machine = Rc::new(Machine {
        kind,
        batch,
        slots: Default::default(),
        base: AtomicU64::default(),
        central: AtomicU64::default(),
        largest: AtomicU64::default(),
        events: RefCell::new(events.into_iter()),
        cpu: Cell::new(0),
        inside: RefCell::default(),
        added: Cell::new(0),
        wrong: RefCell::default(),
    });
    MACHINE.set(Some(Rc::clone(&machine)));
    for n in adds {
        machine.add(*n);
        machine.check_at_rest();
    }
    MACHINE.set(None);
    let wrong = machine.wrong.take();
    wrong.map_or(Ok(()), Err)
}

impl Machine {
    fn shared(&self) -> Shared<'_> {
        Shared {
            base: &self.base,
            central: &self.central,
            largest: &self.largest,
        }
    }

    /// One whole add of the running thread.
    fn add(&self, n: i64) {
        self.inside.borrow_mut().push(n);
        if n.unsigned_abs() >= u64::from(self.batch) {
            self.shared().add_past(n);
        } else if self.kind == Kind::FoldAfterCommit {
            self.add_and_then_fold(n);
        } else {
            add_on_cpu(self, || self.shared(), n, self.batch);
        }
        self.inside.borrow_mut().pop();
        self.added.set(self.added.get() + n);
    }

    /// The mutant: commits, and if that filled the slot, publishes whatever slot it is on then.
    fn add_and_then_fold(&self, n: i64) {
        match self.add_below(n, u32::MAX) {
            Below::NoSlot => return self.shared().add_past(n),
            Below::Added | Below::Full => {}
        }
        // Real code would know from the section that its slot is full; here each add looks.
        self.point();
        let full = |slot: &Slot| residue(slot).unsigned_abs() >= u64::from(self.batch);
        if self.slots.iter().any(full)
            && let Some(residue) = self.publish()
        {
            self.shared().publish(residue);
        }
    }

    /// Lets one event happen; true if the thread was interrupted.
    fn point(&self) -> bool {
        self.check_while_adding();
        let event = self.events.borrow_mut().next();
        match event.unwrap_or(Event::Nothing) {
            Event::Nothing => false,
            Event::Migrate(cpu) => {
                self.cpu.set(cpu);
                true
            }
            Event::Preempt { n, back_on } => {
                if self.inside.borrow().len() < DEPTH {
                    self.add(n);
                }
                self.cpu.set(back_on);
                true
            }
        }
    }

    /// A point inside a section: whether to start again.
    fn restart(&self) -> bool {
        self.point() && self.kind != Kind::NoRestart
    }

    fn exact(&self) -> i64 {
        let totals = self
            .slots
            .iter()
            .map(|slot| slot.total.load(Ordering::Relaxed));
        let sum = totals.fold(self.base.load(Ordering::Relaxed), u64::wrapping_add);
        sum.cast_signed()
    }

    fn off(&self) -> u64 {
        let read = self.central.load(Ordering::Relaxed).cast_signed();
        self.exact().abs_diff(read)
    }

    fn at_rest_bound(&self) -> u64 {
        SLOTS as u64 * u64::from(self.batch - 1)
    }

    /// The bound of a read with adds in flight, as the crate computes it.
    fn check_while_adding(&self) {
        let largest = self.largest.load(Ordering::Relaxed);
        let each = largest.max(2 * u64::from(self.batch - 1));
        let bound = self.at_rest_bound() + self.inside.borrow().len() as u64 * each;
        if self.off() > bound {
            self.blame(format!(
                "off by {} with adds in flight, bound {bound}",
                self.off()
            ));
        }
    }

    fn check_at_rest(&self) {
        if self.exact() != self.added.get() {
            self.blame(format!(
                "{} added, {} counted",
                self.added.get(),
                self.exact()
            ));
        }
        for (cpu, slot) in self.slots.iter().enumerate() {
            let held = residue(slot);
            if held.unsigned_abs() >= u64::from(self.batch) {
                self.blame(format!("cpu {cpu} holds {held}, batch {}", self.batch));
            }
        }
        if self.off() > self.at_rest_bound() {
            self.blame(format!("off by {} at rest", self.off()));
        }
    }

    /// Keeps the first thing that went wrong.
    fn blame(&self, what: String) {
        self.wrong.borrow_mut().get_or_insert(what);
    }
}

fn residue(slot: &Slot) -> i64 {
    let total = slot.total.load(Ordering::Relaxed);
    let published = slot.published.load(Ordering::Relaxed);
    total.wrapping_sub(published).cast_signed()
}

impl Sections for Machine {
    fn add_below(&self, n: i64, batch: u32) -> Below {
        loop {
            let Some(slot) = self.slots.get(self.cpu.get()) else {
                return Below::NoSlot;
            };
            if self.restart() {
                continue;
            }
            let new = slot
                .total
                .load(Ordering::Relaxed)
                .wrapping_add(n.cast_unsigned());
            let published = slot.published.load(Ordering::Relaxed);
            let residue = new.wrapping_sub(published).cast_signed();
            if self.restart() {
                continue;
            }
            if residue.unsigned_abs() >= u64::from(batch) {
                return Below::Full;
            }
            slot.total.store(new, Ordering::Relaxed);
            return Below::Added;
        }
    }

    fn publish(&self) -> Option<i64> {
        loop {
            let slot = self.slots.get(self.cpu.get())?;
            if self.restart() {
                continue;
            }
            let total = slot.total.load(Ordering::Relaxed);
            let published = slot.published.load(Ordering::Relaxed);
            if self.restart() {
                continue;
            }
            slot.published.store(total, Ordering::Relaxed);
            return Some(total.wrapping_sub(published).cast_signed());
        }
    }
}
