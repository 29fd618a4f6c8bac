//! Flag words: bits against buffer heads, and one cell a word.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use cairn_lab::HeadSample;

use super::Canvas;
use crate::tui::format::fit;
use crate::tui::theme::{Role, Theme};

/// The state bits of a buffer head by place, as `enum bh_state_bits` in the kernel's
/// `include/linux/buffer_head.h` numbers them, and ext4's own one after those.
pub const BITS: [&str; 17] = [
    "Uptodate",
    "Dirty",
    "Lock",
    "Req",
    "Mapped",
    "New",
    "Async_Read",
    "Async_Write",
    "Delay",
    "Boundary",
    "Write_EIO",
    "Unwritten",
    "Quiet",
    "Meta",
    "Prio",
    "Defer_Completion",
    "Verified",
];

/// Cells a word takes in a row of bits: few words are drawn wide, with a gap between them.
pub fn pitch(words: usize, room: usize) -> usize {
    match room / words.max(1) {
        0 | 1 => 1,
        2 | 3 => 2,
        4..=7 => 4,
        _ => 8,
    }
}

/// One bit over many words, `pitch` cells each: filled where it is set.
pub(crate) fn bit_row(
    canvas: &mut Canvas<'_>,
    (x, y): (u16, u16),
    words: &[HeadSample],
    (bit, pitch): (u32, usize),
    theme: Theme,
) {
    let glyphs = theme.glyphs();
    let gap = usize::from(pitch > 1);
    for (i, word) in words.iter().enumerate() {
        let set = word.bits.checked_shr(bit).is_some_and(|w| w & 1 == 1);
        let (glyph, role) = if set {
            (glyphs.set, Role::Plain)
        } else {
            (glyphs.clear, Role::Dim)
        };
        for cell in 0..pitch - gap {
            let at = x.saturating_add(fit(i * pitch + cell));
            canvas.glyph(at, y, glyph, theme.style(role));
        }
    }
}

/// One cell a word, by the number of bits set in it.
#[derive(Debug)]
pub struct WordMap<'a> {
    /// The words, in block order.
    pub words: &'a [HeadSample],
    /// Colours and glyphs.
    pub theme: Theme,
}

impl Widget for &WordMap<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let width = usize::from(canvas.width()).max(1);
        for (y, row) in self.words.chunks(width).enumerate() {
            for (x, word) in row.iter().enumerate() {
                let set = usize::try_from(word.bits.count_ones()).unwrap_or(usize::MAX);
                let glyph = self.theme.glyphs().words.get(set.min(4)).copied();
                let role = if set == 0 { Role::Dim } else { Role::Plain };
                canvas.glyph(fit(x), fit(y), glyph.unwrap_or('?'), self.theme.style(role));
            }
        }
    }
}
