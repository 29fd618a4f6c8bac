//! Changing a range: new leaves, new nodes above them as far up as needed, one store.

use super::node::{CHILDREN, Inner, LEAF_ITEMS, Leaf};
use super::path::{InnerRef, LeafRef, Path, Step};
use super::small::{SMALL_ITEMS, SMALL_RUNS};
use super::walk::{NodeList, children_under};
use super::{HEIGHT_MASK, Root, Tree};
use crate::arena::{Arena, NodePtr, OutOfMemory};
use crate::list::FixedList;
use crate::sync::Ordering;
use crate::value::{Item, tally};

/// New boundaries that one change can bring.
pub(crate) const SPLICE_ITEMS: usize = LEAF_ITEMS;

/// Boundaries of the new leaves: what is left of the outer leaves, what is new, and a neighbour.
type Items = FixedList<Item, { 3 * LEAF_ITEMS + SPLICE_ITEMS + 2 }>;

/// Children of the new nodes of one level, likewise.
type Children = FixedList<(u32, NodePtr), { 3 * CHILDREN + 8 }>;

/// Nodes holding less than this much are joined with a neighbour.
const LEAF_LOW: usize = LEAF_ITEMS / 3;
const INNER_LOW: usize = CHILDREN / 3;

/// A full leaf and its neighbour share what they hold instead of becoming three, if that leaves
/// each of them some room.
const SHARED: usize = 2 * LEAF_ITEMS - 8;

/// Known runs at which a tree becomes small again: below what fits, lest it go back and forth.
const SMALL_AGAIN: u32 = 2;

/// What a change makes and replaces, until it is published.
struct Draft<'a> {
    arena: &'a Arena,
    urgent: bool,
    made: NodeList,
    replaced: NodeList,
    /// Counts of what is made, less counts of what is replaced.
    known: i64,
    kept: i64,
}

impl Draft<'_> {
    fn node(&mut self) -> Result<NodePtr, OutOfMemory> {
        let node = self.arena.allocate(self.urgent)?;
        self.made.push(node);
        Ok(node)
    }

    fn leaf(&mut self, items: &[Item]) -> Result<NodePtr, OutOfMemory> {
        let node = self.node()?;
        // SAFETY: fresh memory.
        unsafe { Leaf::build(node, items) };
        let (known, kept) = tally(items);
        self.known += known;
        self.kept += kept;
        Ok(node)
    }

    /// A leaf that differs from `old` in a few items: the first `left` stay, the last of them
    /// possibly going on with the first of `items`, and those from `right` on.
    fn edited_leaf(
        &mut self,
        old: LeafRef<'_>,
        left: usize,
        items: &[Item],
        goes_on: Option<Item>,
        right: usize,
        level: &mut Children,
    ) -> Result<(), OutOfMemory> {
        let mut new = Items::new();
        let mut left = left;
        if let Some(last) = left.checked_sub(1) {
            // Taken along, so that it can be joined with what follows.
            new.push(old.read.item(last));
            left = last;
        }
        join(&mut new, items);
        if let Some(item) = goes_on {
            join(&mut new, &[item]);
        }
        let node = self.node()?;
        // SAFETY: fresh memory.
        unsafe { Leaf::build_from(node, old.read, left, new.as_slice(), right) };
        // SAFETY: built just now.
        let leaf = unsafe { LeafRef::new(node) };
        let (known, kept) = leaf.read.counts();
        self.known += i64::from(known);
        self.kept += i64::from(kept);
        self.replaces(old.node, old.read.counts());
        level.push((leaf.read.item(0).key, node));
        Ok(())
    }

    fn inner(&mut self, children: &[(u32, NodePtr)]) -> Result<NodePtr, OutOfMemory> {
        let node = self.node()?;
        // SAFETY: fresh memory.
        unsafe { Inner::build(node, children) };
        Ok(node)
    }

    fn replaces(&mut self, node: NodePtr, counts: (u32, u32)) {
        self.replaced.push(node);
        self.uncount(counts);
    }

    fn uncount(&mut self, counts: (u32, u32)) {
        self.known -= i64::from(counts.0);
        self.kept -= i64::from(counts.1);
    }
}

impl Tree {
    /// Replaces what is known of `from..to` by the runs that begin at `items`, of which the first
    /// begins at `from` and no two neighbours could be one. The runs merge with those around.
    ///
    /// Only by the writer. Nothing changes if memory runs out.
    ///
    /// # Safety
    /// The caller is the tree's only writer, and `arena` is the tree's.
    pub(crate) unsafe fn splice(
        &self,
        arena: &Arena,
        urgent: bool,
        (from, to): (u32, u32),
        items: &[Item],
    ) -> Result<(), OutOfMemory> {
        debug_assert!(from < to && items.first().is_some_and(|i| i.key == from));
        let mut draft = Draft {
            arena,
            urgent,
            made: NodeList::new(),
            replaced: NodeList::new(),
            known: 0,
            kept: 0,
        };
        let done = match self.root() {
            None => self.splice_small(&mut draft, (from, to), items),
            // SAFETY: the caller is the only writer.
            Some(root) => unsafe { self.splice_tree(&mut draft, root, (from, to), items) },
        };
        match done {
            Ok(()) => {
                // SAFETY: unlinked by the store just made.
                unsafe { arena.retire(draft.replaced.parts()) };
                self.count(draft.known, draft.kept);
                if self.known() <= SMALL_AGAIN {
                    // SAFETY: the caller is the only writer.
                    unsafe { self.become_small(arena) };
                }
                Ok(())
            }
            Err(error) => {
                // SAFETY: never published.
                unsafe { arena.free(draft.made.parts().into_iter().flatten().copied()) };
                Err(error)
            }
        }
    }

    pub(super) fn count(&self, known: i64, kept: i64) {
        let add = |to: &crate::sync::AtomicU32, by: i64| {
            let sum = i64::from(to.load(Ordering::Relaxed)) + by;
            debug_assert!(u32::try_from(sum).is_ok(), "a count below 0");
            to.store(u32::try_from(sum).unwrap_or(0), Ordering::Relaxed);
        };
        add(&self.known, known);
        add(&self.kept, kept);
    }

    fn splice_small(
        &self,
        draft: &mut Draft<'_>,
        (from, to): (u32, u32),
        items: &[Item],
    ) -> Result<(), OutOfMemory> {
        let version = self.version.load(Ordering::Relaxed);
        let mut old: FixedList<Item, { SMALL_ITEMS }> = FixedList::new();
        self.small.items(version, |item| old.push(item));
        let mut new = Items::new();
        new.extend(old.as_slice().iter().copied().take_while(|i| i.key < from));
        join(&mut new, items);
        let right = run_starting_at(old.as_slice(), to);
        let rest = old.as_slice().iter().copied().filter(|i| i.key > to);
        close(&mut new, right, rest);
        let new = new.as_slice();
        let (known, kept) = tally(new);
        if usize::try_from(known).is_ok_and(|known| known <= SMALL_RUNS) {
            draft.known += known;
            draft.kept += kept;
            draft.uncount((self.known(), self.kept()));
            self.begin();
            self.small.fill(version, new);
            self.commit();
            return Ok(());
        }
        let mut level = Children::new();
        pack_leaves(draft, new, false, &mut level)?;
        draft.uncount((self.known(), self.kept()));
        self.publish_root(draft, level, 0)
    }

    /// # Safety
    /// The caller is the only writer.
    unsafe fn splice_tree(
        &self,
        draft: &mut Draft<'_>,
        root: Root,
        (from, to): (u32, u32),
        items: &[Item],
    ) -> Result<(), OutOfMemory> {
        // SAFETY: the caller is the only writer.
        let (left, right) = unsafe { outer_paths(root, (from, to), items) };
        let mut span = Span { left, right };
        let mut level = Children::new();
        // What lies between the ways at a level is noted before the ways are widened there.
        // SAFETY: the caller is the only writer.
        unsafe { span.drop_between(draft, 1) };
        // SAFETY: as above.
        unsafe { span.leaves(draft, (from, to), items, &mut level)? };
        for height in 1..=root.height {
            let Some((left, right)) = span.steps(height) else {
                break;
            };
            if let [(_, only)] = level.as_slice()
                && left.inner == right.inner
                && left.at == right.at
            {
                self.begin();
                left.inner.read.set_link(left.at, *only);
                self.commit();
                return Ok(());
            }
            // SAFETY: as above.
            unsafe { span.drop_between(draft, height + 1) };
            let mut above = Children::new();
            // SAFETY: as above.
            unsafe { span.inners(draft, height, level.as_slice(), &mut above)? };
            level = above;
        }
        self.publish_root(draft, level, root.height)
    }

    /// Puts the nodes of the top level, which are `height` high, under a root.
    fn publish_root(
        &self,
        draft: &mut Draft<'_>,
        mut level: Children,
        mut height: usize,
    ) -> Result<(), OutOfMemory> {
        while level.as_slice().len() > 1 {
            let mut above = Children::new();
            pack_inners(draft, level.as_slice(), &mut above)?;
            level = above;
            height += 1;
            debug_assert!(height < HEIGHT_MASK);
        }
        let Some(&(_, mut node)) = level.as_slice().first() else {
            return Err(OutOfMemory);
        };
        while height > 0 {
            // SAFETY: above height 0 there are inner nodes; not freed before this change is done.
            let inner = unsafe { InnerRef::new(node) };
            if inner.read.len() > 1 {
                break;
            }
            draft.replaces(node, (0, 0));
            node = inner.child(0);
            height -= 1;
        }
        self.begin();
        self.root
            .store(Root { node, height }.pack(), Ordering::Release);
        self.commit();
        Ok(())
    }

    /// Makes a tree of few runs small; what is known stays the same.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn become_small(&self, arena: &Arena) {
        let Some(root) = self.root() else { return };
        let mut items: FixedList<Item, { SMALL_ITEMS }> = FixedList::new();
        let mut at = 0;
        loop {
            let run = super::seek::find(root, at, false);
            items.push(Item {
                key: run.start,
                value: run.value(),
                referenced: run.referenced(),
            });
            if run.end == u32::MAX {
                break;
            }
            at = run.end;
        }
        // SAFETY: the caller is the only writer.
        unsafe { self.set_small(arena, items.as_slice()) };
    }
}

/// The ways to the leaves that a change of `from..to` touches, with the neighbours that the new
/// runs merge with, and no others.
///
/// # Safety
/// The caller is the only writer.
unsafe fn outer_paths<'a>(
    root: Root,
    (from, to): (u32, u32),
    items: &[Item],
) -> (Path<'a>, Path<'a>) {
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
        // SAFETY: the caller is the only writer.
        let path = unsafe { Path::to(root, from) };
        return (path, path);
    };
    // SAFETY: the caller is the only writer.
    let mut left = unsafe { Path::to(root, from.saturating_sub(1)) };
    if left.end <= from && left.leaf.read.last().value != first.value {
        // SAFETY: the caller is the only writer.
        left = unsafe { Path::to(root, from) };
    }
    // The leaf that holds the last block of the range, or the next one if its first run goes on
    // with the last new one.
    let mut right = if to - 1 < left.end {
        left
    } else {
        // SAFETY: the caller is the only writer.
        unsafe { Path::to(root, to - 1) }
    };
    if right.end == to && to < u32::MAX {
        // SAFETY: the caller is the only writer.
        let next = unsafe { Path::to(root, to) };
        if next.leaf.read.item(0).value == last.value {
            right = next;
        }
    }
    (left, right)
}

/// The part of the tree that a change replaces, from one leaf to another.
struct Span<'a> {
    left: Path<'a>,
    right: Path<'a>,
}

impl<'a> Span<'a> {
    fn steps(&self, level: usize) -> Option<(Step<'a>, Step<'a>)> {
        Some((self.left.step(level)?, self.right.step(level)?))
    }

    /// Builds the new leaves.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn leaves(
        &mut self,
        draft: &mut Draft<'_>,
        (from, to): (u32, u32),
        items: &[Item],
        level: &mut Children,
    ) -> Result<(), OutOfMemory> {
        let (left, right) = (self.left.leaf, self.right.leaf);
        let kept_left = 0..left.read.before(from);
        let kept_right = right.read.up_to(to)..right.read.len();
        let about = kept_left.len() + items.len() + kept_right.len() + 1;
        let beyond = self.right.end;
        let appends = beyond == u32::MAX && kept_right.is_empty();
        // What goes on at `to`, if that block is in the last leaf at all.
        let goes_on = (to < beyond).then(|| Item {
            key: to,
            ..right.read.item(kept_right.start - 1)
        });
        // SAFETY: the caller is the only writer.
        let (before, after) = unsafe { self.helper(about, appends) };
        if left == right && before.is_none() && after.is_none() && about <= LEAF_ITEMS {
            return draft.edited_leaf(left, kept_left.end, items, goes_on, kept_right.start, level);
        }

        let mut new = Items::new();
        if let Some(before) = before {
            new.extend(before.read.items(0..before.read.len()));
            draft.replaces(before.node, before.read.counts());
        }
        new.extend(left.read.items(kept_left));
        join(&mut new, items);
        close(&mut new, goes_on, right.read.items(kept_right));
        if let Some(after) = after {
            new.extend(after.read.items(0..after.read.len()));
            draft.replaces(after.node, after.read.counts());
        }
        draft.replaces(left.node, left.read.counts());
        if left != right {
            draft.replaces(right.node, right.read.counts());
        }
        pack_leaves(draft, new.as_slice(), appends, level)
    }

    /// A neighbour to take in: of a leaf that would be nearly empty, or of one that would
    /// overflow while the neighbour has room. The span then reaches over it.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn helper(
        &mut self,
        about: usize,
        appends: bool,
    ) -> (Option<LeafRef<'a>>, Option<LeafRef<'a>>) {
        let low = about < LEAF_LOW && !appends;
        let full = about > LEAF_ITEMS && about <= SHARED && !appends;
        if !low && !full {
            return (None, None);
        }
        let fits = |leaf: LeafRef<'_>| low || about + leaf.read.len() <= SHARED;
        let Some((left, right)) = self.steps(1) else {
            return (None, None);
        };
        if right.at + 1 < right.inner.read.len() {
            // SAFETY: a child at level 1 is a leaf, and only the writer frees it.
            let after = unsafe { LeafRef::new(right.inner.child(right.at + 1)) };
            if fits(after) {
                self.right.advance(1);
                return (None, Some(after));
            }
        }
        if left.at > 0 {
            // SAFETY: as above.
            let before = unsafe { LeafRef::new(left.inner.child(left.at - 1)) };
            if fits(before) {
                self.left.retreat(1);
                return (Some(before), None);
            }
        }
        (None, None)
    }

    /// Notes the subtrees between the two ways at `level` as replaced.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn drop_between(&self, draft: &mut Draft<'_>, level: usize) {
        let Some((left, right)) = self.steps(level) else {
            return;
        };
        let ranges = if left.inner == right.inner {
            [(left, left.at + 1..right.at), (right, 0..0)]
        } else {
            [
                (left, left.at + 1..left.inner.read.len()),
                (right, 0..right.at),
            ]
        };
        for (step, range) in ranges {
            // SAFETY: the caller is the only writer, so nobody frees the nodes.
            let counts =
                unsafe { children_under(step.inner, range, level - 1, &mut draft.replaced) };
            draft.uncount(counts);
        }
    }

    /// Builds the new inner nodes of one level: what is left of the outer ones and the new
    /// children between.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn inners(
        &mut self,
        draft: &mut Draft<'_>,
        height: usize,
        middle: &[(u32, NodePtr)],
        level: &mut Children,
    ) -> Result<(), OutOfMemory> {
        let Some((left, right)) = self.steps(height) else {
            return Ok(());
        };
        let first = self.left.first_block(height + 1);
        let rest = right.at + 1..right.inner.read.len();
        let low = left.at + middle.len() + rest.len() < INNER_LOW;
        // SAFETY: the caller is the only writer.
        let (before, after) = unsafe { self.inner_helper(height + 1, low) };
        let mut children = Children::new();
        if let Some((key, before)) = before {
            children.extend(before.children(0..before.read.len(), key));
            draft.replaces(before.node, (0, 0));
        }
        children.extend(left.inner.children(0..left.at, first));
        children.extend(middle.iter().copied());
        children.extend(right.inner.children(rest, 0));
        if let Some((key, after)) = after {
            children.extend(after.children(0..after.read.len(), key));
            draft.replaces(after.node, (0, 0));
        }
        draft.replaces(left.inner.node, (0, 0));
        if left.inner != right.inner {
            draft.replaces(right.inner.node, (0, 0));
        }
        pack_inners(draft, children.as_slice(), level)
    }

    /// A neighbour for nodes whose parent is at `level` and that would be nearly empty.
    ///
    /// # Safety
    /// The caller is the only writer.
    unsafe fn inner_helper(&mut self, level: usize, low: bool) -> (Helper<'a>, Helper<'a>) {
        let Some((left, right)) = self.steps(level).filter(|_| low) else {
            return (None, None);
        };
        if right.at + 1 < right.inner.read.len() {
            let key = right.inner.read.key(right.at + 1);
            // SAFETY: children at this level are inner nodes, and only the writer frees them.
            let after = unsafe { InnerRef::new(right.inner.child(right.at + 1)) };
            self.right.advance(level);
            return (None, Some((key, after)));
        }
        if left.at > 0 {
            // SAFETY: as above.
            let before = unsafe { InnerRef::new(left.inner.child(left.at - 1)) };
            self.left.retreat(level);
            return (Some((self.left.first_block(level), before)), None);
        }
        (None, None)
    }
}

/// A neighbouring inner node with its first block.
type Helper<'a> = Option<(u32, InnerRef<'a>)>;

/// Appends `items`, of which the first may go on with what is there.
fn join(new: &mut Items, items: &[Item]) {
    let mut items = items.iter().copied();
    let Some(first) = items.next() else { return };
    match new.last_mut() {
        Some(last) if last.value == first.value => last.referenced |= first.referenced,
        _ => new.push(first),
    }
    new.extend(items);
}

/// Appends what follows the changed range: the run that goes on there, then the rest.
fn close(new: &mut Items, goes_on: Option<Item>, rest: impl Iterator<Item = Item>) {
    if let Some(item) = goes_on {
        join(new, &[item]);
    }
    new.extend(rest);
}

/// The run that contains `at`, cut to begin there.
fn run_starting_at(items: &[Item], at: u32) -> Option<Item> {
    let run = items.iter().rev().find(|i| i.key <= at)?;
    (at < u32::MAX).then_some(Item { key: at, ..*run })
}

/// Spreads boundaries over as few leaves as they need: evenly, or, when the file grows at its end,
/// filling one after the other.
fn pack_leaves(
    draft: &mut Draft<'_>,
    items: &[Item],
    appends: bool,
    level: &mut Children,
) -> Result<(), OutOfMemory> {
    let leaves = items.len().div_ceil(LEAF_ITEMS);
    let each = if appends {
        LEAF_ITEMS
    } else {
        items.len().div_ceil(leaves.max(1))
    };
    for part in items.chunks(each) {
        let Some(first) = part.first() else { break };
        level.push((first.key, draft.leaf(part)?));
    }
    Ok(())
}

fn pack_inners(
    draft: &mut Draft<'_>,
    children: &[(u32, NodePtr)],
    level: &mut Children,
) -> Result<(), OutOfMemory> {
    let nodes = children.len().div_ceil(CHILDREN);
    let each = children.len().div_ceil(nodes.max(1));
    for part in children.chunks(each) {
        let Some(first) = part.first() else { break };
        level.push((first.0, draft.inner(part)?));
    }
    Ok(())
}
