//! A/B: the arms of the policy switched last, as the lab compares them. Nothing is computed here.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{Comparison, Effect};

use super::{Ctx, right};
use crate::tui::format::{arm_letter, change, cut, fit, fold, si, us_of};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::ci_bar::CiBar;

/// Widest arm name.
const NAME: usize = 14;

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let comparison = ctx.sample().and_then(|s| s.comparison.as_ref());
    let policy = comparison.and_then(|c| ctx.model.setup.policies.get(c.policy));
    let rest = policy.map_or("", |p| p.name.as_str());
    let inner = ctx.open(area, buf, "A/B", rest);
    let mut canvas = Canvas::new(buf, inner);
    let width = usize::from(canvas.width());
    let Some(c) = comparison else {
        let lines = nothing_yet(ctx, inner.width);
        canvas.lines(0, &lines);
        return;
    };
    let mut y = 0;
    // Where rows are few the verdict goes first and the arms' own figures are left out.
    let roomy = canvas.height() >= 6;
    if roomy {
        let mut lines = vec![Line::from(ctx.span(Role::Dim, format!(" {}", c.metric)))];
        lines.extend(c.arms.iter().map(|arm| {
            Line::from(vec![
                Span::raw(" "),
                ctx.arm(c.policy, arm.arm, NAME),
                ctx.span(Role::Strong, right(si(arm.mean, 4).trim_end(), 9)),
                Span::raw(format!("  sd {}", right(si(arm.sd, 3).trim_end(), 6))),
                Span::raw(format!("  n {}", arm.slices)),
            ])
        }));
        canvas.lines(0, &lines);
        y = 3;
    }
    canvas.line(0, y, &effect_line(ctx, c, width));
    if let Some(effect) = c.effect {
        let area = Rect {
            x: inner.x + 1,
            y: inner.y.saturating_add(y + 1),
            width: inner.width.saturating_sub(2),
            height: 1,
        }
        .intersection(inner);
        (&CiBar {
            effect,
            theme: ctx.theme,
        })
            .render(area, buf);
    }
    let mut canvas = Canvas::new(buf, inner);
    let mut lines = Vec::new();
    let doubt = format!("{}; peeking", c.estimator);
    let verdict = ctx.span(Role::Strong, format!(" {}", verdict(ctx, c)));
    if canvas.height() <= 3 {
        // One line for both: what it says, and how far to trust it. The sign says the rest.
        let word = match c.effect {
            None => " no verdict yet",
            Some(e) if e.lo > 0.0 || e.hi < 0.0 => " separated",
            Some(_) => " not separated",
        };
        let doubt = estimator(c, width.saturating_sub(word.len() + 2));
        lines.push(Line::from(vec![
            ctx.span(Role::Strong, word),
            ctx.span(Role::Dim, format!("; {doubt}")),
        ]));
    } else {
        lines.push(Line::from(verdict));
        let rows = fold(&doubt, width.saturating_sub(1));
        lines.extend(
            rows.into_iter()
                .map(|row| Line::from(ctx.span(Role::Dim, format!(" {row}")))),
        );
        lines.push(p99_line(ctx, c));
    }
    if ctx.full {
        lines.push(Line::default());
        lines.extend(ctx.prose(EXPLAIN, inner.width));
    }
    canvas.lines(y + 2, &lines);
}

fn nothing_yet(ctx: &Ctx<'_>, width: u16) -> Vec<Line<'static>> {
    let Some(policy) = ctx.model.setup.policies.first() else {
        return vec![Line::from(ctx.span(Role::Dim, " No policy to compare."))];
    };
    let text = format!(
        "No comparison yet. Press a policy's letter, such as {}, wait a few seconds, and press it \
         again: both arms are compared here, settle windows left out.",
        policy.key
    );
    ctx.prose(&text, width)
}

/// `B vs A  +9.4 %   95 % CI [+8.2, +10.6]`.
pub(crate) fn effect_line(ctx: &Ctx<'_>, c: &Comparison, width: usize) -> Line<'static> {
    let [first, second] = &c.arms;
    let pair = format!(" {} vs {}  ", arm_letter(second.arm), arm_letter(first.arm));
    let mut line = Line::from(ctx.span(Role::Plain, pair));
    match c.effect {
        Some(effect) => {
            line.push_span(ctx.span(Role::Strong, change(effect.ratio)));
            line.push_span(Span::raw(interval(effect)));
            let n = format!("  n {} / {}", first.slices, second.slices);
            if line.width() + n.len() <= width {
                line.push_span(Span::raw(n));
            }
        }
        None => line.push_span(ctx.span(
            Role::Dim,
            format!("needs 2 slices each: {} / {}", first.slices, second.slices),
        )),
    }
    line
}

/// How the interval was made, in `width` cells: the end of it says how far to trust it.
fn estimator(c: &Comparison, width: usize) -> String {
    let mut words = c.estimator;
    while words.len() > width {
        match words.split_once("; ") {
            Some((_, rest)) => words = rest,
            None => break,
        }
    }
    cut(words, width)
}

fn interval(effect: Effect) -> String {
    let [lo, hi] = [effect.lo, effect.hi].map(|x| {
        let text = change(x);
        text.trim_end_matches(" %").to_owned()
    });
    format!("  95 % CI [{lo}, {hi}]")
}

/// What the interval says, in words; never in a colour.
pub(crate) fn verdict(ctx: &Ctx<'_>, c: &Comparison) -> String {
    let [_, second] = &c.arms;
    let name = ctx.model.arm_name(c.policy, second.arm);
    match c.effect {
        None => "no verdict yet".to_owned(),
        Some(e) if e.lo > 0.0 => format!("separated: {name} is faster"),
        Some(e) if e.hi < 0.0 => format!("separated: {name} is slower"),
        Some(_) => "not separated: the interval holds 0".to_owned(),
    }
}

fn p99_line(ctx: &Ctx<'_>, c: &Comparison) -> Line<'static> {
    let mut line = Line::from(ctx.span(Role::Plain, " p99 "));
    for arm in &c.arms {
        let p99 = us_of(arm.latency.n, arm.latency.p99);
        let text = format!(" {} {p99} ", arm_letter(arm.arm));
        line.push_span(Span::styled(text, ctx.theme.arm(arm.arm)));
    }
    line
}

/// How to read the page; shown where the panel has a page of its own.
const EXPLAIN: &str = "A slice is one sample of about 100 ms; slices inside the settle window after a \
     switch belong to no arm. sd is the spread of the slices' rates, n their number. The interval \
     holds the true difference in 95 of 100 such runs if nothing but the policy changed meanwhile: \
     arms that ran at different times may differ for other reasons. For a figure to rely on, run \
     the paired comparison: cairn ab POLICY.";

/// The verdict in one short line, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>, width: u16) -> Option<Line<'static>> {
    let c = ctx.sample()?.comparison.as_ref()?;
    let line = effect_line(ctx, c, usize::from(width));
    (fit(line.width()) <= width + 8).then_some(line)
}
