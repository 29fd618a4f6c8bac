//! A stretch of boundaries as the writer looks at it: a leaf, or the small map.

use super::path::{LeafRef, Path};
use super::small::SMALL_ITEMS;
use super::{Root, Tree};
use crate::list::FixedList;
use crate::pin::Pin;
use crate::sync::Ordering;
use crate::value::{Item, Value};

/// Boundaries of one leaf, or all of the small map's.
pub(crate) struct View<'a> {
    tree: &'a Tree,
    items: Items<'a>,
    /// First block after the last run.
    pub(crate) end: u32,
}

enum Items<'a> {
    Leaf(LeafRef<'a>),
    Small(FixedList<Item, { SMALL_ITEMS }>),
}

/// Which items of a view are known, which of them must stay, and which were looked up; a bit each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Masks {
    pub(crate) known: u64,
    pub(crate) kept: u64,
    pub(crate) marked: u64,
}

impl Tree {
    /// The stretch that covers `lblk`. Content stays readable while `pin` lives, but is only
    /// current until the next change.
    ///
    /// # Safety
    /// The caller is the tree's only writer.
    pub(crate) unsafe fn view<'a>(&'a self, _: &'a Pin, lblk: u32) -> View<'a> {
        if let Some(root) = self.root() {
            // SAFETY: the caller is the only writer, and nodes unlinked later outlive the pin.
            return unsafe { self.leaf_view(root, lblk) };
        }
        let mut items = FixedList::new();
        let version = self.version.load(Ordering::Relaxed);
        self.small.items(version, |item| items.push(item));
        View {
            tree: self,
            items: Items::Small(items),
            end: u32::MAX,
        }
    }

    /// # Safety
    /// As for `view`.
    unsafe fn leaf_view(&self, root: Root, lblk: u32) -> View<'_> {
        // SAFETY: as the caller says.
        let path = unsafe { Path::to(root, lblk) };
        View {
            tree: self,
            items: Items::Leaf(path.leaf),
            end: path.end,
        }
    }
}

impl View<'_> {
    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Leaf(leaf) => leaf.read.len(),
            Items::Small(items) => items.as_slice().len(),
        }
    }

    /// Index of the run that contains `lblk`.
    pub(crate) fn index(&self, lblk: u32) -> usize {
        match &self.items {
            Items::Leaf(leaf) => leaf.read.up_to(lblk).saturating_sub(1),
            Items::Small(items) => {
                let up_to = items.as_slice().partition_point(|i| i.key <= lblk);
                up_to.saturating_sub(1)
            }
        }
    }

    pub(crate) fn item(&self, at: usize) -> Item {
        match &self.items {
            Items::Leaf(leaf) => leaf.read.item(at),
            Items::Small(items) => items.as_slice().get(at).copied().unwrap_or(Item {
                key: u32::MAX,
                value: Value::UNKNOWN,
                referenced: false,
            }),
        }
    }

    pub(crate) fn masks(&self) -> Masks {
        match &self.items {
            Items::Leaf(leaf) => {
                let (known, kept) = leaf.read.masks();
                Masks {
                    known,
                    kept,
                    marked: leaf.read.marks(),
                }
            }
            Items::Small(items) => {
                let bits = |of: fn(&Item) -> bool| {
                    let all = items.as_slice().iter().enumerate();
                    all.fold(0, |bits, (at, item)| bits | u64::from(of(item)) << at)
                };
                Masks {
                    known: bits(|i| i.value.is_known()),
                    kept: bits(|i| i.value.must_keep()),
                    marked: bits(|i| i.referenced),
                }
            }
        }
    }

    /// Takes marks off, in place. Remembered places become stale, so that a look-up through one
    /// marks anew.
    pub(crate) fn unmark(&self, bits: u64) {
        if bits == 0 {
            return;
        }
        self.tree.begin();
        match &self.items {
            Items::Leaf(leaf) => leaf.read.unmark(bits),
            Items::Small(items) => {
                let version = self.tree.version.load(Ordering::Relaxed);
                let mut at = 0;
                for (i, item) in items.as_slice().iter().enumerate() {
                    if item.value.is_known() {
                        if bits >> i & 1 != 0 {
                            self.tree.small.unmark(version, at);
                        }
                        at += 1;
                    }
                }
                // The version decides which buffer is current, so what it holds goes along.
                let mut now: FixedList<Item, { SMALL_ITEMS }> = FixedList::new();
                self.tree.small.items(version, |item| now.push(item));
                self.tree.small.fill(version, now.as_slice());
            }
        }
        self.tree.commit();
    }
}
