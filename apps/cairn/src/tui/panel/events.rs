//! Events: what was switched, started, stopped, lost or broken; the newest stands last.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::Ctx;
use crate::tui::format::{count, cut, fold, stamp};
use crate::tui::log::{Event, Kind};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let log = &ctx.data.log;
    let filter = &ctx.model.filter;
    let found = log.matching(filter).count();
    let offset = if ctx.full || ctx.focused {
        ctx.model.offset.min(found.saturating_sub(1))
    } else {
        0
    };
    let n = |n: usize| count(u64::try_from(n).unwrap_or(u64::MAX));
    let mut rest = if filter.is_empty() {
        n(log.len())
    } else {
        format!("{} of {} with \"{filter}\"", n(found), n(log.len()))
    };
    if offset > 0 {
        rest.push_str(", newer ones below");
    }
    let inner = ctx.open(area, buf, "Events", &rest);
    let mut canvas = Canvas::new(buf, inner);
    let room = usize::from(canvas.height());
    let width = usize::from(canvas.width());
    let mut lines = Vec::new();
    for event in log.matching(filter).rev().skip(offset) {
        let rows = rows(ctx, event, width);
        if lines.len() + rows.len() > room {
            break;
        }
        lines.extend(rows.into_iter().rev());
    }
    lines.reverse();
    canvas.lines(0, &lines);
}

/// An event: whole on a page of its own, else cut to a row.
fn rows(ctx: &Ctx<'_>, event: &Event, width: usize) -> Vec<Line<'static>> {
    let role = match event.kind {
        Kind::Info => Role::Plain,
        Kind::Switch => Role::Strong,
        Kind::Warn => Role::Warn,
        Kind::Bad => Role::Bad,
    };
    // Words as well as colours: the kind must be plain without them.
    let head = match (event.kind, event.mark) {
        (_, Some(mark)) => format!("[{mark}] "),
        (Kind::Warn, _) => "note: ".to_owned(),
        (Kind::Bad, _) => "ERROR: ".to_owned(),
        _ => String::new(),
    };
    let mut at = stamp(event.at);
    let room = width.saturating_sub(at.len() + 2);
    let text = cut(&format!("{head}{}", event.text), usize::MAX);
    let texts = if ctx.full {
        fold(&text, room)
    } else {
        vec![text]
    };
    let mut lines = Vec::new();
    for text in texts {
        lines.push(Line::from(vec![
            ctx.span(Role::Dim, format!(" {at} ")),
            ctx.span(role, ctx.cut(&text, room)),
        ]));
        at = " ".repeat(at.len());
    }
    lines
}
