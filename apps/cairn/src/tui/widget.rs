//! The dashboard's own widgets, and clipped writing for them.
//!
//! ratatui's chart keeps a Unicode axis and hides its plot rectangle, so marks laid over it land one
//! column off; these know where each of their cells is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::format::fit;

pub mod ci_bar;
pub mod log_histogram;
pub mod matrix;
pub mod ribbon;
pub mod stack_diagram;
pub mod strip;
pub mod time_chart;

/// A rectangle of a buffer to write into with its own coordinates; what does not fit is cut.
pub(crate) struct Canvas<'a> {
    buf: &'a mut Buffer,
    area: Rect,
}

impl<'a> Canvas<'a> {
    pub(crate) fn new(buf: &'a mut Buffer, area: Rect) -> Self {
        let area = area.intersection(buf.area);
        Self { buf, area }
    }

    pub(crate) fn width(&self) -> u16 {
        self.area.width
    }

    pub(crate) fn height(&self) -> u16 {
        self.area.height
    }

    /// Writes `text` at column `x` of row `y`.
    pub(crate) fn text(&mut self, x: u16, y: u16, text: &str, style: Style) {
        if x < self.area.width && y < self.area.height {
            let room = usize::from(self.area.width - x);
            self.buf
                .set_stringn(self.area.x + x, self.area.y + y, text, room, style);
        }
    }

    /// Writes `text` so that it ends before column `end`; its head is lost if there is no room.
    pub(crate) fn right(&mut self, end: u16, y: u16, text: &str, style: Style) {
        let width = fit(Line::raw(text).width());
        if width <= end {
            self.text(end - width, y, text, style);
        }
    }

    /// Writes one character.
    pub(crate) fn glyph(&mut self, x: u16, y: u16, glyph: char, style: Style) {
        if x < self.area.width
            && y < self.area.height
            && let Some(cell) = self.buf.cell_mut((self.area.x + x, self.area.y + y))
        {
            cell.set_char(glyph).set_style(style);
        }
    }

    /// Styles a cell without touching its character.
    pub(crate) fn tint(&mut self, x: u16, y: u16, style: Style) {
        if x < self.area.width
            && y < self.area.height
            && let Some(cell) = self.buf.cell_mut((self.area.x + x, self.area.y + y))
        {
            cell.set_style(style);
        }
    }

    /// Writes a line of spans.
    pub(crate) fn line(&mut self, x: u16, y: u16, line: &Line<'_>) {
        if x < self.area.width && y < self.area.height {
            let room = self.area.width - x;
            self.buf
                .set_line(self.area.x + x, self.area.y + y, line, room);
        }
    }

    /// Writes lines from row `y` on.
    pub(crate) fn lines(&mut self, mut y: u16, lines: &[Line<'_>]) {
        for line in lines {
            self.line(0, y, line);
            y = y.saturating_add(1);
        }
    }
}
