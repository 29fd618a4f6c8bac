//! The map itself: boundaries in a tree that readers walk without a lock.
//!
//! A boundary says where a run of blocks begins and what is known of it; the run ends where the
//! next one begins, and "unknown" is a run like any other. Leaves and inner nodes are written
//! once, then published. A change of any range builds new leaves (and, where the number of leaves
//! changes, the path above them) and publishes them by one store: in a child link, or in the root.
//! So a reader sees all of a change or nothing. See DESIGN.md.

mod bulk;
mod node;
mod path;
mod seek;
mod small;
mod splice;
mod tags;
#[cfg(test)]
mod tests;
mod view;
mod walk;
mod width;

use std::ptr;

use crate::arena::{Arena, Node, NodePtr};
use crate::pin::{Pin, pin};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use crate::value::Run;
use small::Small;
use walk::NodeList;

pub(crate) use seek::{BATCH, Place};
pub(crate) use splice::SPLICE_ITEMS;
pub(crate) use view::View;

/// The root link holds the height in the bits that a node's alignment leaves free; the height of
/// a leaf is 0. Null means that the small map holds everything.
const HEIGHT_MASK: usize = 0xf;

/// Boundaries and their values, for one writer at a time and any number of readers.
pub(crate) struct Tree {
    /// Twice the number of publications, odd while one is being made.
    version: AtomicU64,
    root: AtomicPtr<Node>,
    known: AtomicU32,
    kept: AtomicU32,
    small: Small,
}

/// A root link taken apart.
#[derive(Clone, Copy)]
struct Root {
    node: NodePtr,
    height: usize,
}

impl Root {
    fn pack(self) -> *mut Node {
        self.node.as_ptr().map_addr(|addr| addr | self.height)
    }

    #[inline]
    fn unpack(link: *mut Node) -> Option<Self> {
        let height = link.addr() & HEIGHT_MASK;
        let node = NodePtr::new(link.map_addr(|addr| addr & !HEIGHT_MASK))?;
        Some(Self { node, height })
    }
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            root: AtomicPtr::new(ptr::null_mut()),
            known: AtomicU32::new(0),
            kept: AtomicU32::new(0),
            small: Small::new(),
        }
    }

    /// Runs of which something is known.
    pub(crate) fn known(&self) -> u32 {
        self.known.load(Ordering::Relaxed)
    }

    /// Runs that memory alone holds.
    pub(crate) fn kept(&self) -> u32 {
        self.kept.load(Ordering::Relaxed)
    }

    #[inline]
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Announces a publication. Only by the writer.
    fn begin(&self) {
        let version = self.version.load(Ordering::Relaxed);
        // Release, though nothing is published yet: a reader that takes the odd number for its
        // version must see all that the one before it stood for.
        self.version.store(version | 1, Ordering::Release);
        // Whoever sees what is published also sees the announcement.
        fence(Ordering::Release);
    }

    /// Ends a publication.
    fn commit(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store((version | 1) + 1, Ordering::Release);
    }

    #[inline]
    fn root(&self) -> Option<Root> {
        Root::unpack(self.root.load(Ordering::Acquire))
    }

    /// The run that contains `lblk`; `mark` marks it as referenced if something is known of it.
    #[inline]
    pub(crate) fn run_at(&self, lblk: u32, mark: bool) -> Run {
        if self.root.load(Ordering::Relaxed).is_null()
            && let Some(run) = self.small_run_at(lblk, mark)
        {
            return run;
        }
        self.pinned_run_at(&pin(), lblk, mark)
    }

    /// As [`run_at`](Self::run_at), for a thread that is pinned already.
    #[inline]
    pub(crate) fn pinned_run_at(&self, pin: &Pin, lblk: u32, mark: bool) -> Run {
        loop {
            if let Some(root) = self.root() {
                return seek::run_at(root, pin, lblk, mark);
            }
            if let Some(run) = self.small_run_at(lblk, mark) {
                return run;
            }
        }
    }

    /// `None` if the tree has taken over.
    fn small_run_at(&self, lblk: u32, mark: bool) -> Option<Run> {
        loop {
            let version = self.version();
            if !self.root.load(Ordering::Acquire).is_null() {
                return None;
            }
            let found = self.small.run_at(version, lblk);
            fence(Ordering::Acquire);
            // While a publication is under way it is made in the other buffer.
            if self.version.load(Ordering::Relaxed) >> 1 != version >> 1 {
                continue;
            }
            let (run, bit) = found;
            let marked = bit.is_some_and(|bit| self.small.mark(bit, mark));
            return Some(Run::new(run.start, run.end, run.value(), marked));
        }
    }

    /// Gives all nodes back. The map is empty afterwards.
    pub(crate) fn dismantle(&mut self, arena: &Arena) {
        let Some(root) = self.root() else { return };
        self.root.store(ptr::null_mut(), Ordering::Relaxed);
        let mut nodes = NodeList::new();
        // SAFETY: the nodes under the root are alive: nobody else can change the tree now.
        unsafe { walk::nodes_under(root, &mut nodes) };
        // SAFETY: the borrow is exclusive, so no reader is in the tree.
        unsafe { arena.free(nodes.parts().into_iter().flatten().copied()) };
    }
}
