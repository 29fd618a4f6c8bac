//! Everything at once, from 140 x 40 on. Rows and columns beyond that go to the charts, the flag
//! words, the extents and the events.

use ratatui::layout::{Constraint, Layout, Rect};

use crate::tui::format::fit;
use crate::tui::model::{Model, Panel};

pub(super) fn layout(model: &Model, body: Rect) -> Vec<(Panel, Rect)> {
    let more = body.height.saturating_sub(38);
    let wider = body.width.saturating_sub(140);
    let [upper, middle, lower] = rows(
        body,
        [
            Constraint::Fill(1),
            Constraint::Length(10 + more / 4),
            Constraint::Length(11 + more / 4),
        ],
    );
    let side = 46 + (wider / 10).min(14);
    let [left, centre, right] = columns(
        upper,
        [
            Constraint::Length(36 + (wider / 10).min(12)),
            Constraint::Fill(1),
            Constraint::Length(side),
        ],
    );
    let workloads = model
        .shown()
        .latest
        .as_ref()
        .map_or(1, |s| s.workloads.len());
    let latency = if upper.height >= 20 {
        5 + 2 * fit(workloads.min(3))
    } else {
        7
    };
    let [throughput, latency] = rows(centre, [Constraint::Fill(1), Constraint::Length(latency)]);
    let policies = fit(model.setup.policies.len().min(8)) + 3;
    let hint = if upper.height >= 28 { 3 } else { 0 };
    let [policies, ab] = rows(
        right,
        [
            Constraint::Length((policies + hint).min(upper.height.saturating_sub(9))),
            Constraint::Fill(1),
        ],
    );
    let [counters, flags] = columns(
        middle,
        [
            Constraint::Length(62 + (wider / 10).min(10)),
            Constraint::Fill(1),
        ],
    );
    let [extents, events] = columns(lower, [Constraint::Fill(1), Constraint::Length(side)]);
    let below = if more >= 8 { 7 } else { 6 };
    let [extents, below] = rows(extents, [Constraint::Fill(1), Constraint::Length(below)]);
    let [workload, check] = columns(below, [Constraint::Fill(1), Constraint::Fill(1)]);
    vec![
        (Panel::Stack, left),
        (Panel::Throughput, throughput),
        (Panel::Policies, policies),
        (Panel::Latency, latency),
        (Panel::Ab, ab),
        (Panel::Counters, counters),
        (Panel::Flags, flags),
        (Panel::Extents, extents),
        (Panel::Workload, workload),
        (Panel::SelfCheck, check),
        (Panel::Events, events),
    ]
}

pub(super) fn rows<const N: usize>(area: Rect, parts: [Constraint; N]) -> [Rect; N] {
    Layout::vertical(parts).areas(area)
}

pub(super) fn columns<const N: usize>(area: Rect, parts: [Constraint; N]) -> [Rect; N] {
    Layout::horizontal(parts).areas(area)
}
