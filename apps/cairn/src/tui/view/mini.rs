//! The key figures, from 30 x 8 on. Rows give way from the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::tui::format::{fit, time_of};
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
    for index in 0..ctx.model.setup.policies.len() {
        canvas.line(0, y, &policies::line(ctx, index, usize::from(width)));
        y = y.saturating_add(1);
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    lines.extend(ab::short(ctx, width));
    if let Some(c) = &sample.comparison {
        lines.push(Line::from(format!(" {}", ab::verdict(ctx, c))));
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
