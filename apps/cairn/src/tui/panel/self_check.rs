//! Self check: what the view costs and what it may have missed, whether the invariants below hold, and what else
//! the machine does.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use cairn_lab::{Check, Sample};

use super::{Ctx, joined};
use crate::tui::format::{count, fold, si, span};
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
        "flag probe on: sets cost more, in either arm"
    } else {
        "flag probe off"
    };
    let run = match &ctx.model.out {
        _ if ctx.model.setup.recorded.is_some() => {
            " a recorded run: nothing is measured".to_owned()
        }
        Some(folder) => format!(" run directory at the end: {folder}"),
        None => " run directory: none; x writes one".to_owned(),
    };
    let warn = if dropped > 0 { Role::Warn } else { Role::Plain };
    let mut lines = vec![
        Line::from(ctx.span(Role::Plain, joined(&view, width))),
        Line::from(ctx.span(warn, joined(&sampler, width))),
    ];
    if let Some(sample) = ctx.sample().filter(|_| ctx.model.setup.recorded.is_none()) {
        let room = usize::from(width);
        // Where every row counts, two facts share one.
        let wide = canvas.height() >= 6;
        lines.extend(invariants(ctx, sample, room));
        let mut machine = vec![machine(sample)];
        if !wide {
            machine.push(probe.to_owned());
        }
        lines.push(Line::from(ctx.span(Role::Plain, joined(&machine, width))));
        if wide {
            lines.push(Line::from(ctx.span(Role::Dim, format!(" {probe}"))));
        }
    }
    lines.push(Line::from(
        ctx.span(Role::Dim, ctx.cut(&run, usize::from(width))),
    ));
    canvas.lines(0, &lines);
}

/// `invariants: extents ok 412, references ok 1 024, sums ok 5`; what does not hold stands alone.
fn invariants(ctx: &Ctx<'_>, sample: &Sample, room: usize) -> Vec<Line<'static>> {
    if let Some((name, what)) = sample.checks.broken() {
        let text = format!(" BROKEN {name}: {what}");
        let rows = fold(&text, room.saturating_sub(1));
        let line = |row: String| Line::from(ctx.span(Role::Bad, format!(" {row}")));
        return rows.into_iter().take(2).map(line).collect();
    }
    let words = |numbers: bool| {
        let parts = sample.checks.all().map(|(name, check)| match check {
            Check::Held(n) if numbers => format!("{name} ok ({})", count(*n)),
            Check::Held(_) => format!("{name} ok"),
            _ => format!("{name} -"),
        });
        format!(" invariants: {}", parts.join(", "))
    };
    // How many were looked at, where there is room for it.
    let fits = |text: &String| text.len() <= room;
    let text = [words(true), words(false)].into_iter().find(fits);
    let names = || {
        let held = |check: &Check| matches!(check, Check::Held(_));
        let all = sample.checks.all().into_iter().filter(|(_, c)| held(c));
        let names: Vec<_> = all.map(|(name, _)| name).collect();
        format!(" ok: {}", names.join(", "))
    };
    let text = ctx.cut(&text.unwrap_or_else(names), room);
    vec![Line::from(ctx.span(Role::Plain, text))]
}

/// What the machine did besides, over the last second.
fn machine(sample: &Sample) -> String {
    match &sample.machine {
        None => " machine: -".to_owned(),
        Some(w) => format!(
            " machine: steal {:.1} % of a CPU, others {:.1} %",
            w.steal * 100.0,
            w.others * 100.0
        ),
    }
}
