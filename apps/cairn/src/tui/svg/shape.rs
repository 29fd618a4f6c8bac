//! Box lines, blocks, shades and Braille dots as rectangles.

use std::fmt::Write as _;

use super::{H, W};

/// Rectangles of one colour. Neighbours in a row become one, or seams would show between them.
#[derive(Debug, Default)]
pub(super) struct Path {
    data: String,
    open: Option<[f64; 4]>,
}

impl Path {
    /// Adds a rectangle.
    pub(super) fn rect(&mut self, x: f64, y: f64, w: f64, h: f64) {
        if let Some([left, top, width, height]) = &mut self.open
            && (*left + *width - x).abs() < 0.01
            && (*top - y).abs() < 0.01
            && (*height - h).abs() < 0.01
        {
            *width += w;
            return;
        }
        self.close();
        self.open = Some([x, y, w, h]);
    }

    fn close(&mut self) {
        if let Some([x, y, w, h]) = self.open.take() {
            let _infallible = write!(self.data, "M{x:.1} {y:.1}h{w:.1}v{h:.1}h-{w:.1}z");
        }
    }

    /// The path as SVG writes it.
    pub(super) fn finish(mut self) -> String {
        self.close();
        self.data
    }
}

/// Draws `glyph` in the cell at (`left`, `top`) by calls of `put(share, x, y, w, h)`, where `share`
/// is the opacity in per cent. False: it is no shape but text.
pub(super) fn draw(
    glyph: char,
    left: f64,
    top: f64,
    mut put: impl FnMut(u32, f64, f64, f64, f64),
) -> bool {
    let (mid_x, mid_y) = (left + W / 2.0, top + H / 2.0);
    if let Some((arms, t)) = lines(glyph) {
        let [to_left, to_right, up, down] = arms;
        let from = if to_left { left } else { mid_x - t / 2.0 };
        let to = if to_right { left + W } else { mid_x + t / 2.0 };
        if to_left || to_right {
            put(100, from, mid_y - t / 2.0, to - from, t);
        }
        let from = if up { top } else { mid_y - t / 2.0 };
        let to = if down { top + H } else { mid_y + t / 2.0 };
        if up || down {
            put(100, mid_x - t / 2.0, from, t, to - from);
        }
        return true;
    }
    let code = u32::from(glyph);
    match glyph {
        '▀' => put(100, left, top, W, H / 2.0),
        '▖' => put(100, left, top + H / 2.0, W / 2.0, H / 2.0),
        '▚' => {
            put(100, left, top, W / 2.0, H / 2.0);
            put(100, left + W / 2.0, top + H / 2.0, W / 2.0, H / 2.0);
        }
        '░' => put(25, left, top, W, H),
        '▒' => put(50, left, top, W, H),
        '▓' => put(75, left, top, W, H),
        // Lower blocks, an eighth of the height each.
        '▁'..='█' => {
            let height = H * f64::from(code - 0x2580) / 8.0;
            put(100, left, top + H - height, W, height);
        }
        '┊' => {
            for part in 0..4 {
                put(
                    100,
                    mid_x - 0.5,
                    top + f64::from(part) * H / 4.0,
                    1.0,
                    H / 8.0,
                );
            }
        }
        '▼' | '▲' => {
            for step in 0..4 {
                let width = if glyph == '▼' { 4 - step } else { step + 1 };
                let half = f64::from(width) * 0.9;
                put(
                    100,
                    mid_x - half,
                    mid_y - 3.0 + f64::from(step) * 1.6,
                    2.0 * half,
                    1.7,
                );
            }
        }
        '\u{2800}'..='\u{28ff}' => {
            // Dots 1 2 3 7 at the left, 4 5 6 8 at the right.
            for (bit, (x, y)) in [
                (0, 0),
                (0, 1),
                (0, 2),
                (1, 0),
                (1, 1),
                (1, 2),
                (0, 3),
                (1, 3),
            ]
            .into_iter()
            .enumerate()
            {
                if code >> bit & 1 == 1 {
                    let x = left + W * (0.25 + 0.5 * f64::from(x)) - 1.2;
                    let y = top + H * (0.125 + 0.25 * f64::from(y)) - 1.2;
                    put(100, x, y, 2.4, 2.4);
                }
            }
        }
        _ => return false,
    }
    true
}

/// Left, right, up, down, and the thickness of a box character.
fn lines(glyph: char) -> Option<([bool; 4], f64)> {
    let arms = match glyph {
        '─' | '━' => [true, true, false, false],
        '│' | '┃' => [false, false, true, true],
        '┌' | '┏' => [false, true, false, true],
        '┐' | '┓' => [true, false, false, true],
        '└' | '┗' => [false, true, true, false],
        '┘' | '┛' => [true, false, true, false],
        _ => return None,
    };
    let thick = matches!(glyph, '━' | '┃' | '┏' | '┓' | '┗' | '┛');
    Some((arms, if thick { 2.4 } else { 1.0 }))
}
