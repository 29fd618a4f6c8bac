//! A first reading of the trace: which kernel generation wrote it, and whether it can be replayed.

use std::collections::BTreeSet;

use cairn_extents::{Extent, Generation, Rules, Status};

use crate::event::{Device, Event, Op};

/// What has to be known of the whole trace before it is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    devices: BTreeSet<Device>,
    es_events: u64,
    has_seq: bool,
    has_referenced: bool,
    has_delayed_unwritten: bool,
}

impl Survey {
    /// Takes one event into account.
    pub fn observe(&mut self, event: &Event<'_>) {
        let Event::Es(event) = event else {
            return;
        };
        self.es_events += 1;
        self.devices.insert(event.dev);
        match event.op {
            Op::Insert {
                mapping, has_seq, ..
            }
            | Op::Cache {
                mapping, has_seq, ..
            } => {
                self.has_seq |= has_seq;
                self.status(mapping.status);
            }
            Op::InsertDelayed { has_seq, .. } => self.has_seq |= has_seq,
            Op::LookupExit { answer, .. } => {
                self.has_referenced |= answer.is_some_and(|e| e.referenced);
                self.answer(answer);
            }
            Op::RangeExit { answer, .. } => self.answer(answer),
            _ => {}
        }
    }

    fn answer(&mut self, answer: Option<Extent>) {
        if let Some(e) = answer {
            self.status(e.status);
        }
    }

    fn status(&mut self, status: Status) {
        self.has_delayed_unwritten |= matches!(status, Status::DelayedUnwritten(_));
    }

    /// Events of the cache seen.
    pub fn es_events(&self) -> u64 {
        self.es_events
    }

    /// How the trace must be replayed; `generation` overrides what the lines suggest.
    pub fn settings(&self, generation: Option<Generation>) -> Settings {
        let generation = generation.unwrap_or(if self.has_seq {
            Generation::Overwrite
        } else {
            Generation::VacantOnly
        });
        let mut rules = Rules::new(generation);
        rules.upstream_conflicts = generation == Generation::Overwrite;
        rules.legacy_ud = self.has_delayed_unwritten;
        Settings {
            rules,
            compare_referenced: self.has_referenced,
            several_devices: self.devices.len() > 1,
        }
    }
}

/// How a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The rules of the models.
    pub rules: Rules,
    /// Whether the kernel that wrote the trace had the referenced mark.
    pub compare_referenced: bool,
    /// Whether markers, which name no device, are ambiguous.
    pub several_devices: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            compare_referenced: true,
            several_devices: false,
        }
    }
}
