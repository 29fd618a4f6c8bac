//! The access sequence that all arms share: random blocks of 4 KiB, a list for each thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const BLOCK: usize = 4096;

/// Steps before a thread's list begins again: more than one arm takes in a whole run.
const STEPS: usize = 1 << 19;

#[repr(align(4096))]
struct Page([u8; BLOCK]);

thread_local! {
    /// The user's end of every copy, the same for all arms of a thread.
    static BUFFER: RefCell<Box<Page>> = RefCell::new(Box::new(Page([1; BLOCK])));
}

#[repr(align(128))]
struct Cursor(AtomicUsize);

/// Offsets of one device size.
#[derive(Clone)]
pub(crate) struct Offsets(Arc<[Vec<u32>; 2]>);

impl Offsets {
    pub(crate) fn new(len: usize) -> Self {
        let blocks = (len / BLOCK) as u64;
        let list = |seed: u64| {
            let mut x = seed;
            (0..STEPS)
                .map(|_| {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    u32::try_from((x >> 16) % blocks).unwrap_or(0)
                })
                .collect()
        };
        Self(Arc::new([list(0x9e37_79b9), list(0x7f4a_7c15)]))
    }

    /// A way through them for one arm. Each begins a little further on, so that no arm touches what
    /// the one before it has just brought into the caches.
    pub(crate) fn walk(&self) -> Walk {
        static WALKS: AtomicUsize = AtomicUsize::new(0);
        let start = WALKS.fetch_add(1, Ordering::Relaxed) * 7919 % STEPS;
        Walk {
            offsets: self.clone(),
            at: [start, start].map(|s| Cursor(AtomicUsize::new(s))),
        }
    }
}

/// Where each thread of one arm is in the sequence.
pub(crate) struct Walk {
    offsets: Offsets,
    at: [Cursor; 2],
}

impl Walk {
    /// `n` operations of a thread.
    #[inline]
    pub(crate) fn go(&self, thread: usize, n: u64, mut each: impl FnMut(u64, &mut [u8; BLOCK])) {
        let thread = thread % 2;
        let (Some(list), Some(cursor)) = (self.offsets.0.get(thread), self.at.get(thread)) else {
            return;
        };
        let mut at = cursor.0.load(Ordering::Relaxed);
        BUFFER.with_borrow_mut(|buffer| {
            for _ in 0..n {
                let block = list.get(at).copied().unwrap_or(0);
                each(u64::from(block) * BLOCK as u64, &mut buffer.0);
                at = (at + 1) % STEPS;
            }
        });
        cursor.0.store(at, Ordering::Relaxed);
    }
}
