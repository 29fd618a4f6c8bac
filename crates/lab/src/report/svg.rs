//! Charts as SVG, of as few parts as they need; colours come from the classes of the page.

use std::fmt::Write as _;

use super::page::{escape, style};

/// Width of every chart in its own units.
const WIDTH: f64 = 760.0;

/// Room for labels at the left.
const LEFT: f64 = 190.0;

/// Room at the right.
const RIGHT: f64 = 20.0;

/// A chart under construction.
pub(super) struct Svg {
    body: String,
    height: f64,
    title: String,
}

impl Svg {
    pub(super) fn new(title: &str, height: f64) -> Self {
        Self {
            body: String::new(),
            height,
            title: title.to_owned(),
        }
    }

    pub(super) fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64, width: f64) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn rect(&mut self, class: &str, x: f64, y: f64, w: f64, h: f64) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{h:.1}\"/>",
            w.max(0.5)
        );
    }

    pub(super) fn dot(&mut self, class: &str, x: f64, y: f64, r: f64) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"
        );
    }

    /// `anchor` is start, middle or end.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (x, y) in points {
            let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { "M" } else { "L" });
        }
        let _ = writeln!(self.body, "<path class=\"line {class}\" d=\"{d}\"/>");
    }

    /// As part of a page.
    pub(super) fn inline(&self) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.height,
            escape(&self.title),
            self.body
        )
    }

    /// As a file of its own.
    pub(super) fn alone(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n\
             <style>{}</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>\n{}</svg>\n",
            self.height,
            escape(&self.title),
            style(),
            self.body
        )
    }
}

/// A horizontal scale between two values.
pub(super) struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// Spans all the values with some room beside them.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(|v| v.is_finite()) {
            from = from.min(v);
            to = to.max(v);
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        let room = (0.06 * (to - from)).max(1e-9 * to.abs()).max(1e-12);
        Self {
            from: from - room,
            to: to + room,
        }
    }

    pub(super) fn from_zero(most: f64) -> Self {
        Self {
            from: 0.0,
            to: (most * 1.06).max(1e-12),
        }
    }

    pub(super) fn x(&self, v: f64) -> f64 {
        let share = ((v - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    /// Where a value stands on a chart that grows upwards between two heights.
    pub(super) fn y(&self, v: f64, bottom: f64, top: f64) -> f64 {
        let share = ((v - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        bottom + share * (top - bottom)
    }

    /// Round values along the scale, at most eight.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let span = self.to - self.from;
        let raw = span / 6.0;
        let power = 10.0_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|s| *s >= raw)
            .unwrap_or(raw);
        let first = (self.from / step).ceil();
        (0..9)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|v| *v <= self.to)
            .collect()
    }
}

/// The left edge of the plot, where labels end.
pub(super) const fn left() -> f64 {
    LEFT
}

/// The right edge of the plot.
pub(super) const fn right() -> f64 {
    WIDTH - RIGHT
}

/// A number with three or four digits and a letter for the thousands.
pub(super) fn short(v: f64) -> String {
    let size = v.abs();
    let (scaled, letter) = if size >= 1e9 {
        (v / 1e9, "G")
    } else if size >= 1e6 {
        (v / 1e6, "M")
    } else if size >= 1e4 {
        (v / 1e3, "k")
    } else {
        (v, "")
    };
    if scaled.abs() >= 100.0 || (scaled.fract() == 0.0 && scaled.abs() < 1e4) {
        format!("{scaled:.0}{letter}")
    } else if scaled.abs() >= 1.0 {
        format!("{scaled:.2}{letter}")
    } else {
        format!("{scaled:.3}{letter}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ticks() {
        let scale = Scale::around([0.97, 1.05].into_iter());
        let ticks = scale.ticks();
        assert!((3..=9).contains(&ticks.len()), "{ticks:?}");
        assert!(
            ticks
                .iter()
                .all(|t| (t * 1000.0 - (t * 1000.0).round()).abs() < 1e-6)
        );
        assert!(scale.x(0.97) > left() && scale.x(1.05) < right());
        let none = Scale::around(std::iter::empty());
        assert!(none.x(0.5).is_finite());
    }

    #[test]
    fn numbers_are_short() {
        for (v, text) in [
            (0.5, "0.500"),
            (42.0, "42"),
            (12_345.0, "12.35k"),
            (2_500_000.0, "2.50M"),
            (999.4, "999"),
        ] {
            assert_eq!(short(v), text);
        }
    }
}
