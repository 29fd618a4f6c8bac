//! Latency: percentiles by workload and by arm. A percentile with fewer than ten operations beyond
//! it is dimmed and marked `?`.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use cairn_lab::Latency;

use super::{Ctx, right};
use crate::tui::format::{arm_letter, cut, si, us};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

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

/// Cells of a column, and where there is little room.
const WIDE: usize = 7;
const NARROW: usize = 6;

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
    fn cell(self, l: &Latency) -> (String, bool) {
        let beyond = |one_in: u64| l.n / one_in >= 10;
        match self {
            Self::Min => (us(l.min), true),
            Self::P50 => (us(l.p50), beyond(2)),
            Self::P90 => (us(l.p90), beyond(10)),
            Self::P99 => (us(l.p99), beyond(100)),
            Self::P999 => (us(l.p999), beyond(1_000)),
            Self::P9999 => (us(l.p9999), beyond(10_000)),
            // A single observation by nature; the help says so.
            Self::Max => (us(l.max), true),
            Self::Mean => (us(whole(l.mean)), true),
            Self::N => (si(l.n as f64, 3).replace(' ', ""), true),
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
    let rest = if area.width < 50 {
        "us"
    } else {
        "us, of operations done"
    };
    let inner = ctx.open(area, buf, "Latency", rest);
    let rows = rows(ctx);
    if rows.is_empty() {
        return ctx.wait(inner, buf, "waiting for the first sample");
    }
    let mut canvas = Canvas::new(buf, inner);
    let width = usize::from(canvas.width());
    // Where there is little room an arm's letter must do for its name.
    let tight = width < 40;
    let cell = if tight { NARROW } else { WIDE };
    let widest = rows.iter().map(|r| r.label.width()).max().unwrap_or(0);
    let least = if tight { 2 } else { widest.clamp(12, 18) };
    let columns = columns(width.saturating_sub(least + 2), cell);
    let label = width
        .saturating_sub(columns.len() * cell + 2)
        .min(if tight {
            least
        } else {
            widest.clamp(6, 24) + 1
        });
    let heads: String = columns.iter().map(|c| right(c.head(), cell)).collect();
    let indent = " ".repeat(label + 1);
    let mut lines = vec![Line::from(ctx.span(Role::Dim, format!("{indent}{heads}")))];
    for row in rows {
        lines.push(row_line(ctx, &row, label, cell, &columns));
    }
    if ctx.full {
        lines.push(Line::default());
        lines.extend(ctx.prose(
            "now: operations that ended in the last sample. all: since the last reset (r). An \
             arm's row: its slices, settle windows left out. Closed loop: service time only. \
             ? marks a percentile with fewer than ten operations beyond it; max is a single \
             observation.",
            inner.width,
        ));
    }
    canvas.lines(0, &lines);
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
            let label = ctx.span(Role::Plain, format!("{} {word}", cut(&w.name, 14)));
            rows.push(Row { label, latency });
        };
        row("all", &w.total);
        row("now", &w.recent);
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
    let text = cut(&row.label.content, label);
    let mut line = Line::from(vec![
        Span::raw(" "),
        Span::styled(format!("{text:<label$}"), row.label.style),
    ]);
    for column in columns {
        let (text, sure) = if row.latency.n == 0 {
            ("-".to_owned(), true)
        } else {
            column.cell(row.latency)
        };
        line.push_span(if sure {
            Span::raw(right(&text, cell))
        } else {
            ctx.span(Role::Dim, right(&format!("{text}?"), cell))
        });
    }
    line
}
