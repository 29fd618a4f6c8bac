//! One face for all maps: find the run of a block, override a range, take a range out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

use cairn_extents::{Config, CounterMode, ExtentCache, ExtentMap, Status};
use nodit::interval::ii;
use nodit::{Interval, NoditMap};
use rangemap::RangeMap;
use thread_local::ThreadLocal;

use crate::workload::Run;

/// First block, end, and the value, added up so that nothing is optimised away.
pub(crate) type Answer = Option<u64>;

pub(crate) trait Contender: Send + Sync + 'static {
    fn find(&self, lblk: u32) -> Answer;
    fn set(&self, run: Run);
    fn cut(&self, lblk: u32, end: u32);
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "what every look-up returns, found or not"
)]
fn answer(start: u32, end: u32, delta: u64, written: bool) -> Answer {
    Some(u64::from(start) + u64::from(end) + delta + u64::from(written))
}

/// Ours, all included: counted, and marked as looked up.
pub(crate) struct Cairn {
    pub(crate) cache: ExtentCache,
    pub(crate) map: Arc<ExtentMap>,
}

impl Cairn {
    pub(crate) fn new(huge_pages: bool) -> Self {
        let cache = ExtentCache::new(Config::new().with_huge_pages(huge_pages));
        cache.set_counter_mode(CounterMode::PerCpu);
        Self {
            map: cache.map(1),
            cache,
        }
    }
}

pub(crate) fn status(run: Run) -> Status {
    if run.written {
        Status::Written(run.physical)
    } else {
        Status::Unwritten(run.physical)
    }
}

pub(crate) fn extent(e: cairn_extents::Extent) -> Answer {
    let (Status::Written(p) | Status::Unwritten(p)) = e.status else {
        return None;
    };
    let delta = p.wrapping_sub(u64::from(e.lblk));
    answer(
        e.lblk,
        e.end(),
        delta,
        matches!(e.status, Status::Written(_)),
    )
}

impl Contender for Cairn {
    fn find(&self, lblk: u32) -> Answer {
        extent(self.map.lookup(lblk)?.extent)
    }

    fn set(&self, run: Run) {
        let _ = self
            .map
            .insert(run.lblk, run.len, status(run))
            .expect("legal and memory enough");
    }

    fn cut(&self, lblk: u32, end: u32) {
        let _ = self.map.remove(lblk, end - lblk).expect("memory enough");
    }
}

/// A lock around a map for one thread.
pub(crate) struct Std<M>(pub(crate) RwLock<M>);
pub(crate) struct ParkingLot<M>(pub(crate) parking_lot::RwLock<M>);

/// A map for one thread.
pub(crate) trait Plain: Default + Send + Sync + 'static {
    fn find(&self, lblk: u32) -> Answer;
    fn set(&mut self, run: Run);
    fn cut(&mut self, lblk: u32, end: u32);
}

impl<M: Plain> Contender for Std<M> {
    fn find(&self, lblk: u32) -> Answer {
        self.0.read().expect("no panics").find(lblk)
    }

    fn set(&self, run: Run) {
        self.0.write().expect("no panics").set(run);
    }

    fn cut(&self, lblk: u32, end: u32) {
        self.0.write().expect("no panics").cut(lblk, end);
    }
}

impl<M: Plain> Contender for ParkingLot<M> {
    fn find(&self, lblk: u32) -> Answer {
        self.0.read().find(lblk)
    }

    fn set(&self, run: Run) {
        self.0.write().set(run);
    }

    fn cut(&self, lblk: u32, end: u32) {
        self.0.write().cut(lblk, end);
    }
}

impl Plain for RangeMap<u32, (u64, bool)> {
    fn find(&self, lblk: u32) -> Answer {
        let (range, &(delta, written)) = self.get_key_value(&lblk)?;
        answer(range.start, range.end, delta, written)
    }

    fn set(&mut self, run: Run) {
        self.insert(run.lblk..run.lblk + run.len, run.value());
    }

    fn cut(&mut self, lblk: u32, end: u32) {
        self.remove(lblk..end);
    }
}

pub(crate) type Nodit = NoditMap<u32, Interval<u32>, (u64, bool)>;

impl Plain for Nodit {
    fn find(&self, lblk: u32) -> Answer {
        let (interval, &(delta, written)) = self.get_key_value_at_point(&lblk).ok()?;
        answer(*interval.start(), interval.end() + 1, delta, written)
    }

    fn set(&mut self, run: Run) {
        let interval = ii(run.lblk, run.lblk + run.len - 1);
        drop(NoditMap::cut(self, &interval));
        self.insert_merge_touching_if_values_equal(interval, run.value())
            .expect("it was cut free");
    }

    fn cut(&mut self, lblk: u32, end: u32) {
        drop(NoditMap::cut(self, &ii(lblk, end - 1)));
    }
}

/// What one writes by hand: start to end and value, cut and merged at the edges.
#[derive(Default)]
pub(crate) struct ByHand(BTreeMap<u32, (u32, (u64, bool))>);

impl Plain for ByHand {
    fn find(&self, lblk: u32) -> Answer {
        let (&start, &(end, (delta, written))) = self.0.range(..=lblk).next_back()?;
        (lblk < end).then(|| answer(start, end, delta, written))?
    }

    fn set(&mut self, run: Run) {
        let (mut start, mut end) = (run.lblk, run.lblk + run.len);
        Plain::cut(self, start, end);
        let left = self.0.range(..start).next_back().map(|(&s, &v)| (s, v));
        if let Some((s, (e, value))) = left
            && e == start
            && value == run.value()
        {
            self.0.remove(&s);
            start = s;
        }
        if let Some(&(e, value)) = self.0.get(&end)
            && value == run.value()
        {
            self.0.remove(&end);
            end = e;
        }
        self.0.insert(start, (end, run.value()));
    }

    fn cut(&mut self, lblk: u32, end: u32) {
        let left = self.0.range_mut(..lblk).next_back();
        if let Some((_, (e, value))) = left
            && *e > lblk
        {
            let (old, value) = (*e, *value);
            *e = lblk;
            if old > end {
                self.0.insert(end, (old, value));
                return;
            }
        }
        while let Some((&s, &(e, value))) = self.0.range(lblk..end).next() {
            self.0.remove(&s);
            if e > end {
                self.0.insert(end, (e, value));
            }
        }
    }
}

/// Concurrent maps from start to end and value. Only asked: a change of a range would be several
/// changes, which readers may see half done.
pub(crate) struct SccTree(scc::TreeIndex<u32, (u32, (u64, bool))>);

impl SccTree {
    pub(crate) fn of(runs: &[Run]) -> Self {
        let tree = scc::TreeIndex::new();
        for run in runs {
            let _ = tree.insert_sync(run.lblk, (run.lblk + run.len, run.value()));
        }
        Self(tree)
    }

    pub(crate) fn find(&self, lblk: u32) -> Answer {
        let guard = scc::Guard::new();
        let (&start, &(end, (delta, written))) = self.0.range(..=lblk, &guard).next_back()?;
        (lblk < end).then(|| answer(start, end, delta, written))?
    }
}

type Entries = concurrent_map::ConcurrentMap<u32, (u32, (u64, bool))>;

/// This one wants a handle for each thread.
pub(crate) struct Concurrent {
    handle: Mutex<Entries>,
    handles: ThreadLocal<Entries>,
}

impl Concurrent {
    pub(crate) fn of(runs: &[Run]) -> Self {
        let entries = Entries::new();
        for run in runs {
            entries.insert(run.lblk, (run.lblk + run.len, run.value()));
        }
        Self {
            handle: Mutex::new(entries),
            handles: ThreadLocal::new(),
        }
    }

    pub(crate) fn find(&self, lblk: u32) -> Answer {
        let entries = self
            .handles
            .get_or(|| self.handle.lock().expect("no panics").clone());
        let (start, (end, (delta, written))) = entries.get_lte(&lblk)?;
        (lblk < end).then(|| answer(start, end, delta, written))?
    }
}
