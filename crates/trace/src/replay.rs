//! Replaying a trace through a model, the kernel's answers being the oracle.

mod session;

use std::collections::BTreeMap;
use std::fmt;

use cairn_extents::{Error, Extent, Info, Rules};

use crate::event::{Device, EsEvent, Event, Op};
use crate::info::KernelInfo;
use crate::model::{Model, adopt, generation_name};
use crate::report::{Answer, Divergence, FileReport, Totals};
use crate::survey::Settings;
pub(crate) use session::{InodeMarker, Session};

/// Why a replay cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// Events were lost, so nothing is certain any more.
    Lost {
        /// How many, 0 if the trace does not say.
        events: u64,
    },
    /// A marker names no device, and the trace has several.
    AmbiguousMarker {
        /// Its text.
        text: String,
    },
    /// A marker has no inode number where it needs one.
    BadMarker {
        /// Its text.
        text: String,
    },
    /// The model does not take the operation.
    Refused {
        /// Why.
        error: Error,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { events: 0 } => {
                f.write_str("events were lost here; use --lenient to go on without them")
            }
            Self::Lost { events } => write!(
                f,
                "{events} events were lost here; use --lenient to go on without them"
            ),
            Self::AmbiguousMarker { text } => write!(
                f,
                "marker {text:?} names no device, and the trace has several: record one device only"
            ),
            Self::BadMarker { text } => {
                write!(
                    f,
                    "marker {text:?} should read `CLEAR_ES ino N` or `PRECACHE ino N`"
                )
            }
            Self::Refused { error } => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Drives a model for each device and compares every answer.
///
/// ```
/// use cairn_trace::{Replayer, Settings, cairn_model, parse_line};
/// let mut replayer = Replayer::new(Settings::default(), cairn_model);
/// let text = "\
/// a-1 [000] ..... 1: ext4_es_insert_extent: dev 7,2 ino 8 es [0/4) mapped 100 status W
/// a-1 [000] ..... 2: ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 1
/// a-1 [000] ..... 3: ext4_es_lookup_extent_exit: dev 7,2 ino 8 found 1 [0/5) 100 W";
/// for (number, line) in (1..).zip(text.lines()) {
///     if let Some(event) = parse_line(line.as_bytes())?
///         && let Some(divergence) = replayer.feed(number, &event)?
///     {
///         assert_eq!(
///             divergence.to_string(),
///             "3: lookup dev 7,2 ino 8 lblk 1: kernel [0/5) 100 W, model [0/4) 100 W",
///         );
///     }
/// }
/// assert_eq!(replayer.finish(None).lookups.diverged(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replayer<M, F> {
    session: Session,
    make: F,
    models: BTreeMap<Device, M>,
    at_marker: Option<Info>,
}

impl<M: Model, F: Fn(Rules) -> M> Replayer<M, F> {
    /// Starts with every cache empty; `make` makes the model of a device.
    pub fn new(settings: Settings, make: F) -> Self {
        Self {
            session: Session::new(settings),
            make,
            models: BTreeMap::new(),
            at_marker: None,
        }
    }

    /// Replays one event of line `line`; returns what the model answers otherwise.
    ///
    /// # Errors
    /// [`ReplayError`] if the replay cannot go on.
    pub fn feed(
        &mut self,
        line: u64,
        event: &Event<'_>,
    ) -> Result<Option<Divergence>, ReplayError> {
        self.session.observe(event);
        match event {
            Event::Es(event) => self.operation(line, event),
            Event::Lost(events) => Err(ReplayError::Lost { events: *events }),
            Event::Marker { text, .. } => self.marker(text).map(|()| None),
            Event::Foreign | Event::Unknown(_) => Ok(None),
        }
    }

    /// The report; `expected` is compared with the state at the last `INFO_AFTER` marker, or at
    /// the end if there was none.
    pub fn finish(self, expected: Option<&KernelInfo>) -> FileReport {
        let mut report = self.session.report;
        report.generation = generation_name(self.session.settings.rules.generation);
        report.compare_referenced = self.session.settings.compare_referenced;
        let mut totals = Totals::default();
        for (dev, model) in &self.models {
            report.devices.push(dev.to_string());
            totals.add(&model.info());
        }
        report.model = totals;
        report.info = expected.map(|kernel| {
            let end = self.models.values().next().map(Model::info);
            self.at_marker
                .or(end)
                .map(|model| kernel.compare(&model))
                .unwrap_or_default()
        });
        report
    }

    /// Notes that belong on standard error.
    pub fn notes(&self) -> Vec<String> {
        self.session.notes()
    }

    /// The model of a device, once an event named it.
    pub fn model(&mut self, dev: Device) -> Option<&mut M> {
        self.models.get_mut(&dev)
    }

    fn operation(&mut self, line: u64, event: &EsEvent) -> Result<Option<Divergence>, ReplayError> {
        let rules = self.session.settings.rules;
        let make = &self.make;
        let model = self.models.entry(event.dev).or_insert_with(|| make(rules));
        let session = &mut self.session;
        let refused = |error| ReplayError::Refused { error };
        match event.op {
            Op::Insert { ino, mapping, .. } => model
                .insert(ino, mapping.lblk, mapping.len, mapping.status)
                .map_err(refused)?,
            Op::Cache { ino, mapping, .. } => model
                .cache(ino, mapping.lblk, mapping.len, mapping.status)
                .map_err(refused)?,
            Op::InsertDelayed {
                ino,
                lblk,
                len,
                start_alloc,
                end_alloc,
                ..
            } => model
                .insert_delayed(ino, lblk, len, start_alloc, end_alloc)
                .map_err(refused)?,
            Op::Remove { ino, lblk, len } => model.remove(ino, lblk, len).map_err(refused)?,
            Op::LookupEnter { ino, lblk } => session.ask(event, ino, lblk),
            Op::LookupExit { ino, answer } => {
                let asked = session.asked(event, ino);
                return Ok(lookup(
                    session,
                    model,
                    line,
                    event.dev,
                    (ino, asked, answer),
                ));
            }
            Op::RangeExit { ino, answer } => {
                return Ok(range(session, model, line, event.dev, ino, answer));
            }
            Op::ShrinkEnter {
                nr_to_scan,
                cache_cnt,
            } => {
                session.budget(event, nr_to_scan);
                session.check_counter(cache_cnt, model.info().reclaimable);
            }
            Op::ShrinkCount { cache_cnt, .. } | Op::ShrinkExit { cache_cnt, .. } => {
                session.check_counter(cache_cnt, model.info().reclaimable);
            }
            Op::Shrink {
                nr_shrunk,
                nr_skipped,
                retried,
                ..
            } => {
                let budget = session.take_budget(event);
                return Ok(shrink(
                    session,
                    model,
                    line,
                    event.dev,
                    (budget, nr_shrunk, nr_skipped, retried),
                ));
            }
            Op::RangeEnter { .. } => {}
        }
        Ok(None)
    }

    fn marker(&mut self, text: &[u8]) -> Result<(), ReplayError> {
        self.session.remember(text);
        if text == b"INFO_AFTER" {
            self.at_marker = self.models.values().next().map(Model::info);
            return Ok(());
        }
        let Some((what, ino)) = self.session.inode_marker(text)? else {
            return Ok(());
        };
        for model in self.models.values_mut() {
            match what {
                InodeMarker::Clear => model.clear(ino),
                InodeMarker::Precache => model.precache(ino),
            }
        }
        Ok(())
    }
}

fn lookup<M: Model>(
    session: &mut Session,
    model: &mut M,
    line: u64,
    dev: Device,
    (ino, asked, answer): (u64, Option<u32>, Option<Extent>),
) -> Option<Divergence> {
    session.report.lookups.total += 1;
    // Without its question a hit must still be an entry, and a miss proves nothing; block
    // 0xffffffff is never known, so asking for it counts the miss.
    let lblk = asked.or(answer.map(|e| e.lblk)).unwrap_or(u32::MAX);
    let ours = model.lookup(ino, lblk);
    let same = match (answer, ours) {
        (None, None) => true,
        (Some(kernel), Some(ours)) => session.equal(kernel, ours),
        _ => false,
    };
    if same {
        session.report.lookups.agreed += 1;
        return None;
    }
    adopt(model, ino, lblk, answer);
    if answer.is_some() {
        model.touch(ino, lblk);
    }
    Some(session.diverged(
        line,
        "lookup",
        dev,
        Some((ino, lblk)),
        Answer::of(answer),
        Answer::of(ours),
    ))
}

fn range<M: Model>(
    session: &mut Session,
    model: &mut M,
    line: u64,
    dev: Device,
    ino: u64,
    answer: Option<Extent>,
) -> Option<Divergence> {
    session.report.ranges.total += 1;
    let Some(kernel) = answer else {
        // What was searched for, and up to where, is not printed.
        session.report.ranges.agreed += 1;
        return None;
    };
    let ours = model.containing(ino, kernel.lblk);
    if ours.is_some_and(|ours| session.equal(kernel, ours)) {
        session.report.ranges.agreed += 1;
        return None;
    }
    adopt(model, ino, kernel.lblk, answer);
    if kernel.referenced {
        model.touch(ino, kernel.lblk);
    }
    Some(session.diverged(
        line,
        "range",
        dev,
        Some((ino, kernel.lblk)),
        Answer::of(answer),
        Answer::of(ours),
    ))
}

fn shrink<M: Model>(
    session: &mut Session,
    model: &mut M,
    line: u64,
    dev: Device,
    (budget, freed, skipped, retried): (u32, u64, u64, bool),
) -> Option<Divergence> {
    session.report.shrinks.total += 1;
    let ours = model.shrink(budget);
    // A lock that was contended in the kernel is passed over there and not here.
    let contended = skipped > u64::from(ours.skipped);
    let same_way = skipped == u64::from(ours.skipped) && retried == ours.retried;
    if contended {
        session.contended += 1;
    }
    if freed == u64::from(ours.freed) && (contended || same_way) {
        session.report.shrinks.agreed += 1;
        return None;
    }
    let model = Answer::Freed(u64::from(ours.freed));
    Some(session.diverged(line, "shrink", dev, None, Answer::Freed(freed), model))
}
