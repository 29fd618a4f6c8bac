//! From the state to cells. Pure: the same model draws the same screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::model::{Model, Page, Panel};
use super::panel::{self, Ctx};
use super::theme::Theme;
use super::widget::time_chart::plot_width;

mod chrome;
mod compact;
mod help;
mod mini;
mod sheet;
mod small;
mod wide;

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Everything at once: at least 140 x 40.
    Wide,
    /// One page at a time: at least 80 x 24.
    Compact,
    /// The key figures: at least 30 x 8.
    Mini,
    /// Nothing useful.
    TooSmall,
}

impl Class {
    /// The class of a screen.
    pub fn of((width, height): (u16, u16)) -> Self {
        if width >= 140 && height >= 40 {
            Self::Wide
        } else if width >= 80 && height >= 24 {
            Self::Compact
        } else if width >= 30 && height >= 8 {
            Self::Mini
        } else {
            Self::TooSmall
        }
    }
}

/// Draws the whole screen into `area`.
pub fn render(model: &Model, area: Rect, buf: &mut Buffer) {
    let class = Class::of((area.width, area.height));
    if class == Class::TooSmall {
        return small::render(model, area, buf);
    }
    if let Some(line) = model.help {
        return help::render(model.theme, line, area, buf);
    }
    if let Some(sheet) = &model.sheet {
        return sheet::render(model, sheet, area, buf);
    }
    let bars = chrome::bars(class, area);
    chrome::header(model, class, bars.header, buf);
    if let Some(tabs) = bars.tabs {
        chrome::tabs(model, tabs, buf);
    }
    if class == Class::Mini && full_panel(model).is_none() {
        mini::render(&Ctx::new(model), bars.body, buf);
    }
    for (panel, rect) in panels(model, class, bars.body) {
        let mut ctx = Ctx::new(model);
        ctx.full = full_panel(model).is_some();
        ctx.focused = !ctx.full && panel == model.focus;
        panel::render(panel, &ctx, rect, buf);
    }
    chrome::footer(model, bars.footer, buf);
}

/// The panels on screen and their places, in the order in which the focus visits them.
pub fn layout(model: &Model) -> Vec<(Panel, Rect)> {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let class = Class::of(model.size);
    if class == Class::TooSmall {
        return Vec::new();
    }
    panels(model, class, chrome::bars(class, area).body)
}

fn panels(model: &Model, class: Class, body: Rect) -> Vec<(Panel, Rect)> {
    match (full_panel(model), class) {
        (Some(panel), _) => vec![(panel, body)],
        (None, Class::Wide) => wide::layout(model, body),
        (None, Class::Compact) => compact::layout(model, body),
        (None, Class::Mini | Class::TooSmall) => Vec::new(),
    }
}

/// The panel that has the page for itself, if one has.
pub fn full_panel(model: &Model) -> Option<Panel> {
    match model.page {
        Page::Overview => model.zoomed.then_some(model.focus),
        page => page.panel(),
    }
}

/// Columns that the throughput chart has room for.
pub(crate) fn chart_columns(model: &Model) -> u64 {
    let chart = layout(model)
        .into_iter()
        .find(|(panel, _)| *panel == Panel::Throughput);
    let width = match chart {
        Some((_, area)) => plot_width(area.width.saturating_sub(2)),
        // The smallest screens draw over the whole width.
        None => usize::from(model.size.0),
    };
    u64::try_from(width.max(1)).unwrap_or(u64::MAX)
}

/// Lines of a panel's list that can be scrolled.
pub(crate) fn list_len(model: &Model, panel: Panel) -> usize {
    let sample = model.shown().latest.as_ref();
    match panel {
        Panel::Counters => sample.map_or(0, |s| s.extents.slots.len()),
        _ => 0,
    }
}

/// Lines of the A/B page that a screen of this size cannot show.
pub(crate) fn ab_overflow(model: &Model) -> usize {
    let layout = layout(model);
    let full = full_panel(model) == Some(Panel::Ab);
    let area = layout.into_iter().find(|(p, _)| full && *p == Panel::Ab);
    area.map_or(0, |(_, area)| {
        panel::ab::overflow(
            &Ctx {
                full,
                ..Ctx::new(model)
            },
            area,
        )
    })
}

/// Lines of help that a screen of this size cannot show.
pub(crate) fn help_overflow(theme: Theme, size: (u16, u16)) -> usize {
    help::overflow(theme, size)
}
