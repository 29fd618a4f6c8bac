//! A slot found once, for threads that add many times.

use std::sync::atomic::AtomicU64;

use crate::protocol::owner;
use crate::store::Store;
use crate::sys::rseq::Words;
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
    /// The word, if the thread owns it.
    own: Option<&'a AtomicU64>,
    /// Keeps it owned.
    _lease: Option<Lease>,
    /// The words of all CPUs, if each has one.
    per_cpu: Option<Words<'a, L>>,
    store: &'a Store<L, F>,
    word: usize,
    field: usize,
}

impl<'a, const L: usize, const F: usize> Handle<'a, L, F> {
    // Inlined, so that the caller's loop keeps the handle in registers.
    #[inline(always)]
    pub(crate) fn new(store: &'a Store<L, F>, word: usize, field: usize) -> Self {
        let (lease, own) = store.table().lease(word).unzip();
        Self {
            own,
            _lease: lease,
            per_cpu: store.table().per_cpu(word),
            store,
            word,
            field,
        }
    }

    /// Adds 1.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`, modulo 2^64.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        match (self.own, self.per_cpu) {
            (Some(word), _) => owner::add(word, n),
            (None, Some(words)) if words.add(n) => {}
            _ => self.store.add_slow(self.word, self.field, n),
        }
    }
}
