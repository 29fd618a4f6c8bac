//! A/B: the arms of the policy switched last, as the lab compares them. Nothing is computed here.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use cairn_lab::{ArmSample, AutoSample, Comparison, Effect};

use super::{Ctx, joined, right};
use crate::tui::format::{arm_letter, change, fit, fold, interval, per_s, si, stamp, time_of};
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
    let mut rest = policy.map_or_else(String::new, |p| p.name.clone());
    if let Some(auto) = comparison.and_then(|c| auto(ctx, c)) {
        let state = if auto.running {
            "auto A B B A, paired t"
        } else {
            "auto done, paired t"
        };
        rest = format!("{rest}  {state}");
    } else if let Some(c) = comparison.filter(|_| area.height < 11) {
        rest = format!("{rest}  {}", c.metric);
    }
    let lost = overflow(ctx, area);
    let first = if ctx.full {
        ctx.model.offset.min(lost)
    } else {
        0
    };
    if lost > 0 && ctx.full {
        let rest_of = format!("  {} more rows: Up Down", lost - first);
        rest.push_str(&rest_of);
    }
    let inner = ctx.open(area, buf, "A/B", &rest);
    let rows = rows(ctx, inner).into_iter().skip(first);
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

/// Everything there is to show, also what a page has no room for and can be scrolled to.
fn rows(ctx: &Ctx<'_>, inner: Rect) -> Vec<Row> {
    match ctx.sample().and_then(|s| s.comparison.as_ref()) {
        None => text(nothing_yet(ctx, inner.width)),
        // Where rows are few the verdict goes first and the arms' own figures are left out.
        Some(c) if inner.height < 6 => brief(ctx, c, inner),
        Some(c) => whole(ctx, c, inner),
    }
}

/// Rows that do not fit into the panel.
pub(crate) fn overflow(ctx: &Ctx<'_>, area: Rect) -> usize {
    let inner = area.inner(Margin::new(1, 1));
    rows(ctx, inner)
        .len()
        .saturating_sub(usize::from(inner.height))
}

fn text(lines: Vec<Line<'static>>) -> Vec<Row> {
    lines.into_iter().map(Row::Text).collect()
}

/// Three rows: the difference, its drawing, and how far to trust it; a fourth for the checks of an interleaved
/// comparison.
fn brief(ctx: &Ctx<'_>, c: &Comparison, inner: Rect) -> Vec<Row> {
    let width = inner.width;
    let mut rows = vec![Row::Text(effect_line(ctx, c, usize::from(width)))];
    let Some(effect) = c.effect else {
        rows.extend(text(ctx.prose(reason(c), width)));
        return rows;
    };
    rows.push(Row::Bar(effect));
    let role = match ctx.model.wrong() {
        Some(_) => Role::Bad,
        None => Role::Strong,
    };
    let said = short_verdict(ctx, c);
    let said = ctx.cut(&said, usize::from(width).saturating_sub(1));
    rows.push(Row::Text(Line::from(ctx.span(role, format!(" {said}")))));
    if let Some(auto) = auto(ctx, c).filter(|_| inner.height >= 4) {
        let checks = joined(&checks(&auto), width);
        rows.push(Row::Text(Line::from(ctx.span(Role::Plain, checks))));
    }
    rows
}

/// Whether the interval leaves zero out.
fn separated(effect: Effect) -> bool {
    effect.lo > 0.0 || effect.hi < 0.0
}

/// The interleaved comparison, if it is of this policy.
fn auto(ctx: &Ctx<'_>, c: &Comparison) -> Option<AutoSample> {
    ctx.sample()?.auto.filter(|auto| auto.policy == c.policy)
}

/// Everything, and on a page of its own how to read it.
fn whole(ctx: &Ctx<'_>, c: &Comparison, inner: Rect) -> Vec<Row> {
    let width = inner.width;
    let mut rows = Vec::new();
    // The title has it too, where that is long enough.
    if inner.height >= 9 {
        let metric = ctx.span(Role::Dim, format!(" {}", c.metric));
        rows.push(Row::Text(Line::from(metric)));
    }
    rows.extend(c.arms.iter().map(|arm| Row::Text(arm_line(ctx, c, arm))));
    rows.push(Row::Text(effect_line(ctx, c, usize::from(width))));
    match c.effect {
        Some(effect) => {
            rows.push(Row::Bar(effect));
            let role = match ctx.model.wrong() {
                Some(_) => Role::Bad,
                None => Role::Strong,
            };
            let said = fold(&verdict(ctx, c), usize::from(width).saturating_sub(2));
            let most = if inner.height >= 9 { 2 } else { 1 };
            let said = said.into_iter().take(most);
            rows.extend(said.map(|row| Row::Text(Line::from(ctx.span(role, format!(" {row}"))))));
            rows.push(Row::Text(p99_line(ctx, c, width)));
            rows.extend(mechanism(ctx, c).map(Row::Text));
            if let Some(auto) = auto(ctx, c) {
                rows.push(Row::Text(Line::from(
                    ctx.span(Role::Plain, joined(&checks(&auto), width)),
                )));
                // What the interval is comes first, should rows be few.
                let (of, test) = c.estimator.rsplit_once(", ").unwrap_or((c.estimator, ""));
                let how = format!("{test} of {of}; so many pairs as fixed beforehand");
                rows.extend(text(ctx.prose(&how, width)));
                return finished(ctx, rows, inner);
            }
            // The end of the estimator's name says how far to trust it: first, should rows be few.
            let doubt = match c.estimator.rsplit_once("; ") {
                Some((how, trust)) => format!("{trust}; peeking, no fixed n; {how}"),
                None => format!("{}; peeking, no fixed n", c.estimator),
            };
            rows.extend(text(ctx.prose(&doubt, width)));
        }
        None => rows.extend(text(ctx.prose(reason(c), width))),
    }
    finished(ctx, rows, inner)
}

/// On a page of its own, how to read it.
fn finished(ctx: &Ctx<'_>, mut rows: Vec<Row>, inner: Rect) -> Vec<Row> {
    let (width, height) = (inner.width, usize::from(inner.height));
    if ctx.full {
        let explained = ctx.prose(EXPLAIN, width);
        let mut list = stretches(ctx);
        // A few of the newest times in any case; the rest of the list gives way to the words.
        let room = height.saturating_sub(rows.len() + explained.len() + 2);
        list.truncate(room.max(4));
        rows.push(Row::Text(Line::default()));
        rows.extend(text(list));
        rows.push(Row::Text(Line::default()));
        rows.extend(text(explained));
    }
    rows
}

/// The times under either arm, newest first: what the figures are made of.
fn stretches(ctx: &Ctx<'_>) -> Vec<Line<'static>> {
    /// More than any screen has rows for.
    const MOST: usize = 60;
    let compared = ctx.sample().and_then(|s| s.comparison.as_ref());
    let Some((c, workload)) = compared.and_then(|c| Some((c, c.workload?))) else {
        return Vec::new();
    };
    let head = format!(
        " {:>9}  {:<16}{:>9}{:>12}",
        "from", "arm", "counted", "mean rate"
    );
    let mut lines = vec![Line::from(ctx.span(Role::Dim, head))];
    for s in ctx.data.history.stretches(c.policy, workload, MOST) {
        let mean = s.rate().map_or_else(|| "-".to_owned(), per_s);
        lines.push(Line::from(vec![
            Span::raw(format!(" {:>9}  ", stamp(s.from))),
            ctx.arm(c.policy, s.arm, NAME),
            Span::raw(format!(
                "{}{mean:>12}",
                right(&format!("{:.1} s", s.counted.as_secs_f64()), 9)
            )),
        ]));
    }
    lines
}

/// How far to trust an interleaved comparison.
fn checks(auto: &AutoSample) -> Vec<String> {
    let percent = |x: Option<f64>, sign: &str| {
        x.map_or_else(|| "-".to_owned(), |x| format!("{sign}{:.1} %", x * 100.0))
    };
    vec![
        format!(" A/A {}", percent(auto.resolution, "+-")),
        format!("drift {}", percent(auto.drift, "")),
        format!("rejected {}", auto.rejected),
        // The verdict and the panel of policies have it too.
        format!("pairs {} of {}", auto.pairs, auto.wanted),
    ]
}

/// What the policy acts on, under either arm: `shared adds per look-up  A 1.00  B 0.00`.
fn mechanism(ctx: &Ctx<'_>, c: &Comparison) -> Option<Line<'static>> {
    let m = c.mechanism?;
    let [a, b] = [m.a, m.b].map(|x| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}")));
    let [first, second] = &c.arms;
    Some(Line::from(vec![
        ctx.span(Role::Plain, format!(" {} ", m.name)),
        Span::styled(
            format!(" {} {a} ", arm_letter(first.arm)),
            ctx.theme.arm(first.arm),
        ),
        Span::styled(
            format!(" {} {b}", arm_letter(second.arm)),
            ctx.theme.arm(second.arm),
        ),
    ]))
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
         again: both arms are compared here, settle windows left out. Or press a: the arms then \
         alternate by themselves, which gives an interval to trust.",
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

/// Slices of either arm below which no arm is called the faster one after switches by hand: the first seconds
/// of a run differ for many reasons.
const EARLY: u64 = 8;

/// What the interval says, in words; never in a colour.
pub(crate) fn verdict(ctx: &Ctx<'_>, c: &Comparison) -> String {
    if let Some(wrong) = ctx.model.wrong() {
        return format!("worth nothing: {wrong}");
    }
    let Some(effect) = c.effect else {
        return "no verdict yet".to_owned();
    };
    let auto = auto(ctx, c);
    if auto.is_none() && early(c) {
        return format!(
            "too early to say: {EARLY} slices of either arm are needed; a (auto A/B) compares properly"
        );
    }
    let running = auto.filter(|auto| auto.running);
    if let Some(auto) = running.filter(|_| separated(effect)) {
        let found = ahead(ctx, c, effect);
        return format!("provisional ({} pairs): {found} so far", auto.wanted);
    }
    let said = if separated(effect) {
        format!("separated: {}", ahead(ctx, c, effect))
    } else {
        match auto.and_then(|auto| auto.more) {
            Some(more @ 0..1000) => {
                format!("not separated: about {more} more pairs for +-1 %")
            }
            Some(_) => "not separated: far too noisy for +-1 %".to_owned(),
            None => "not separated: the interval holds 0".to_owned(),
        }
    };
    match auto {
        Some(auto) if auto.running => format!("provisional ({} pairs): {said}", auto.wanted),
        Some(auto) => match auto.resolution.filter(|r| *r > effect.ratio.abs()) {
            Some(r) => format!(
                "{said}; but A differs from A by up to {:.1} % here",
                r * 100.0
            ),
            None => said,
        },
        None => said,
    }
}

/// The same in one short line.
pub(crate) fn short_verdict(ctx: &Ctx<'_>, c: &Comparison) -> String {
    if let Some(wrong) = ctx.model.wrong() {
        return format!("worth nothing: {wrong}");
    }
    let Some(effect) = c.effect else {
        return "no verdict yet".to_owned();
    };
    let [_, second] = &c.arms;
    let name = ctx.model.arm_name(c.policy, second.arm);
    let auto = auto(ctx, c);
    if auto.is_none() && early(c) {
        return "too early to say; a compares properly".to_owned();
    }
    let found = if !separated(effect) {
        "not separated".to_owned()
    } else if effect.lo > 0.0 {
        format!("separated: {name} faster")
    } else {
        format!("separated: {name} slower")
    };
    match auto {
        None => format!("{found}; unpaired"),
        Some(auto) if auto.running => {
            let found = found.replace("separated: ", "");
            format!("provisional {}/{}: {found}", auto.pairs, auto.wanted)
        }
        Some(auto) => format!("{found}; {} pairs", auto.pairs),
    }
}

fn early(c: &Comparison) -> bool {
    c.arms.iter().any(|arm| arm.slices < EARLY)
}

/// `per-cpu is 8.6 to 10.2 % faster`.
fn ahead(ctx: &Ctx<'_>, c: &Comparison, effect: Effect) -> String {
    let [_, second] = &c.arms;
    let name = ctx.model.arm_name(c.policy, second.arm);
    let ends = [effect.lo.abs() * 100.0, effect.hi.abs() * 100.0];
    let [near, far] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
    let word = if effect.lo > 0.0 { "faster" } else { "slower" };
    format!("{name} is {near:.1} to {far:.1} % {word}")
}

/// What was found, for the summary: `A/B of flag-set, throughput of creat-clo: ...`.
pub(crate) fn sentence(ctx: &Ctx<'_>) -> Option<String> {
    let c = ctx.sample()?.comparison.as_ref()?;
    let effect = c.effect?;
    let policy = ctx.model.setup.policies.get(c.policy)?;
    let [first, second] = c
        .arms
        .each_ref()
        .map(|arm| ctx.model.arm_name(c.policy, arm.arm));
    let how = match auto(ctx, c) {
        Some(auto) => format!("{} of {} pairs A B B A, paired t", auto.pairs, auto.wanted),
        None => "switched by hand: unpaired, time-confounded".to_owned(),
    };
    Some(format!(
        "A/B of {}, {}: {second} over {first} {}{}, {how}; {}",
        policy.name,
        c.metric,
        change(effect.ratio),
        interval(effect),
        verdict(ctx, c)
    ))
}

fn p99_line(ctx: &Ctx<'_>, c: &Comparison, width: u16) -> Line<'static> {
    let mut line = Line::from(ctx.span(Role::Plain, " p99 "));
    for arm in &c.arms {
        let p99 = time_of(arm.latency.n, arm.latency.p99);
        let text = format!(" {} {p99} ", arm_letter(arm.arm));
        line.push_span(Span::styled(text, ctx.theme.arm(arm.arm)));
    }
    if let Some(effect) = auto(ctx, c).and_then(|auto| auto.p99) {
        let range = interval(effect).replace("95 % CI ", "");
        // The mean over the pairs, which is not the ratio of the two figures; half an interval would be a wrong
        // one.
        let all = [
            format!(" in pairs {}{range}", change(effect.ratio)),
            if separated(effect) {
                format!(" in pairs {}", change(effect.ratio))
            } else {
                " not separated".to_owned()
            },
        ];
        let fits = |text: &&String| line.width() + text.len() <= usize::from(width);
        if let Some(text) = all.iter().find(fits) {
            line.push_span(Span::raw(text.clone()));
        }
    }
    line
}

/// How to read the page; shown where the panel has a page of its own.
const EXPLAIN: &str = "A slice adds samples up to a second or more; samples inside the settle window \
     after a switch belong to no arm. sd is the spread of the slices' rates, n their number. The interval \
     holds the true difference in 95 of 100 such runs if nothing but the policy changed meanwhile: \
     arms that ran at different times may differ for other reasons. Auto A/B (a) lets them alternate \
     A B B A, second by second, and compares neighbours, so that what drifts falls out. separated: the \
     interval leaves 0 out. The list holds all samples, also the ends that make no whole slice. For a figure \
     to publish, run cairn ab POLICY: it also leaves the probe and this view out.";

/// The verdict in one short line, for the smallest screens.
pub(crate) fn short(ctx: &Ctx<'_>, width: u16) -> Option<Line<'static>> {
    let c = ctx.sample()?.comparison.as_ref()?;
    let line = effect_line(ctx, c, usize::from(width));
    (fit(line.width()) <= width + 8).then_some(line)
}
