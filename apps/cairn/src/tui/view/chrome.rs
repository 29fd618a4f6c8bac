//! What every screen has: the header, the row of pages and the footer of valid keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::Class;
use crate::tui::format::{clock, cut, fit, span};
use crate::tui::model::{Model, Page, Prompt, PromptKind};
use crate::tui::theme::Role;
use crate::tui::update::valid;
use crate::tui::widget::Canvas;

/// Places of the bars around the panels.
pub(super) struct Bars {
    pub(super) header: Rect,
    pub(super) tabs: Option<Rect>,
    pub(super) body: Rect,
    pub(super) footer: Rect,
}

/// A wide header holds the pages too; a mini screen has no row for them.
pub(super) fn bars(class: Class, area: Rect) -> Bars {
    let row = |y: u16| Rect {
        y: area.y + y,
        height: 1.min(area.height),
        ..area
    };
    let top = if class == Class::Compact { 2 } else { 1 };
    Bars {
        header: row(0),
        tabs: (class == Class::Compact).then(|| row(1)),
        body: Rect {
            y: area.y + top,
            height: area.height.saturating_sub(top + 1),
            ..area
        },
        footer: row(area.height.saturating_sub(1)),
    }
}

/// Name, scenario, state and time at the left; rate, view and theme at the right.
pub(super) fn header(model: &Model, class: Class, area: Rect, buf: &mut Buffer) {
    let style = |role| model.theme.style(role);
    let mut canvas = Canvas::new(buf, area);
    let wide = class == Class::Wide;
    let gap = if class == Class::Mini { " " } else { "  " };
    let (state, role) = if model.setup.recorded.is_some() {
        ("[RECORDED]", Role::Strong)
    } else if model.failure.is_some() {
        ("[FAILED]", Role::Bad)
    } else if model.running() {
        ("[RUN]", Role::Strong)
    } else {
        ("[STOP]", Role::Warn)
    };
    let name = model.theme.cut(
        &model.setup.scenario,
        if class == Class::Mini { 9 } else { 20 },
    );
    let mut left = vec![
        Span::styled("cairn", style(Role::Strong)),
        Span::raw(format!("{gap}{name}{gap}")),
        Span::styled(state, style(role)),
    ];
    if class != Class::Mini {
        left.push(Span::raw(format!("{gap}{}", clock(model.live.elapsed()))));
    }
    let left = Line::from(left);
    canvas.line(0, 0, &left);

    let width = canvas.width();
    let tabs = if wide {
        tabs_line(model)
    } else {
        Line::default()
    };
    // Facts give way, one by one, to what stands left of them.
    let least = fit(left.width() + tabs.width() + 4);
    let fitting = (0..=3).rev().map(|facts| status(model, class, facts));
    let room = |right: &Line<'_>| least + fit(right.width()) <= width;
    let right = fitting.into_iter().find(room);
    let right = right.unwrap_or_else(|| status(model, class, 0));
    let at = width.saturating_sub(fit(right.width()));
    if at > fit(left.width()) {
        canvas.line(at, 0, &right);
    }
    if wide {
        let tabs_width = fit(tabs.width());
        let middle = width.saturating_sub(tabs_width) / 2;
        let from = middle
            .min(at.saturating_sub(tabs_width + 2))
            .max(fit(left.width()) + 2);
        if from + tabs_width < at {
            canvas.line(from, 0, &tabs);
        }
    }
}

/// The right end of the header, the part that must be seen first.
///
/// At most `facts` of the less important facts follow.
fn status(model: &Model, class: Class, facts: usize) -> Line<'static> {
    let style = |role| model.theme.style(role);
    let mut parts = Vec::new();
    if let Some(gap) = model.stalled {
        let text = format!("NO SAMPLES for {}", span(gap));
        parts.push(Span::styled(text, style(Role::Bad)));
    }
    if model.broken.is_some() {
        parts.push(Span::styled("INVARIANT BROKEN", style(Role::Bad)));
    }
    let latest = model.live.latest.as_ref();
    let errors: u64 = latest.map_or(0, |s| s.workloads.iter().map(|w| w.errors_in_all).sum());
    if errors > 0 {
        parts.push(Span::styled(format!("errors {errors}"), style(Role::Bad)));
    }
    let dropped = model.live.latest.as_ref().map_or(0, |s| s.dropped);
    if dropped > 0 {
        parts.push(Span::styled(format!("drops {dropped}"), style(Role::Warn)));
    }
    if let Some(whole) = model.setup.recorded {
        parts.push(Span::raw(format!("of {}", clock(whole))));
    } else if let Some(frozen) = &model.frozen {
        let text = format!("FROZEN at {}", clock(frozen.elapsed()));
        parts.push(Span::styled(text, style(Role::Chosen)));
    } else if class == Class::Mini {
        parts.push(Span::raw(clock(model.live.elapsed())));
    } else if let Some(past) = model.end.and_then(|seq| model.live.history.time_of(seq)) {
        // Only the chart looks back.
        let text = format!("chart to {}, rest live", clock(past));
        parts.push(Span::styled(text, style(Role::Chosen)));
    } else {
        parts.push(Span::raw("view live"));
    }
    if class != Class::Mini {
        let all = [
            Span::raw(format!("{} Hz", model.hz)),
            Span::raw(format!("seed {}", model.setup.seed)),
            Span::styled(model.theme.name(), style(Role::Dim)),
        ];
        let most = if class == Class::Wide { 3 } else { 2 };
        parts.extend(all.into_iter().take(facts.min(most)));
    }
    let mut line = Line::default();
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            line.push_span(Span::raw("  "));
        }
        line.push_span(part);
    }
    line
}

/// The pages with their keys, the open one in brackets and reversed.
pub(super) fn tabs(model: &Model, area: Rect, buf: &mut Buffer) {
    let mut canvas = Canvas::new(buf, area);
    canvas.line(0, 0, &tabs_line(model));
    let marks = match model.marks {
        0 => String::new(),
        1 => "1 mark".to_owned(),
        n => format!("{n} marks"),
    };
    canvas.right(canvas.width(), 0, &marks, model.theme.style(Role::Dim));
}

fn tabs_line(model: &Model) -> Line<'static> {
    let mut line = Line::default();
    for (page, key) in Page::ALL.into_iter().zip(1..) {
        let name = page.name();
        line.push_span(if page == model.page {
            Span::styled(format!("[{key} {name}]"), model.theme.style(Role::Chosen))
        } else {
            Span::styled(format!(" {key} {name} "), model.theme.style(Role::Dim))
        });
    }
    line
}

/// A note if there is one, else the keys that do something now; `q quit` always stands at the end.
pub(super) fn footer(model: &Model, area: Rect, buf: &mut Buffer) {
    let mut canvas = Canvas::new(buf, area);
    let width = canvas.width();
    let quit = key_line(model, "q", "quit");
    let room = width.saturating_sub(fit(quit.width()) + 2);
    canvas.line(width.saturating_sub(fit(quit.width())), 0, &quit);
    if let Some(prompt) = &model.prompt {
        return typing(model, prompt, area, buf);
    }
    let failure = model
        .failure
        .as_ref()
        .map(|f| format!("workload stopped: {f}"));
    let note = model.note.as_ref().map(|note| note.text.clone());
    if let Some(note) = note.or(failure) {
        let role = if model.failure.is_some() && model.note.is_none() {
            Role::Bad
        } else {
            Role::Warn
        };
        canvas.text(
            0,
            0,
            &model.theme.cut(&note, usize::from(room)),
            model.theme.style(role),
        );
        return;
    }
    let mut line = Line::default();
    for (key, does) in valid(model) {
        let part = key_line(model, &key, does);
        let gap = if line.spans.is_empty() { 0 } else { 2 };
        if fit(line.width() + gap + part.width()) > room {
            continue;
        }
        if gap > 0 {
            line.push_span(Span::raw("  "));
        }
        line.extend(part);
    }
    canvas.line(0, 0, &line);
}

/// The text being typed, its end with the place of the next character in sight.
///
/// Why it was refused stands below it, over a caret under the fault where that is known.
fn typing(model: &Model, prompt: &Prompt, footer: Rect, buf: &mut Buffer) {
    let style = |role| model.theme.style(role);
    let fault = prompt.error.as_ref().and_then(|refusal| refusal.place);
    let rows = 1 + u16::from(prompt.error.is_some()) + u16::from(fault.is_some());
    let area = Rect {
        y: footer.bottom().saturating_sub(rows),
        height: rows,
        ..footer
    };
    let mut canvas = Canvas::new(buf, area);
    let width = usize::from(canvas.width());
    let blank = " ".repeat(width);
    for row in 0..rows {
        canvas.text(0, row, &blank, style(Role::Plain));
    }
    let name = match prompt.kind {
        PromptKind::Filter => "find: ".to_owned(),
        PromptKind::Stack => "stack: ".to_owned(),
        PromptKind::GoTo => "go to offset (12m, 1g): ".to_owned(),
        PromptKind::Compare => "compare with the run in: ".to_owned(),
        PromptKind::Workload(index) => {
            let workload = model.setup.workloads.get(index);
            workload.map_or_else(String::new, |(name, _)| {
                format!("{}: ", model.theme.cut(name, 14))
            })
        }
    };
    canvas.text(0, 0, &name, style(Role::Key));
    let at = fit(Line::raw(name.as_str()).width());
    let hint = if width >= 70 {
        "  Enter takes it, Esc leaves it"
    } else {
        ""
    };
    let room = width.saturating_sub(usize::from(at) + hint.len() + 1);
    // The end is what is typed at, unless a fault before it must be seen.
    let clean = cut(&prompt.text, usize::MAX);
    let skip = clean.chars().count().saturating_sub(room);
    let skip = fault.map_or(skip, |place| skip.min(place.saturating_sub(room / 2)));
    let shown: String = clean.chars().skip(skip).take(room).collect();
    canvas.text(at, 0, &shown, style(Role::Plain));
    let end = at + fit(Line::raw(shown.as_str()).width());
    canvas.glyph(end, 0, ' ', style(Role::Chosen));
    canvas.right(canvas.width(), 0, hint.trim_start(), style(Role::Dim));
    if let Some(place) = fault {
        let before: String = shown.chars().take(place.saturating_sub(skip)).collect();
        let under = at + fit(Line::raw(before).width());
        canvas.glyph(under, 1, '^', style(Role::Warn));
    }
    if let Some(refusal) = &prompt.error {
        let words: Vec<_> = refusal.text.split_whitespace().collect();
        let words = model.theme.cut(&words.join(" "), width);
        canvas.text(0, rows - 1, &words, style(Role::Warn));
    }
}

fn key_line(model: &Model, key: &str, does: &str) -> Line<'static> {
    Line::from(vec![
        Span::styled(key.to_owned(), model.theme.style(Role::Key)),
        Span::raw(format!(" {does}")),
    ])
}
