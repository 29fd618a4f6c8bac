//! The row below a chart that says which arm each column belongs to: `AAA1bBBB`.
//!
//! A digit is an operator's mark, `|` a switch of the interleaved comparison, a small letter a column inside the settle window, `-` a stopped
//! workload, `?` a sample that was dropped.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::Canvas;
use crate::tui::format::{arm_letter, fit};
use crate::tui::history::{Column, Mark, State};
use crate::tui::theme::{Role, Theme};

/// The ribbon.
#[derive(Debug)]
pub struct Ribbon<'a> {
    /// The columns of the chart above.
    pub columns: &'a [Column],
    /// Cells left of the first column; they hold a word.
    pub indent: u16,
    /// Colours and glyphs.
    pub theme: Theme,
}

impl Widget for &Ribbon<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        if self.indent > 4 {
            canvas.right(self.indent - 1, 0, "arm", self.theme.style(Role::Dim));
        }
        let mut begun = false;
        for (i, column) in self.columns.iter().enumerate() {
            let x = self.indent.saturating_add(fit(i));
            begun |= column.state != State::Missing;
            let letter = arm_letter(column.arm);
            let (glyph, style) = match (column.mark, column.state) {
                // Marks count on; a cell has room for the last digit.
                (Some(Mark::Auto), _) => ('|', self.theme.style(Role::Dim)),
                (Some(Mark::Operator(mark)), _) => (
                    char::from_digit(mark % 10, 10).unwrap_or('?'),
                    self.theme.style(Role::Chosen),
                ),
                (None, State::Live) => (letter, self.theme.arm(column.arm)),
                (None, State::Settling) => {
                    (letter.to_ascii_lowercase(), self.theme.style(Role::Dim))
                }
                (None, State::Stopped) => ('-', self.theme.style(Role::Dim)),
                (None, State::Missing) if begun => ('?', self.theme.style(Role::Warn)),
                (None, State::Missing) => continue,
            };
            canvas.glyph(x, 0, glyph, style);
        }
    }
}
