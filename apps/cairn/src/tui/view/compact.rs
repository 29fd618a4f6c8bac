//! The overview from 80 x 24 on: what is the stack, what is switched, did it get better.

use ratatui::layout::{Constraint, Rect};

use super::wide::{columns, rows};
use crate::tui::format::fit;
use crate::tui::model::{Model, Panel};

pub(super) fn layout(model: &Model, body: Rect) -> Vec<(Panel, Rect)> {
    let layers = model.shown().latest.as_ref().map_or(6, |s| s.layers.len());
    let lines = fit(layers.max(model.setup.policies.len() + 1)).clamp(4, 7);
    let latest = model.shown().latest.as_ref();
    // An interleaved comparison has a row more: what it can tell apart at all.
    let auto = latest.is_some_and(|s| s.auto.is_some());
    let [upper, chart, lower] = rows(
        body,
        [
            Constraint::Length(lines + 2),
            Constraint::Fill(1),
            Constraint::Length(if auto { 6 } else { 5 }),
        ],
    );
    let [stack, policies] = columns(upper, [Constraint::Percentage(41), Constraint::Fill(1)]);
    let [latency, ab] = columns(lower, [Constraint::Percentage(37), Constraint::Fill(1)]);
    vec![
        (Panel::Stack, stack),
        (Panel::Policies, policies),
        (Panel::Throughput, chart),
        (Panel::Latency, latency),
        (Panel::Ab, ab),
    ]
}
