//! The stack in call order: a line for each layer, the way between them where there is room, and
//! the layers' own facts in what room is left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use cairn_lab::LayerSample;

use super::Canvas;
use crate::tui::format::{bytes_per_s, fit, per_s};
use crate::tui::theme::{Role, Theme};

/// The diagram.
#[derive(Debug)]
pub struct StackDiagram<'a> {
    /// Clients first, media last.
    pub layers: &'a [LayerSample],
    /// How many of them are clients: those stand side by side, not one above the other.
    pub clients: usize,
    /// The layer with the mark; it is in sight.
    pub selected: Option<usize>,
    /// Colours and glyphs.
    pub theme: Theme,
}

/// Lines each layer gets.
#[derive(Clone, Copy)]
struct Room {
    facts: usize,
    way: bool,
}

impl StackDiagram<'_> {
    /// Ways come first, as they make it a stack; then facts, layer by layer, until the room ends.
    fn rooms(&self, height: usize) -> Vec<Room> {
        let n = self.layers.len();
        let way = |i: usize| i + 1 >= self.clients && i + 1 < n;
        let ways = (0..n).filter(|i| way(*i)).count();
        let ways = if height >= n + ways { ways } else { 0 };
        let mut left = height.saturating_sub(n + ways);
        let mut rooms: Vec<Room> = (0..n)
            .map(|i| Room {
                facts: 0,
                way: ways > 0 && way(i),
            })
            .collect();
        let most = self.layers.iter().map(|l| l.facts.len()).max().unwrap_or(0);
        for round in 0..most {
            for (room, layer) in rooms.iter_mut().zip(self.layers) {
                if left > 0 && layer.facts.len() > round {
                    room.facts += 1;
                    left -= 1;
                }
            }
        }
        rooms
    }
}

/// Cells for the mark of the chosen layer, left of the names.
const MARK: u16 = 1;

impl Widget for &StackDiagram<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let (height, width) = (usize::from(canvas.height()), canvas.width());
        let [strong, dim, plain] =
            [Role::Strong, Role::Dim, Role::Plain].map(|role| self.theme.style(role));
        let glyphs = self.theme.glyphs();
        // Where not all fit, a line says how many are left, and the chosen one stands above it.
        let first = if self.layers.len() > height {
            let chosen = self.selected.unwrap_or(0);
            chosen.saturating_sub(height.saturating_sub(2))
        } else {
            0
        };
        let mut y = 0;
        let rooms = self.rooms(height);
        let layers = self.layers.iter().zip(rooms).enumerate().skip(first);
        for (i, (layer, room)) in layers {
            if usize::from(y) + 1 == height && i + 1 < self.layers.len() {
                let more = format!("... {} more", self.layers.len() - i);
                canvas.text(MARK, y, &more, dim);
                return;
            }
            let chosen = self.selected == Some(i);
            if chosen {
                canvas.glyph(0, y, '>', strong);
            }
            let bytes = layer.bytes_per_s.map(bytes_per_s);
            let rate = layer.per_s.map(per_s);
            let mut end = width;
            // Bytes only where the name keeps a dozen cells.
            if let Some(bytes) = bytes.filter(|_| width >= 34 + MARK) {
                canvas.right(end, y, &bytes, dim);
                end -= 11;
            }
            if let Some(rate) = rate {
                canvas.right(end, y, &rate, plain);
                end = end.saturating_sub(fit(rate.len()) + 1);
            }
            let name = self
                .theme
                .cut(&layer.name, usize::from(end.saturating_sub(MARK)));
            let style = if chosen {
                self.theme.style(Role::Chosen)
            } else {
                strong
            };
            canvas.text(MARK, y, &name, style);
            y += 1;
            for fact in layer.facts.iter().take(room.facts) {
                // Every client leads down, past those that stand below it.
                let bar = if i + 1 < self.layers.len() {
                    glyphs.flow
                } else {
                    ' '
                };
                canvas.glyph(1 + MARK, y, bar, dim);
                let room = usize::from(width.saturating_sub(3 + MARK));
                canvas.text(3 + MARK, y, &self.theme.cut(fact, room), dim);
                y += 1;
            }
            if room.way {
                canvas.glyph(1 + MARK, y, glyphs.arrow, dim);
                y += 1;
            }
        }
    }
}
