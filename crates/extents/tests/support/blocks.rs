//! The plainest model of a map: what is known of each block, one by one.
//!
//! Entries are not kept at all: they are the longest runs of blocks that continue each other.

use cairn_extents::{Cached, Extent, Generation, Match, Rules, Status};

/// Status of this block alone, and whether its run was looked up.
type Block = Option<(Status, bool)>;

#[derive(Clone)]
pub(crate) struct Blocks {
    rules: Rules,
    all: Vec<Block>,
    pub(crate) seq: u64,
}

impl Blocks {
    pub(crate) fn new(rules: Rules, blocks: u32) -> Self {
        Self {
            rules,
            all: vec![None; blocks as usize],
            seq: 0,
        }
    }

    fn get(&self, at: u32) -> Block {
        self.all.get(at as usize).copied().flatten()
    }

    /// Whether block `at + 1` goes on where block `at` ends.
    fn continues(&self, at: u32) -> bool {
        match (self.get(at), self.get(at + 1)) {
            (Some((a, _)), Some((b, _))) => a.advanced(1) == b,
            _ => false,
        }
    }

    /// The entry that contains `at`.
    pub(crate) fn entry(&self, at: u32) -> Option<Extent> {
        self.get(at)?;
        let mut first = at;
        while first > 0 && self.continues(first - 1) {
            first -= 1;
        }
        let mut last = at;
        while self.continues(last) {
            last += 1;
        }
        let (status, _) = self.get(first)?;
        Some(Extent {
            lblk: first,
            len: last - first + 1,
            status,
            referenced: (first..=last).any(|b| self.get(b).is_some_and(|b| b.1)),
        })
    }

    fn mark(&mut self, e: Extent, marked: bool) {
        for at in e.lblk..e.end() {
            if let Some(block) = &mut self.all[at as usize] {
                block.1 = marked;
            }
        }
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> Vec<Extent> {
        let mut entries: Vec<Extent> = Vec::new();
        let mut at = 0;
        while (at as usize) < self.all.len() {
            match self.entry(at) {
                Some(e) => {
                    at = e.end();
                    entries.push(e);
                }
                None => at += 1,
            }
        }
        entries
    }

    fn set(&mut self, lblk: u32, len: u32, status: Option<Status>) {
        for i in 0..len {
            let block = status.map(|s| (s.advanced(i), false));
            self.all[(lblk + i) as usize] = block;
        }
        // A run that grew together was looked up if a part of it was.
        if let Some(e) = self.entry(lblk)
            && e.referenced
        {
            self.mark(e, true);
        }
    }

    pub(crate) fn insert(&mut self, lblk: u32, len: u32, status: Status) {
        if len > 0 {
            self.set(lblk, len, Some(status));
            self.seq += 1;
        }
    }

    pub(crate) fn remove(&mut self, lblk: u32, len: u32) {
        if len > 0 {
            self.set(lblk, len, None);
            self.seq += 1;
        }
    }

    pub(crate) fn cache(&mut self, lblk: u32, len: u32, status: Status) -> Cached {
        let range = lblk..lblk + len;
        let known: Vec<u32> = range.clone().filter(|&b| self.get(b).is_some()).collect();
        let same = range
            .clone()
            .all(|b| self.get(b).map(|x| x.0) == Some(status.advanced(b - lblk)));
        if same {
            return Cached::Covered;
        }
        let Some(&first) = known.first() else {
            self.set(lblk, len, Some(status));
            return Cached::Inserted { remapped: false };
        };
        if self.rules.generation == Generation::VacantOnly {
            return Cached::Ignored;
        }
        let kind = |b: u32| self.get(b).map(|x| x.0.kind());
        if let Some(e) = self.entry(first)
            && e.lblk <= lblk
            && e.end() >= lblk + len
            && e.status.kind() == status.kind()
        {
            return Cached::Conflict(e);
        }
        let other = known
            .iter()
            .copied()
            .find(|&b| kind(b) != Some(status.kind()));
        if let Some(other) = other {
            let e = self.entry(other).expect("it is known");
            if self.rules.upstream_conflicts && e.lblk > lblk {
                self.set(lblk, e.lblk - lblk, None);
            }
            return if status == Status::Hole && e.status == Status::Delayed {
                Cached::HoleOverDelayed
            } else {
                Cached::Conflict(e)
            };
        }
        let remapped = known
            .iter()
            .any(|&b| self.get(b).map(|x| x.0) != Some(status.advanced(b - lblk)));
        self.set(lblk, len, Some(status));
        Cached::Inserted { remapped }
    }

    pub(crate) fn lookup(&mut self, lblk: u32) -> Option<Extent> {
        let e = self.entry(lblk)?;
        self.mark(e, true);
        Some(e)
    }

    pub(crate) fn clear(&mut self) {
        for block in &mut self.all {
            block.take_if(|b| !b.0.must_keep());
        }
    }

    pub(crate) fn find(&self, wanted: Match, lblk: u32, last: u32) -> Option<Extent> {
        (lblk..=last)
            .filter_map(|b| self.entry(b))
            .find(|e| wanted.accepts(e.status))
    }

    pub(crate) fn hole_at(&self, lblk: u32) -> u32 {
        (lblk..self.all.len() as u32)
            .find(|&b| self.get(b).is_some_and(|x| x.0 != Status::Hole))
            .map_or(u32::MAX, |b| b)
            - lblk
    }
}
