//! Stack: the layers in call order with what really passes them.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::widgets::Widget;

use super::Ctx;
use crate::tui::widget::stack_diagram::StackDiagram;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Stack", "client to media");
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    if sample.layers.is_empty() {
        return ctx.absent(inner, buf, "no layers");
    }
    // A server's clients have numbers; no layer's name has a blank and a number.
    let is_client = |name: &str| {
        name.starts_with("client ") || sample.workloads.iter().any(|w| &*w.name == name)
    };
    let clients = sample.layers.iter().take_while(|l| is_client(&l.name));
    let diagram = StackDiagram {
        layers: &sample.layers,
        clients: clients.count(),
        theme: ctx.theme,
    };
    (&diagram).render(inner.inner(Margin::new(1, 0)), buf);
}
