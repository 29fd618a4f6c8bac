//! A file's extents as cells in reading order.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use cairn_lab::{Cell, CellStatus};

use super::Canvas;
use crate::tui::format::{fit, size};
use crate::tui::theme::{Role, Theme};

/// Cells left of the map: the offset at which a row begins.
const MARGIN: u16 = 10;

/// The map.
#[derive(Debug)]
pub struct StripMap<'a> {
    /// Cells, from `from` on.
    pub cells: &'a [Cell],
    /// Place in the file of the first cell, in bytes.
    pub from: u64,
    /// Bytes that all cells are of.
    pub bytes: u64,
    /// The cell with the cursor.
    pub cursor: Option<usize>,
    /// Colours and glyphs.
    pub theme: Theme,
}

/// Place of a status in the glyph tables, and its colour.
fn place(status: CellStatus) -> (usize, Role) {
    match status {
        CellStatus::Written => (0, Role::Written),
        CellStatus::Unwritten => (1, Role::Unwritten),
        CellStatus::Delayed => (2, Role::Delayed),
        CellStatus::Hole => (3, Role::Plain),
        CellStatus::Unknown => (4, Role::Dim),
    }
}

/// Glyph of a status.
pub fn glyph(theme: Theme, status: CellStatus) -> char {
    let (i, _) = place(status);
    theme.glyphs().extents.get(i).copied().unwrap_or('?')
}

/// Colour of a status.
pub fn role(status: CellStatus) -> Role {
    place(status).1
}

impl StripMap<'_> {
    /// Rows that the map takes of an area of this size.
    pub fn rows(&self, width: u16, height: u16) -> u16 {
        let margin = if width >= 40 { MARGIN } else { 0 };
        let width = usize::from(width.saturating_sub(margin)).max(1);
        let cells = self.scaled(width, width * usize::from(height)).len();
        fit(cells.div_ceil(width))
    }

    /// Cells on screen for `room` of them: each as it is, repeated to fill a row or at most doubled
    /// beyond that, or the status of most where several must share one.
    fn scaled(&self, width: usize, room: usize) -> Vec<Cell> {
        let n = self.cells.len();
        if n == 0 || room == 0 {
            return Vec::new();
        }
        let times = (room / n).min((width / n).max(2));
        let shown = if times == 0 { room } else { n * times };
        (0..shown)
            .map(|i| {
                let from = i * n / shown;
                let to = ((i + 1) * n / shown).max(from + 1);
                majority(self.cells.get(from..to).unwrap_or_default())
            })
            .collect()
    }
}

fn majority(cells: &[Cell]) -> Cell {
    let count = |status| cells.iter().filter(|c| c.status == status).count();
    let status = [
        CellStatus::Written,
        CellStatus::Unwritten,
        CellStatus::Delayed,
        CellStatus::Hole,
        CellStatus::Unknown,
    ]
    .into_iter()
    .max_by_key(|status| count(*status))
    .unwrap_or(CellStatus::Unknown);
    Cell {
        status,
        mixed: cells.iter().any(|c| c.mixed || c.status != status),
    }
}

impl Widget for &StripMap<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let margin = if canvas.width() >= 40 { MARGIN } else { 0 };
        let width = usize::from(canvas.width().saturating_sub(margin));
        let glyphs = self.theme.glyphs();
        let cells = self.scaled(width, width * usize::from(canvas.height()));
        let dim = self.theme.style(Role::Dim);
        for (y, row) in cells.chunks(width.max(1)).enumerate() {
            if margin > 0 {
                let share = (y * width) as f64 / cells.len() as f64;
                let offset = self.from as f64 + share * self.bytes as f64;
                canvas.right(margin - 1, fit(y), &offset_words(offset), dim);
            }
            for (x, cell) in row.iter().enumerate() {
                let (kind, role) = place(cell.status);
                let table = if cell.mixed {
                    &glyphs.mixed
                } else {
                    &glyphs.extents
                };
                let glyph = table.get(kind).copied().unwrap_or('?');
                let mut style = self.theme.style(role);
                let i = y * width + x;
                if self.cursor == i.checked_mul(self.cells.len()).map(|n| n / cells.len()) {
                    style = style.patch(self.theme.style(Role::Chosen));
                }
                canvas.glyph(margin + fit(x), fit(y), glyph, style);
            }
        }
    }
}

/// Where a row begins; a fraction of a byte says nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a file's size, so between 0 and u64::MAX"
)]
fn offset_words(offset: f64) -> String {
    size(offset.max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::ColorDepth;

    fn cells(text: &str) -> Vec<Cell> {
        let status = |c| match c {
            'W' => CellStatus::Written,
            'U' => CellStatus::Unwritten,
            _ => CellStatus::Hole,
        };
        text.chars()
            .map(|c| Cell {
                status: status(c),
                mixed: false,
            })
            .collect()
    }

    fn draw(text: &str, width: u16) -> String {
        let cells = cells(text);
        let area = Rect::new(0, 0, width, 1);
        let mut buf = Buffer::empty(area);
        let theme = Theme {
            depth: ColorDepth::None,
            ascii: true,
        };
        (&StripMap {
            cells: &cells,
            from: 0,
            bytes: 4096,
            cursor: None,
            theme,
        })
            .render(area, &mut buf);
        (0..width)
            .map(|x| buf[(x, 0)].symbol().to_owned())
            .collect()
    }

    #[test]
    fn cells_repeat_to_fill_and_merge_to_fit() {
        assert_eq!(draw("WU.", 9), "WWWUUU...");
        assert_eq!(draw("WWWWUUUU", 2), "WU");
        assert_eq!(draw("WWWU", 1), "w", "a mixed cell has a small letter");
    }
}
