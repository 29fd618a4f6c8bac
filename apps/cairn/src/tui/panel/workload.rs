//! Workload: what runs, with what of it can be edited in brackets, and what it did since the last reset.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use cairn_lab::{Sample, Unit, WorkloadSample};

use super::{Ctx, joined};
use crate::tui::format::{si, size};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let rest = if ctx.model.setup.workloads.is_empty() {
        "totals since reset"
    } else {
        "w edits: a new run, marked"
    };
    let inner = ctx.open(area, buf, "Workload", rest);
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    let mut canvas = Canvas::new(buf, inner);
    let height = usize::from(canvas.height());
    // Where rows are few, values are left out first, and then the figures of each workload matter more than
    // what it is.
    let all = (1..=3)
        .rev()
        .map(|most| whole(ctx, sample, inner.width, most));
    let fitting = all.into_iter().find(|lines| lines.len() <= height);
    let lines = fitting.unwrap_or_else(|| {
        let workloads = sample.workloads.iter();
        workloads.map(|w| short(ctx, w, inner.width)).collect()
    });
    canvas.lines(0, &lines);
}

/// Of each workload what it is, up to `most` rows of values that can be edited, and what it did.
fn whole(ctx: &Ctx<'_>, sample: &Sample, width: u16, most: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for w in &sample.workloads {
        let name = format!(" {}  ", ctx.cut(&w.name, 14));
        let indent = name.len();
        let room = usize::from(width).saturating_sub(indent);
        let values = values(ctx, &w.name);
        let mut rows = packed(
            ctx,
            &values,
            room,
            if ctx.full { values.len() } else { most },
        );
        if ctx.full || rows.is_empty() {
            rows.insert(0, ctx.cut(&w.about, room));
        }
        let mut head = name;
        for row in rows {
            lines.push(Line::from(vec![
                ctx.span(Role::Strong, head),
                ctx.span(Role::Plain, row),
            ]));
            head = " ".repeat(indent);
        }
        lines.push(Line::from(ctx.span(role(w), joined(&totals(w), width))));
    }
    lines
}

fn role(w: &WorkloadSample) -> Role {
    if w.errors > 0 { Role::Bad } else { Role::Plain }
}

/// A workload in one row.
fn short(ctx: &Ctx<'_>, w: &WorkloadSample, width: u16) -> Line<'static> {
    let mut parts = vec![format!(" {}", ctx.cut(&w.name, 14))];
    parts.extend(totals(w).into_iter().map(|t| t.trim_start().to_owned()));
    Line::from(ctx.span(role(w), joined(&parts, width)))
}

/// What people change first; the rest follows as it was written.
const FIRST: [&str; 7] = [
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "size",
    "rate",
    "rate_iops",
];

/// What of a workload can be edited: `rw [randwrite]`, `bs [4k]`, ...; empty if nothing of it can.
fn values(ctx: &Ctx<'_>, name: &str) -> Vec<String> {
    let mut workloads = ctx.model.setup.workloads.iter();
    let text = workloads
        .find(|(n, _)| n == name)
        .map_or("", |(_, text)| text);
    let words = text.split_whitespace();
    let mut words: Vec<&str> = words.map(|word| word.trim_start_matches('-')).collect();
    words.sort_by_key(|word| {
        let key = word.split_once('=').map_or(*word, |(key, _)| key);
        FIRST.iter().position(|k| *k == key).unwrap_or(FIRST.len())
    });
    let value = |word: &str| match word.split_once('=') {
        Some((key, value)) => format!("{key} [{value}]"),
        None => format!("[{word}]"),
    };
    words.into_iter().map(value).collect()
}

/// The values in rows of `width` cells, `most` at most.
fn packed(ctx: &Ctx<'_>, values: &[String], width: usize, most: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for value in values {
        let value = ctx.cut(value, width);
        let wide = |text: &str| Line::raw(text.to_owned()).width();
        let all = rows.len() == most;
        match rows.last_mut() {
            Some(row) if wide(row) + 2 + wide(&value) <= width => {
                row.push_str("  ");
                row.push_str(&value);
            }
            _ if all => break,
            _ => rows.push(value),
        }
    }
    rows
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
