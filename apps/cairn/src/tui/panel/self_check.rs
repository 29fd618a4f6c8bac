//! Self check: what the view costs and what it may have missed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{Ctx, joined};
use crate::tui::format::{count, si, span};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Self check", "cost of this view");
    let mut canvas = Canvas::new(buf, inner);
    let width = canvas.width();
    let meter = &ctx.model.meter;
    let mut view = Vec::new();
    if let Some((mean, max)) = meter.draw() {
        view.push(format!(" draw {}, max {}", span(mean), span(max)));
    }
    if let Some(fps) = meter.fps {
        view.push(format!("{fps:.1} fps"));
    }
    if let Some(cpu) = meter.cpu {
        view.push(format!("cpu {:.1} %", cpu * 100.0));
    }
    if let Some(bytes) = meter.bytes() {
        view.push(format!("{}B/frame", si(bytes as f64, 3)));
    }
    let (p99, max) = ctx.data.history.lateness();
    let dropped = ctx.sample().map_or(0, |s| s.dropped);
    let sampler = [
        format!(" sampler late p99 {}", span(p99)),
        format!("max {}", span(max)),
        format!("drops {}", count(dropped)),
    ];
    let probe = ctx.sample().is_some_and(|s| s.flags.probe);
    let probe = if probe {
        " flag probe on: it makes set calls slower"
    } else {
        " flag probe off"
    };
    let run = match &ctx.model.out {
        _ if ctx.model.setup.recorded.is_some() => {
            " a recorded run: nothing is measured".to_owned()
        }
        Some(folder) => format!(" run directory at the end: {folder}"),
        None => " run directory: none; x writes one".to_owned(),
    };
    let warn = if dropped > 0 { Role::Warn } else { Role::Plain };
    let lines = [
        Line::from(ctx.span(Role::Plain, joined(&view, width))),
        Line::from(ctx.span(warn, joined(&sampler, width))),
        Line::from(ctx.span(Role::Dim, probe)),
        Line::from(ctx.span(Role::Dim, ctx.cut(&run, usize::from(width)))),
    ];
    canvas.lines(0, &lines);
}
