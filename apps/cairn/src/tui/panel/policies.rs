//! Policies: the letter that switches each, all its arms, the chosen one between `> <` and reversed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Ctx;
use crate::tui::format::{arm_letter, fold};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

/// Widest name shown.
const NAME: usize = 13;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let inner = ctx.open(area, buf, "Policies", "press the letter, live");
    let mut canvas = Canvas::new(buf, inner);
    let width = usize::from(canvas.width());
    let policies = &ctx.model.setup.policies;
    let mut lines: Vec<Line<'_>> = (0..policies.len()).map(|i| line(ctx, i, width)).collect();
    if !policies.is_empty() {
        lines.push(auto(ctx));
    }
    let height = usize::from(canvas.height());
    if ctx.full {
        lines.push(Line::default());
        for policy in policies {
            let text = format!("{} {}: {}", policy.key, policy.name, policy.about);
            lines.push(Line::from(ctx.span(Role::Plain, ctx.cut(&text, width))));
            let text = format!("  registered by {}", policy.owner);
            lines.push(Line::from(ctx.span(Role::Dim, ctx.cut(&text, width))));
        }
    } else if let Some(lead) = policies.get(ctx.model.lead) {
        // What the policy switched last is about, if that fits whole.
        let text = format!("{} {}: {}", lead.key, lead.name, lead.about);
        let rows = fold(&text, width);
        let left = height.saturating_sub(lines.len());
        if rows.len() < left {
            lines.push(Line::default());
        }
        if rows.len() <= left {
            let dim = |row| Line::from(ctx.span(Role::Dim, row));
            lines.extend(rows.into_iter().map(dim));
        }
    }
    if lines.is_empty() {
        lines.push(Line::from(ctx.span(Role::Dim, " none in this scenario")));
    }
    canvas.lines(0, &lines);
}

/// The key of the interleaved comparison and how far it is.
fn auto(ctx: &Ctx<'_>) -> Line<'static> {
    let state = match ctx.sample().and_then(|s| s.auto) {
        Some(auto) if auto.running => {
            // Two slices and about one settle window with its odd sample.
            let pair = 2.0 * auto.slice.as_secs_f64() + 0.3;
            let left = pair * f64::from(auto.wanted.saturating_sub(auto.pairs));
            let done = format!("{} of {} pairs", auto.pairs, auto.wanted);
            format!("{done}, {left:.0} s left")
        }
        Some(auto) => format!("done: {} pairs", auto.pairs),
        None => {
            let lead = ctx.model.setup.policies.get(ctx.model.lead);
            lead.map_or_else(
                || "off".to_owned(),
                |p| format!("off, would switch {}", p.name),
            )
        }
    };
    Line::from(vec![
        ctx.span(Role::Key, "a "),
        ctx.span(Role::Plain, format!("{:<NAME$} {state}", "auto A/B")),
    ])
}

/// One policy in `width` cells. Letters of arms, then arms not chosen, give way when it is narrow.
pub(crate) fn line(ctx: &Ctx<'_>, index: usize, width: usize) -> Line<'static> {
    let Some(policy) = ctx.model.setup.policies.get(index) else {
        return Line::default();
    };
    let chosen = ctx.model.arms.get(index).copied().unwrap_or(0);
    let head = vec![
        ctx.span(Role::Key, format!("{} ", policy.key)),
        ctx.span(
            Role::Plain,
            format!("{:<NAME$}", ctx.cut(&policy.name, NAME)),
        ),
    ];
    let room = width.saturating_sub(NAME + 2);
    let letters = policy.arms.len() == 2;
    let full = arms(ctx, &policy.arms, chosen, letters);
    let short = arms(ctx, &policy.arms, chosen, false);
    let mut line = Line::from(head);
    for choice in [full, short] {
        if Line::from(choice.clone()).width() <= room {
            line.extend(choice);
            return line;
        }
    }
    let name = policy.arms.get(chosen).map_or("?", String::as_str);
    let of = format!(" of {}", policy.arms.len());
    let name = ctx.cut(
        &format!("{} {name}", arm_letter(chosen)),
        room.saturating_sub(2 + of.len()),
    );
    line.push_span(Span::styled(format!(">{name}<"), chosen_style(ctx, chosen)));
    line.push_span(ctx.span(Role::Dim, of));
    line
}

fn chosen_style(ctx: &Ctx<'_>, arm: usize) -> ratatui::style::Style {
    ctx.theme.arm(arm).patch(ctx.style(Role::Chosen))
}

fn arms(ctx: &Ctx<'_>, names: &[String], chosen: usize, letters: bool) -> Vec<Span<'static>> {
    let mut spans = Vec::with_capacity(names.len());
    for (arm, name) in names.iter().enumerate() {
        let text = if letters {
            format!("{} {name}", arm_letter(arm))
        } else {
            name.clone()
        };
        spans.push(if arm == chosen {
            Span::styled(format!(">{text}<"), chosen_style(ctx, arm))
        } else {
            ctx.span(Role::Dim, format!(" {text} "))
        });
    }
    spans
}
