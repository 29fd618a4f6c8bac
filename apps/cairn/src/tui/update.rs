//! From a message to a new state and commands. Pure: no clock, no I/O, no environment.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyEvent, KeyEventKind, MouseEvent};

use cairn_lab::{AutoPlan, Limits, Sample, Shrink};

use super::format::{arm_letter, change, interval};
use super::history::Mark;
use super::log::Kind;
use super::model::{Model, Pending, Redraw, Saved, Sheet};

mod keys;
mod map;
mod mouse;
mod prompt;
pub(crate) mod recorded;

pub use keys::valid;

/// What can happen.
#[derive(Debug, Clone)]
pub enum Msg {
    /// The sampler published a sample.
    Sample(Arc<Sample>),
    /// A key.
    Key(KeyEvent),
    /// The mouse, if it was asked for.
    Mouse(MouseEvent),
    /// The terminal has a new size.
    Resize(u16, u16),
    /// A signal to end, by number.
    Terminate(i32),
    /// Someone asked from outside to be given the terminal.
    Suspend,
    /// The process goes on after a stop.
    Continue,
    /// A thread other than the drawing one panicked.
    Panic(String),
    /// A policy was switched.
    Armed {
        /// Index of the policy.
        policy: usize,
        /// Its new arm.
        arm: usize,
    },
    /// The extent cache was shrunk on demand.
    Shrunk(Shrink),
    /// A recorded run to stand beside this one.
    Saved(Box<Saved>),
    /// The run as far as it is was written to this directory.
    Exported(String),
    /// A command could not be done.
    Refused(Refusal),
    /// Another stack, or a workload with other options, runs now.
    Rebuilt {
        /// What changed, in words.
        what: String,
        /// The stack spec.
        stack: String,
        /// The workloads: names and options.
        workloads: Vec<(String, String)>,
    },
    /// No sample came for this long.
    Stalled(Duration),
    /// The input of the terminal is gone.
    InputGone,
}

/// Why a command could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, in words.
    pub text: String,
    /// Characters of what was typed before the mistake, where that is known.
    pub place: Option<usize>,
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { text, place: None }
    }
}

/// Where to go in a recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// To its first sample.
    Start,
    /// To its last.
    End,
    /// So many samples on, or back.
    By(i64),
}

/// What the runtime is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cmd {
    /// Switch a policy to its next arm.
    Toggle(usize),
    /// Start the workload.
    Start,
    /// Stop the workload.
    Stop,
    /// Reset the statistics.
    Reset,
    /// Shrink the extent cache once.
    Shrink,
    /// Write the run as far as it is.
    Export,
    /// Read a recorded run to compare with.
    Compare(String),
    /// Show so many blocks of the shown file, from the first of these on; 0: all.
    ShowBlocks(u32, u32),
    /// Show another file, by its number.
    ShowFile(usize),
    /// Compare arms by this workload; `None`: by the first that the policy acts on.
    CompareBy(Option<usize>),
    /// Begin the interleaved comparison.
    Auto(AutoPlan),
    /// End it.
    StopAuto,
    /// Play a recorded run, or stop it.
    Play,
    /// Go to another place of a recorded run.
    Seek(Seek),
    /// Build another stack and run the workloads on it from their beginning.
    SetStack(String),
    /// Run a workload with other options, from the beginning.
    SetWorkload(usize, String),
    /// Give the terminal back and stop the process until it is continued.
    Suspend,
    /// Set the terminal up again and draw everything.
    Reenter,
    /// Draw everything again.
    Repaint,
    /// End; with a signal's number if one was the cause.
    Quit(Option<i32>),
}

/// Takes one message in.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Cmd> {
    match msg {
        Msg::Sample(sample) => {
            take_sample(model, &sample);
            Vec::new()
        }
        Msg::Key(key) if key.kind == KeyEventKind::Press => {
            model.want(Redraw::Soon);
            keys::press(model, key)
        }
        Msg::Key(_) => Vec::new(),
        Msg::Mouse(event) => mouse::event(model, event),
        Msg::Resize(width, height) => {
            model.size = (width, height);
            model.want(Redraw::Soon);
            Vec::new()
        }
        Msg::Terminate(signal) => vec![Cmd::Quit(Some(signal))],
        Msg::Suspend => vec![Cmd::Suspend],
        Msg::Continue => {
            model.want(Redraw::Soon);
            vec![Cmd::Reenter]
        }
        Msg::Panic(text) => {
            fail(model, &text);
            vec![Cmd::Stop]
        }
        Msg::Armed { policy, arm } => {
            armed(model, policy, arm);
            Vec::new()
        }
        Msg::Rebuilt {
            what,
            stack,
            workloads,
        } => {
            (model.setup.stack, model.setup.workloads) = (stack, workloads);
            rebuilt(model, &what);
            Vec::new()
        }
        Msg::Saved(saved) => {
            model.prompt = None;
            model.sheet = Some(Sheet::Saved(saved));
            model.want(Redraw::Soon);
            Vec::new()
        }
        Msg::Exported(folder) => {
            let text = format!("the run so far is in {folder}");
            event(model, Kind::Info, &text);
            model.say(text);
            model.want(Redraw::Soon);
            Vec::new()
        }
        Msg::Shrunk(shrink) => {
            let text = format!(
                "shrink: {} entries scanned, {} reclaimed, {} left",
                shrink.scanned, shrink.reclaimed, shrink.left
            );
            event(model, Kind::Info, &text);
            model.say(match shrink.left {
                0 => text,
                _ => format!("{text}; those looked up since the last scan stay this time"),
            });
            model.want(Redraw::Soon);
            Vec::new()
        }
        Msg::Refused(refusal) => {
            refused(model, refusal);
            Vec::new()
        }
        Msg::Stalled(gap) => {
            if model.stalled.is_none() {
                event(model, Kind::Warn, "the sampler is silent");
            }
            model.stalled = Some(gap);
            model.want(Redraw::Soon);
            Vec::new()
        }
        Msg::InputGone => {
            event(model, Kind::Warn, "keys are gone: the input cannot be read");
            model.want(Redraw::Soon);
            Vec::new()
        }
    }
}

/// A new run begins under the same view: an edit, with a mark of its own.
fn rebuilt(model: &mut Model, what: &str) {
    model.prompt = None;
    (model.only, model.end) = (None, None);
    (model.cursor, model.map_zoom) = (None, 0);
    (model.layer, model.compared) = (0, None);
    // Marked in the chart where the new run begins.
    model.pending.clear();
    model.marks += 1;
    model.mark = Some(model.marks);
    let (at, text) = (model.live.elapsed(), format!("a new run begins: {what}"));
    model.live.log.push(at, Kind::Info, model.mark, &text);
    model.say(format!("a new run begins: {what}"));
    model.want(Redraw::Soon);
}

/// Says why something could not be done, beside what was typed for it.
fn refused(model: &mut Model, refusal: Refusal) {
    event(model, Kind::Warn, &refusal.text);
    model.say(refusal.text.clone());
    if let Some(prompt) = &mut model.prompt {
        // The spaces around the text were not sent along.
        let spaces = prompt.text.chars().take_while(|c| c.is_whitespace());
        let spaces = spaces.count();
        prompt.error = Some(Refusal {
            place: refusal.place.map(|place| place + spaces),
            ..refusal
        });
    }
    model.want(Redraw::Soon);
}

/// Adds an event at the time of the newest sample.
fn event(model: &mut Model, kind: Kind, text: &str) {
    let at = model.live.elapsed();
    model.live.log.push(at, kind, None, text);
}

fn fail(model: &mut Model, text: &str) {
    if model.failure.is_none() {
        model.failure = Some(text.into());
        event(model, Kind::Bad, &format!("workload stopped: {text}"));
        model.want(Redraw::Soon);
    }
}

/// A switch made here: shown, marked and named at once, however soon the next one follows.
fn armed(model: &mut Model, policy: usize, arm: usize) {
    let at = model.live.elapsed();
    let old = model.arms.get(policy).copied().unwrap_or(arm);
    switched(model, policy, arm, at);
    model.pending.retain(|p| p.policy != policy);
    model.pending.push(Pending {
        policy,
        arm,
        left: 5,
    });
    if let Some(info) = model.setup.policies.get(policy) {
        let (name, about) = (info.name.clone(), info.about.clone());
        let words = |arm| format!("{} {}", arm_letter(arm), model.arm_name(policy, arm));
        let (new, old) = (words(arm), words(old));
        let mut text = format!("{name}: now {new} (was {old})");
        let auto = model.live.latest.as_ref().and_then(|s| s.auto);
        if let Some(auto) = auto.filter(|auto| auto.running) {
            text += if auto.policy == policy {
                "; this ends the auto A/B"
            } else {
                "; the auto A/B runs its pair again"
            };
        } else if model.size.0 >= 120 {
            text = format!("{text}; {name} is {about}");
        }
        model.say(text);
    }
    model.want(Redraw::Soon);
}

/// Books a switch: its arm, its mark, its event.
fn switched(model: &mut Model, policy: usize, arm: usize, at: Duration) {
    if let Some(slot) = model.arms.get_mut(policy) {
        *slot = arm;
    }
    model.marks += 1;
    model.mark = Some(model.marks);
    model.lead = policy;
    let name = model
        .setup
        .policies
        .get(policy)
        .map_or("?", |p| p.name.as_str());
    let text = format!("{name}: now {}", model.arm_name(policy, arm));
    model
        .live
        .log
        .push(at, Kind::Switch, Some(model.marks), &text);
}

fn take_sample(model: &mut Model, sample: &Arc<Sample>) {
    let before = model.live.latest.replace(Arc::clone(sample));
    if model.stalled.take().is_some() {
        event(model, Kind::Info, "the sampler is back");
    }
    let mark = switches(model, sample);
    pressed(model, sample);
    compared(model, before.as_deref(), sample);
    if before.as_ref().is_some_and(|b| b.running != sample.running) {
        let text = if sample.running {
            "workload started"
        } else {
            "workload stopped"
        };
        event(model, Kind::Info, text);
    }
    if let Some(failure) = &sample.failure {
        fail(model, failure);
    }
    if let Some(error) = &sample.first_error
        && model.error.is_none()
    {
        model.error = Some(Arc::clone(error));
        event(
            model,
            Kind::Bad,
            &format!("first failed operation: {error}"),
        );
    }
    if let Some((name, what)) = sample.checks.broken()
        && model.broken.is_none()
    {
        let text = format!("invariant broken: {name}: {what}");
        event(model, Kind::Bad, &text);
        model.broken = Some(text.into());
    }
    busy(model, sample);
    // Named when the count begins and each time it doubled, or drops would fill the list.
    if sample.dropped > 0 && sample.dropped >= model.drops_said * 2 {
        model.drops_said = sample.dropped;
        let text = format!("{} samples dropped so far", sample.dropped);
        event(model, Kind::Warn, &text);
    }
    model.live.history.push(sample, mark);
    if model
        .note
        .as_ref()
        .is_some_and(|n| n.until <= sample.elapsed)
    {
        model.note = None;
        model.want(Redraw::AtRate);
    }
    if model.frozen.is_none() {
        model.want(Redraw::AtRate);
    }
}

/// Compares the arms of a sample with those known here: a difference that is not a switch of our
/// own on its way was made elsewhere. Answers the mark that belongs to this sample.
fn switches(model: &mut Model, sample: &Sample) -> Option<Mark> {
    for pending in &mut model.pending {
        pending.left = pending.left.saturating_sub(1);
    }
    let shows = |p: &Pending| sample.arms.get(p.policy) == Some(&p.arm);
    model.pending.retain(|p| p.left > 0 && !shows(p));
    let mut auto = None;
    for policy in 0..model.arms.len().min(sample.arms.len()) {
        let (Some(&old), Some(&new)) = (model.arms.get(policy), sample.arms.get(policy)) else {
            continue;
        };
        if old == new || model.pending.iter().any(|p| p.policy == policy) {
            continue;
        }
        if sample.auto.is_some_and(|auto| auto.policy == policy) {
            // Too many to list: the chart shows them.
            if let Some(slot) = model.arms.get_mut(policy) {
                *slot = new;
            }
            model.lead = policy;
            auto = Some(Mark::Auto);
        } else {
            switched(model, policy, new, sample.elapsed);
        }
    }
    // A switch of our own is marked where samples show it.
    let mark = model.pending.is_empty().then(|| model.mark.take());
    mark.flatten().map(Mark::Operator).or(auto)
}

/// Says when others begin to use more of the machine than a comparison bears, and how much.
fn busy(model: &mut Model, sample: &Sample) {
    /// Between two such events.
    const PAUSE: Duration = Duration::from_secs(30);
    let Some(weather) = sample.machine else {
        return;
    };
    let limits = Limits::default();
    // A second is short: noise of a few clock ticks is no news.
    let much = weather.steal > 5.0 * limits.steal || weather.others > 2.0 * limits.others;
    let said = model.busy_said;
    if much && said.is_none_or(|at| sample.elapsed.saturating_sub(at) >= PAUSE) {
        model.busy_said = Some(sample.elapsed);
        let text = format!(
            "the machine is busy elsewhere: others use {:.0} % of a CPU, {:.0} % are stolen",
            weather.others * 100.0,
            weather.steal * 100.0
        );
        event(model, Kind::Warn, &text);
    }
}

/// Says once for each limit that the extent cache went past it.
fn pressed(model: &mut Model, sample: &Sample) {
    let shrinks = sample.extents.shrinks;
    if model.pressed != shrinks.limit && (shrinks.limit.is_none() || shrinks.reclaimed_per_s > 0.0)
    {
        model.pressed = shrinks.limit;
        if let Some(limit) = shrinks.limit {
            let text = format!("more than {limit} extents cached: the shrinker reclaims some");
            event(model, Kind::Info, &text);
        }
    }
}

/// Books the beginning, the disturbances and the end of an interleaved comparison.
fn compared(model: &mut Model, before: Option<&Sample>, sample: &Sample) {
    let old = before.and_then(|b| b.auto);
    let name = |model: &Model, policy: usize| {
        let info = model.setup.policies.get(policy);
        info.map_or_else(String::new, |p| p.name.clone())
    };
    match (old, sample.auto) {
        (None, Some(auto)) => {
            let text = format!(
                "auto A/B of {}: A B B A, {} pairs of {:.1} s",
                name(model, auto.policy),
                auto.wanted,
                auto.slice.as_secs_f64()
            );
            event(model, Kind::Info, &text);
        }
        (Some(old), None) => {
            let text = format!(
                "auto A/B of {} ended after {} of {} pairs",
                name(model, old.policy),
                old.pairs,
                old.wanted
            );
            event(model, Kind::Info, &text);
            model.say(text);
        }
        (Some(old), Some(new)) => {
            if new.rejected > old.rejected {
                let text =
                    "auto A/B: a pair is run again: another policy, a stop or a stall came between";
                event(model, Kind::Warn, text);
            }
            if old.running && !new.running {
                let found = new.rate.map_or_else(String::new, |e| {
                    format!(": B vs A {}{}", change(e.ratio), interval(e))
                });
                let text = format!(
                    "auto A/B of {} done after {} pairs{found}",
                    name(model, new.policy),
                    new.pairs
                );
                event(model, Kind::Info, &text);
            }
        }
        (None, None) => {}
    }
}
