//! What operations and answers teach about an inode's blocks.

use cairn_extents::{Extent, MAX_BLOCK, Status};

use super::blocks::{Blocks, Known, Mark, Segment, State};

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Agrees,
    Unknown,
    Contradicts,
}

impl Blocks {
    /// The range became an entry.
    pub(super) fn insert(&mut self, lblk: u32, len: u32, status: Status) {
        if len == 0 {
            return;
        }
        let end = lblk + len;
        self.set(
            lblk,
            end,
            State::Entry(Known {
                status,
                mark: Mark::Clear,
                left_open: false,
                right_open: false,
            }),
        );
        self.merge(lblk, end);
    }

    /// Joins the entry on `start..end` with its neighbours, or opens its edges to unknown ones.
    fn merge(&mut self, start: u32, end: u32) {
        let mut start = start;
        if let Some(l) = start.checked_sub(1) {
            let left = self.at(l);
            match left.state {
                State::Unknown => self.update(start, |known| {
                    known.left_open = true;
                    known.mark = known.mark.weakened();
                }),
                State::Entry(_) if self.join_entries(left, self.at(start)) => start = left.start,
                State::Vacant | State::Entry(_) => {}
            }
        }
        if end == MAX_BLOCK {
            return;
        }
        let right = self.at(end);
        match right.state {
            State::Unknown => self.update(start, |known| {
                known.right_open = true;
                known.mark = known.mark.weakened();
            }),
            State::Entry(_) => {
                self.join_entries(self.at(start), right);
            }
            State::Vacant => {}
        }
    }

    fn join_entries(&mut self, left: Segment, right: Segment) -> bool {
        let (State::Entry(a), State::Entry(b)) = (left.state, right.state) else {
            return false;
        };
        if a.status.advanced(left.end - left.start) != b.status {
            return false;
        }
        self.swallow(right.start);
        self.update(left.start, |known| {
            known.right_open = b.right_open;
            known.mark = a.mark.or(b.mark);
        });
        true
    }

    /// The range is not known to the kernel any more.
    pub(super) fn remove(&mut self, lblk: u32, len: u32) {
        self.set(lblk, lblk.saturating_add(len), State::Vacant);
    }

    /// The range was read from disk; whether it went in depends on what was known.
    pub(super) fn cache(&mut self, lblk: u32, len: u32, status: Status, overwrite: bool) {
        if len == 0 {
            return;
        }
        let end = lblk + len;
        let met = self.over(lblk, end);
        let is_entry = |s: &Segment| matches!(s.state, State::Entry(_));
        if met.iter().all(|s| s.state == State::Vacant) {
            self.insert(lblk, len, status);
        } else if met.iter().any(is_entry) {
            let covered = met.len() == 1;
            if overwrite && !covered {
                self.doubt(lblk, end);
            }
        } else {
            self.doubt(lblk, end);
        }
    }

    /// The range may hold anything now, except where blocks are delayed; entries that border it
    /// may have merged with it.
    fn doubt(&mut self, lblk: u32, end: u32) {
        for segment in self.over(lblk, end) {
            let delayed = matches!(segment.state, State::Entry(known) if known.status.must_keep());
            if !delayed {
                self.set(
                    segment.start.max(lblk),
                    segment.end.min(end),
                    State::Unknown,
                );
            }
        }
        for segment in self.over(lblk.saturating_sub(1), end.saturating_add(1)) {
            let unknown = |at: Option<u32>| {
                at.is_some_and(|at| at < MAX_BLOCK && self.at(at).state == State::Unknown)
            };
            let left = unknown(segment.start.checked_sub(1));
            let right = unknown(Some(segment.end));
            self.update(segment.start, |known| {
                known.left_open |= left;
                known.right_open |= right;
                if left || right {
                    known.mark = known.mark.weakened();
                }
            });
        }
    }

    /// The cache was cleared on request.
    pub(super) fn clear(&mut self) {
        self.forget_entries(State::Vacant);
    }

    /// The shrinker passed; with `freed` it took something somewhere.
    pub(super) fn shrunk(&mut self, freed: bool) {
        if freed {
            self.forget_entries(State::Unknown);
        }
        self.update_all(|known| known.mark = Mark::NotKnown);
    }

    fn forget_entries(&mut self, state: State) {
        for segment in self.over(0, MAX_BLOCK) {
            if matches!(segment.state, State::Entry(known) if !known.status.must_keep()) {
                self.set(segment.start, segment.end, state);
            }
        }
    }

    /// The kernel found `e` when asked for `lblk`.
    pub(super) fn learn_hit(&mut self, lblk: u32, e: Extent, compare_mark: bool) -> Verdict {
        let verdict = if self.at(lblk).state == State::Unknown {
            Verdict::Unknown
        } else {
            Verdict::Agrees
        };
        let met = self.over(e.lblk, e.end());
        if !e.contains(lblk) || !met.iter().all(|s| fits(s, e)) {
            return Verdict::Contradicts;
        }
        let mut mark = Mark::Clear;
        for segment in &met {
            mark = mark.or(match segment.state {
                State::Entry(known) => known.mark,
                State::Unknown | State::Vacant => Mark::NotKnown,
            });
        }
        // With an unknown part in it the answer grew: then only a set mark is certain.
        let wrong = match mark {
            Mark::Set => !e.referenced,
            Mark::Clear => met.len() == 1 && e.referenced,
            Mark::NotKnown => false,
        };
        if compare_mark && wrong {
            return Verdict::Contradicts;
        }
        self.put(e, mark);
        verdict
    }

    /// The kernel found nothing at `lblk`.
    pub(super) fn learn_miss(&mut self, lblk: u32) -> Verdict {
        let verdict = match self.at(lblk).state {
            State::Unknown => Verdict::Unknown,
            State::Vacant => Verdict::Agrees,
            State::Entry(_) => Verdict::Contradicts,
        };
        if verdict != Verdict::Agrees {
            self.remove(lblk, 1);
        }
        verdict
    }

    /// Takes the kernel's view after a contradiction.
    pub(super) fn adopt(&mut self, e: Extent) {
        self.put(e, Mark::NotKnown);
    }

    /// A look-up marks what it finds.
    pub(super) fn touch(&mut self, lblk: u32) {
        let start = self.at(lblk).start;
        self.update(start, |known| known.mark = Mark::Set);
    }

    fn put(&mut self, e: Extent, mark: Mark) {
        self.set(
            e.lblk,
            e.end(),
            State::Entry(Known {
                status: e.status,
                mark,
                left_open: false,
                right_open: false,
            }),
        );
    }
}

/// Whether a segment may be part of entry `e`.
fn fits(segment: &Segment, e: Extent) -> bool {
    match segment.state {
        State::Unknown => true,
        State::Vacant => false,
        State::Entry(known) => {
            let inside = segment.start >= e.lblk && segment.end <= e.end();
            inside
                && e.status.advanced(segment.start - e.lblk) == known.status
                && (known.left_open || segment.start == e.lblk)
                && (known.right_open || segment.end == e.end())
        }
    }
}
