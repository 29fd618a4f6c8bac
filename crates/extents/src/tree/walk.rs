//! Going over whole subtrees.

use super::Root;
use super::node::Leaf;
use super::path::{InnerRef, LeafRef};
use super::seek::prefetch;
use crate::arena::NodePtr;
use crate::list::SpillList;

/// Nodes to give back: a few for most changes, very many for some.
pub(super) type NodeList = SpillList<NodePtr, 12>;

/// Children fetched ahead.
const AHEAD: usize = 6;

/// Puts the nodes of a subtree into `nodes`; returns its counts: known items, and those of them
/// that memory alone holds.
///
/// # Safety
/// The nodes are not freed meanwhile.
pub(super) unsafe fn nodes_under(root: Root, nodes: &mut NodeList) -> (u32, u32) {
    nodes.push(root.node);
    if root.height == 0 {
        // SAFETY: at height 0 there are leaves; not freed, says the caller.
        return unsafe { LeafRef::new(root.node) }.read.counts();
    }
    // SAFETY: above height 0 there are inner nodes; not freed, says the caller.
    let inner = unsafe { InnerRef::new(root.node) };
    // SAFETY: children of a node that is not freed.
    unsafe { children_under(inner, 0..inner.read.len(), root.height - 1, nodes) }
}

/// The same for some children of an inner node; `height` is theirs.
///
/// # Safety
/// The nodes are not freed meanwhile.
pub(super) unsafe fn children_under(
    inner: InnerRef<'_>,
    range: std::ops::Range<usize>,
    height: usize,
    nodes: &mut NodeList,
) -> (u32, u32) {
    let mut counts = (0, 0);
    for at in range.clone() {
        if at + AHEAD < range.end {
            prefetch(Leaf::counts_line(inner.child(at + AHEAD)));
        }
        let child = Root {
            node: inner.child(at),
            height,
        };
        // SAFETY: a child of a node that is not freed.
        let (known, kept) = unsafe { nodes_under(child, nodes) };
        counts.0 += known;
        counts.1 += kept;
    }
    counts
}
