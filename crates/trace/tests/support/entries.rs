//! A cache over plain lists of entries, written for these tests: right, or with one fault.

use std::collections::BTreeMap;

use cairn_extents::{Averages, Error, Extent, Generation, Info, Largest, Rules, Status};
use cairn_trace::{Model, Shrunk};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    CacheAlwaysOverwrites,
    CacheNeverInserts,
    NoLeftMerge,
    NoRightMerge,
    NoThirdMerge,
    MergesAnyBlock,
    MergesAnyType,
    HolesNotMerged,
    DelayedNotMerged,
    MarkLostOnTailSplit,
    MarkLostOnHeadTrim,
    MarkNotKeptByThirdMerge,
    LookupMarksNothing,
    BlockNotAdvancedOnSplit,
    RightMergeKeepsOldBlock,
    ShrinkerIgnoresMark,
    ShrinkerTakesDelayed,
    NoRoundRobin,
    NoResumePoint,
    BudgetOffByOne,
    RemovesOneBlockShort,
}

#[derive(Default)]
struct File {
    entries: Vec<Extent>,
    resume: u32,
    precached: bool,
}

pub(crate) struct Entries {
    fault: Fault,
    generation: Generation,
    files: BTreeMap<u64, File>,
    list: Vec<u64>,
    hits: u64,
    misses: u64,
    freed_average: u64,
}

impl Entries {
    pub(crate) fn new(rules: Rules, fault: Fault) -> Self {
        Self {
            fault,
            generation: rules.generation,
            files: BTreeMap::new(),
            list: Vec::new(),
            hits: 0,
            misses: 0,
            freed_average: 0,
        }
    }

    fn change(&mut self, ino: u64, run: impl FnOnce(&mut File, Fault)) {
        run(self.files.entry(ino).or_default(), self.fault);
        let listed = reclaimable(&self.files[&ino]) > 0;
        match (self.list.iter().position(|&i| i == ino), listed) {
            (None, true) => self.list.push(ino),
            (Some(at), false) => drop(self.list.remove(at)),
            _ => {}
        }
    }
}

fn reclaimable(file: &File) -> usize {
    file.entries
        .iter()
        .filter(|e| !e.status.must_keep())
        .count()
}

impl File {
    fn find(&self, lblk: u32) -> Option<usize> {
        self.entries.iter().position(|e| e.contains(lblk))
    }

    fn cut(&mut self, lblk: u32, end: u32, fault: Fault) {
        let mut kept = Vec::new();
        for e in self.entries.drain(..) {
            if e.end() <= lblk || e.lblk >= end {
                kept.push(e);
                continue;
            }
            if e.lblk < lblk {
                kept.push(Extent {
                    len: lblk - e.lblk,
                    ..e
                });
            }
            if e.end() > end {
                let split = e.lblk < lblk;
                let by = match fault {
                    Fault::BlockNotAdvancedOnSplit => 0,
                    _ => end - e.lblk,
                };
                let lost = match fault {
                    Fault::MarkLostOnTailSplit => split,
                    Fault::MarkLostOnHeadTrim => !split,
                    _ => false,
                };
                kept.push(Extent {
                    lblk: end,
                    len: e.end() - end,
                    status: e.status.advanced(by),
                    referenced: e.referenced && !lost,
                });
            }
        }
        self.entries = kept;
    }

    fn put(&mut self, new: Extent, fault: Fault) {
        let at = self.entries.partition_point(|e| e.lblk < new.lblk);
        self.entries.insert(at, new);
        let mut at = at;
        let left = at > 0 && mergeable(&self.entries[at - 1], &self.entries[at], fault);
        if left && fault != Fault::NoLeftMerge {
            let new = self.entries.remove(at);
            at -= 1;
            self.entries[at].len += new.len;
        }
        let joins_both = left && fault != Fault::NoLeftMerge;
        let right = at + 1 < self.entries.len()
            && mergeable(&self.entries[at], &self.entries[at + 1], fault);
        let refused = match fault {
            Fault::NoRightMerge => true,
            Fault::NoThirdMerge => joins_both,
            _ => false,
        };
        if right && !refused {
            let other = self.entries.remove(at + 1);
            let e = &mut self.entries[at];
            if fault == Fault::RightMergeKeepsOldBlock && !joins_both {
                e.status = other.status;
            }
            e.len += other.len;
            if !(fault == Fault::MarkNotKeptByThirdMerge && joins_both) {
                e.referenced |= other.referenced;
            }
        }
    }

    fn insert(&mut self, lblk: u32, len: u32, status: Status, fault: Fault) {
        self.cut(lblk, lblk + len, fault);
        self.put(
            Extent {
                lblk,
                len,
                status,
                referenced: false,
            },
            fault,
        );
    }

    /// One way from the resume point to `end`; whether it was gone to the end.
    fn leg(&mut self, end: u32, budget: &mut i64, freed: &mut u32, fault: Fault) -> bool {
        let mut at = self
            .entries
            .partition_point(|e| u64::from(e.lblk) + u64::from(e.len) <= u64::from(self.resume));
        while at < self.entries.len() {
            let e = self.entries[at];
            if *budget <= 0 {
                self.resume = e.lblk;
                return false;
            }
            if e.lblk > end {
                self.resume = end + 1;
                return true;
            }
            *budget -= 1;
            let keep = e.status.must_keep() && fault != Fault::ShrinkerTakesDelayed;
            let marked = e.referenced && fault != Fault::ShrinkerIgnoresMark;
            if keep {
                at += 1;
            } else if marked {
                self.entries[at].referenced = false;
                at += 1;
            } else {
                self.entries.remove(at);
                *freed += 1;
            }
        }
        self.resume = 0;
        true
    }

    fn reclaim(&mut self, budget: &mut i64, fault: Fault) -> u32 {
        if fault == Fault::NoResumePoint {
            self.resume = 0;
        }
        let start = self.resume;
        let mut freed = 0;
        if self.leg(u32::MAX, budget, &mut freed, fault) && start != 0 {
            self.leg(start - 1, budget, &mut freed, fault);
        }
        freed
    }
}

fn mergeable(a: &Extent, b: &Extent, fault: Fault) -> bool {
    let (ka, kb) = (a.status.kind(), b.status.kind());
    if a.end() != b.lblk || (ka != kb && fault != Fault::MergesAnyType) {
        return false;
    }
    match a.status {
        Status::Hole => fault != Fault::HolesNotMerged,
        Status::Delayed => fault != Fault::DelayedNotMerged,
        _ => fault == Fault::MergesAnyBlock || ka != kb || a.status.advanced(a.len) == b.status,
    }
}

impl Model for Entries {
    fn insert(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error> {
        if len > 0 {
            self.change(ino, |file, fault| file.insert(lblk, len, status, fault));
        }
        Ok(())
    }

    fn insert_delayed(
        &mut self,
        ino: u64,
        lblk: u32,
        len: u32,
        _: bool,
        _: bool,
    ) -> Result<(), Error> {
        self.insert(ino, lblk, len, Status::Delayed)
    }

    fn cache(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error> {
        assert_eq!(
            self.generation,
            Generation::VacantOnly,
            "all this model knows"
        );
        if len == 0 || self.fault == Fault::CacheNeverInserts {
            return Ok(());
        }
        self.change(ino, |file, fault| {
            let end = lblk + len;
            let vacant = file
                .entries
                .iter()
                .all(|e| e.end() <= lblk || e.lblk >= end);
            if vacant || fault == Fault::CacheAlwaysOverwrites {
                file.insert(lblk, len, status, fault);
            }
        });
        Ok(())
    }

    fn remove(&mut self, ino: u64, lblk: u32, len: u32) -> Result<(), Error> {
        let short = u32::from(self.fault == Fault::RemovesOneBlockShort && len > 1);
        let len = len - short;
        self.change(ino, |file, fault| file.cut(lblk, lblk + len, fault));
        Ok(())
    }

    fn lookup(&mut self, ino: u64, lblk: u32) -> Option<Extent> {
        let found = self.containing(ino, lblk);
        match found {
            Some(_) => self.hits += 1,
            None => self.misses += 1,
        }
        if self.fault != Fault::LookupMarksNothing {
            self.touch(ino, lblk);
        }
        found
    }

    fn containing(&mut self, ino: u64, lblk: u32) -> Option<Extent> {
        let file = self.files.get(&ino)?;
        file.find(lblk).map(|at| file.entries[at])
    }

    fn touch(&mut self, ino: u64, lblk: u32) {
        if let Some(file) = self.files.get_mut(&ino)
            && let Some(at) = file.find(lblk)
        {
            file.entries[at].referenced = true;
        }
    }

    fn clear(&mut self, ino: u64) {
        self.change(ino, |file, _| {
            file.entries.retain(|e| e.status.must_keep());
            file.precached = false;
        });
    }

    fn precache(&mut self, ino: u64) {
        self.files.entry(ino).or_default().precached = true;
    }

    fn shrink(&mut self, budget: u32) -> Shrunk {
        let mut left = i64::from(budget) + i64::from(self.fault == Fault::BudgetOffByOne);
        let mut done = Shrunk::default();
        'passes: for retried in [false, true] {
            done.retried = retried;
            for _ in 0..self.list.len() {
                let Some(&ino) = self.list.first() else { break };
                if self.fault != Fault::NoRoundRobin {
                    self.list.rotate_left(1);
                }
                if self.files[&ino].precached && !retried {
                    done.skipped += 1;
                    continue;
                }
                let mut freed = 0;
                self.change(ino, |file, fault| freed = file.reclaim(&mut left, fault));
                done.freed += freed;
                if left <= 0 {
                    break 'passes;
                }
            }
            if done.freed > 0 || done.skipped == 0 {
                break;
            }
        }
        let freed = u64::from(done.freed);
        self.freed_average = match self.freed_average {
            0 => freed,
            average => (freed + 3 * average) / 4,
        };
        done
    }

    fn info(&self) -> Info {
        let count = |of: fn(&File) -> usize| self.files.values().map(of).sum::<usize>() as u64;
        let mut largest: Option<Largest> = None;
        for &ino in &self.list {
            let file = &self.files[&ino];
            let objects = u32::try_from(file.entries.len()).expect("few");
            if largest.is_none_or(|l| objects > l.objects) {
                largest = Some(Largest {
                    ino,
                    objects,
                    reclaimable: u32::try_from(reclaimable(file)).expect("few"),
                });
            }
        }
        Info {
            objects: count(|f| f.entries.len()),
            reclaimable: count(reclaimable),
            hits: self.hits,
            misses: self.misses,
            inodes_on_list: self.list.len() as u64,
            averages: Averages {
                freed: self.freed_average,
                ..Averages::default()
            },
            largest,
        }
    }
}
