//! The list of events: what was switched, started, stopped, lost or broken, and when.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Events kept; the oldest go first.
const KEPT: usize = 5_000;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// For the record.
    Info,
    /// A policy was switched.
    Switch,
    /// Something a reader of the numbers should know.
    Warn,
    /// Something broke.
    Bad,
}

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Time of the run.
    pub at: Duration,
    /// Kind.
    pub kind: Kind,
    /// Number of the mark in the chart.
    pub mark: Option<u32>,
    /// What happened.
    pub text: Arc<str>,
}

/// The events of a run, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Log {
    events: VecDeque<Event>,
}

impl Log {
    /// Adds an event.
    pub fn push(&mut self, at: Duration, kind: Kind, mark: Option<u32>, text: &str) {
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            at,
            kind,
            mark,
            text: text.into(),
        });
    }

    /// Events kept.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events whose text holds `words`, in whatever case, oldest first; all of them without words.
    pub fn matching<'a>(&'a self, words: &str) -> impl DoubleEndedIterator<Item = &'a Event> {
        let words = words.to_lowercase();
        let holds = move |e: &&Event| words.is_empty() || e.text.to_lowercase().contains(&words);
        self.events.iter().filter(holds)
    }

    /// The events, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator {
        self.events.iter()
    }
}
