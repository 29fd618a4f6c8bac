//! The panels, a file each. A panel prints what the sample says; it computes no statistic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

use cairn_lab::Sample;

use super::format::{arm_letter, fit, fold};
use super::model::{Data, Model, Panel};
use super::theme::{Role, Theme};
use super::widget::Canvas;

pub(crate) mod ab;
pub(crate) mod counters;
mod events;
pub(crate) mod extents;
pub(crate) mod flags;
mod latency;
pub(crate) mod policies;
mod self_check;
pub(crate) mod stack;
pub(crate) mod throughput;
mod workload;

/// Everything a panel may look at.
#[derive(Clone, Copy)]
pub(crate) struct Ctx<'a> {
    pub(crate) model: &'a Model,
    pub(crate) data: &'a Data,
    pub(crate) theme: Theme,
    /// The panel has the focus.
    pub(crate) focused: bool,
    /// The panel fills the page.
    pub(crate) full: bool,
}

impl<'a> Ctx<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            data: model.shown(),
            theme: model.theme,
            focused: false,
            full: false,
        }
    }

    pub(crate) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    pub(crate) fn span(&self, role: Role, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.theme.style(role))
    }

    pub(crate) fn sample(&self) -> Option<&'a Sample> {
        self.data.latest.as_deref()
    }

    /// `text` in at most `width` cells, with a mark at the end if it was cut.
    pub(crate) fn cut(&self, text: &str, width: usize) -> String {
        self.theme.cut(text, width)
    }

    /// `A always-rmw` in the arm's colour.
    pub(crate) fn arm(&self, policy: usize, arm: usize, width: usize) -> Span<'static> {
        let name = self.model.arm_name(policy, arm);
        let text = self.cut(&format!("{} {name}", arm_letter(arm)), width);
        Span::styled(format!("{text:<width$}"), self.theme.arm(arm))
    }

    /// Draws the border and title; the rest is the inside.
    fn open(&self, area: Rect, buf: &mut Buffer, name: &str, rest: &str) -> Rect {
        let glyphs = self.theme.glyphs();
        let (set, border) = if self.focused {
            (glyphs.focus, Role::Focus)
        } else {
            (glyphs.border, Role::Border)
        };
        // The title lies on the border and would inherit its dimness.
        let bright = |role| self.style(role).remove_modifier(Modifier::DIM);
        let mut title = vec![Span::styled(format!(" {name} "), bright(Role::Strong))];
        if !rest.is_empty() {
            let used = Line::raw(name).width() + 6;
            let rest = self.cut(rest, usize::from(area.width).saturating_sub(used));
            title.push(Span::styled(format!(" {rest} "), bright(Role::Plain)));
        }
        let block = Block::bordered()
            .border_set(set)
            .border_style(self.style(border))
            .title(Line::from(title));
        let inner = block.inner(area);
        block.render(area, buf);
        inner
    }

    /// A word where there is nothing to show, or where a record does not hold what there was.
    fn absent(&self, inner: Rect, buf: &mut Buffer, words: &str) {
        let words = match self.model.setup.recorded {
            Some(_) => "a recorded run does not hold this",
            None => words,
        };
        self.wait(inner, buf, words);
    }

    /// A word where there is nothing to show yet.
    fn wait(&self, inner: Rect, buf: &mut Buffer, words: &str) {
        let lines = self.prose(words, inner.width);
        Canvas::new(buf, inner).lines(0, &lines);
    }

    /// Words in dim lines of at most `width` cells.
    fn prose(&self, words: &str, width: u16) -> Vec<Line<'static>> {
        fold(words, usize::from(width.saturating_sub(2)))
            .into_iter()
            .map(|row| Line::from(self.span(Role::Dim, format!(" {row}"))))
            .collect()
    }
}

/// Draws one panel.
pub(crate) fn render(panel: Panel, ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    if area.width < 2 || area.height < 2 {
        return;
    }
    match panel {
        Panel::Stack => stack::render(ctx, area, buf),
        Panel::Throughput => throughput::render(ctx, area, buf),
        Panel::Policies => policies::render(ctx, area, buf),
        Panel::Ab => ab::render(ctx, area, buf),
        Panel::Latency => latency::render(ctx, area, buf),
        Panel::Counters => counters::render(ctx, area, buf),
        Panel::Flags => flags::render(ctx, area, buf),
        Panel::Extents => extents::render(ctx, area, buf),
        Panel::Workload => workload::render(ctx, area, buf),
        Panel::SelfCheck => self_check::render(ctx, area, buf),
        Panel::Events => events::render(ctx, area, buf),
    }
}

/// `text` right-aligned in `width` cells.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// Rows a canvas can still take below `y`.
pub(crate) fn rows_below(canvas: &Canvas<'_>, y: u16) -> usize {
    usize::from(canvas.height().saturating_sub(y))
}

/// Puts as many of `parts` on one line as fit, two cells apart.
pub(crate) fn joined(parts: &[String], width: u16) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { 0 } else { 2 };
        let wide = Line::raw(line.as_str()).width() + gap + Line::raw(part.as_str()).width();
        if fit(wide) > width {
            break;
        }
        if gap > 0 {
            line.push_str("  ");
        }
        line.push_str(part);
    }
    line
}
