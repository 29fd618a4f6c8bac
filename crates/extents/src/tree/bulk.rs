//! A tree built anew from all its boundaries, published by one store.

use super::node::{CHILDREN, Inner, LEAF_ITEMS, Leaf};
use super::{Root, Tree};
use crate::arena::{Arena, NodePtr, OutOfMemory};
use crate::sync::Ordering;
use crate::value::Item;

impl Tree {
    /// Replaces everything by the runs that begin at `items`: the first at block 0, no two
    /// neighbours such that they could be one. Nothing changes if memory runs out.
    ///
    /// # Safety
    /// The caller is the tree's only writer, and `arena` is the tree's.
    pub(crate) unsafe fn rebuild(&self, arena: &Arena, items: &[Item]) -> Result<(), OutOfMemory> {
        debug_assert!(items.first().is_some_and(|item| item.key == 0));
        let mut made = Vec::new();
        let root = match build(arena, items, &mut made) {
            Ok(root) => root,
            Err(error) => {
                // SAFETY: never published.
                unsafe { arena.free(made.into_iter()) };
                return Err(error);
            }
        };
        let old = self.root();
        self.begin();
        self.root.store(root.pack(), Ordering::Release);
        self.commit();
        if let Some(old) = old {
            let mut nodes = Vec::new();
            // SAFETY: the caller is the only writer, so nobody frees the nodes.
            unsafe { super::walk::nodes_under(old, &mut nodes) };
            // SAFETY: unlinked by the store above.
            unsafe { arena.retire(&nodes) };
        }
        let count = |of: fn(&Item) -> bool| items.iter().filter(|i| of(i)).count();
        let known = count(|i| i.value.is_known()) as i64 - i64::from(self.known());
        let kept = count(|i| i.value.must_keep()) as i64 - i64::from(self.kept());
        self.count(known, kept);
        Ok(())
    }
}

fn build(arena: &Arena, items: &[Item], made: &mut Vec<NodePtr>) -> Result<Root, OutOfMemory> {
    let mut level = Vec::with_capacity(items.len().div_ceil(LEAF_ITEMS));
    for part in items.chunks(LEAF_ITEMS) {
        let node = arena.allocate(false)?;
        made.push(node);
        // SAFETY: fresh memory.
        unsafe { Leaf::build(node, part) };
        level.push((part.first().map_or(0, |item| item.key), node));
    }
    let mut height = 0;
    while level.len() > 1 {
        let mut above = Vec::with_capacity(level.len().div_ceil(CHILDREN));
        for part in level.chunks(CHILDREN) {
            let node = arena.allocate(false)?;
            made.push(node);
            // SAFETY: fresh memory.
            unsafe { Inner::build(node, part) };
            above.push((part.first().map_or(0, |child| child.0), node));
        }
        level = above;
        height += 1;
    }
    let (_, node) = *level.first().ok_or(OutOfMemory)?;
    Ok(Root { node, height })
}
