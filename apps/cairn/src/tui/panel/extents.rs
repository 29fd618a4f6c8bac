//! Extents: what the cache knows of a file, cell by cell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{CellStatus, ExtentSample, Strip};

use super::{Ctx, counters, joined};
use crate::tui::format::{count, grouped, per_s, percent, size};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::strip::{StripMap, glyph, role};

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let extents = ctx.sample().map(|s| &s.extents);
    let strip = extents.and_then(|e| e.strip.as_ref());
    let bytes = strip.map_or(0, bytes);
    let rest = strip.map(|s| {
        let shrinks = extents.map_or(0, |e| e.shrinks.reclaimed);
        let shrunk = match shrinks {
            0 => String::new(),
            n => format!("  {} reclaimed", count(n)),
        };
        let file = match s.file {
            (_, 0 | 1) => String::new(),
            (n, of) => format!("  file {} of {of} (< >)", n + 1),
        };
        format!(
            "{}  inode {}{file}  {}  {} extents{shrunk}{}",
            ctx.cut(&s.path, 24),
            s.ino,
            size(bytes),
            count(s.extents),
            part(s)
        )
    });
    let inner = ctx.open(area, buf, "Extents", &rest.unwrap_or_default());
    let (Some(e), Some(strip)) = (extents, strip) else {
        return ctx.absent(inner, buf, "no file in this scenario");
    };
    let block = u64::from(strip.block_size);
    let map = StripMap {
        cells: &strip.cells,
        from: u64::from(strip.from) * block,
        bytes: u64::from(strip.shown) * block,
        cursor: ctx.model.cursor.and_then(|at| cell_of(strip, at)),
        theme: ctx.theme,
    };
    // Below the map: the legend, and on a page of its own a few more lines.
    let below = if ctx.full { 9 } else { 1 };
    let rows = map.rows(inner.width, inner.height.saturating_sub(below).max(1));
    let place = Rect {
        height: rows.min(inner.height),
        ..inner
    };
    (&map).render(place, buf);
    let mut canvas = Canvas::new(buf, inner);
    canvas.line(0, rows, &legend(ctx, strip, inner.width));
    if ctx.full {
        let cells = u64::try_from(strip.cells.len()).unwrap_or(1).max(1);
        let cell = size(u64::from(strip.shown) * block / cells);
        let mut lines = Vec::new();
        if let Some(at) = ctx.model.cursor {
            lines.push(Line::from(ctx.span(Role::Strong, under(strip, at))));
        }
        lines.extend(explain(ctx, e, &cell, inner.width));
        canvas.lines(rows + 2, &lines);
    }
}

/// What a cell says, and the numbers of the cache.
fn explain(ctx: &Ctx<'_>, e: &ExtentSample, cell: &str, width: u16) -> Vec<Line<'static>> {
    let [written, unwritten, delayed, hole, some] = ctx.theme.glyphs().mixed;
    let looked = e.hits_per_s + e.misses_per_s;
    let numbers = [
        format!(" look-ups {}", per_s(looked)),
        format!("hit {}", percent(e.hits_per_s, looked)),
        format!("entries {}", grouped(e.objects.exact)),
        format!("reclaimable {}", grouped(e.reclaimable.exact)),
    ];
    let mut lines = ctx.prose(
        &format!(
            "A cell is {cell} and shows the state that most of its blocks have; {written} \
             {unwritten} {delayed} {hole} where blocks of another state are among them, {some} where \
             few are cached."
        ),
        width,
    );
    lines.push(Line::from(ctx.span(Role::Plain, joined(&numbers, width))));
    let text = joined(&counters::shrinks(e.shrinks), width);
    lines.push(Line::from(ctx.span(Role::Plain, text)));
    if let Some((ago, last)) = e.shrinks.last {
        let parts = [
            format!(" last {:.1} s ago", ago.as_secs_f64()),
            format!("scanned {}", count(last.scanned)),
            format!("reclaimed {}", count(last.reclaimed)),
            format!("left {}", count(last.left)),
            format!("longest scan {} us", e.shrinks.longest_us),
        ];
        lines.push(Line::from(ctx.span(Role::Plain, joined(&parts, width))));
    }
    lines
}

/// The cell that a block lies in.
fn cell_of(strip: &Strip, block: u32) -> Option<usize> {
    let into = block.checked_sub(strip.from)?;
    if into >= strip.shown {
        return None;
    }
    let cells = u64::try_from(strip.cells.len()).ok()?;
    usize::try_from(u64::from(into) * cells / u64::from(strip.shown)).ok()
}

/// Which part of the file is shown, if not all of it.
fn part(strip: &Strip) -> String {
    if strip.shown >= strip.blocks {
        return String::new();
    }
    let block = u64::from(strip.block_size);
    let from = u64::from(strip.from) * block;
    let until = from + u64::from(strip.shown) * block;
    format!("  shown {} to {}", size(from), size(until))
}

/// What is known at the cursor.
fn under(strip: &Strip, at: u32) -> String {
    let place = size(u64::from(at) * u64::from(strip.block_size));
    let cell = cell_of(strip, at).and_then(|i| strip.cells.get(i));
    let known = match cell.map(|c| (c.status, c.mixed)) {
        None => "outside of the part shown",
        Some((CellStatus::Unknown, false)) => "nothing cached",
        Some((CellStatus::Unknown, true)) => "mostly nothing cached",
        Some((CellStatus::Written, false)) => "written",
        Some((CellStatus::Written, true)) => "mostly written",
        Some((CellStatus::Unwritten, false)) => "unwritten",
        Some((CellStatus::Unwritten, true)) => "mostly unwritten",
        Some((CellStatus::Delayed, false)) => "delayed",
        Some((CellStatus::Delayed, true)) => "mostly delayed",
        Some((CellStatus::Hole, false)) => "hole",
        Some((CellStatus::Hole, true)) => "mostly hole",
    };
    format!(" cursor at {place}, block {at}: {known}")
}

fn bytes(strip: &Strip) -> u64 {
    u64::from(strip.blocks) * u64::from(strip.block_size)
}

/// The share of each state.
fn legend(ctx: &Ctx<'_>, strip: &Strip, width: u16) -> Line<'static> {
    let all = f64::from(strip.blocks);
    let known = strip.written + strip.unwritten + strip.delayed + strip.holes;
    let unknown = u64::from(strip.blocks).saturating_sub(known);
    let mut line = Line::from(" ");
    for (status, name, n) in [
        (CellStatus::Written, "written", strip.written),
        (CellStatus::Unwritten, "unwritten", strip.unwritten),
        (CellStatus::Delayed, "delayed", strip.delayed),
        (CellStatus::Hole, "hole", strip.holes),
        (CellStatus::Unknown, "blank: not cached", unknown),
    ] {
        let glyph = glyph(ctx.theme, status).to_string();
        let text = format!(" {name} {}   ", percent(n as f64, all));
        if line.width() + 1 + text.len() > usize::from(width) + 3 {
            break;
        }
        if status != CellStatus::Unknown {
            line.push_span(Span::styled(glyph, ctx.style(role(status))));
        }
        line.push_span(Span::raw(text));
    }
    line
}

/// `412 extents, 61 % written`, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>) -> Option<String> {
    let strip = ctx.sample()?.extents.strip.as_ref()?;
    let share = strip.written as f64 / f64::from(strip.blocks.max(1)) * 100.0;
    let extents = match strip.extents {
        1 => "1 extent".to_owned(),
        n => format!("{} extents", count(n)),
    };
    Some(format!("{extents}, {share:.0} % written"))
}
