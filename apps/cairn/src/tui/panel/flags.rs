//! Flags: the words of some buffer heads bit by bit, and how many read-modify-writes were avoided.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use cairn_lab::{FlagSample, HeadSample};

use super::{Ctx, joined, right, rows_below};
use crate::tui::format::{count, fit, per_s, percent};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::matrix::{BITS, WordMap, bit_row, pitch};

/// Cells of a bit's name.
const NAME: u16 = 13;
/// Cells of the counts at the right.
const COUNTS: u16 = 26;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let heads = ctx.sample().map_or(0, |s| s.buffers.heads);
    let shown = ctx.sample().map_or(0, |s| s.flags.words.len());
    let rest = format!("{shown} of {} buffer heads", count(heads));
    let inner = ctx.open(area, buf, "Flags", &rest);
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    let flags = &sample.flags;
    if flags.words.is_empty() && flags.sets == 0 {
        return ctx.absent(inner, buf, "no workload here uses buffer heads");
    }
    let mut canvas = Canvas::new(buf, inner);
    let y = rates(ctx, flags, &mut canvas);
    if rows_below(&canvas, y) == 0 {
        return;
    }
    let left = matrix(ctx, flags, &mut canvas, y);
    let b = &sample.buffers;
    let parts = [
        format!(" {} dirty", count(b.dirty)),
        format!("look-ups {}", per_s(b.lookups_per_s)),
        format!("dirtied {}", per_s(b.dirties_per_s)),
        format!("written back {}", per_s(b.writebacks_per_s)),
        if flags.bits.iter().any(|b| !b.governed) && inner.width >= 60 {
            "* tested under every arm".to_owned()
        } else {
            String::new()
        },
    ];
    canvas.text(
        0,
        left,
        &joined(&parts, inner.width),
        ctx.style(Role::Plain),
    );
    let left = left.saturating_add(1);
    // The rest of a page: every word as one cell.
    if ctx.full && rows_below(&canvas, left) > 3 {
        let glyphs = ctx.theme.glyphs();
        let [none, one, two, three, four] = glyphs.words;
        let legend = format!(
            " each word, by the number of bits set: {none} 0  {one} 1  {two} 2  {three} 3  {four} 4+"
        );
        canvas.text(0, left + 1, &legend, ctx.style(Role::Dim));
        let area = Rect {
            x: inner.x + 1,
            y: inner.y + left + 2,
            width: inner.width.saturating_sub(2),
            height: inner.height.saturating_sub(left + 2),
        };
        let map = WordMap {
            words: &flags.words,
            theme: ctx.theme,
        };
        (&map).render(area, buf);
    }
}

/// The headline; answers the next free row.
fn rates(ctx: &Ctx<'_>, flags: &FlagSample, canvas: &mut Canvas<'_>) -> u16 {
    if !flags.probe {
        let words = " the counting probe is off: counts are not taken";
        canvas.text(0, 0, words, ctx.style(Role::Warn));
        return 1;
    }
    let share = percent(flags.avoided_per_s, flags.sets_per_s);
    let parts = [
        format!(" now set {}", per_s(flags.sets_per_s)),
        format!("avoided {share}"),
        format!("= {}", per_s(flags.avoided_per_s)),
        format!("RMW {}", per_s(flags.rmws_per_s)),
    ];
    let text = joined(&parts, canvas.width());
    canvas.text(0, 0, &text, ctx.style(Role::Strong));
    1
}

/// Bits that are set in a word shown or were counted, in the order of their places.
fn rows(flags: &FlagSample) -> Vec<u32> {
    let any = flags.words.iter().fold(0, |any, word| any | word.bits);
    (0u32..)
        .zip(BITS)
        .filter(|(bit, name)| any >> bit & 1 == 1 || flags.bits.iter().any(|b| same(b.name, name)))
        .map(|(bit, _)| bit)
        .collect()
}

/// A row a bit: its name, the words, its counts. Answers the next free row.
fn matrix(ctx: &Ctx<'_>, flags: &FlagSample, canvas: &mut Canvas<'_>, y: u16) -> u16 {
    let width = canvas.width();
    let dim = ctx.style(Role::Dim);
    let counts = if width >= 60 { COUNTS } else { 0 };
    let room = usize::from(width.saturating_sub(NAME + counts + 1));
    let pitch = pitch(flags.words.len(), room);
    let words: Vec<_> = flags.words.iter().copied().take(room / pitch).collect();
    let bits = rows(flags);
    let rows = rows_below(canvas, y + 1);
    let hidden = (
        flags.words.len().saturating_sub(words.len()),
        bits.len().saturating_sub(rows),
    );
    heads(ctx, &words, (pitch, hidden), canvas, y);
    if counts > 0 {
        canvas.right(width - 1, y, &counts_line("RMW", "avoided", "share"), dim);
    }
    let mut y = y + 1;
    for bit in bits {
        if rows_below(canvas, y) == 0 {
            break;
        }
        let name = name(bit);
        canvas.text(1, y, name, ctx.style(Role::Plain));
        bit_row(canvas, (NAME, y), &words, (bit, pitch), ctx.theme);
        let counted = flags.bits.iter().find(|b| same(b.name, name));
        if counts > 0
            && let Some(b) = counted
        {
            let share = percent(b.avoided as f64, (b.rmws + b.avoided) as f64);
            let text = counts_line(&short(b.rmws), &short(b.avoided), &share);
            let role = if b.governed { Role::Plain } else { Role::Dim };
            canvas.right(width - 1, y, &text, ctx.style(role));
            if !b.governed {
                canvas.glyph(width - 1, y, '*', ctx.style(role));
            }
        }
        y = y.saturating_add(1);
    }
    y.min(fit(usize::from(canvas.height())))
}

/// Above the matrix: block numbers where there is room for them.
fn heads(
    ctx: &Ctx<'_>,
    words: &[HeadSample],
    (pitch, hidden): (usize, (usize, usize)),
    canvas: &mut Canvas<'_>,
    y: u16,
) {
    let dim = ctx.style(Role::Dim);
    if pitch < 8 {
        let more = match hidden {
            (0, 0) => String::new(),
            (heads, 0) => format!(", {heads} more"),
            (0, bits) => format!(", {bits} bits more"),
            (heads, bits) => format!(", {heads} more, {bits} bits more"),
        };
        let text = format!("a head a column, by block{more}");
        canvas.text(NAME, y, &text, dim);
        return;
    }
    canvas.text(1, y, "block", dim);
    for (i, word) in words.iter().enumerate() {
        let text = ctx.cut(&word.block.to_string(), pitch - 1);
        canvas.text(NAME + fit(i * pitch), y, &text, dim);
    }
}

fn name(bit: u32) -> &'static str {
    let name = usize::try_from(bit).ok().and_then(|i| BITS.get(i));
    name.copied().unwrap_or("?")
}

/// Counts come with the names of constants, `UPTODATE`.
fn same(counted: &str, name: &str) -> bool {
    counted.eq_ignore_ascii_case(name)
}

fn counts_line(rmw: &str, avoided: &str, share: &str) -> String {
    format!("{}{}{}", right(rmw, 8), right(avoided, 9), right(share, 8))
}

fn short(n: u64) -> String {
    let text = crate::tui::format::si(n as f64, 3);
    text.trim_end().to_owned()
}

/// `avoided 78 %`, for the smallest screens.
pub(crate) fn avoided(ctx: &Ctx<'_>) -> Option<String> {
    let flags = &ctx.sample()?.flags;
    (flags.probe && flags.sets > 0)
        .then(|| format!("avoided {}", percent(flags.avoided_per_s, flags.sets_per_s)))
}
