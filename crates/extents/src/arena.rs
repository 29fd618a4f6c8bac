//! Memory of the tree's nodes: one size, in chunks, given back when no reader can see it.
//!
//! Nodes come from chunks that are aligned to the largest chunk size, so a node's chunk is found
//! by masking its address. Each chunk keeps its own free nodes, and chunks without live nodes go
//! back to the system but for some spare ones, lest they come and go. Nodes that readers may still
//! see wait in batches until the readers' epoch has passed them.

mod chunk;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ptr::NonNull;

use crate::pin::DOMAIN;
use crate::sync::{Mutex, lock};
use chunk::Chunk;

/// Bytes of a node: the unit of the arena.
pub(crate) const NODE_BYTES: usize = if cfg!(loom) { 8192 } else { 512 };

/// Raw memory of one node.
#[repr(C, align(512))]
pub(crate) struct Node([u8; NODE_BYTES]);

pub(crate) type NodePtr = NonNull<Node>;

/// Unlinked nodes that are gathered before the readers are looked at, at least: looking costs a
/// system call that interrupts the other CPUs.
const BATCH: usize = if cfg!(loom) { 1 } else { 64 };

/// The same as a part of all nodes: what waits stays small beside what is held.
const BATCH_PART: usize = 64;

/// Nodes waiting for readers that are thought to be many: 2 MiB.
const PILE: usize = 4096;

/// Free nodes in excess of which an empty chunk goes back to the system while work goes on: 16 MiB.
/// Giving a chunk back costs more than unlinking all that was in it, so a file that is punched and
/// written again keeps its memory until a flush.
const SPARE: usize = (16 << 20) / NODE_BYTES;

/// The same at a flush.
const SPARE_FLUSHED: usize = chunk::LARGEST / NODE_BYTES;

/// Free nodes kept back for changes that must not fail.
const RESERVE: usize = 16;

/// What the arena holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// Taken from the system.
    pub mapped: usize,
    /// In trees.
    pub live: usize,
    /// Unlinked, but perhaps still seen by a reader.
    pub retired: usize,
    /// Ready for use.
    pub free: usize,
}

/// The memory could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

pub(crate) struct Arena {
    inner: Mutex<Inner>,
    huge_pages: bool,
}

#[derive(Default)]
struct Inner {
    /// By address.
    chunks: BTreeMap<usize, Chunk>,
    /// Those with free nodes. The lowest is used first, so that the others may empty.
    partial: BTreeSet<usize>,
    nodes: usize,
    live: usize,
    retired: usize,
    open: Vec<NodePtr>,
    sealed: VecDeque<(u64, Vec<NodePtr>)>,
    #[cfg(test)]
    faults: Faults,
}

// SAFETY: the pointers are to memory that the arena owns; whoever holds the lock may use them.
unsafe impl Send for Inner {}

/// Allocations that are to fail.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Fail this one, counted from 0; later ones succeed.
    pub(crate) fail_at: Option<u64>,
    /// Fail every one from here on.
    pub(crate) fail_from: Option<u64>,
    /// Fail those that may take the reserve, too.
    pub(crate) urgent_too: bool,
    /// Allocations asked for so far.
    pub(crate) asked: u64,
}

impl Arena {
    pub(crate) fn new(huge_pages: bool) -> Self {
        Self {
            inner: Mutex::new(Inner::default()),
            huge_pages,
        }
    }

    /// Memory for one node; its content is arbitrary. `urgent` may take the reserve.
    pub(crate) fn allocate(&self, urgent: bool) -> Result<NodePtr, OutOfMemory> {
        let mut inner = lock(&self.inner);
        #[cfg(test)]
        inner.faults.check(urgent)?;
        let node = inner.take(self.huge_pages, urgent).ok_or(OutOfMemory)?;
        inner.live += 1;
        Ok(node)
    }

    /// Takes back nodes that no reader ever saw.
    ///
    /// # Safety
    /// They came from this arena and are not used any more.
    pub(crate) unsafe fn free(&self, nodes: impl Iterator<Item = NodePtr>) {
        let mut inner = lock(&self.inner);
        for node in nodes {
            inner.live -= 1;
            // SAFETY: the caller vouches for the node.
            unsafe { inner.give(node) };
        }
    }

    /// Takes nodes that are unlinked; they are used again once no reader can see them.
    ///
    /// # Safety
    /// They came from this arena, and no new reader can reach them.
    pub(crate) unsafe fn retire(&self, nodes: [&[NodePtr]; 2]) {
        let piled_up = self.take_retired(nodes);
        if piled_up {
            // A reader was put to sleep in the middle of a look-up, and holds back all that is
            // replaced meanwhile: let it finish. Without waiting, since it may be this thread.
            crate::sync::yield_now();
        }
    }

    /// Whether much waits for readers.
    fn take_retired(&self, nodes: [&[NodePtr]; 2]) -> bool {
        let mut inner = lock(&self.inner);
        for nodes in nodes {
            inner.live -= nodes.len();
            inner.retired += nodes.len();
            inner.open.extend_from_slice(nodes);
        }
        if inner.open.len() < BATCH.max(inner.nodes / BATCH_PART) {
            return false;
        }
        inner.seal();
        inner.collect();
        inner.retired > PILE.max(inner.live)
    }

    pub(crate) fn memory(&self) -> MemoryReport {
        let inner = lock(&self.inner);
        let mapped = inner.nodes * NODE_BYTES;
        let (live, retired) = (inner.live * NODE_BYTES, inner.retired * NODE_BYTES);
        MemoryReport {
            mapped,
            live,
            retired,
            free: mapped - live - retired,
        }
    }

    /// Frees what no reader sees any more, now, and gives spare chunks back to the system.
    pub(crate) fn flush(&self) {
        let mut inner = lock(&self.inner);
        inner.seal();
        inner.collect();
        inner.trim();
    }

    #[cfg(test)]
    pub(crate) fn set_faults(&self, faults: Faults) {
        lock(&self.inner).faults = faults;
    }
}

impl Inner {
    fn take(&mut self, huge_pages: bool, urgent: bool) -> Option<NodePtr> {
        if !urgent && self.free_nodes() <= RESERVE && !self.grow(huge_pages) {
            return None;
        }
        if self.free_nodes() == 0 && !self.grow(huge_pages) {
            self.seal();
            self.collect();
        }
        let base = *self.partial.first()?;
        let chunk = self.chunks.get_mut(&base)?;
        let node = chunk.take();
        if chunk.is_full() {
            self.partial.remove(&base);
        }
        node
    }

    fn free_nodes(&self) -> usize {
        self.nodes - self.live - self.retired
    }

    fn grow(&mut self, huge_pages: bool) -> bool {
        let Some(chunk) = Chunk::new(self.nodes * NODE_BYTES, huge_pages) else {
            return false;
        };
        self.nodes += chunk.nodes();
        self.partial.insert(chunk.base());
        self.chunks.insert(chunk.base(), chunk);
        true
    }

    /// # Safety
    /// The node came from this arena and is not used any more.
    unsafe fn give(&mut self, node: NodePtr) {
        let base = chunk::base(node);
        let Some(chunk) = self.chunks.get_mut(&base) else {
            debug_assert!(false, "a node of this arena");
            return;
        };
        if chunk.is_full() {
            self.partial.insert(base);
        }
        #[cfg(loom)]
        // SAFETY: the node is not used any more; a reader that looks all the same finds rubbish.
        unsafe {
            node.cast::<u8>().write_bytes(0xee, NODE_BYTES);
        }
        // SAFETY: the chunk is the node's, and the caller vouches for the node.
        unsafe { chunk.give(node) };
        if chunk.is_unused() {
            self.give_back(base, SPARE);
        }
    }

    /// Gives an unused chunk back to the system, if `spare` free nodes are left then.
    fn give_back(&mut self, base: usize, spare: usize) {
        let nodes = self.chunks.get(&base).map_or(0, Chunk::nodes);
        if self.free_nodes() > nodes + spare {
            self.chunks.remove(&base);
            self.partial.remove(&base);
            self.nodes -= nodes;
        }
    }

    fn trim(&mut self) {
        let unused = |(&base, chunk): (&usize, &Chunk)| chunk.is_unused().then_some(base);
        let bases: Vec<usize> = self.chunks.iter().rev().filter_map(unused).collect();
        for base in bases {
            self.give_back(base, SPARE_FLUSHED);
        }
    }

    /// Ends the batch: what is in it was unlinked before the epoch ends.
    fn seal(&mut self) {
        if !self.open.is_empty() {
            let batch = std::mem::take(&mut self.open);
            self.sealed.push_back((DOMAIN.advance(), batch));
        }
    }

    fn collect(&mut self) {
        let oldest = DOMAIN.oldest();
        while let Some((epoch, _)) = self.sealed.front()
            && *epoch < oldest
        {
            let Some((_, batch)) = self.sealed.pop_front() else {
                return;
            };
            self.retired -= batch.len();
            for node in batch {
                // SAFETY: unlinked before an epoch that every reader has left behind.
                unsafe { self.give(node) };
            }
        }
    }
}

#[cfg(test)]
impl Faults {
    fn check(&mut self, urgent: bool) -> Result<(), OutOfMemory> {
        let now = self.asked;
        self.asked += 1;
        let hit = self.fail_at == Some(now) || self.fail_from.is_some_and(|from| now >= from);
        if hit && (!urgent || self.urgent_too) {
            return Err(OutOfMemory);
        }
        Ok(())
    }
}
