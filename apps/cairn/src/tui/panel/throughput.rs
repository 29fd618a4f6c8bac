//! Throughput: a chart for each workload over one time axis, and the ribbon of arms below.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{Unit, WorkloadSample};

use super::{Ctx, joined};
use crate::tui::format::{arm_letter, bytes_per_s, fit, rate, time_of, words};
use crate::tui::history::{Column, Window};
use crate::tui::model::MERGES;
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::ribbon::Ribbon;
use crate::tui::widget::time_chart::{Axis, SCALE, TimeChart, plot_width};

/// Rows a chart needs: its headline and two rows of plot.
const CHART: u16 = 3;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let workloads = ctx.sample().map_or(&[][..], |s| &s.workloads);
    let height = area.height.saturating_sub(2);
    let (n, foot) = fitting(ctx, workloads.len(), height);
    let inner = ctx.open(area, buf, "Throughput", &title(ctx, n, workloads.len()));
    if workloads.is_empty() {
        return ctx.wait(inner, buf, "waiting for the first sample");
    }
    let shown = workloads
        .iter()
        .enumerate()
        .skip(first(ctx, usize::from(n), workloads.len()));
    let room = inner.height.saturating_sub(foot);
    let mut y = inner.y;
    let mut last = Vec::new();
    for (i, (index, workload)) in (0..n).zip(shown) {
        // The first charts take the rows that do not divide evenly.
        let height = room / n + u16::from(i < room % n);
        let columns = columns(ctx, plot_width(inner.width), index);
        chart(ctx, workload, &columns, Rect { y, height, ..inner }, buf);
        last = columns;
        y += height;
    }
    let ribbon = Ribbon {
        columns: &last,
        indent: SCALE,
        theme: ctx.theme,
    };
    let row = |y: u16| {
        Rect {
            y,
            height: 1,
            ..inner
        }
        .intersection(inner)
    };
    (&ribbon).render(row(y), buf);
    if foot == 2 {
        ends(ctx, row(y + 1), buf);
    }
}

/// The first workload shown: the chosen one, else, where not all fit, the one that is compared.
pub(crate) fn first(ctx: &Ctx<'_>, shown: usize, workloads: usize) -> usize {
    if let Some(only) = ctx.model.only {
        return only;
    }
    let compared = ctx.sample().and_then(|s| s.comparison.as_ref()?.workload);
    compared.unwrap_or(0).min(workloads.saturating_sub(shown))
}

/// Charts that fit, and the rows below them: the ribbon, and the ends of the time axis where that
/// costs no chart.
fn fitting(ctx: &Ctx<'_>, workloads: usize, height: u16) -> (u16, u16) {
    let wanted = if ctx.model.only.is_some() {
        1
    } else {
        fit(workloads)
    };
    let charts = |foot: u16| wanted.min(height.saturating_sub(foot) / CHART).max(1);
    let foot = if height >= 8 && charts(2) == charts(1) {
        2
    } else {
        1
    };
    (charts(foot), foot)
}

/// The columns of one workload, drawn by the arms of the policy switched last.
pub(crate) fn columns(ctx: &Ctx<'_>, width: usize, workload: usize) -> Vec<Column> {
    ctx.data.history.columns(window(ctx, width, workload))
}

/// The part of the past that the chart shows.
pub(crate) fn window(ctx: &Ctx<'_>, width: usize, workload: usize) -> Window {
    Window {
        width,
        merge: MERGES.get(ctx.model.merge).copied().unwrap_or(1),
        end: ctx.model.end,
        policy: ctx.model.lead,
        workload,
        bytes: ctx.model.bytes,
    }
}

fn per_column(ctx: &Ctx<'_>) -> Duration {
    let merge = MERGES.get(ctx.model.merge).copied().unwrap_or(1);
    ctx.model.setup.interval * u32::try_from(merge).unwrap_or(1)
}

fn title(ctx: &Ctx<'_>, shown: u16, workloads: usize) -> String {
    let ms = per_column(ctx).as_millis();
    let column = if ms < 1000 {
        format!("1 col = {ms} ms")
    } else {
        format!("1 col = {} s", ms / 1000)
    };
    let arms = match ctx.model.setup.policies.get(ctx.model.lead) {
        Some(policy) => format!("  arms of {}", policy.name),
        None => String::new(),
    };
    let more = if usize::from(shown) < workloads {
        let at = first(ctx, usize::from(shown), workloads) + 1;
        format!("  {at} of {workloads}: Up Down")
    } else {
        String::new()
    };
    format!("{column}{arms}{more}")
}

/// Headline and plot of one workload.
fn chart(ctx: &Ctx<'_>, w: &WorkloadSample, columns: &[Column], area: Rect, buf: &mut Buffer) {
    let axis = Axis::over(columns, ctx.model.from_zero);
    let mut canvas = Canvas::new(buf, area);
    let scale = axis.words();
    let head = vec![
        ctx.span(Role::Strong, format!(" {}", ctx.cut(&w.name, 14))),
        ctx.span(Role::Strong, format!("  {}", headline(w, ctx.model.bytes))),
        Span::raw(format!("  p99 {}", time_of(w.recent.n, w.recent.p99))),
    ];
    let head = Line::from(head);
    let used = fit(head.width());
    canvas.line(0, 0, &head);
    let parts = [scale, other(w, ctx.model.bytes)];
    let room = canvas.width().saturating_sub(used + 2);
    canvas.right(
        canvas.width(),
        0,
        &joined(&parts, room),
        ctx.style(Role::Dim),
    );
    let plot = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let chart = TimeChart {
        columns,
        axis,
        theme: ctx.theme,
    };
    (&chart).render(plot, buf);
}

/// The rate that the chart shows.
pub(crate) fn headline(w: &WorkloadSample, bytes: bool) -> String {
    if bytes {
        bytes_per_s(w.bytes_per_s)
    } else {
        rate(w.ops_per_s, w.unit)
    }
}

/// The rate that it does not; operations on files move no bytes to speak of.
fn other(w: &WorkloadSample, bytes: bool) -> String {
    if bytes {
        rate(w.ops_per_s, w.unit)
    } else if w.unit == Unit::Io {
        bytes_per_s(w.bytes_per_s)
    } else {
        String::new()
    }
}

/// The last row: how far back the left edge is, what the letters mean, and where the right edge is.
fn ends(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let mut canvas = Canvas::new(buf, area);
    let dim = ctx.style(Role::Dim);
    let width = u32::try_from(plot_width(canvas.width())).unwrap_or(0);
    let end = ctx.model.end.and_then(|seq| ctx.data.history.time_of(seq));
    let back = end.map_or(Duration::ZERO, |end| ctx.data.elapsed().saturating_sub(end));
    let left = format!("{} ago", words(back + per_column(ctx) * width));
    canvas.text(SCALE, 0, &left, dim);
    let right = match end {
        Some(_) => format!("{} ago", words(back)),
        None if ctx.model.frozen.is_some() => "frozen".to_owned(),
        None => "now".to_owned(),
    };
    canvas.right(canvas.width(), 0, &right, dim);
    let arms = ctx.model.setup.policies.get(ctx.model.lead);
    let Some(arms) = arms.map(|p| &p.arms) else {
        return;
    };
    let mut legend = vec![Span::raw("   ")];
    for (arm, name) in arms.iter().enumerate().take(4) {
        let text = format!("{} {name}  ", arm_letter(arm));
        legend.push(Span::styled(text, ctx.theme.arm(arm)));
    }
    let from = SCALE + fit(left.len());
    let words = [
        "digit: switched by hand  | by auto  small: settling  - stopped",
        "digit: switch  small: settling  - stopped",
        "digit: switch  a b: settling",
        "",
    ];
    for words in words {
        let mut legend = Line::from(legend.clone());
        legend.push_span(ctx.span(Role::Dim, words));
        if fit(legend.width()) + from + fit(right.len()) < canvas.width() {
            canvas.line(from, 0, &legend);
            return;
        }
    }
}
