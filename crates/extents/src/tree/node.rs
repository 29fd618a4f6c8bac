//! The two kinds of nodes, as they lie in memory. Published ones are never written again, except
//! for the referenced marks of a leaf and the child links of an inner node, which are atomic.
//!
//! ```text
//! leaf   0 keys   48 x u32, biased, padded with the largest
//!      192 marks  u64, one bit an item      200 counts 4 x u8 + 4 spare
//!      208 tags   48 x 4 bits             232 values 46 x 48 bits, then 4 spare bytes
//! inner  0 keys   48 x u32, biased: key i is the first block of child i + 1
//!      192 count  u64                       200 links  39 x address
//! ```
//!
//! Keys are kept with the top bit flipped, so that signed vector comparisons order them.

use super::seek::prefetch;
use super::tags::Tags;
use super::width::{Baseline, KEYS, Width};
use std::mem::MaybeUninit;

use crate::arena::{NODE_BYTES, Node, NodePtr};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::value::{Item, Value};

/// Items in a leaf.
pub(super) const LEAF_ITEMS: usize = 46;

/// Children of an inner node.
pub(super) const CHILDREN: usize = 39;

const VALUE_BYTES: usize = 6;

/// The order-preserving form of a block number as a signed number.
#[inline]
pub(super) fn bias(key: u32) -> i32 {
    (key ^ 0x8000_0000).cast_signed()
}

#[inline]
pub(super) fn unbias(key: i32) -> u32 {
    key.cast_unsigned() ^ 0x8000_0000
}

#[repr(C, align(64))]
pub(super) struct Leaf {
    keys: [i32; KEYS],
    marks: AtomicU64,
    items: u8,
    /// Items of which something is known.
    known: u8,
    /// Items that memory alone holds.
    kept: u8,
    spare: [u8; 5],
    tags: Tags,
    values: [u8; LEAF_ITEMS * VALUE_BYTES + 4],
}

#[repr(C, align(64))]
pub(super) struct Inner {
    keys: [i32; KEYS],
    count: u64,
    links: [AtomicPtr<Node>; CHILDREN],
}

const _: () = assert!(size_of::<Leaf>() <= NODE_BYTES && size_of::<Inner>() <= NODE_BYTES);

/// What a leaf says about one block.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) start: i32,
    /// Biased; the largest number if the leaf does not know the end.
    pub(super) end: i32,
    pub(super) value: Value,
}

impl Leaf {
    fn empty() -> Self {
        Self {
            keys: [i32::MAX; KEYS],
            marks: AtomicU64::new(0),
            items: 0,
            known: 0,
            kept: 0,
            spare: [0; 5],
            tags: Tags::new(),
            values: [0; LEAF_ITEMS * VALUE_BYTES + 4],
        }
    }

    /// Writes a leaf into fresh memory.
    ///
    /// # Safety
    /// The node's memory is the caller's alone.
    pub(super) unsafe fn build(node: NodePtr, items: &[Item]) {
        debug_assert!(!items.is_empty() && items.len() <= LEAF_ITEMS);
        // SAFETY: the memory is the caller's, large enough and aligned (asserted above).
        let leaf = unsafe { node.cast::<MaybeUninit<Self>>().as_mut() }.write(Self::empty());
        let mut marks = 0;
        for (at, item) in items.iter().enumerate() {
            leaf.set(at, item);
            marks |= u64::from(item.referenced) << at;
        }
        leaf.finish(items.len(), marks);
    }

    /// Writes a leaf into fresh memory: the first `left` items of `old`, `new`, and the items of
    /// `old` from `right` on. Whole ranges are copied, which is faster than item by item.
    ///
    /// # Safety
    /// The node's memory is the caller's alone.
    #[expect(
        clippy::indexing_slicing,
        reason = "the caller keeps the sum within LEAF_ITEMS"
    )]
    pub(super) unsafe fn build_from(
        node: NodePtr,
        old: &Self,
        left: usize,
        new: &[Item],
        right: usize,
    ) {
        let (at, rest) = (left + new.len(), old.len() - right);
        debug_assert!(at + rest <= LEAF_ITEMS);
        // SAFETY: the memory is the caller's, large enough and aligned (asserted above).
        let leaf = unsafe { node.cast::<MaybeUninit<Self>>().as_mut() }.write(Self::empty());
        leaf.keys[..left].copy_from_slice(&old.keys[..left]);
        leaf.keys[at..at + rest].copy_from_slice(&old.keys[right..right + rest]);
        let bytes = |n: usize| n * VALUE_BYTES;
        leaf.values[..bytes(left)].copy_from_slice(&old.values[..bytes(left)]);
        leaf.values[bytes(at)..bytes(at + rest)]
            .copy_from_slice(&old.values[bytes(right)..bytes(right + rest)]);
        leaf.tags = old.tags.first(left).with(old.tags.down(right).up(at));
        let old_marks = old.marks();
        let mut marks = old_marks & ((1 << left) - 1) | old_marks >> right << at;
        for (i, item) in new.iter().enumerate() {
            leaf.set(left + i, item);
            marks |= u64::from(item.referenced) << (left + i);
        }
        leaf.finish(at + rest, marks);
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "at < LEAF_ITEMS, and the arrays are sized by it"
    )]
    fn set(&mut self, at: usize, item: &Item) {
        self.keys[at] = bias(item.key);
        self.tags.set(at, item.value.tag());
        let bytes = item.value.delta().to_le_bytes();
        self.values[at * VALUE_BYTES..][..VALUE_BYTES].copy_from_slice(&bytes[..VALUE_BYTES]);
    }

    fn finish(&mut self, items: usize, marks: u64) {
        self.items = items.to_le_bytes()[0];
        (self.known, self.kept) = self.tags.counts();
        self.marks = AtomicU64::new(marks);
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.items)
    }

    /// The line that `counts` reads.
    pub(super) fn counts_line(node: NodePtr) -> *const u8 {
        let offset = std::mem::offset_of!(Self, items);
        node.as_ptr().cast::<u8>().wrapping_add(offset)
    }

    /// Items of which something is known, and those of them that memory alone holds.
    pub(super) fn counts(&self) -> (u32, u32) {
        (u32::from(self.known), u32::from(self.kept))
    }

    /// Index of the item that covers `probe`, which is at or above the first key.
    ///
    /// # Safety
    /// The processor has the instructions of the width.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "so that it is compiled into each search"
    )]
    pub(super) unsafe fn index<W: Width>(&self, probe: i32) -> usize {
        // SAFETY: as the caller says.
        unsafe { W::rank(&self.keys, probe) }.wrapping_sub(1)
    }

    /// The item's run, as far as the leaf knows.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "so that it is compiled for the caller's vector width"
    )]
    #[expect(
        clippy::indexing_slicing,
        reason = "both are clamped below the number of keys"
    )]
    pub(super) fn found(&self, at: usize) -> Found {
        let at = at.min(LEAF_ITEMS - 1);
        Found {
            start: self.keys[at],
            end: self.keys[at + 1],
            value: self.value(at),
        }
    }

    /// Whether `probe` is at or above the leaf's first block.
    #[inline]
    pub(super) fn covers(&self, probe: i32) -> bool {
        self.keys.first().is_some_and(|&first| first <= probe)
    }

    /// Whether the item exists and covers `probe`.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "the item exists, and there is a key after the last"
    )]
    pub(super) fn holds(&self, at: usize, probe: i32, leaf_end: i32) -> bool {
        at < self.len() && self.keys[at] <= probe && probe < self.keys[at + 1].min(leaf_end)
    }

    /// Fetches the lines that an answer about the item needs besides the keys.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions")]
    pub(super) fn prefetch(&self, at: usize) {
        prefetch(std::ptr::from_ref(&self.marks).cast());
        let values = std::ptr::from_ref(&self.values).cast::<u8>();
        prefetch(values.wrapping_add(at * VALUE_BYTES));
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "at is below LEAF_ITEMS, checked once"
    )]
    pub(super) fn value(&self, at: usize) -> Value {
        let at = at.min(LEAF_ITEMS - 1);
        let tag = self.tags.get(at);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.values[at * VALUE_BYTES..][..8]);
        Value::from_parts(tag, u64::from_le_bytes(bytes))
    }

    #[inline]
    pub(super) fn is_marked(&self, at: usize) -> bool {
        self.marks.load(Ordering::Relaxed) >> at & 1 != 0
    }

    /// Marks the item as referenced; whether it was before. Writes only if it was not.
    #[inline]
    pub(super) fn mark(&self, at: usize) -> bool {
        let bit = 1 << at;
        self.marks.load(Ordering::Relaxed) & bit != 0
            || self.marks.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }

    pub(super) fn unmark(&self, bits: u64) {
        self.marks.fetch_and(!bits, Ordering::Relaxed);
    }

    /// A bit for each known item, and for those of them that memory alone holds.
    pub(super) fn masks(&self) -> (u64, u64) {
        self.tags.masks()
    }

    pub(super) fn marks(&self) -> u64 {
        self.marks.load(Ordering::Relaxed)
    }

    #[expect(clippy::indexing_slicing, reason = "at is below the number of items")]
    pub(super) fn item(&self, at: usize) -> Item {
        Item {
            key: unbias(self.keys[at]),
            value: self.value(at),
            referenced: self.is_marked(at),
        }
    }

    pub(super) fn items(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Item> + '_ {
        range.map(|at| self.item(at))
    }

    pub(super) fn last(&self) -> Item {
        self.item(self.len() - 1)
    }

    /// Number of items that begin at or before `key`.
    pub(super) fn up_to(&self, key: u32) -> usize {
        // SAFETY: the baseline needs nothing.
        unsafe { Baseline::rank(&self.keys, bias(key)) }.min(self.len())
    }

    /// Number of items that begin before `key`.
    pub(super) fn before(&self, key: u32) -> usize {
        key.checked_sub(1).map_or(0, |last| self.up_to(last))
    }
}

impl Inner {
    /// Writes an inner node into fresh memory. `children` are first block and node.
    ///
    /// # Safety
    /// The node's memory is the caller's alone.
    pub(super) unsafe fn build(node: NodePtr, children: &[(u32, NodePtr)]) {
        debug_assert!(!children.is_empty() && children.len() <= CHILDREN);
        let mut inner = Self {
            keys: [i32::MAX; KEYS],
            count: children.len() as u64,
            links: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        };
        for (key, child) in inner.keys.iter_mut().zip(children.iter().skip(1)) {
            *key = bias(child.0);
        }
        for (link, child) in inner.links.iter_mut().zip(children) {
            *link = AtomicPtr::new(child.1.as_ptr());
        }
        // SAFETY: the memory is the caller's, large enough and aligned (asserted above).
        unsafe { node.cast::<Self>().write(inner) };
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.count).map_or(CHILDREN, |n| n.min(CHILDREN))
    }

    /// Index of the child that covers `probe`, and the first block after it (biased; the largest
    /// number for the last child).
    ///
    /// # Safety
    /// The processor has the instructions of the width.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "so that it is compiled into each search"
    )]
    #[expect(
        clippy::indexing_slicing,
        reason = "clamped to the last child, and there are more keys"
    )]
    pub(super) unsafe fn child<W: Width>(&self, probe: i32) -> (usize, i32) {
        // SAFETY: as the caller says.
        let at = unsafe { W::rank(&self.keys, probe) }.min(CHILDREN - 1);
        (at, self.keys[at])
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "callers pass an index below CHILDREN"
    )]
    pub(super) fn link(&self, at: usize) -> *mut Node {
        self.links[at].load(Ordering::Acquire)
    }

    /// Puts another child in place: what is written before is seen by whoever follows the link.
    #[expect(
        clippy::indexing_slicing,
        reason = "callers pass an index below the number of children"
    )]
    pub(super) fn set_link(&self, at: usize, node: NodePtr) {
        self.links[at].store(node.as_ptr(), Ordering::Release);
    }

    /// First block of a child that is not the first.
    #[expect(
        clippy::indexing_slicing,
        reason = "callers pass an index below the number of children"
    )]
    pub(super) fn key(&self, at: usize) -> u32 {
        unbias(self.keys[at - 1])
    }
}
