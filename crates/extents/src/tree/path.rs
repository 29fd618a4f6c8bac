//! The way from the root to a leaf, as the writer takes it.

use super::node::{CHILDREN, Inner, Leaf, bias, unbias};
use super::seek::prefetch_values;
use super::width::Baseline;
use super::{HEIGHT_MASK, Root};
use crate::arena::NodePtr;

/// Inner nodes on a way, from the parent of the leaf (level 1) upwards.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    steps: [Option<Step<'a>>; HEIGHT_MASK],
    pub(super) leaf: LeafRef<'a>,
    /// First block after the leaf, as far as there is one.
    pub(super) end: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) inner: InnerRef<'a>,
    /// The child that the way takes.
    pub(super) at: usize,
}

/// A node that the writer reads: nobody else can unlink it.
pub(super) struct NodeRef<'a, T> {
    pub(super) node: NodePtr,
    pub(super) read: &'a T,
}

pub(super) type LeafRef<'a> = NodeRef<'a, Leaf>;
pub(super) type InnerRef<'a> = NodeRef<'a, Inner>;

impl<T> Clone for NodeRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NodeRef<'_, T> {}

impl<T> PartialEq for NodeRef<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T> NodeRef<'_, T> {
    /// # Safety
    /// The node is of kind `T`, and is not freed while the reference lives.
    pub(super) unsafe fn new(node: NodePtr) -> Self {
        Self {
            node,
            // SAFETY: the caller vouches for kind and life; published nodes are only changed
            // through their atomics.
            read: unsafe { node.cast::<T>().as_ref() },
        }
    }
}

impl<'a> InnerRef<'a> {
    pub(super) fn child(self, at: usize) -> NodePtr {
        NodePtr::new(self.read.link(at)).expect("an inner node has a child at each index it holds")
    }

    /// First blocks and nodes of the children `range`; the key of child 0 is not kept here, and
    /// is `first`.
    pub(super) fn children(
        self,
        range: std::ops::Range<usize>,
        first: u32,
    ) -> impl Iterator<Item = (u32, NodePtr)> + 'a {
        range.map(move |at| {
            let key = if at == 0 { first } else { self.read.key(at) };
            (key, self.child(at))
        })
    }
}

impl<'a> Path<'a> {
    /// The way to the leaf that covers `lblk`.
    ///
    /// # Safety
    /// The caller is the tree's only writer for as long as the path lives.
    pub(super) unsafe fn to(root: Root, lblk: u32) -> Self {
        let mut steps = [None; HEIGHT_MASK];
        let mut end = u32::MAX;
        let mut node = root.node;
        for slot in steps.iter_mut().take(root.height).rev() {
            // SAFETY: above height 0 there are inner nodes, and only the writer frees them.
            let inner = unsafe { InnerRef::new(node) };
            // SAFETY: the baseline needs nothing.
            let (at, next) = unsafe { inner.read.child::<Baseline>(bias(lblk)) };
            debug_assert!(at < CHILDREN);
            end = end.min(unbias(next));
            node = inner.child(at);
            *slot = Some(Step { inner, at });
        }
        prefetch_values(node.as_ptr());
        Self {
            steps,
            // SAFETY: at height 0 there are leaves, and only the writer frees them.
            leaf: unsafe { LeafRef::new(node) },
            end,
        }
    }

    /// The step at `level`, counted from 1 above the leaf.
    pub(super) fn step(&self, level: usize) -> Option<Step<'a>> {
        self.steps.get(level.checked_sub(1)?).copied().flatten()
    }

    /// Lets the way at `level` go to the next child.
    pub(super) fn advance(&mut self, level: usize) {
        if let Some(step) = self.step_mut(level) {
            step.at += 1;
        }
    }

    /// Lets the way at `level` go to the child before.
    pub(super) fn retreat(&mut self, level: usize) {
        if let Some(step) = self.step_mut(level) {
            step.at -= 1;
        }
    }

    fn step_mut(&mut self, level: usize) -> Option<&mut Step<'a>> {
        self.steps.get_mut(level.checked_sub(1)?)?.as_mut()
    }

    /// First block of the subtree that the step at `level` goes to: of all keys on the way at that
    /// level and above, the nearest one to the left. Block 0 if there is none.
    pub(super) fn first_block(&self, level: usize) -> u32 {
        (level..=HEIGHT_MASK)
            .map_while(|level| self.step(level))
            .find(|step| step.at > 0)
            .map_or(0, |step| step.inner.read.key(step.at))
    }
}
