//! What a strict and a lenient replay have in common: pairing questions with answers, counting,
//! remembering where the workload was.

use std::collections::{BTreeMap, HashMap};

use cairn_extents::Extent;

use super::ReplayError;
use crate::event::{Device, EsEvent, Event, Task, Time};
use crate::report::{Answer, Divergence, FileReport};
use crate::survey::Settings;

/// Divergences kept for the report; the totals go on.
const KEPT: usize = 10;

/// Entries that the shrinker visits when an old kernel calls it inside an insertion.
const INLINE_BUDGET: u32 = 128;

/// Names of unknown events kept for the notes.
const NAMES_KEPT: usize = 16;

/// Batch of the kernel's approximate counters.
const KERNEL_BATCH: u64 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InodeMarker {
    Clear,
    Precache,
}

pub(crate) struct Session {
    pub(crate) settings: Settings,
    pub(crate) report: FileReport,
    /// Shrinker passes in which the kernel passed over more maps than the model.
    pub(crate) contended: u64,
    asked: HashMap<(u32, Option<u32>), (Device, u64, u32)>,
    budgets: HashMap<(u32, Option<u32>), u32>,
    cpus: u64,
    last_time: Time,
    backwards: u64,
    unknown: BTreeMap<String, u64>,
    counters_off: u64,
    after: Option<Vec<u8>>,
}

impl Session {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            report: FileReport::default(),
            contended: 0,
            asked: HashMap::new(),
            budgets: HashMap::new(),
            cpus: 0,
            last_time: Time::default(),
            backwards: 0,
            unknown: BTreeMap::new(),
            counters_off: 0,
            after: None,
        }
    }

    /// Counts the event.
    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Es(e) => {
                self.report.events += 1;
                self.cpus |= 1 << (e.task.cpu.unwrap_or(0) % 64);
                self.clock(e.time);
            }
            Event::Marker { time, .. } => {
                self.report.events += 1;
                self.clock(*time);
            }
            Event::Foreign => self.report.ignored += 1,
            Event::Unknown(name) => {
                self.report.ignored += 1;
                let name = String::from_utf8_lossy(name);
                if let Some(n) = self.unknown.get_mut(name.as_ref()) {
                    *n += 1;
                } else if self.unknown.len() < NAMES_KEPT {
                    self.unknown.insert(name.into_owned(), 1);
                }
            }
            Event::Lost(n) => self.report.lost += n,
        }
    }

    fn clock(&mut self, time: Time) {
        self.backwards += u64::from(time < self.last_time);
        self.last_time = time;
    }

    /// Remembers a question until its answer comes.
    pub(crate) fn ask(&mut self, event: &EsEvent, ino: u64, lblk: u32) {
        self.asked
            .insert(thread(event.task), (event.dev, ino, lblk));
    }

    /// The block asked for, `None` if the question is not in the trace.
    pub(crate) fn asked(&mut self, event: &EsEvent, ino: u64) -> Option<u32> {
        let asked = self
            .asked
            .remove(&thread(event.task))
            .filter(|a| a.0 == event.dev && a.1 == ino)
            .map(|a| a.2);
        self.report.unpaired += u64::from(asked.is_none());
        asked
    }

    /// Forgets the questions open, after a loss.
    pub(crate) fn forget_questions(&mut self) {
        self.asked.clear();
        self.budgets.clear();
    }

    pub(crate) fn budget(&mut self, event: &EsEvent, nr_to_scan: u64) {
        let budget = u32::try_from(nr_to_scan).unwrap_or(u32::MAX);
        self.budgets.insert(thread(event.task), budget);
    }

    pub(crate) fn take_budget(&mut self, event: &EsEvent) -> u32 {
        self.budgets
            .remove(&thread(event.task))
            .unwrap_or(INLINE_BUDGET)
    }

    /// The kernel's approximate counter may be off by a batch less one per CPU.
    pub(crate) fn check_counter(&mut self, cache_cnt: i64, exact: u64) {
        let slack = (KERNEL_BATCH - 1) * u64::from(self.cpus.count_ones().max(1));
        let off = cache_cnt.abs_diff(i64::try_from(exact).unwrap_or(i64::MAX)) > slack;
        self.counters_off += u64::from(off);
    }

    /// Whether the kernel's entry is ours; delayed runs and holes carry no block here.
    pub(crate) fn equal(&self, kernel: Extent, ours: Extent) -> bool {
        kernel.lblk == ours.lblk
            && kernel.len == ours.len
            && kernel.status == ours.status
            && (kernel.referenced == ours.referenced || !self.settings.compare_referenced)
    }

    /// Keeps the workload's own progress notes, to quote them.
    pub(crate) fn remember(&mut self, text: &[u8]) {
        if text.starts_with(b"OP ") || text.starts_with(b"OPENED ") {
            let kept = text.get(..200).unwrap_or(text);
            let after = self.after.get_or_insert_default();
            after.clear();
            after.extend_from_slice(kept);
        }
    }

    /// A marker that changes the cache of an inode.
    pub(crate) fn inode_marker(
        &self,
        text: &[u8],
    ) -> Result<Option<(InodeMarker, u64)>, ReplayError> {
        let mut words = text
            .split(u8::is_ascii_whitespace)
            .filter(|w| !w.is_empty());
        let what = match words.next() {
            Some(b"CLEAR_ES") => InodeMarker::Clear,
            Some(b"PRECACHE") => InodeMarker::Precache,
            _ => return Ok(None),
        };
        let shown = || String::from_utf8_lossy(text.get(..60).unwrap_or(text)).into_owned();
        let ino = match (words.next(), words.next(), words.next()) {
            (Some(b"ino"), Some(number), None) => core::str::from_utf8(number)
                .ok()
                .and_then(|n| n.parse().ok()),
            _ => None,
        }
        .ok_or_else(|| ReplayError::BadMarker { text: shown() })?;
        if self.settings.several_devices {
            return Err(ReplayError::AmbiguousMarker { text: shown() });
        }
        Ok(Some((what, ino)))
    }

    /// Notes a divergence; returns it.
    pub(crate) fn diverged(
        &mut self,
        line: u64,
        event: &'static str,
        dev: Device,
        at: Option<(u64, u32)>,
        kernel: Answer,
        model: Answer,
    ) -> Divergence {
        let divergence = Divergence {
            line,
            event,
            dev: dev.to_string(),
            ino: at.map(|a| a.0),
            lblk: at.map(|a| a.1),
            kernel,
            model,
            after: self
                .after
                .as_ref()
                .map(|text| String::from_utf8_lossy(text).into_owned()),
        };
        if self.report.divergences.len() < KEPT {
            self.report.divergences.push(divergence.clone());
        }
        divergence
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.report.ignored > 0 {
            notes.push(format!(
                "{} events do not concern the cache and were ignored",
                self.report.ignored
            ));
        }
        for (name, n) in &self.unknown {
            notes.push(format!("{n} events {name} are not known and were ignored"));
        }
        if self.report.unpaired > 0 {
            notes.push(format!(
                "{} answers have no question in the trace",
                self.report.unpaired
            ));
        }
        if self.backwards > 0 {
            notes.push(format!(
                "time goes backwards {} times: record with trace_clock=counter, on one CPU",
                self.backwards
            ));
        }
        if self.contended > 0 {
            notes.push(format!(
                "the kernel's shrinker met locked files in {} passes",
                self.contended
            ));
        }
        if self.counters_off > 0 {
            notes.push(format!(
                "{} values of cache_cnt are further off than a batch of {KERNEL_BATCH} per CPU explains",
                self.counters_off
            ));
        }
        notes
    }
}

/// A thread keeps its number when it is renamed; the idle task is one per CPU.
fn thread(task: Task) -> (u32, Option<u32>) {
    (task.pid, task.cpu.filter(|_| task.pid == 0))
}
