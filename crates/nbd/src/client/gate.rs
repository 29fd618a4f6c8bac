//! How many requests one connection has in flight.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Lets so many through at once. As long as there is room, entering and leaving are one atomic
/// operation each.
#[derive(Debug)]
pub(super) struct Gate {
    most: usize,
    inside: AtomicUsize,
    /// Threads that wait, or are about to.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    room: Condvar,
}

impl Gate {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            inside: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            lock: Mutex::default(),
            room: Condvar::new(),
        }
    }

    /// Waits for room. Those inside leave when their connection is lost, so this ends.
    pub(super) fn enter(&self) -> Inside<'_> {
        if !self.try_enter() {
            let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            // SeqCst here and in `drop`: either this thread finds the room that was made, or the one that
            // made it finds this thread waiting.
            self.waiting.fetch_add(1, Ordering::SeqCst);
            while !self.try_enter() {
                held = self.room.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        Inside(self)
    }

    fn try_enter(&self) -> bool {
        self.inside
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| {
                (n < self.most).then_some(n + 1)
            })
            .is_ok()
    }
}

/// A place inside, given back when it is dropped.
pub(super) struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        if self.0.waiting.load(Ordering::SeqCst) > 0 {
            // With the lock, or the word could come between a look and the sleep after it.
            drop(self.0.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.0.room.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_so_many_are_inside() {
        let gate = Gate::new(3);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _inside = gate.enter();
                        let n = now.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(n, Ordering::SeqCst);
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(gate.inside.into_inner(), 0);
    }
}
