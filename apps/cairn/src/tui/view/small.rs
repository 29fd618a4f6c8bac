//! A screen with no room for anything: it says what it needs. The run goes on, and keys still work.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Paragraph, Widget, Wrap};

use crate::tui::model::Model;

pub(super) fn render(model: &Model, area: Rect, buf: &mut Buffer) {
    let state = match (&model.failure, model.running()) {
        (Some(_), _) => "a worker failed",
        (None, true) => "the run goes on",
        (None, false) => "the workload is stopped",
    };
    let text = format!(
        "need 30x8, have {}x{}; {state}; q quits",
        area.width, area.height
    );
    Paragraph::new(text)
        .wrap(Wrap { trim: true })
        .render(area, buf);
}
