//! Extents: what the cache knows of the first file, cell by cell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{CellStatus, Strip};

use super::{Ctx, rows_below};
use crate::tui::format::{count, percent, size};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::strip::{StripMap, glyph, role};

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let strip = ctx.sample().and_then(|s| s.extents.strip.as_ref());
    let bytes = strip.map_or(0, bytes);
    let rest = strip.map(|s| {
        format!(
            "inode {}  {}  {} extents",
            s.ino,
            size(bytes),
            count(s.extents)
        )
    });
    let inner = ctx.open(area, buf, "Extents", &rest.unwrap_or_default());
    let Some(strip) = strip else {
        return ctx.wait(inner, buf, "no file in this scenario");
    };
    let canvas = Canvas::new(buf, inner);
    // Legend and, where it fits, a word on the cells; the map takes the rest.
    let foot = u16::from(inner.height >= 2);
    let map = StripMap {
        cells: &strip.cells,
        bytes,
        theme: ctx.theme,
    };
    let room = rows_below(&canvas, foot);
    let rows = u16::try_from(room).unwrap_or(0);
    let rows = if ctx.full {
        rows.saturating_sub(2)
    } else {
        rows
    };
    (&map).render(
        Rect {
            height: rows,
            ..inner
        },
        buf,
    );
    let mut canvas = Canvas::new(buf, inner);
    canvas.line(0, rows, &legend(ctx, strip, inner.width));
    if ctx.full {
        let cells = u64::try_from(strip.cells.len()).unwrap_or(1).max(1);
        let how = if ctx.theme.ascii {
            "small letter"
        } else {
            "underlined"
        };
        let text = format!(
            " one cell is {} of the file and shows the state of most of its blocks; {how}: others too",
            size(bytes / cells)
        );
        canvas.text(0, rows + 1, &text, ctx.style(Role::Dim));
    }
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

/// `W 61 U 18 D 9 H 12 %`, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>) -> Option<String> {
    let strip = ctx.sample()?.extents.strip.as_ref()?;
    let share = |n: u64| format!("{:.0}", n as f64 / f64::from(strip.blocks.max(1)) * 100.0);
    Some(format!(
        "W {} U {} D {} H {} %  {} ext",
        share(strip.written),
        share(strip.unwritten),
        share(strip.delayed),
        share(strip.holes),
        count(strip.extents)
    ))
}
