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
    way: Way<'a, L>,
    store: &'a Store<L, F>,
    word: usize,
    field: usize,
}

/// How the handle reaches its word.
#[derive(Debug)]
enum Way<'a, const L: usize> {
    /// The thread owns the word, as long as the lease lives.
    Owned(&'a AtomicU64, Lease),
    /// Whichever CPU the thread runs on has one.
    Cpu(Words<'a, L>),
    /// As the counter itself does.
    Counter,
}

impl<'a, const L: usize, const F: usize> Handle<'a, L, F> {
    pub(crate) fn new(store: &'a Store<L, F>, word: usize, field: usize) -> Self {
        let owned = store.table().lease(word);
        let way = owned.map(|(lease, own)| Way::Owned(own, lease));
        let way = way.or_else(|| store.per_cpu(word).map(Way::Cpu));
        Self {
            way: way.unwrap_or(Way::Counter),
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
        match &self.way {
            Way::Owned(word, _) => owner::add(word, n),
            Way::Cpu(words) if words.add(n) => {}
            _ => self.store.add_slow(self.word, self.field, n),
        }
    }
}
