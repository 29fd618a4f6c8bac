//! Stack: the layers in call order with what really passes them; on a page of its own, what the chosen one says.

use cairn_lab::{LayerSample, Sample};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::Ctx;
use crate::tui::format::{bytes_per_s, fold, per_s};
use crate::tui::model::Page;
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::stack_diagram::StackDiagram;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Stack", "client to media");
    let Some(sample) = ctx.sample() else {
        return ctx.wait(inner, buf, "waiting for the first sample");
    };
    if sample.layers.is_empty() {
        return ctx.absent(inner, buf, "no layers");
    }
    let chosen = chosen(ctx.model.layer, sample);
    let diagram = StackDiagram {
        layers: &sample.layers,
        clients: clients(sample),
        selected: (ctx.focused || ctx.full).then_some(chosen),
        theme: ctx.theme,
    };
    // The mark of the chosen layer takes the cell at the left; the right one stays blank.
    let (diagram_area, about) = if ctx.full && inner.width >= 76 {
        let parts = [Constraint::Percentage(50), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(parts).areas(inner);
        (left, Some(right))
    } else {
        (inner, None)
    };
    let diagram_area = Rect {
        width: diagram_area.width.saturating_sub(1),
        ..diagram_area
    };
    (&diagram).render(diagram_area, buf);
    if let (Some(area), Some(layer)) = (about, sample.layers.get(chosen)) {
        let lines = about_layer(ctx, sample, chosen, layer, usize::from(area.width));
        Canvas::new(buf, area).lines(0, &lines);
    }
}

/// The chosen layer; a stack that became shorter has its last one chosen.
pub(crate) fn chosen(layer: usize, sample: &Sample) -> usize {
    layer.min(sample.layers.len().saturating_sub(1))
}

/// How many of the layers are clients.
fn clients(sample: &Sample) -> usize {
    // A server's clients have numbers; no layer's name has a blank and a number.
    let is_client = |name: &str| {
        name.starts_with("client ") || sample.workloads.iter().any(|w| &*w.name == name)
    };
    let clients = sample.layers.iter().take_while(|l| is_client(&l.name));
    clients.count()
}

/// The page that shows a layer in full: latencies of a client, extents of the extent cache, flag words of the
/// buffer cache. Other layers are shown by the stack's own page.
pub(crate) fn page(sample: &Sample, layer: usize) -> Option<Page> {
    let found = sample.layers.get(layer)?;
    if layer < clients(sample) {
        return Some(Page::Latency);
    }
    match &*found.name {
        "extent cache" => Some(Page::Extents),
        "buffer cache" => Some(Page::Flags),
        _ => None,
    }
}

/// Everything that a layer says of itself, with what stands around it and the policies that it brought.
fn about_layer(
    ctx: &Ctx<'_>,
    sample: &Sample,
    index: usize,
    layer: &LayerSample,
    width: usize,
) -> Vec<Line<'static>> {
    let count = sample.layers.len();
    let head = format!(" {}", ctx.cut(&layer.name, width.saturating_sub(2)));
    let mut texts = vec![format!(
        "layer {} of {count}, from the client on",
        index + 1
    )];
    let rates = [layer.per_s.map(per_s), layer.bytes_per_s.map(bytes_per_s)];
    let rates = rates.iter().flatten().map(|rate| rate.trim());
    texts.extend(rates.map(|rate| format!("{rate} in the last sample")));
    let mut lines = vec![Line::from(ctx.span(Role::Strong, head))];
    texts.extend(layer.facts.iter().cloned());
    let policies = &ctx.model.setup.policies;
    for (policy, arm) in policies.iter().zip(&ctx.model.arms) {
        if policy.owner == *layer.name {
            let name = policy.arms.get(*arm).map_or("?", String::as_str);
            texts.push(format!("policy {} {}: {name}", policy.key, policy.name));
        }
    }
    for text in texts {
        let rows = fold(&text, width.saturating_sub(3));
        lines.extend(
            rows.into_iter()
                .map(|row| Line::from(ctx.span(Role::Plain, format!("   {row}")))),
        );
    }
    lines
}
