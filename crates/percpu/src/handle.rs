//! A slot found once, for threads that add many times.

use std::sync::atomic::AtomicU64;

use crate::protocol::owner;
use crate::store::Store;
use crate::thread::Lease;

/// The calling thread's slot of a counter.
///
/// Under the owned backend an add through it is the add itself and nothing else. Under the others it is the
/// same as an add to the counter. It stays on the thread that made it.
///
/// ```
/// let ops = cairn_percpu::Counter::new();
/// let mine = ops.handle();
/// for _ in 0..1000 {
///     mine.inc();
/// }
/// assert_eq!(ops.sum(), 1000);
/// ```
///
/// ```compile_fail,E0277
/// let ops = cairn_percpu::Counter::new();
/// let mine = ops.handle();
/// std::thread::scope(|s| s.spawn(|| mine.inc()).join()); // the slot has another owner there
/// ```
#[derive(Debug)]
pub struct Handle<'a, const L: usize, const F: usize> {
    /// The word that this thread owns, as long as the lease lives.
    own: Option<&'a AtomicU64>,
    _lease: Option<Lease>,
    store: &'a Store<L, F>,
    word: usize,
    field: usize,
}

impl<'a, const L: usize, const F: usize> Handle<'a, L, F> {
    pub(crate) fn new(store: &'a Store<L, F>, word: usize, field: usize) -> Self {
        let (lease, own) = store.table().lease(word).unzip();
        Self {
            own,
            _lease: lease,
            store,
            word,
            field,
        }
    }

    /// Adds 1.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`, modulo 2^64.
    #[inline]
    pub fn add(&self, n: u64) {
        match self.own {
            Some(word) => owner::add(word, n),
            None => self.store.add(self.word, self.field, n),
        }
    }
}
