//! Sheets: something to read in place of the screen. What everything is set to, and a recorded run beside this one.

use cairn_lab::Sample;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

use crate::tui::format::{clock, fold, time};
use crate::tui::model::{MERGES, Model, Saved, Sheet};
use crate::tui::theme::Role;
use crate::tui::widget::Canvas;

pub(super) fn render(model: &Model, sheet: &Sheet, area: Rect, buf: &mut Buffer) {
    let theme = model.theme;
    let title = match sheet {
        Sheet::Settings => " Settings   any key closes ",
        Sheet::Saved(_) => " Compare   unpaired: two runs at different times   any key closes ",
    };
    let title = theme.cut(title, usize::from(area.width.saturating_sub(2)));
    let block = Block::bordered()
        .border_set(theme.glyphs().focus)
        .border_style(theme.style(Role::Focus))
        .title(Span::styled(title, theme.style(Role::Strong)));
    let inner = block.inner(area);
    block.render(area, buf);
    let width = usize::from(inner.width);
    let lines = match sheet {
        Sheet::Settings => settings(model, width),
        Sheet::Saved(saved) => compare(model, saved, width),
    };
    Canvas::new(buf, inner).lines(0, &lines);
}

/// Names at the left, what they are set to at the right, folded where it is long.
fn table(model: &Model, entries: &[(String, String)], width: usize) -> Vec<Line<'static>> {
    let name = if width >= 50 { 16 } else { 0 };
    let room = width.saturating_sub(name + 2).max(8);
    let mut lines = Vec::new();
    for (key, value) in entries {
        let mut head = key.clone();
        let value = if name == 0 {
            head.clear();
            format!("{key}: {value}")
        } else {
            value.clone()
        };
        for row in fold(&model.theme.cut(&value, 4 * room), room) {
            lines.push(Line::from(vec![
                Span::styled(format!(" {head:<name$} "), model.theme.style(Role::Key)),
                Span::raw(row),
            ]));
            head.clear();
        }
    }
    lines
}

fn settings(model: &Model, width: usize) -> Vec<Line<'static>> {
    let setup = &model.setup;
    let mut entries = vec![
        ("scenario".to_owned(), setup.scenario.clone()),
        ("seed".to_owned(), setup.seed.to_string()),
        ("stack".to_owned(), setup.stack.clone()),
    ];
    entries.extend(setup.workloads.iter().cloned());
    for (i, policy) in setup.policies.iter().enumerate() {
        let arm = model.arms.get(i).copied().unwrap_or(0);
        let value = format!(
            "{} (of {}; key {}, by {})",
            model.arm_name(i, arm),
            policy.arms.join(", "),
            policy.key,
            policy.owner
        );
        entries.push((policy.name.clone(), value));
    }
    let merge = MERGES.get(model.merge).copied().unwrap_or(1);
    entries.extend([
        (
            "samples".to_owned(),
            format!(
                "each {} ms; a column of the chart is {merge}",
                setup.interval.as_millis()
            ),
        ),
        ("screen rate".to_owned(), format!("{} Hz", model.hz)),
        ("theme".to_owned(), model.theme.name().to_owned()),
        (
            "screen".to_owned(),
            format!("{} x {}", model.size.0, model.size.1),
        ),
        (
            "run directory".to_owned(),
            model
                .out
                .clone()
                .unwrap_or_else(|| "none; x writes one".to_owned()),
        ),
    ]);
    entries.extend(setup.settings.iter().cloned());
    table(model, &entries, width)
}

/// A figure of this run, the same of the other one, and the ratio.
struct Pair {
    name: String,
    here: (f64, String),
    there: (f64, String),
}

fn compare(model: &Model, saved: &Saved, width: usize) -> Vec<Line<'static>> {
    let style = |role| model.theme.style(role);
    let summary = &saved.summary;
    let shown = model.shown();
    let entries = [
        (
            "here".to_owned(),
            format!(
                "{} for {} on {}",
                model.setup.scenario,
                clock(shown.elapsed()),
                model.setup.stack
            ),
        ),
        (
            "saved".to_owned(),
            format!(
                "{}: {} for {:.1} s on {}",
                saved.folder, summary.scenario, summary.seconds, summary.stack
            ),
        ),
    ];
    let mut lines = table(model, &entries, width);
    lines.push(Line::default());
    let head = format!(
        " {:<24}{:>12}{:>12}{:>9}",
        "since the reset", "here", "saved", "ratio"
    );
    lines.push(Line::from(Span::styled(head, style(Role::Dim))));
    let sample = shown.latest.as_deref();
    for pair in sample.into_iter().flat_map(|s| pairs(s, saved)) {
        let ratio = if pair.there.0 > 0.0 {
            format!("{:.3}", pair.here.0 / pair.there.0)
        } else {
            "-".to_owned()
        };
        lines.push(Line::from(format!(
            " {:<24}{:>12}{:>12}{ratio:>9}",
            model.theme.cut(&pair.name, 24),
            pair.here.1,
            pair.there.1
        )));
    }
    lines.push(Line::default());
    for (i, policy) in model.setup.policies.iter().enumerate() {
        let there = summary.policies.iter().find(|p| p.name == policy.name);
        let here = model.arm_name(i, model.arms.get(i).copied().unwrap_or(0));
        let there = there.map_or("-", |p| p.arm.as_str());
        if here != there {
            let text = format!(" {}: here {here}, saved {there}", policy.name);
            lines.push(Line::from(Span::styled(text, style(Role::Strong))));
        }
    }
    let text = "Whatever else changed between the two runs is in these ratios, too; they have no interval. cairn \
                compare A B sets recorded runs side by side, cairn ab pairs two arms.";
    for row in fold(text, width.saturating_sub(2).max(8)) {
        lines.push(Line::from(Span::styled(
            format!(" {row}"),
            style(Role::Dim),
        )));
    }
    lines
}

/// Workloads of the same name.
fn pairs(sample: &Sample, saved: &Saved) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for w in &sample.workloads {
        let Some(there) = saved.summary.workloads.iter().find(|t| t.name == *w.name) else {
            continue;
        };
        let seconds = w.ran.as_secs_f64().max(1e-9);
        let rate = |per_s: f64| (per_s, format!("{:.1} k/s", per_s / 1e3));
        pairs.push(Pair {
            name: w.name.to_string(),
            here: rate(w.ops as f64 / seconds),
            there: rate(there.ops_per_s),
        });
        let l = &there.latency_ns;
        for (name, here, there) in [
            ("p50", w.total.p50, l.p50),
            ("p99", w.total.p99, l.p99),
            ("p99.9", w.total.p999, l.p999),
        ] {
            pairs.push(Pair {
                name: format!("  {name}"),
                here: (here as f64, time(here)),
                there: (there as f64, time(there)),
            });
        }
    }
    pairs
}
