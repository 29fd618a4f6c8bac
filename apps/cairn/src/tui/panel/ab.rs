//! A/B: the arms of the policy switched last, as the lab compares them. Nothing is computed here.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{ArmSample, Comparison, Effect};

use super::{Ctx, right};
use crate::tui::format::{arm_letter, change, fit, si, time_of};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;
use crate::tui::widget::ci_bar::CiBar;

/// Widest arm name.
const NAME: usize = 14;

/// A row of the panel.
enum Row {
    Text(Line<'static>),
    Bar(Effect),
}

pub(super) fn render(ctx: &Ctx<'_>, area: Rect, buf: &mut Buffer) {
    let comparison = ctx.sample().and_then(|s| s.comparison.as_ref());
    let policy = comparison.and_then(|c| ctx.model.setup.policies.get(c.policy));
    let rest = policy.map_or("", |p| p.name.as_str());
    let inner = ctx.open(area, buf, "A/B", rest);
    let rows = match comparison {
        None => text(nothing_yet(ctx, inner.width)),
        // Where rows are few the verdict goes first and the arms' own figures are left out.
        Some(c) if inner.height < 6 => brief(ctx, c, inner.width),
        Some(c) => whole(ctx, c, inner.width),
    };
    for (y, row) in (inner.y..inner.bottom()).zip(rows) {
        let place = Rect {
            y,
            height: 1,
            ..inner
        };
        match row {
            Row::Text(line) => Canvas::new(buf, place).line(0, 0, &line),
            Row::Bar(effect) => {
                let theme = ctx.theme;
                (&CiBar { effect, theme }).render(place.inner(Margin::new(1, 0)), buf);
            }
        }
    }
}

fn text(lines: Vec<Line<'static>>) -> Vec<Row> {
    lines.into_iter().map(Row::Text).collect()
}

/// Three rows: the difference, its drawing, and how far to trust it.
fn brief(ctx: &Ctx<'_>, c: &Comparison, width: u16) -> Vec<Row> {
    let mut rows = vec![Row::Text(effect_line(ctx, c, usize::from(width)))];
    let Some(effect) = c.effect else {
        rows.extend(text(ctx.prose(reason(c), width)));
        return rows;
    };
    rows.push(Row::Bar(effect));
    // The sign of the difference says which arm is ahead.
    let word = if effect.lo > 0.0 || effect.hi < 0.0 {
        " separated"
    } else {
        " not separated"
    };
    let room = usize::from(width).saturating_sub(word.len() + 2);
    rows.push(Row::Text(Line::from(vec![
        ctx.span(Role::Strong, word),
        ctx.span(Role::Dim, format!("; {}", estimator(ctx, c, room))),
    ])));
    rows
}

/// Everything, and on a page of its own how to read it.
fn whole(ctx: &Ctx<'_>, c: &Comparison, width: u16) -> Vec<Row> {
    let metric = ctx.span(Role::Dim, format!(" {}", c.metric));
    let mut rows = vec![Row::Text(Line::from(metric))];
    rows.extend(c.arms.iter().map(|arm| Row::Text(arm_line(ctx, c, arm))));
    rows.push(Row::Text(effect_line(ctx, c, usize::from(width))));
    match c.effect {
        Some(effect) => {
            rows.push(Row::Bar(effect));
            let verdict = ctx.span(Role::Strong, format!(" {}", verdict(ctx, c)));
            rows.push(Row::Text(Line::from(verdict)));
            rows.push(Row::Text(p99_line(ctx, c)));
            // The end of the estimator's name says how far to trust it: first, should rows be few.
            let doubt = match c.estimator.rsplit_once("; ") {
                Some((how, trust)) => format!("{trust}; peeking, no fixed n; {how}"),
                None => format!("{}; peeking, no fixed n", c.estimator),
            };
            rows.extend(text(ctx.prose(&doubt, width)));
        }
        None => rows.extend(text(ctx.prose(reason(c), width))),
    }
    if ctx.full {
        rows.push(Row::Text(Line::default()));
        rows.extend(text(ctx.prose(EXPLAIN, width)));
    }
    rows
}

/// Mean, spread and number of slices, as far as they have a meaning.
fn arm_line(ctx: &Ctx<'_>, c: &Comparison, arm: &ArmSample) -> Line<'static> {
    let figure = |least, x, digits| {
        if arm.slices < least {
            "-".to_owned()
        } else {
            si(x, digits).trim_end().to_owned()
        }
    };
    Line::from(vec![
        Span::raw(" "),
        ctx.arm(c.policy, arm.arm, NAME),
        ctx.span(Role::Strong, right(&figure(1, arm.mean, 4), 9)),
        Span::raw(format!("  sd {}", right(&figure(2, arm.sd, 3), 6))),
        Span::raw(format!("  n {}", arm.slices)),
    ])
}

/// Why there is no difference to show.
fn reason(c: &Comparison) -> &str {
    c.reason.as_deref().unwrap_or("no difference yet")
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
    if let Some(effect) = c.effect {
        line.push_span(ctx.span(Role::Strong, change(effect.ratio)));
        line.push_span(Span::raw(interval(effect)));
        let n = format!("  n {} / {}", first.slices, second.slices);
        if line.width() + n.len() <= width {
            line.push_span(Span::raw(n));
        }
    } else {
        let n = format!("no figure, slices {} / {}", first.slices, second.slices);
        line.push_span(ctx.span(Role::Dim, n));
    }
    line
}

/// How the interval was made, in `width` cells: the end of it says how far to trust it.
fn estimator(ctx: &Ctx<'_>, c: &Comparison, width: usize) -> String {
    let mut words = c.estimator;
    while words.len() > width {
        match words.split_once("; ") {
            Some((_, rest)) => words = rest,
            None => break,
        }
    }
    ctx.cut(words, width)
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
        let p99 = time_of(arm.latency.n, arm.latency.p99);
        let text = format!(" {} {p99} ", arm_letter(arm.arm));
        line.push_span(Span::styled(text, ctx.theme.arm(arm.arm)));
    }
    line
}

/// How to read the page; shown where the panel has a page of its own.
const EXPLAIN: &str = "A slice adds samples up to a second or more; samples inside the settle window \
     after a switch belong to no arm. sd is the spread of the slices' rates, n their number. The interval \
     holds the true difference in 95 of 100 such runs if nothing but the policy changed meanwhile: \
     arms that ran at different times may differ for other reasons. For a figure to rely on, run \
     the paired comparison: cairn ab POLICY.";

/// The verdict in one short line, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>, width: u16) -> Option<Line<'static>> {
    let c = ctx.sample()?.comparison.as_ref()?;
    let line = effect_line(ctx, c, usize::from(width));
    (fit(line.width()) <= width + 8).then_some(line)
}
