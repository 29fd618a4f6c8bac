//! A tree built anew from all its boundaries, published by one store.

use super::node::{CHILDREN, Inner, LEAF_ITEMS, Leaf};
use super::small::SMALL_RUNS;
use super::walk::NodeList;
use super::{Root, Tree};
use crate::arena::{Arena, NodePtr, OutOfMemory};
use crate::sync::Ordering;
use crate::value::{Item, tally};

impl Tree {
    /// Replaces everything by the runs that begin at `items`: the first at block 0, no two
    /// neighbours such that they could be one. Nothing changes if memory runs out.
    ///
    /// # Safety
    /// The caller is the tree's only writer, and `arena` is the tree's.
    pub(crate) unsafe fn rebuild(&self, arena: &Arena, items: &[Item]) -> Result<(), OutOfMemory> {
        debug_assert!(items.first().is_some_and(|item| item.key == 0));
        // SAFETY: as the caller says.
        if unsafe { self.set_small(arena, items) } {
            return Ok(());
        }
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
        // SAFETY: unlinked by the store above.
        unsafe { retire_all(arena, old) };
        self.count_all(items);
        Ok(())
    }

    /// The same without memory: only if so few runs are known that they fit into the small map.
    /// Whether they do.
    ///
    /// # Safety
    /// As for `rebuild`.
    pub(crate) unsafe fn set_small(&self, arena: &Arena, items: &[Item]) -> bool {
        if items.iter().filter(|i| i.value.is_known()).count() > SMALL_RUNS {
            return false;
        }
        let version = self.version.load(Ordering::Relaxed);
        let old = self.root();
        if old.is_some() {
            // Nobody looks at the buffers while there is a root. Afterwards a reader may take
            // either for the current one, as far as the version has come.
            self.small.fill(version, items);
            self.small.fill(version.wrapping_add(2), items);
        }
        self.begin();
        if old.is_some() {
            self.root.store(std::ptr::null_mut(), Ordering::Release);
        } else {
            self.small.fill(version, items);
        }
        self.commit();
        // SAFETY: unlinked by the store above.
        unsafe { retire_all(arena, old) };
        self.count_all(items);
        true
    }

    fn count_all(&self, items: &[Item]) {
        let (known, kept) = tally(items);
        self.count(
            known - i64::from(self.known()),
            kept - i64::from(self.kept()),
        );
    }
}

/// # Safety
/// The tree under `old` is unlinked and nobody frees it meanwhile.
unsafe fn retire_all(arena: &Arena, old: Option<Root>) {
    let Some(old) = old else { return };
    let mut nodes = NodeList::new();
    // SAFETY: as the caller says.
    unsafe { super::walk::nodes_under(old, &mut nodes) };
    // SAFETY: as the caller says.
    unsafe { arena.retire(nodes.parts()) };
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
