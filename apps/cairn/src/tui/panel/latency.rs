//! Latency: percentiles by workload and by arm. A percentile with fewer than ten operations beyond
//! it is dimmed and marked `?`.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{ArmSample, Latency, WorkloadSample};

use super::{Ctx, right, throughput};
use crate::tui::format::{arm_letter, fit, rough_time, si, time};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::log_histogram::{HeatMap, LogHistogram, Series};

/// A column of the table.
#[derive(Clone, Copy, PartialEq)]
enum Col {
    Min,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
    Mean,
    N,
}

/// In the order in which they are shown.
const COLUMNS: [Col; 9] = [
    Col::Min,
    Col::P50,
    Col::P90,
    Col::P99,
    Col::P999,
    Col::P9999,
    Col::Max,
    Col::Mean,
    Col::N,
];

/// In the order in which they give way.
const LEAVE: [Col; 6] = [Col::Min, Col::P9999, Col::Mean, Col::P90, Col::N, Col::P999];

/// Cells of a column: six for the time, one for a `?`, one between.
const CELL: usize = 8;
/// The same where there is little room: a time marked with `?` has fewer digits then.
const TIGHT: usize = 7;

impl Col {
    fn head(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::P9999 => "p99.99",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::N => "n",
        }
    }

    /// The text of a cell and whether ten operations lie beyond it.
    fn cell(self, l: &Latency, tight: bool) -> (String, bool) {
        let beyond = |one_in: u64| l.n / one_in >= 10;
        let (ns, sure) = match self {
            Self::Min => (l.min, true),
            Self::P50 => (l.p50, beyond(2)),
            Self::P90 => (l.p90, beyond(10)),
            Self::P99 => (l.p99, beyond(100)),
            Self::P999 => (l.p999, beyond(1_000)),
            Self::P9999 => (l.p9999, beyond(10_000)),
            // A single observation by nature; the help says so.
            Self::Max => (l.max, true),
            Self::Mean => (whole(l.mean), true),
            Self::N => return (si(l.n as f64, 3).replace(' ', ""), true),
        };
        if tight && !sure {
            (rough_time(ns), sure)
        } else {
            (time(ns), sure)
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds; the cast saturates and a fraction is below what is shown"
)]
fn whole(x: f64) -> u64 {
    x as u64
}

/// A row: its label and its figures.
struct Row<'a> {
    label: Span<'static>,
    latency: &'a Latency,
}

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    // Where there is little room the title names the workload, and an arm's letter must do for its name.
    let tight = area.width < 42;
    let rest = if tight {
        subject(ctx).map_or_else(String::new, |w| ctx.cut(&w.name, 14))
    } else {
        "of operations done".to_owned()
    };
    let inner = ctx.open(area, buf, "Latency", &rest);
    let rows = if tight { short_rows(ctx) } else { rows(ctx) };
    if rows.is_empty() {
        return ctx.wait(inner, buf, "waiting for the first sample");
    }
    let mut canvas = Canvas::new(buf, inner);
    let width = usize::from(canvas.width());
    let widest = rows.iter().map(|r| r.label.width()).max().unwrap_or(0);
    let least = if tight { widest } else { widest.clamp(12, 18) };
    let cell = if tight { TIGHT } else { CELL };
    let columns = columns(width.saturating_sub(least + 2), cell);
    let label = width
        .saturating_sub(columns.len() * cell + 2)
        .min(widest.clamp(if tight { 1 } else { 6 }, 24) + 1);
    let heads: String = columns.iter().map(|c| right(c.head(), cell)).collect();
    let indent = " ".repeat(label + 1);
    let mut lines = vec![Line::from(ctx.span(Role::Dim, format!("{indent}{heads}")))];
    for row in rows {
        lines.push(row_line(ctx, &row, label, cell, &columns));
    }
    canvas.lines(0, &lines);
    if ctx.full {
        below(ctx, inner, fit(lines.len()), buf);
    }
}

/// The rest of a page: the operations by latency, or over time, and how to read both.
fn below(ctx: &Ctx<'_>, inner: Rect, used: u16, buf: &mut Buffer) {
    let mut workloads = ctx.sample().into_iter().flat_map(|s| &s.workloads);
    let paced = workloads.any(|w| w.response.is_some());
    let how = if paced {
        "Open loop: due counts from the moment that the rate planned, so what a stall delayed is in it; the \
         other rows are service time."
    } else {
        "Closed loop: service time only."
    };
    let words = ctx.prose(
        &format!(
            "now: operations that ended in the last sample. all: since the last reset (r). An arm's row: \
             its slices, settle windows left out. {how} ? marks a percentile with fewer than ten operations \
             beyond it; max is a single observation."
        ),
        inner.width,
    );
    let left = inner.height.saturating_sub(used);
    let text = fit(words.len());
    // The picture comes first, then the words, if both fit.
    let (chart, text) = match left {
        ..5 => (0, left),
        _ if left >= text + 8 => (left - text - 2, text),
        _ => (left - 1, 0),
    };
    let mut canvas = Canvas::new(buf, inner);
    canvas.lines(
        inner.height - text,
        words.get(..usize::from(text)).unwrap_or_default(),
    );
    if chart == 0 {
        return;
    }
    let place = Rect {
        x: inner.x + 1,
        y: inner.y + used + 1,
        width: inner.width.saturating_sub(2),
        height: chart,
    };
    if ctx.model.heat {
        heat(ctx, place, buf);
    } else {
        histogram(ctx, place, buf);
    }
}

fn histogram(ctx: &Ctx<'_>, place: Rect, buf: &mut Buffer) {
    let Some(sample) = ctx.sample() else { return };
    let arms = sample.comparison.as_ref().filter(|c| c.workload.is_some());
    let names: Vec<String>;
    let mut series = Vec::new();
    if let Some(c) = arms {
        names = c
            .arms
            .iter()
            .map(|a| arm_letter(a.arm).to_string())
            .collect();
        for (arm, name) in c.arms.iter().zip(&names) {
            series.push(Series {
                name,
                buckets: &arm.buckets,
                style: ctx.theme.arm(arm.arm),
            });
        }
    } else {
        for w in &sample.workloads {
            series.push(Series {
                name: &w.name,
                buckets: &w.buckets,
                style: ctx.style(Role::Plain),
            });
        }
    }
    let of = match arms {
        Some(_) => "slices of both arms",
        None => "last sample",
    };
    let title = format!("operations by latency, log scale; {of}   h: over time");
    let mut canvas = Canvas::new(buf, place);
    let title = ctx.cut(&title, usize::from(place.width));
    canvas.text(0, 0, &title, ctx.style(Role::Dim));
    let chart = LogHistogram {
        series: &series,
        theme: ctx.theme,
    };
    (&chart).render(under(place), buf);
}

fn heat(ctx: &Ctx<'_>, place: Rect, buf: &mut Buffer) {
    let Some(sample) = ctx.sample() else { return };
    let n = sample.workloads.len();
    let index = throughput::first(ctx, 1, n);
    let Some(w) = sample.workloads.get(index) else {
        return;
    };
    let [_, one, two, three, four] = ctx.theme.glyphs().words;
    let title = format!(
        "{} over time: {four} 10 % or more  {three} 1 %  {two} 0.1 %  {one} less   h: histogram",
        w.name
    );
    let mut canvas = Canvas::new(buf, place);
    let title = ctx.cut(&title, usize::from(place.width));
    canvas.text(0, 0, &title, ctx.style(Role::Dim));
    let width = HeatMap::columns_in(place.width);
    let columns = ctx
        .data
        .history
        .spreads(throughput::window(ctx, width, index));
    let map = HeatMap {
        columns: &columns,
        theme: ctx.theme,
    };
    (&map).render(under(place), buf);
}

fn under(place: Rect) -> Rect {
    Rect {
        y: place.y + 1,
        height: place.height.saturating_sub(1),
        ..place
    }
}

/// The workload that few rows are about: the compared one, else the first in the chart.
fn subject<'a>(ctx: &Ctx<'a>) -> Option<&'a WorkloadSample> {
    let workloads = &ctx.sample()?.workloads;
    workloads.get(throughput::first(ctx, 1, workloads.len()))
}

/// The arms where there are any, else one workload: as many rows as the smallest panel shows.
fn short_rows<'a>(ctx: &Ctx<'a>) -> Vec<Row<'a>> {
    let arms = ctx.sample().and_then(|s| s.comparison.as_ref());
    if let Some(c) = arms.filter(|c| c.workload.is_some()) {
        let row = |arm: &'a ArmSample| Row {
            label: Span::styled(arm_letter(arm.arm).to_string(), ctx.theme.arm(arm.arm)),
            latency: &arm.latency,
        };
        return c.arms.iter().map(row).collect();
    }
    subject(ctx).map_or_else(Vec::new, |w| {
        [("all", &w.total), ("now", &w.recent)]
            .map(|(word, latency)| Row {
                label: ctx.span(Role::Plain, word),
                latency,
            })
            .into()
    })
}

/// The arms first, as they are the question; then each workload over the last sample and in total.
fn rows<'a>(ctx: &Ctx<'a>) -> Vec<Row<'a>> {
    let Some(sample) = ctx.sample() else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    if let Some(c) = &sample.comparison {
        for arm in &c.arms {
            let name = ctx.model.arm_name(c.policy, arm.arm);
            let text = format!("{} {name}", arm_letter(arm.arm));
            rows.push(Row {
                label: Span::styled(text, ctx.theme.arm(arm.arm)),
                latency: &arm.latency,
            });
        }
    }
    for w in &sample.workloads {
        let mut row = |word: &str, latency| {
            let label = ctx.span(Role::Plain, format!("{} {word}", ctx.cut(&w.name, 14)));
            rows.push(Row { label, latency });
        };
        row("all", &w.total);
        row("now", &w.recent);
        if let Some(response) = &w.response {
            row("due", response);
        }
    }
    rows
}

/// The columns that fit into `width` cells.
fn columns(width: usize, cell: usize) -> Vec<Col> {
    let mut columns = COLUMNS.to_vec();
    for leave in LEAVE {
        if columns.len() * cell <= width {
            break;
        }
        columns.retain(|c| *c != leave);
    }
    columns
}

fn row_line(
    ctx: &Ctx<'_>,
    row: &Row<'_>,
    label: usize,
    cell: usize,
    columns: &[Col],
) -> Line<'static> {
    let text = ctx.cut(&row.label.content, label);
    let mut line = Line::from(vec![
        Span::raw(" "),
        Span::styled(format!("{text:<label$}"), row.label.style),
    ]);
    for column in columns {
        let (text, sure) = if row.latency.n == 0 {
            ("-".to_owned(), true)
        } else {
            column.cell(row.latency, cell == TIGHT)
        };
        line.push_span(if sure {
            Span::raw(right(&text, cell))
        } else {
            ctx.span(Role::Dim, right(&format!("{text}?"), cell))
        });
    }
    line
}
