//! Finding the run of a block: alone, from where the last search ended, or many at a time.
//!
//! Searches are compiled twice on x86-64, for the baseline and for AVX2, and the wider form is
//! taken where the processor has it.

use super::node::{Inner, Leaf, bias, unbias};
use super::width::{Width, for_each_width};
use super::{Root, Tree};
use crate::arena::{Node, NodePtr};
use crate::pin::{Pin, pin};
use crate::sync::{Ordering, fence};
use crate::types::{Extent, Status};
use crate::value::Run;

/// Searches that are under way together in [`Tree::runs_at`].
pub(crate) const BATCH: usize = 16;

for_each_width!(
    /// The run of a block. The caller is pinned, or is the writer.
    fn find(root: Root, lblk: u32, mark: bool) -> Run = find_with
);
for_each_width!(
    /// The leaf of a block, its end and the index of the block's run. The caller is pinned.
    fn find_place(root: Root, lblk: u32) -> (NodePtr, i32, usize) = find_place_with
);
for_each_width!(
    /// The runs of up to `BATCH` blocks. The caller is pinned.
    fn find_batch(root: Root, lblks: &[u32], mark: bool, runs: &mut [Run; BATCH]) = find_batch_with
);

/// The leaf that covers `probe`, and the first block after it.
///
/// # Safety
/// The caller is pinned since before it read `root`, or is the tree's writer; the processor has
/// the instructions of the width.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
unsafe fn descend<'a, W: Width>(root: Root, probe: i32) -> (&'a Leaf, i32) {
    let mut node = root.node.as_ptr();
    let mut end = i32::MAX;
    for _ in 0..root.height {
        // SAFETY: above height 0 there are inner nodes; reachable, hence not freed while pinned.
        let inner = unsafe { &*node.cast::<Inner>() };
        // SAFETY: as the caller says.
        let (at, next) = unsafe { inner.child::<W>(probe) };
        end = end.min(next);
        node = inner.link(at);
    }
    prefetch_values(node);
    // SAFETY: at height 0 there are leaves; reachable, hence not freed while pinned.
    (unsafe { &*node.cast::<Leaf>() }, end)
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
fn run_in(leaf: &Leaf, leaf_end: i32, at: usize, mark: bool) -> Run {
    let found = leaf.found(at);
    let referenced = if mark && found.value.is_known() {
        leaf.mark(at)
    } else {
        leaf.is_marked(at)
    };
    let (start, end) = (unbias(found.start), unbias(found.end.min(leaf_end)));
    Run::new(start, end, found.value, referenced)
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
unsafe fn find_with<W: Width>(root: Root, lblk: u32, mark: bool) -> Run {
    let probe = bias(lblk);
    // SAFETY: every caller of `find` is pinned or is the writer.
    let (leaf, end) = unsafe { descend::<W>(root, probe) };
    // SAFETY: as the caller says.
    let at = unsafe { leaf.index::<W>(probe) };
    run_in(leaf, end, at, mark)
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
unsafe fn find_place_with<W: Width>(root: Root, lblk: u32) -> (NodePtr, i32, usize) {
    let probe = bias(lblk);
    // SAFETY: every caller of `find_place` is pinned or is the writer.
    let (leaf, end) = unsafe { descend::<W>(root, probe) };
    // SAFETY: as the caller says.
    let at = unsafe { leaf.index::<W>(probe) };
    (std::ptr::NonNull::from(leaf).cast(), end, at)
}

/// Level by level for all blocks, so that their cache misses overlap.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
#[expect(
    clippy::indexing_slicing,
    reason = "lanes are below BATCH, the length of each array"
)]
unsafe fn find_batch_with<W: Width>(
    root: Root,
    lblks: &[u32],
    mark: bool,
    runs: &mut [Run; BATCH],
) {
    let lanes = lblks.len().min(BATCH);
    let mut nodes = [root.node.as_ptr(); BATCH];
    let mut ends = [i32::MAX; BATCH];
    for _ in 0..root.height {
        for lane in 0..lanes {
            // SAFETY: as in `descend`; every caller of `find_batch` is pinned.
            let inner = unsafe { &*nodes[lane].cast::<Inner>() };
            // SAFETY: as the caller says.
            let (at, next) = unsafe { inner.child::<W>(bias(lblks[lane])) };
            ends[lane] = ends[lane].min(next);
            nodes[lane] = inner.link(at);
            prefetch_keys(nodes[lane]);
        }
    }
    let mut places = [0; BATCH];
    for lane in 0..lanes {
        // SAFETY: as above, and at height 0 there are leaves.
        let leaf = unsafe { &*nodes[lane].cast::<Leaf>() };
        // SAFETY: as the caller says.
        places[lane] = unsafe { leaf.index::<W>(bias(lblks[lane])) };
        leaf.prefetch(places[lane]);
    }
    for lane in 0..lanes {
        // SAFETY: as above.
        let leaf = unsafe { &*nodes[lane].cast::<Leaf>() };
        runs[lane] = run_in(leaf, ends[lane], places[lane], mark);
    }
}

/// Fetches the three lines of a node's keys.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions")]
fn prefetch_keys(node: *mut Node) {
    let line = node.cast::<u8>();
    for offset in [0, 64, 128] {
        prefetch(line.wrapping_add(offset));
    }
}

/// Fetches the lines of a leaf behind its keys, while those are fetched and compared.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions")]
pub(super) fn prefetch_values(node: *mut Node) {
    let line = node.cast::<u8>();
    for offset in [192, 256, 320, 384, 448] {
        prefetch(line.wrapping_add(offset));
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "one instruction")]
pub(super) fn prefetch(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, for any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

pub(super) fn run_at(root: Root, _: &Pin, lblk: u32, mark: bool) -> Run {
    find(root, lblk, mark)
}

/// Where a search ended, to go on from there as long as the map has not changed.
pub(crate) struct Place {
    /// The tree's version then; odd for nowhere, since nothing is found during a publication.
    version: u64,
    /// The last answer, marked, if something is known there; else of no length.
    extent: Extent,
    leaf: NodePtr,
    leaf_end: i32,
    at: usize,
}

impl Place {
    pub(crate) fn nowhere() -> Self {
        Self {
            version: 1,
            extent: Extent {
                lblk: 0,
                len: 0,
                status: Status::Hole,
                referenced: false,
            },
            leaf: NodePtr::dangling(),
            leaf_end: 0,
            at: 0,
        }
    }

    fn remember(&mut self, at: usize, run: Run) {
        self.at = at;
        // The next answer from here is of an entry that has been looked up.
        match run.extent() {
            Some(extent) => {
                self.extent = Extent {
                    referenced: true,
                    ..extent
                };
            }
            None => self.extent.len = 0,
        }
    }
}

impl Tree {
    /// The answer at `place` if it holds for `lblk`, too, and still stands.
    #[inline]
    pub(crate) fn same_run(&self, place: &Place, lblk: u32) -> Option<Extent> {
        let inside = lblk.wrapping_sub(place.extent.lblk) < place.extent.len;
        let stands = self.version.load(Ordering::Acquire) == place.version;
        (inside && stands).then_some(place.extent)
    }

    /// The run that contains `lblk`, marked, starting from where the last search ended.
    pub(crate) fn run_from(&self, place: &mut Place, lblk: u32) -> Run {
        let pin = pin();
        // The version is read under the pin: if it is still that of the place, the leaf was not
        // unlinked before the pin, so it is not freed during it.
        if self.version.load(Ordering::Acquire) == place.version {
            // SAFETY: not freed, as just said.
            let leaf = unsafe { place.leaf.cast::<Leaf>().as_ref() };
            let probe = bias(lblk);
            let next = place.at + 1;
            let at = if leaf.holds(next, probe, place.leaf_end) {
                Some(next)
            } else if probe < place.leaf_end && leaf.covers(probe) {
                Some(leaf.up_to(lblk).saturating_sub(1))
            } else {
                None
            };
            if let Some(at) = at {
                let run = run_in(leaf, place.leaf_end, at, true);
                place.remember(at, run);
                return run;
            }
        }
        self.run_anew(place, &pin, lblk)
    }

    fn run_anew(&self, place: &mut Place, pin: &Pin, lblk: u32) -> Run {
        let version = self.version.load(Ordering::Acquire);
        let Some(root) = self.root().filter(|_| version & 1 == 0) else {
            *place = Place::nowhere();
            return self.pinned_run_at(pin, lblk, true);
        };
        let (node, leaf_end, at) = find_place(root, lblk);
        // SAFETY: found under the pin.
        let leaf = unsafe { node.cast::<Leaf>().as_ref() };
        let run = run_in(leaf, leaf_end, at, true);
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) == version {
            place.version = version;
            place.leaf = node;
            place.leaf_end = leaf_end;
            place.remember(at, run);
        } else {
            *place = Place::nowhere();
        }
        run
    }

    /// The runs that contain up to [`BATCH`] blocks.
    pub(crate) fn runs_at(&self, pin: &Pin, lblks: &[u32], mark: bool, runs: &mut [Run; BATCH]) {
        match self.root() {
            Some(root) => find_batch(root, lblks, mark, runs),
            None => {
                for (run, &lblk) in runs.iter_mut().zip(lblks) {
                    *run = self.pinned_run_at(pin, lblk, mark);
                }
            }
        }
    }
}
