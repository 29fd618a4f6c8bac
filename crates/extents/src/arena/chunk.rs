//! A run of nodes taken from the system in one piece.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use super::{NODE_BYTES, Node, NodePtr};

/// The largest chunk: one huge page. Every chunk is aligned to it.
pub(super) const LARGEST: usize = 2 << 20;

/// The first chunk; later ones double what is held, up to the largest.
const SMALLEST: usize = 64 << 10;

pub(super) struct Chunk {
    start: NonNull<Node>,
    bytes: usize,
    /// Nodes handed out at least once.
    touched: usize,
    /// Nodes given back; each holds the address of the next.
    free: Option<NonNull<Node>>,
    used: usize,
}

/// The address at which the node's chunk starts.
pub(super) fn base(node: NodePtr) -> usize {
    node.addr().get() & !(LARGEST - 1)
}

impl Chunk {
    /// A chunk that doubles `held`; `None` if the system has no memory.
    pub(super) fn new(held: usize, huge_pages: bool) -> Option<Self> {
        let bytes = held.next_power_of_two().clamp(SMALLEST, LARGEST);
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout(bytes)) })?;
        if huge_pages && bytes == LARGEST {
            advise_huge(start, bytes);
        }
        Some(Self {
            start: start.cast(),
            bytes,
            touched: 0,
            free: None,
            used: 0,
        })
    }

    pub(super) fn nodes(&self) -> usize {
        self.bytes / NODE_BYTES
    }

    pub(super) fn base(&self) -> usize {
        self.start.addr().get()
    }

    pub(super) fn is_unused(&self) -> bool {
        self.used == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.used == self.nodes()
    }

    pub(super) fn take(&mut self) -> Option<NodePtr> {
        let node = if let Some(node) = self.free {
            // SAFETY: a free node holds the next one, written by `give`.
            self.free = unsafe { node.cast::<Option<NonNull<Node>>>().read() };
            node
        } else if self.touched < self.nodes() {
            // SAFETY: within the chunk, since `touched` is below its number of nodes.
            let node = unsafe { self.start.add(self.touched) };
            self.touched += 1;
            node
        } else {
            return None;
        };
        self.used += 1;
        Some(node)
    }

    /// # Safety
    /// The node came from `take` of this chunk and is not used any more.
    pub(super) unsafe fn give(&mut self, node: NodePtr) {
        // SAFETY: the node is ours alone, aligned and large enough for an address.
        unsafe { node.cast::<Option<NonNull<Node>>>().write(self.free) };
        self.free = Some(node);
        self.used -= 1;
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), layout(self.bytes)) };
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, LARGEST).expect("both are powers of two and small")
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    // Only advice: without huge pages the chunk works as well.
    // SAFETY: the range was just allocated, page-aligned, and the advice keeps its content.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge(_: NonNull<u8>, _: usize) {}
