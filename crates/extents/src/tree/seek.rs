//! Finding the run of a block: alone, from where the last search ended, or many at a time.
//!
//! Searches are compiled twice on x86-64, for the baseline and for AVX2, and the wider form is
//! taken where the processor has it.

use super::node::{Inner, Leaf, bias, unbias};
use super::{Root, Tree};
use crate::arena::{Node, NodePtr};
use crate::pin::{Pin, pin};
use crate::sync::{Ordering, fence};
use crate::value::Run;

/// Searches that are under way together in [`Tree::runs_at`].
pub(crate) const BATCH: usize = 16;

/// Runs `$body` in a form compiled for AVX2 if the processor has it.
macro_rules! widest {
    (fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:ident) => {
        #[inline]
        pub(super) fn $name($($arg: $type),*) $(-> $ret)? {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($arg: $type),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, asked just now.
                    return unsafe { wide($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}

widest!(fn find(root: Root, lblk: u32, mark: bool) -> Run = find_narrow);
widest!(fn find_place(root: Root, lblk: u32) -> (NodePtr, i32, usize) = find_place_narrow);
widest!(fn find_batch(root: Root, lblks: &[u32], mark: bool, runs: &mut [Run; BATCH]) = find_batch_narrow);

/// The leaf that covers `probe`, and the first block after it.
///
/// # Safety
/// The caller is pinned since before it read `root`, or is the tree's writer.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
unsafe fn descend<'a>(root: Root, probe: i32) -> (&'a Leaf, i32) {
    let mut node = root.node.as_ptr();
    let mut end = i32::MAX;
    for _ in 0..root.height {
        // SAFETY: above height 0 there are inner nodes; reachable, hence not freed while pinned.
        let inner = unsafe { &*node.cast::<Inner>() };
        let (at, next) = inner.child(probe);
        end = end.min(next);
        node = inner.link(at);
    }
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
    Run {
        start: unbias(found.start),
        end: unbias(found.end.min(leaf_end)),
        value: found.value,
        referenced,
    }
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
fn find_narrow(root: Root, lblk: u32, mark: bool) -> Run {
    let probe = bias(lblk);
    // SAFETY: every caller of `find` is pinned or is the writer.
    let (leaf, end) = unsafe { descend(root, probe) };
    run_in(leaf, end, leaf.index(probe), mark)
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that it is compiled for the caller's vector width"
)]
fn find_place_narrow(root: Root, lblk: u32) -> (NodePtr, i32, usize) {
    let probe = bias(lblk);
    // SAFETY: every caller of `find_place` is pinned or is the writer.
    let (leaf, end) = unsafe { descend(root, probe) };
    (std::ptr::NonNull::from(leaf).cast(), end, leaf.index(probe))
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
fn find_batch_narrow(root: Root, lblks: &[u32], mark: bool, runs: &mut [Run; BATCH]) {
    let lanes = lblks.len().min(BATCH);
    let mut nodes = [root.node.as_ptr(); BATCH];
    let mut ends = [i32::MAX; BATCH];
    for _ in 0..root.height {
        for lane in 0..lanes {
            // SAFETY: as in `descend`; every caller of `find_batch` is pinned.
            let inner = unsafe { &*nodes[lane].cast::<Inner>() };
            let (at, next) = inner.child(bias(lblks[lane]));
            ends[lane] = ends[lane].min(next);
            nodes[lane] = inner.link(at);
            prefetch_keys(nodes[lane]);
        }
    }
    let mut places = [0; BATCH];
    for lane in 0..lanes {
        // SAFETY: as above, and at height 0 there are leaves.
        let leaf = unsafe { &*nodes[lane].cast::<Leaf>() };
        places[lane] = leaf.index(bias(lblks[lane]));
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
    version: u64,
    leaf: NodePtr,
    leaf_end: i32,
    at: usize,
    run: Run,
}

impl Tree {
    /// The run that contains `lblk`, starting from where the last search ended.
    #[inline]
    pub(crate) fn run_from(&self, place: &mut Option<Place>, lblk: u32, mark: bool) -> Run {
        if let Some(place) = place
            && self.version.load(Ordering::Acquire) == place.version
        {
            let run = &mut place.run;
            let settled = run.referenced || !mark || !run.value.is_known();
            if run.start <= lblk && lblk < run.end && settled {
                return *run;
            }
            if let Some(run) = self.run_beside(place, lblk, mark) {
                return run;
            }
        }
        self.run_anew(place, lblk, mark)
    }

    /// In the same leaf, if the map is still as it was when the place was found.
    #[inline]
    fn run_beside(&self, place: &mut Place, lblk: u32, mark: bool) -> Option<Run> {
        let _pin = pin();
        // The version is read again under the pin: if it is still the same, the leaf was not
        // unlinked before the pin, so it is not freed during it.
        if self.version.load(Ordering::Acquire) != place.version {
            return None;
        }
        // SAFETY: not freed, as just said.
        let leaf = unsafe { place.leaf.cast::<Leaf>().as_ref() };
        let probe = bias(lblk);
        if probe >= place.leaf_end || !leaf.covers(probe) {
            return None;
        }
        let next = place.at + 1;
        let at = if leaf.holds(next, probe, place.leaf_end) {
            next
        } else {
            leaf.index(probe)
        };
        let run = run_in(leaf, place.leaf_end, at, mark);
        place.remember(at, run, mark);
        Some(run)
    }

    fn run_anew(&self, place: &mut Option<Place>, lblk: u32, mark: bool) -> Run {
        let _pin = pin();
        let version = self.version.load(Ordering::Acquire);
        let Some(root) = self.root().filter(|_| version & 1 == 0) else {
            *place = None;
            return self.run_at(lblk, mark);
        };
        let (node, leaf_end, at) = find_place(root, lblk);
        // SAFETY: found under the pin.
        let leaf = unsafe { node.cast::<Leaf>().as_ref() };
        let run = run_in(leaf, leaf_end, at, mark);
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) == version {
            let mut new = Place {
                version,
                leaf: node,
                leaf_end,
                at,
                run,
            };
            new.remember(at, run, mark);
            *place = Some(new);
        } else {
            *place = None;
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

impl Place {
    fn remember(&mut self, at: usize, run: Run, mark: bool) {
        self.at = at;
        self.run = run;
        // The next answer from here is of an entry that has been looked up, if that leaves a mark.
        self.run.referenced |= mark && run.value.is_known();
    }
}
