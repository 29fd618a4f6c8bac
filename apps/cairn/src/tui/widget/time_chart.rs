//! Throughput over time: one column a sample, arm A in Braille dots, arm B in half blocks, so that
//! the arms differ in shape and not only in colour.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::Canvas;
use crate::tui::format::{cells, fit, si};
use crate::tui::history::Column;
use crate::tui::theme::{Role, Theme};

/// Cells left of the plot: the scale and its rule.
pub const SCALE: u16 = 7;

/// The vertical axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Value at the lower edge.
    pub lo: f64,
    /// Value at the upper edge.
    pub hi: f64,
}

impl Axis {
    /// An axis with round ends over the values; from zero, or cut to make small differences visible.
    ///
    /// A cut axis spans at least a twentieth of the values, or noise would look like an effect, and
    /// a few far outliers are left out of it: they stand at its edge with a glyph that says so.
    pub fn over(columns: &[Column], from_zero: bool) -> Self {
        let mut values: Vec<f64> = columns.iter().filter_map(|c| c.value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return Self { lo: 0.0, hi: 1.0 };
        };
        if most <= 0.0 {
            return Self { lo: 0.0, hi: 1.0 };
        }
        let (mut lo, mut hi) = (least, most);
        let out = values.len() / 20;
        let most_of_them = values.get(out..values.len() - out).unwrap_or_default();
        if let (Some(&low), Some(&high)) = (most_of_them.first(), most_of_them.last())
            && hi - lo > 2.0 * (high - low)
        {
            (lo, hi) = (low, high);
        }
        if from_zero {
            lo = 0.0;
        }
        let (mid, span) = (f64::midpoint(lo, hi), (hi - lo).max(hi * 0.05));
        let (lo, hi) = (mid - span / 2.0, mid + span / 2.0);
        let step = round_step(span / 4.0);
        Self {
            lo: ((lo / step).floor() * step).max(0.0),
            hi: (hi / step).floor() * step + step,
        }
    }

    /// Whether the axis does not begin at zero.
    pub fn is_cut(self) -> bool {
        self.lo > 0.0
    }

    /// The words for a title: `axis 160-220 k (cut)`.
    pub fn words(self) -> String {
        let cut = if self.is_cut() { " (cut)" } else { "" };
        let lo = si(self.lo, 3);
        format!(
            "axis {} - {}{cut}",
            lo.trim_end(),
            si(self.hi, 3).trim_end()
        )
    }

    /// Height of `value` over the lower edge, in units of `levels` a full axis.
    fn level(self, value: f64, levels: u16) -> u16 {
        let share = (value - self.lo) / (self.hi - self.lo);
        cells((share * f64::from(levels)).floor()).min(levels.saturating_sub(1))
    }
}

/// The round number (1, 2 or 5 times a power of ten) at or above `x`.
pub(super) fn round_step(x: f64) -> f64 {
    if x <= 0.0 || !x.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(x.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|d| d * power >= x * 0.999);
    digit.unwrap_or(10.0) * power
}

/// The chart.
#[derive(Debug)]
pub struct TimeChart<'a> {
    /// Columns, oldest first; the newest stands at the right edge.
    pub columns: &'a [Column],
    /// The axis.
    pub axis: Axis,
    /// Colours and glyphs.
    pub theme: Theme,
}

impl Widget for &TimeChart<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let height = canvas.height();
        self.scale(&mut canvas);
        let mut before: Option<(usize, f64)> = None;
        for (x, column) in (SCALE..).zip(self.columns) {
            if column.mark.is_some() {
                for y in 0..height {
                    let style = self.theme.style(Role::Dim);
                    canvas.glyph(x, y, self.theme.glyphs().mark, style);
                }
            }
            if let Some(value) = column.value {
                self.band(&mut canvas, x, column.arm);
                let last = before.filter(|(arm, _)| *arm == column.arm).map(|b| b.1);
                self.point(&mut canvas, x, column.arm, value, last.unwrap_or(value));
            }
            before = column.value.map(|value| (column.arm, value));
        }
    }
}

impl TimeChart<'_> {
    fn scale(&self, canvas: &mut Canvas<'_>) {
        let height = canvas.height();
        let dim = self.theme.style(Role::Dim);
        for y in 0..height {
            canvas.glyph(SCALE - 1, y, self.theme.glyphs().axis, dim);
        }
        let mut label = |y: u16, value: f64| {
            canvas.right(SCALE - 1, y, si(value, 3).trim_end(), dim);
        };
        label(0, self.axis.hi);
        if height > 1 {
            label(height - 1, self.axis.lo);
        }
        if height >= 5 && !height.is_multiple_of(2) {
            label(height / 2, f64::midpoint(self.axis.lo, self.axis.hi));
        }
    }

    fn band(&self, canvas: &mut Canvas<'_>, x: u16, arm: usize) {
        let role = if arm.is_multiple_of(2) {
            Role::BandA
        } else {
            Role::BandB
        };
        for y in 0..canvas.height() {
            canvas.tint(x, y, self.theme.style(role));
        }
    }

    /// `last` is the value of the column before, if it belongs to the same arm: the left dots of a
    /// Braille cell stand half-way, which makes a line of the dots.
    fn point(&self, canvas: &mut Canvas<'_>, x: u16, arm: usize, value: f64, last: f64) {
        let height = canvas.height();
        let even = arm.is_multiple_of(2);
        let style = self.theme.arm(arm);
        let row = |level: u16, per_cell: u16| height.saturating_sub(1 + level / per_cell);
        let glyphs = self.theme.glyphs();
        if value > self.axis.hi {
            return canvas.glyph(x, 0, glyphs.above, style);
        }
        if value < self.axis.lo {
            return canvas.glyph(x, height.saturating_sub(1), glyphs.arrow, style);
        }
        if self.theme.ascii {
            let level = self.axis.level(value, height);
            canvas.glyph(x, row(level, 1), if even { '*' } else { '#' }, style);
        } else if even {
            let right = self.axis.level(value, height * 4);
            let left = self.axis.level(f64::midpoint(value, last), height * 4);
            let (left_dot, right_dot) = (dot(LEFT_DOTS, left), dot(RIGHT_DOTS, right));
            if row(left, 4) == row(right, 4) {
                canvas.glyph(x, row(right, 4), braille(left_dot | right_dot), style);
            } else {
                canvas.glyph(x, row(left, 4), braille(left_dot), style);
                canvas.glyph(x, row(right, 4), braille(right_dot), style);
            }
        } else {
            let level = self.axis.level(value, height * 2);
            let [lower, upper] = glyphs.half;
            let half = if level.is_multiple_of(2) {
                lower
            } else {
                upper
            };
            canvas.glyph(x, row(level, 2), half, style);
        }
    }
}

/// Bits of the left and right dots of a Braille cell, lowest first.
const LEFT_DOTS: [u8; 4] = [0x40, 0x04, 0x02, 0x01];
const RIGHT_DOTS: [u8; 4] = [0x80, 0x20, 0x10, 0x08];

fn dot(column: [u8; 4], level: u16) -> u8 {
    let [lowest, low, high, highest] = column;
    match level % 4 {
        0 => lowest,
        1 => low,
        2 => high,
        _ => highest,
    }
}

fn braille(dots: u8) -> char {
    char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' ')
}

/// Columns that fit a chart `width` cells wide.
pub fn plot_width(width: u16) -> usize {
    usize::from(width.saturating_sub(SCALE))
}

/// One row of heights for the smallest screens; the line `mark` stands where a policy was switched.
pub fn spark(columns: &[Column], axis: Axis, theme: Theme, area: Rect, buf: &mut Buffer) {
    let mut canvas = Canvas::new(buf, area);
    let glyphs = theme.glyphs();
    for (x, column) in columns.iter().enumerate() {
        let x = fit(x);
        if column.mark.is_some() {
            canvas.glyph(x, 0, glyphs.mark, theme.style(Role::Dim));
        }
        if let Some(value) = column.value {
            let level = usize::from(axis.level(value, 8));
            let glyph = glyphs.spark.get(level).copied().unwrap_or(' ');
            canvas.glyph(x, 0, glyph, theme.arm(column.arm));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::history::State;

    fn columns(values: &[f64]) -> Vec<Column> {
        let live = |value: &f64| Column {
            value: Some(*value),
            state: State::Live,
            ..Column::default()
        };
        values.iter().map(live).collect()
    }

    #[test]
    fn the_axis_holds_every_value_and_is_round() {
        let axis = Axis::over(&columns(&[184_300.0, 201_600.0]), false);
        assert_eq!(
            axis,
            Axis {
                lo: 180_000.0,
                hi: 205_000.0
            }
        );
        assert!(axis.is_cut());
        let zero = Axis::over(&columns(&[184_300.0, 201_600.0]), true);
        assert_eq!(
            zero,
            Axis {
                lo: 0.0,
                hi: 300_000.0
            }
        );
        assert!(!zero.is_cut());
    }

    #[test]
    fn steady_values_do_not_fill_the_axis_with_noise() {
        let axis = Axis::over(&columns(&[1000.0, 1000.5]), false);
        assert!(axis.hi - axis.lo >= 40.0, "{axis:?}");
    }

    #[test]
    fn a_lone_outlier_does_not_flatten_the_rest() {
        let mut values = [100.0, 110.0].repeat(20);
        values[7] = 3.0;
        let axis = Axis::over(&columns(&values), false);
        assert_eq!(
            axis,
            Axis {
                lo: 100.0,
                hi: 115.0
            }
        );
        let few = Axis::over(&columns(&[100.0, 3.0, 110.0]), false);
        assert!(few.lo.abs() < 1e-9, "of three values none is an outlier");
    }

    #[test]
    fn nothing_and_zero_have_an_axis_too() {
        assert_eq!(Axis::over(&[], false), Axis { lo: 0.0, hi: 1.0 });
        assert_eq!(
            Axis::over(&columns(&[0.0]), false),
            Axis { lo: 0.0, hi: 1.0 }
        );
    }

    #[test]
    fn the_highest_value_stands_in_the_first_row_and_the_lowest_in_the_last() {
        let area = Rect::new(0, 0, SCALE + 2, 4);
        let mut buf = Buffer::empty(area);
        let theme = Theme {
            depth: crate::tui::theme::ColorDepth::None,
            ascii: true,
        };
        let columns = columns(&[10.0, 39.9]);
        let axis = Axis { lo: 10.0, hi: 40.0 };
        (&TimeChart {
            columns: &columns,
            axis,
            theme,
        })
            .render(area, &mut buf);
        assert_eq!(buf[(SCALE, 3)].symbol(), "*");
        assert_eq!(buf[(SCALE + 1, 0)].symbol(), "*");
    }
}
