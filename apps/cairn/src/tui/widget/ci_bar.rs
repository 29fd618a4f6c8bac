//! A confidence interval drawn over an axis that holds zero:
//! `0-------------5-------[===|===]------ %`.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use cairn_lab::Effect;

use super::Canvas;
use super::time_chart::round_step;
use crate::tui::format::{cells, fit};
use crate::tui::theme::{Role, Theme};

/// The bar.
#[derive(Debug)]
pub struct CiBar {
    /// The difference and its interval, as ratios.
    pub effect: Effect,
    /// Colours and glyphs.
    pub theme: Theme,
}

impl Widget for &CiBar {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let width = canvas.width();
        let [lo, mid, hi] = [self.effect.lo, self.effect.ratio, self.effect.hi].map(|x| x * 100.0);
        if width < 10 || !(lo.is_finite() && mid.is_finite() && hi.is_finite()) {
            return;
        }
        let span = (hi.max(0.0) - lo.min(0.0)).max(0.1);
        let step = round_step(span / 4.0);
        let first = (lo.min(0.0) / step - 0.5).floor() * step;
        let last = (hi.max(0.0) / step + 0.5).ceil() * step;
        let plot = f64::from(width - 3);
        let at = |percent: f64| cells((percent - first) / (last - first) * plot);

        let dim = self.theme.style(Role::Dim);
        for x in 0..width - 2 {
            canvas.glyph(x, 0, self.theme.glyphs().rule, dim);
        }
        canvas.right(width, 0, "%", dim);
        let (from, to) = (at(lo), at(hi));
        let mut tick = first;
        let mut free = 0;
        while tick <= last + step / 2.0 {
            let label = if tick.abs() < step / 2.0 {
                "0".to_owned()
            } else if step < 1.0 {
                format!("{tick:+.1}")
            } else {
                format!("{tick:+.0}")
            };
            // A label stands with its middle on its value, and only where there is room.
            let len = fit(label.len());
            let x = at(tick)
                .saturating_sub(len / 2)
                .min((width - 2).saturating_sub(len));
            let hidden = x + len >= from && x <= to + 1;
            if x >= free && !hidden {
                canvas.text(x, 0, &label, dim);
                free = x + len + 1;
            }
            tick += step;
        }
        let strong = self.theme.style(Role::Strong);
        for x in from..=to {
            canvas.glyph(x, 0, '=', strong);
        }
        if to > from + 1 {
            canvas.glyph(from, 0, '[', strong);
            canvas.glyph(to, 0, ']', strong);
        }
        canvas.glyph(at(mid), 0, '|', strong);
        // Zero is what the bar is read against: it shows through.
        if lo < 0.0 && hi > 0.0 {
            canvas.glyph(at(0.0), 0, '0', strong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::ColorDepth;

    fn draw(lo: f64, ratio: f64, hi: f64) -> String {
        let area = Rect::new(0, 0, 44, 1);
        let mut buf = Buffer::empty(area);
        let theme = Theme {
            depth: ColorDepth::None,
            ascii: true,
        };
        (&CiBar {
            effect: Effect { ratio, lo, hi },
            theme,
        })
            .render(area, &mut buf);
        (0..44).map(|x| buf[(x, 0)].symbol().to_owned()).collect()
    }

    #[test]
    fn the_interval_stands_on_the_side_of_its_sign() {
        let zero = |bar: &str| bar.find('0');
        let better = draw(0.082, 0.094, 0.106);
        assert!(better.find('[') > zero(&better), "{better}");
        let worse = draw(-0.106, -0.094, -0.082);
        assert!(worse.find(']') < worse.rfind(" %"), "{worse}");
        let around = draw(-0.02, 0.001, 0.022);
        assert!(around.contains('[') && around.contains(']'), "{around}");
        let inside = zero(&around) > around.find('[') && zero(&around) < around.find(']');
        assert!(inside, "{around}");
    }
}
