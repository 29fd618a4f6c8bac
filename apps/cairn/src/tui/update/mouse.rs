//! The mouse: a click focuses a panel or switches a policy, the wheel zooms time.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{Cmd, keys};
use crate::tui::model::{Model, Panel, Redraw};
use crate::tui::view;

pub(super) fn event(model: &mut Model, event: MouseEvent) -> Vec<Cmd> {
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => click(model, event.column, event.row),
        MouseEventKind::ScrollUp => {
            keys::zoom_time(model, -1);
            Vec::new()
        }
        MouseEventKind::ScrollDown => {
            keys::zoom_time(model, 1);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn click(model: &mut Model, x: u16, y: u16) -> Vec<Cmd> {
    if model.help.take().is_some() {
        model.want(Redraw::Soon);
        return Vec::new();
    }
    let hit = view::layout(model)
        .into_iter()
        .find(|(_, area)| area.contains(Position { x, y }));
    let Some((panel, area)) = hit else {
        return Vec::new();
    };
    model.focus = panel;
    model.offset = 0;
    model.want(Redraw::Soon);
    // One policy a line, below the upper border.
    let row = usize::from(y.saturating_sub(area.y + 1));
    let inside = y > area.y && y + 1 < area.bottom();
    if panel == Panel::Policies && inside && row < model.setup.policies.len() {
        return vec![Cmd::Toggle(row)];
    }
    Vec::new()
}
