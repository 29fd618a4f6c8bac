//! A recorded run: which part of it is shown, and the keys that move in it.

use std::sync::Arc;
use std::time::Duration;

use cairn_lab::Sample;
use crossterm::event::KeyCode;

use super::{Cmd, Seek};
use crate::tui::history::Mark;
use crate::tui::log::Kind;
use crate::tui::model::{Data, Model, Redraw};

/// Shows the first `n` samples of a recorded run and what was noted until then.
pub(crate) fn show(
    model: &mut Model,
    samples: &[Arc<Sample>],
    events: &[(Duration, String)],
    n: usize,
) {
    let shown = samples.get(..n).unwrap_or(samples);
    let before = model.live.latest.as_ref().map(|s| s.elapsed);
    let known = before.map_or(0, |at| samples.partition_point(|s| s.elapsed <= at));
    let known = if known > shown.len() {
        model.live = Data::default();
        (model.marks, model.arms) = (0, model.setup.arms.clone());
        0
    } else {
        known
    };
    let from = model.live.latest.as_ref().map(|s| s.elapsed);
    for sample in shown.iter().skip(known) {
        let mut mark = None;
        let first = model.live.latest.is_none();
        for (policy, (slot, arm)) in model.arms.iter_mut().zip(&sample.arms).enumerate() {
            if std::mem::replace(slot, *arm) != *arm && !first {
                model.marks += 1;
                model.lead = policy;
                mark = Some(Mark::Operator(model.marks));
            }
        }
        model.live.history.push(sample, mark);
        model.live.latest = Some(Arc::clone(sample));
    }
    // The end shows what was noted after the last sample too, once.
    let until = if known >= shown.len() {
        Duration::ZERO
    } else if shown.len() == samples.len() {
        Duration::MAX
    } else {
        model.live.elapsed()
    };
    for (at, text) in events {
        if *at <= until && from.is_none_or(|from| *at > from) {
            model.live.log.push(*at, Kind::Info, None, text);
        }
    }
    model.want(Redraw::AtRate);
}

/// A key in a recorded run; `None` if it does what it does in a live one.
pub(super) fn press(model: &mut Model, code: KeyCode) -> Option<Vec<Cmd>> {
    let policy = |c: char| model.setup.policies.iter().any(|p| p.key == c);
    let cmd = match code {
        KeyCode::Char(' ') => Cmd::Play,
        KeyCode::Left => Cmd::Seek(Seek::By(-1)),
        KeyCode::Right => Cmd::Seek(Seek::By(1)),
        KeyCode::PageUp => Cmd::Seek(Seek::By(-10)),
        KeyCode::PageDown => Cmd::Seek(Seek::By(10)),
        KeyCode::Home => Cmd::Seek(Seek::Start),
        KeyCode::End => Cmd::Seek(Seek::End),
        KeyCode::Char(c) if "SrawWosxdg".contains(c) || policy(c) => {
            model.say("recorded run: it can be looked at, not changed".to_owned());
            return Some(Vec::new());
        }
        _ => return None,
    };
    Some(vec![cmd])
}
