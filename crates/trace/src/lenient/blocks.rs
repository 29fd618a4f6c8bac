//! One inode's blocks: unknown, vacant, or part of a known entry with open or closed edges.

use std::collections::BTreeMap;

use cairn_extents::{Extent, MAX_BLOCK, Status};

/// Whether an entry is marked referenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Set,
    Clear,
    NotKnown,
}

impl Mark {
    /// The mark of an entry merged from two.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Set, _) | (_, Self::Set) => Self::Set,
            (Self::Clear, Self::Clear) => Self::Clear,
            _ => Self::NotKnown,
        }
    }

    /// What is left of it once the entry may have merged with an unknown one.
    pub(super) fn weakened(self) -> Self {
        match self {
            Self::Set => Self::Set,
            Self::Clear | Self::NotKnown => Self::NotKnown,
        }
    }
}

/// An entry. An open edge borders unknown blocks that it may have merged with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) status: Status,
    pub(super) mark: Mark,
    pub(super) left_open: bool,
    pub(super) right_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    Vacant,
    Entry(Known),
}

/// A run of blocks in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u32,
    /// Exclusive.
    pub(super) end: u32,
    pub(super) state: State,
}

/// Segments that tile the whole block space, keyed by their start.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    segments: BTreeMap<u32, (u32, State)>,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            segments: BTreeMap::from([(0, (MAX_BLOCK, State::Unknown))]),
        }
    }
}

impl Blocks {
    /// The segment that contains `lblk`; unknown nothing past the last block.
    pub(super) fn at(&self, lblk: u32) -> Segment {
        self.segments
            .range(..=lblk)
            .next_back()
            .map(|(&start, &(end, state))| Segment { start, end, state })
            .filter(|s| lblk < s.end)
            .unwrap_or(Segment {
                start: MAX_BLOCK,
                end: MAX_BLOCK,
                state: State::Vacant,
            })
    }

    /// Segments that intersect `start..end`.
    pub(super) fn over(&self, start: u32, end: u32) -> Vec<Segment> {
        let first = self.at(start).start;
        self.segments
            .range(first..end.max(first))
            .map(|(&start, &(end, state))| Segment { start, end, state })
            .collect()
    }

    /// The entry that contains `lblk`, as far as it is known.
    pub(super) fn known(&self, lblk: u32) -> Option<Extent> {
        let segment = self.at(lblk);
        match segment.state {
            State::Entry(known) => Some(Extent {
                lblk: segment.start,
                len: segment.end - segment.start,
                status: known.status,
                referenced: known.mark == Mark::Set,
            }),
            State::Unknown | State::Vacant => None,
        }
    }

    /// Entries, and those of them that are not delayed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let mut counts = (0, 0);
        for (_, state) in self.segments.values() {
            if let State::Entry(known) = state {
                counts.0 += 1;
                counts.1 += u64::from(!known.status.must_keep());
            }
        }
        counts
    }

    /// Puts `state` on `start..end`; entries that reach out are cut, with closed edges at the cut.
    pub(super) fn set(&mut self, start: u32, end: u32, state: State) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        let inside: Vec<u32> = self.segments.range(start..end).map(|(&s, _)| s).collect();
        for key in inside {
            self.segments.remove(&key);
        }
        self.segments.insert(start, (end, state));
        self.close_right_edge(start);
        self.close_left_edge(end);
        if !matches!(state, State::Entry(_)) {
            self.join(start);
            self.join(end);
        }
    }

    /// Changes the state of the segment that starts at `start`.
    pub(super) fn update(&mut self, start: u32, change: impl FnOnce(&mut Known)) {
        if let Some((_, State::Entry(known))) = self.segments.get_mut(&start) {
            change(known);
        }
    }

    /// Changes every entry.
    pub(super) fn update_all(&mut self, mut change: impl FnMut(&mut Known)) {
        for (_, state) in self.segments.values_mut() {
            if let State::Entry(known) = state {
                change(known);
            }
        }
    }

    /// Removes the segment that starts at `start` and lets its left neighbour reach to its end.
    pub(super) fn swallow(&mut self, start: u32) {
        let left = start.checked_sub(1).map(|l| self.at(l).start);
        if let (Some(left), Some((end, _))) = (left, self.segments.remove(&start))
            && let Some(segment) = self.segments.get_mut(&left)
        {
            segment.0 = end;
        }
    }

    fn split(&mut self, at: u32) {
        let segment = self.at(at);
        if segment.start >= at || at >= segment.end {
            return;
        }
        let (mut left, mut right) = (segment.state, segment.state);
        if let State::Entry(known) = &mut left {
            known.right_open = false;
        }
        if let State::Entry(known) = &mut right {
            known.left_open = false;
            known.status = known.status.advanced(at - segment.start);
        }
        self.segments.insert(segment.start, (at, left));
        self.segments.insert(at, (segment.end, right));
    }

    fn close_right_edge(&mut self, before: u32) {
        if let Some(l) = before.checked_sub(1) {
            let start = self.at(l).start;
            self.update(start, |known| known.right_open = false);
        }
    }

    fn close_left_edge(&mut self, at: u32) {
        self.update(at, |known| known.left_open = false);
    }

    /// Joins the segment that starts at `at` with an equal one before it, unless they are entries.
    fn join(&mut self, at: u32) {
        let Some(l) = at.checked_sub(1) else { return };
        let (left, right) = (self.at(l).state, self.at(at).state);
        if left == right && !matches!(left, State::Entry(_)) && self.at(at).start == at {
            self.swallow(at);
        }
    }
}
