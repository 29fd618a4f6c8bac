//! The key figures, from 30 x 8 on. Rows give way from the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::tui::format::{fit, time_of};
use crate::tui::model::Model;
use crate::tui::panel::{Ctx, ab, counters, extents, flags, policies, throughput};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::ribbon::Ribbon;
use crate::tui::widget::time_chart::{Axis, spark};

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let Some(sample) = ctx.sample() else {
        let words = "waiting for the first sample";
        return Canvas::new(buf, area).text(0, 0, words, ctx.style(Role::Dim));
    };
    let mut y = 0;
    let row = |y: u16| {
        Rect {
            y: area.y.saturating_add(y),
            height: 1,
            ..area
        }
        .intersection(area)
    };
    // As many workloads as leave the policies and the comparison their rows.
    let policies = fit(ctx.model.setup.policies.len());
    let compared = if sample.comparison.is_some() { 2 } else { 0 };
    let n = usize::from((area.height.saturating_sub(policies + compared) / 3).max(1));
    let first = throughput::first(ctx, n, sample.workloads.len());
    for (index, w) in sample.workloads.iter().enumerate().skip(first).take(n) {
        let mut canvas = Canvas::new(buf, area);
        let width = canvas.width();
        let p99 = format!("p99 {}", time_of(w.recent.n, w.recent.p99));
        let rate = throughput::headline(w, ctx.model.bytes);
        let room = usize::from(width).saturating_sub(rate.len() + p99.len() + 2);
        let line = Line::from(vec![
            ctx.span(Role::Strong, rate),
            Span::raw(format!(" {}", ctx.cut(&w.name, room))),
        ]);
        canvas.line(0, y, &line);
        canvas.right(width, y, &p99, ctx.style(Role::Plain));
        let columns = throughput::columns(ctx, usize::from(width), index);
        let axis = Axis::over(&columns, ctx.model.from_zero);
        spark(&columns, axis, ctx.theme, row(y + 1), buf);
        let ribbon = Ribbon {
            columns: &columns,
            indent: 0,
            theme: ctx.theme,
        };
        (&ribbon).render(row(y + 2), buf);
        y += 3;
    }
    let mut canvas = Canvas::new(buf, area);
    let width = canvas.width();
    // The comparison keeps its rows unless that would leave next to no policies.
    let room = area.height.saturating_sub(y);
    let kept = room.saturating_sub(compared);
    let room = if kept >= 4 { kept } else { room };
    for index in fitting(ctx.model, usize::from(room)) {
        canvas.line(0, y, &policies::line(ctx, index, usize::from(width)));
        y = y.saturating_add(1);
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    lines.extend(ab::short(ctx, width));
    if let Some(c) = &sample.comparison {
        lines.push(Line::from(format!(" {}", ab::short_verdict(ctx, c))));
    }
    for text in [
        flags::avoided(ctx),
        counters::short(ctx),
        extents::short(ctx),
    ] {
        lines.extend(text.map(|text| Line::from(format!(" {text}"))));
    }
    canvas.lines(y, &lines);
}

/// Policies for so many rows: the first ones, and the one switched last in any case.
fn fitting(model: &Model, room: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..model.setup.policies.len()).take(room).collect();
    if let Some(last) = shown.last_mut()
        && *last < model.lead
    {
        *last = model.lead;
    }
    shown
}
