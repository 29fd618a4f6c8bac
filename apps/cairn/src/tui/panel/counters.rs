//! Counters: hits and misses of the extent cache slot by slot, and what its readers see: the exact
//! sum, the approximate value, their difference and its bound.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use cairn_lab::{CounterView, ExtentSample, ShrinkSample, SlotSample};

use super::{Ctx, joined, right};
use crate::tui::format::{cells, count, fit, grouped, per_s, percent};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

/// Column at which the bars begin.
const BAR: u16 = 12;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Counters", "extent cache, since reset");
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    let e = &sample.extents;
    let mut canvas = Canvas::new(buf, inner);
    // The readers' table is the point of the panel: it keeps its place when slots are many.
    let tall = canvas.height() >= 9;
    let table = readers(ctx, e, canvas.width(), tall);
    let slots_room = canvas.height().saturating_sub(fit(table.len()));
    // Slots that never counted say nothing, except on the page that shows all.
    let busy: Vec<&SlotSample> = e
        .slots
        .iter()
        .filter(|s| ctx.full || s.hits + s.misses > 0)
        .collect();
    slots(ctx, &busy, &mut canvas, slots_room);
    let at = slots_room.min(fit(busy.len()) + 2);
    canvas.lines(at, &table);
    if ctx.full {
        let lines = ctx.prose(
            "A row is one slot: of a CPU, a thread or a stripe, as the backend (m) has it; past slots: \
             counted where no slot was free; shared: counted while es-counters (p) was shared. \
             exact: all slots summed, read one after another. approx: one load. differ: how far apart the \
             two are now. bound: how far they can be: each slot may hold back less than a batch (b). One \
             shared counter is exact by one load.",
            inner.width,
        );
        canvas.lines(at + fit(table.len()) + 1, &lines);
    }
}

/// A bar a slot: hits, then misses, on the scale of the busiest slot.
fn slots(ctx: &Ctx<'_>, slots: &[&SlotSample], canvas: &mut Canvas<'_>, room: u16) {
    if room < 2 {
        return;
    }
    let glyphs = ctx.theme.glyphs();
    let dim = ctx.style(Role::Dim);
    let most = slots.iter().map(|s| s.hits + s.misses).max().unwrap_or(0);
    let width = canvas.width();
    // Label, bar, counts, share.
    let numbers = if width >= 50 { 24 } else { 8 };
    let bar = width.saturating_sub(BAR + numbers);
    let legend = format!("hits {}  misses {}", glyphs.bar, glyphs.rest);
    canvas.text(1, 0, "slot", dim);
    canvas.text(BAR, 0, &legend, dim);
    if numbers > 8 {
        canvas.right(width - 9, 0, "hits+misses", dim);
    }
    canvas.right(width - 1, 0, "hit %", dim);
    let room = usize::from(room - 1);
    let first = if ctx.full || ctx.focused {
        ctx.model.offset.min(slots.len().saturating_sub(1))
    } else {
        0
    };
    let left = slots.len() - first;
    let shown = if left > room {
        room.saturating_sub(1)
    } else {
        left
    };
    for (y, slot) in (1..).zip(slots.iter().skip(first).take(shown)) {
        let all = slot.hits + slot.misses;
        canvas.text(1, y, &ctx.cut(&slot.label, 10), ctx.style(Role::Plain));
        let scale = |n: u64| cells(n as f64 / most.max(1) as f64 * f64::from(bar));
        let (full, end) = (scale(slot.hits), scale(all));
        // A miss that happened is visible, be it ever so rare.
        let full = if slot.misses > 0 && full == end {
            full.saturating_sub(1)
        } else {
            full
        };
        for x in 0..end {
            let (glyph, role) = if x < full {
                (glyphs.bar, Role::Plain)
            } else {
                (glyphs.rest, Role::Dim)
            };
            canvas.glyph(BAR + x, y, glyph, ctx.style(role));
        }
        if numbers > 8 {
            canvas.right(width - 9, y, &count(all), ctx.style(Role::Plain));
        }
        let share = percent(slot.hits as f64, all as f64);
        canvas.right(
            width - 1,
            y,
            share.trim_end_matches(" %"),
            ctx.style(Role::Plain),
        );
    }
    if shown < left {
        let more = format!("... {} more slots (2 shows all)", left - shown);
        canvas.text(1, fit(shown) + 1, &more, dim);
    }
}

/// The table of readers, and a line on the rates.
fn readers(ctx: &Ctx<'_>, e: &ExtentSample, width: u16, tall: bool) -> Vec<Line<'static>> {
    let wide = width >= 62;
    let head = format!(
        " {:<9}{:>14}{:>14}{:>8}{:>8}{}",
        "",
        "exact",
        "approx",
        "differ",
        "bound",
        if wide { "  used" } else { "" }
    );
    let mut lines = vec![Line::from(ctx.span(Role::Dim, head))];
    let mut row = |name: &str, c: CounterView| {
        let differ = c.exact.abs_diff(c.approx);
        // One shared counter is read exactly by one load: there is nothing to differ.
        let recorded = ctx.model.setup.recorded.is_some();
        let [approx, differ, bound, share] = if recorded {
            [
                grouped(c.approx),
                count(differ),
                "-".to_owned(),
                "-".to_owned(),
            ]
        } else if e.shared {
            ["as exact", "-", "-", "-"].map(str::to_owned)
        } else {
            [
                grouped(c.approx),
                count(differ),
                count(c.bound),
                percent(differ as f64, c.bound as f64),
            ]
        };
        let share = if wide {
            right(&share, 8)
        } else {
            String::new()
        };
        lines.push(Line::from(vec![
            ctx.span(Role::Plain, format!(" {name:<9}")),
            ctx.span(Role::Strong, right(&grouped(c.exact), 14)),
            Span::raw(right(&approx, 14)),
            Span::raw(right(&differ, 8)),
            Span::raw(right(&bound, 8)),
            Span::raw(share),
        ]));
    };
    row("hits", e.hits);
    row("misses", e.misses);
    if tall {
        row("objects", e.objects);
        row("reclaim.", e.reclaimable);
    }
    let rates = joined(
        &[
            format!(" {} hits", per_s(e.hits_per_s)),
            format!("{} misses", per_s(e.misses_per_s)),
            format!(
                "hit {}",
                percent(e.hits_per_s, e.hits_per_s + e.misses_per_s)
            ),
            if e.shared {
                "one shared counter each".to_owned()
            } else {
                format!("{} slots, batch {}", e.backend, e.batch)
            },
        ],
        width,
    );
    lines.push(Line::from(ctx.span(Role::Plain, rates)));
    // Among other panels only when there is something to tell.
    if tall && (ctx.full || e.shrinks.limit.is_some() || e.shrinks.scans > 0) {
        let text = joined(&shrinks(e.shrinks), width);
        lines.push(Line::from(ctx.span(Role::Plain, text)));
    }
    lines
}

/// What the shrinker did, in order of importance.
pub(super) fn shrinks(s: ShrinkSample) -> Vec<String> {
    let mut parts = vec![
        format!(" shrinks {} scans", count(s.scans)),
        format!("reclaimed {}", count(s.reclaimed)),
    ];
    if let Some(limit) = s.limit {
        let rate = per_s(s.reclaimed_per_s);
        parts.push(format!("now {rate}"));
        parts.push(format!("limit {limit}"));
    } else {
        parts.push("no limit".to_owned());
    }
    parts
}

/// `counter differ 102 of 1 016`, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>) -> Option<String> {
    let extents = &ctx.sample()?.extents;
    if extents.shared {
        return Some("counters shared: exact".to_owned());
    }
    let hits = extents.hits;
    let differ = hits.exact.abs_diff(hits.approx);
    Some(format!(
        "counter differ {} of {}",
        count(differ),
        count(hits.bound)
    ))
}
