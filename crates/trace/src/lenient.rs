//! Replay of a trace that begins on a mounted file system or has losses.
//!
//! What was known before is learnt from the kernel's answers. An answer that could not have been
//! predicted is counted apart; one that contradicts what is certain is a divergence.

mod blocks;
mod learn;

use std::collections::BTreeMap;

use cairn_extents::{Extent, Generation, Status};

use crate::event::{Device, EsEvent, Event, Op};
use crate::model::generation_name;
use crate::replay::{InodeMarker, ReplayError, Session};
use crate::report::{Answer, Divergence, FileReport};
use crate::survey::Settings;
use blocks::Blocks;
use learn::Verdict;

/// Replays a trace whose beginning is not known.
pub struct LenientReplayer {
    session: Session,
    inodes: BTreeMap<(Device, u64), Blocks>,
    devices: std::collections::BTreeSet<Device>,
}

impl LenientReplayer {
    /// Starts with every block of every inode unknown.
    pub fn new(settings: Settings) -> Self {
        Self {
            session: Session::new(settings),
            inodes: BTreeMap::new(),
            devices: std::collections::BTreeSet::new(),
        }
    }

    /// Replays one event of line `line`; returns what contradicts.
    ///
    /// # Errors
    /// [`ReplayError`] for an ambiguous or malformed marker.
    pub fn feed(
        &mut self,
        line: u64,
        event: &Event<'_>,
    ) -> Result<Option<Divergence>, ReplayError> {
        self.session.observe(event);
        match event {
            Event::Es(event) => Ok(self.operation(line, event)),
            Event::Lost(_) => {
                self.inodes.clear();
                self.session.forget_questions();
                Ok(None)
            }
            Event::Marker { text, .. } => {
                self.session.remember(text);
                if let Some((InodeMarker::Clear, ino)) = self.session.inode_marker(text)? {
                    for ((_, at), blocks) in &mut self.inodes {
                        if *at == ino {
                            blocks.clear();
                        }
                    }
                }
                Ok(None)
            }
            Event::Foreign | Event::Unknown(_) => Ok(None),
        }
    }

    /// The report. Its totals are those of the kernel's answers and of what is certain.
    pub fn finish(self) -> FileReport {
        let mut report = self.session.report;
        report.generation = generation_name(self.session.settings.rules.generation);
        report.compare_referenced = self.session.settings.compare_referenced;
        report.devices = self.devices.iter().map(ToString::to_string).collect();
        for blocks in self.inodes.values() {
            let (objects, reclaimable) = blocks.counts();
            report.model.objects += objects;
            report.model.reclaimable += reclaimable;
            report.model.inodes_on_list += u64::from(reclaimable > 0);
        }
        report
    }

    /// Notes that belong on standard error.
    pub fn notes(&self) -> Vec<String> {
        self.session.notes()
    }

    fn operation(&mut self, line: u64, event: &EsEvent) -> Option<Divergence> {
        self.devices.insert(event.dev);
        let overwrite = self.session.settings.rules.generation == Generation::Overwrite;
        match event.op {
            Op::Insert { ino, mapping, .. } => {
                self.blocks(event.dev, ino)
                    .insert(mapping.lblk, mapping.len, mapping.status);
            }
            Op::Cache { ino, mapping, .. } => {
                self.blocks(event.dev, ino).cache(
                    mapping.lblk,
                    mapping.len,
                    mapping.status,
                    overwrite,
                );
            }
            Op::InsertDelayed { ino, lblk, len, .. } => {
                self.blocks(event.dev, ino)
                    .insert(lblk, len, Status::Delayed);
            }
            Op::Remove { ino, lblk, len } => self.blocks(event.dev, ino).remove(lblk, len),
            Op::LookupEnter { ino, lblk } => self.session.ask(event, ino, lblk),
            Op::LookupExit { ino, answer } => {
                let asked = self.session.asked(event, ino);
                return self.lookup(line, event.dev, ino, asked, answer);
            }
            Op::RangeExit { ino, answer } => return self.range(line, event.dev, ino, answer),
            Op::Shrink { nr_shrunk, .. } => self.shrink(event.dev, nr_shrunk),
            Op::RangeEnter { .. }
            | Op::ShrinkCount { .. }
            | Op::ShrinkEnter { .. }
            | Op::ShrinkExit { .. } => {}
        }
        None
    }

    fn blocks(&mut self, dev: Device, ino: u64) -> &mut Blocks {
        self.inodes.entry((dev, ino)).or_default()
    }

    fn lookup(
        &mut self,
        line: u64,
        dev: Device,
        ino: u64,
        asked: Option<u32>,
        answer: Option<Extent>,
    ) -> Option<Divergence> {
        self.session.report.lookups.total += 1;
        match answer {
            Some(_) => self.session.report.model.hits += 1,
            None => self.session.report.model.misses += 1,
        }
        let compare = self.session.settings.compare_referenced;
        let blocks = self.blocks(dev, ino);
        let (verdict, lblk, ours) = match (answer, asked.or(answer.map(|e| e.lblk))) {
            (Some(e), Some(lblk)) => {
                let ours = blocks.known(lblk);
                let verdict = blocks.learn_hit(lblk, e, compare);
                if verdict == Verdict::Contradicts {
                    blocks.adopt(e);
                }
                blocks.touch(e.lblk);
                (verdict, lblk, ours)
            }
            (None, Some(lblk)) => {
                let ours = blocks.known(lblk);
                (blocks.learn_miss(lblk), lblk, ours)
            }
            // A miss without its question says nothing.
            (_, None) => (Verdict::Unknown, 0, None),
        };
        let tally = &mut self.session.report.lookups;
        match verdict {
            Verdict::Agrees => tally.agreed += 1,
            Verdict::Unknown => tally.unknown += 1,
            Verdict::Contradicts => {
                let at = Some((ino, lblk));
                let (kernel, model) = (Answer::of(answer), Answer::of(ours));
                let divergence = self
                    .session
                    .diverged(line, "lookup", dev, at, kernel, model);
                return Some(divergence);
            }
        }
        None
    }

    fn range(
        &mut self,
        line: u64,
        dev: Device,
        ino: u64,
        answer: Option<Extent>,
    ) -> Option<Divergence> {
        self.session.report.ranges.total += 1;
        let Some(e) = answer else {
            self.session.report.ranges.agreed += 1;
            return None;
        };
        let compare = self.session.settings.compare_referenced;
        let blocks = self.blocks(dev, ino);
        let ours = blocks.known(e.lblk);
        let verdict = blocks.learn_hit(e.lblk, e, compare);
        if verdict == Verdict::Contradicts {
            blocks.adopt(e);
        }
        let tally = &mut self.session.report.ranges;
        match verdict {
            Verdict::Agrees => tally.agreed += 1,
            Verdict::Unknown => tally.unknown += 1,
            Verdict::Contradicts => {
                let at = Some((ino, e.lblk));
                let (kernel, model) = (Answer::of(answer), Answer::of(ours));
                let divergence = self.session.diverged(line, "range", dev, at, kernel, model);
                return Some(divergence);
            }
        }
        None
    }

    /// Which files were visited depends on inodes that the trace never named, so a pass cannot be
    /// predicted; what it may have done is no longer certain.
    fn shrink(&mut self, dev: Device, freed: u64) {
        self.session.report.shrinks.total += 1;
        self.session.report.shrinks.unknown += 1;
        for ((at, _), blocks) in &mut self.inodes {
            if *at == dev {
                blocks.shrunk(freed > 0);
            }
        }
    }
}
