//! Workload: what runs, and what it did since the last reset.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use cairn_lab::{Unit, WorkloadSample};

use super::{Ctx, joined};
use crate::tui::format::{si, size};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Workload", "totals since reset");
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    let mut canvas = Canvas::new(buf, inner);
    let width = canvas.width();
    let mut lines = Vec::new();
    for w in &sample.workloads {
        let about = usize::from(width).saturating_sub(w.name.len().min(14) + 3);
        lines.push(Line::from(vec![
            ctx.span(Role::Strong, format!(" {}", ctx.cut(&w.name, 14))),
            ctx.span(Role::Dim, format!("  {}", ctx.cut(&w.about, about))),
        ]));
        let role = if w.errors > 0 { Role::Bad } else { Role::Plain };
        lines.push(Line::from(ctx.span(role, joined(&totals(w), width))));
    }
    // Where rows are few, the figures of each workload matter more than what it is.
    if lines.len() > usize::from(canvas.height()) {
        lines = sample
            .workloads
            .iter()
            .map(|w| {
                let mut parts = vec![format!(" {}", ctx.cut(&w.name, 14))];
                parts.extend(totals(w).into_iter().map(|t| t.trim_start().to_owned()));
                let role = if w.errors > 0 { Role::Bad } else { Role::Plain };
                Line::from(ctx.span(role, joined(&parts, width)))
            })
            .collect();
    }
    canvas.lines(0, &lines);
}

fn totals(w: &WorkloadSample) -> Vec<String> {
    let ops = match w.unit {
        Unit::Io => "I/Os",
        Unit::Op => "ops",
    };
    let mut parts = vec![
        match w.workers {
            1 => "   1 worker".to_owned(),
            n => format!("   {n} workers"),
        },
        format!("{}{ops}", si(w.ops as f64, 3)),
        format!("errors {}", w.errors),
    ];
    if w.bytes > 0 {
        parts.insert(2, size(w.bytes));
    }
    parts
}
