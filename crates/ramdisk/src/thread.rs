//! A small number for each living thread: the lowest that no other has.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Threads that have a slot in each device; those beyond use locks.
pub(crate) const SLOTS: usize = 128;

struct Free {
    returned: BTreeSet<usize>,
    next: usize,
}

static FREE: Mutex<Free> = Mutex::new(Free {
    returned: BTreeSet::new(),
    next: 0,
});

struct Number(usize);

impl Number {
    fn take() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        Self(free.returned.pop_first().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        }))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.insert(self.0);
    }
}

thread_local! {
    static NUMBER: Number = Number::take();
}

/// The number of this thread; past all others while the thread ends.
#[inline]
pub(crate) fn number() -> usize {
    NUMBER.try_with(|n| n.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_live_at_once_differ() {
        let barrier = std::sync::Barrier::new(8);
        let mut all: Vec<usize> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    s.spawn(|| {
                        let mine = number();
                        barrier.wait();
                        assert_eq!(number(), mine);
                        mine
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
    }
}
