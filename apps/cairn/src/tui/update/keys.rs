//! What each key does, and which keys do something now.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use cairn_lab::AutoPlan;

use super::{Cmd, event, map, prompt, recorded};
use crate::tui::log::Kind;
use crate::tui::model::{MERGES, Model, Page, Panel, PromptKind, RATES, Redraw, Sheet};
use crate::tui::panel::stack;
use crate::tui::view;

/// Keys that do something now, with a word on what: the footer, in order of importance.
pub fn valid(model: &Model) -> Vec<(String, &'static str)> {
    let mut keys = Keys(Vec::new());
    keys.add("?", "help");
    let live = model.setup.recorded.is_none();
    // On a page of its own a panel's keys are what somebody looks for there.
    let full = view::full_panel(model).is_some();
    if full {
        of_panel(model, &mut keys, live);
    }
    if live {
        changing(model, &mut keys);
    } else {
        keys.add("Space", "play or stop");
        keys.add("Left Right", "step");
        keys.add("Home", "start");
        keys.add("End", "end");
    }
    looking(model, &mut keys, live);
    if live {
        keys.add("x", "export");
        keys.add("w", "workload");
        keys.add("o", "stack");
    }
    keys.add("/", "find");
    if live {
        keys.add("d", "compare");
    }
    keys.add(",", "settings");
    keys.add("+ -", "rate");
    keys.add("t", "theme");
    keys.0
}

/// Keys and what they do.
struct Keys(Vec<(String, &'static str)>);

impl Keys {
    fn add(&mut self, key: &str, does: &'static str) {
        self.0.push((key.to_owned(), does));
    }
}

fn either(first: bool, yes: &'static str, no: &'static str) -> &'static str {
    if first { yes } else { no }
}

/// Keys that change what runs.
fn changing(model: &Model, keys: &mut Keys) {
    keys.add("Space", either(model.frozen.is_some(), "go on", "freeze"));
    keys.add("S", either(model.running(), "stop", "start"));
    let policies = model.setup.policies.iter();
    let letters: Vec<String> = policies.map(|p| p.key.to_string()).collect();
    if !letters.is_empty() {
        keys.add(&letters.join(" "), "switch");
        keys.add("a", either(auto(model), "end auto A/B", "auto A/B"));
    }
    keys.add("r", "reset");
}

/// Keys that change what is seen.
fn looking(model: &Model, keys: &mut Keys, live: bool) {
    if model.zoomed || model.page != Page::Overview {
        keys.add("Esc", "back");
    } else {
        keys.add("Tab", "focus");
        keys.add("z", "zoom");
    }
    keys.add("1-7", "pages");
    if view::full_panel(model).is_none() {
        of_panel(model, keys, live);
    }
    let layer = view::full_panel(model).unwrap_or(model.focus) == Panel::Stack;
    let page = !model.zoomed && model.focus.page().is_some();
    if model.page == Page::Overview
        && (page || layer && (!model.zoomed || layer_page(model).is_some()))
    {
        keys.add("Enter", "open");
    }
}

/// Keys of the panel that has the page or the focus.
fn of_panel(model: &Model, keys: &mut Keys, live: bool) {
    match view::full_panel(model).unwrap_or(model.focus) {
        Panel::Throughput => {
            keys.add("[ ]", "time zoom");
            keys.add("i", either(model.bytes, "operations", "bytes"));
            keys.add("y", either(model.from_zero, "cut axis", "from zero"));
            if live {
                keys.add("Left Right", "history");
            }
            if workloads(model) > 1 {
                keys.add("Up Down", "workload");
            }
        }
        Panel::Latency if view::full_panel(model).is_some() => {
            keys.add("h", either(model.heat, "histogram", "over time"));
        }
        Panel::Extents if live => {
            keys.add("[ ]", "map zoom");
            keys.add("g", "go to");
            if files(model) > 1 {
                keys.add("< >", "file");
            }
            keys.add("s", "shrink");
        }
        Panel::Counters => {
            if live {
                keys.add("s", "shrink");
            }
            keys.add("Up Down", "scroll");
        }
        Panel::Stack => keys.add("Up Down", "layer"),
        Panel::Ab => {
            if live && workloads(model) > 1 {
                keys.add("W", "compare by");
            }
            if view::ab_overflow(model) > 0 {
                keys.add("Up Down", "scroll");
            }
        }
        Panel::Events | Panel::Flags => keys.add("Up Down", "scroll"),
        _ => {}
    }
}

/// Whether the interleaved comparison goes on.
fn auto(model: &Model) -> bool {
    let latest = model.live.latest.as_ref();
    latest.is_some_and(|s| s.auto.is_some_and(|auto| auto.running))
}

/// Begins the interleaved comparison of the policy switched last, or ends it.
fn auto_key(model: &mut Model) -> Vec<Cmd> {
    if auto(model) {
        return vec![Cmd::StopAuto];
    }
    let latest = model.live.latest.as_deref();
    let compared = latest.and_then(|s| s.comparison.as_ref());
    let compared = compared.filter(|c| c.policy == model.lead);
    let arms = match compared {
        Some(c) => c.arms.each_ref().map(|arm| arm.arm),
        // The chosen arm against the first other one.
        None => match model.arms.get(model.lead).copied().unwrap_or(0) {
            0 | 1 => [0, 1],
            chosen => [0, chosen],
        },
    };
    if model.setup.policies.is_empty() {
        return unknown(model, KeyCode::Char('a'));
    }
    vec![Cmd::Auto(AutoPlan::new(model.lead, arms))]
}

/// Compares by the next workload, and after the last one by what the policy acts on.
fn compare_by(model: &mut Model) -> Vec<Cmd> {
    let next = model.compared.map_or(0, |index| index + 1);
    model.compared = (next < workloads(model)).then_some(next);
    let latest = model.live.latest.as_ref();
    let chosen = model
        .compared
        .and_then(|index| latest?.workloads.get(index));
    let by = chosen.map_or("the workload that the policy acts on", |w| &w.name);
    let text = format!("A/B compares by {by}");
    event(model, Kind::Info, &text);
    model.say(text);
    vec![Cmd::CompareBy(model.compared)]
}

/// Files whose extents can be shown.
fn files(model: &Model) -> usize {
    let latest = model.live.latest.as_ref();
    let strip = latest.and_then(|s| s.extents.strip.as_ref());
    strip.map_or(0, |strip| strip.file.1)
}

fn workloads(model: &Model) -> usize {
    model.live.latest.as_ref().map_or(0, |s| s.workloads.len())
}

/// Takes a key in.
pub(super) fn press(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    model.note = None;
    if model.prompt.is_some() {
        return prompt::press(model, key);
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => vec![Cmd::Quit(None)],
            KeyCode::Char('z') => vec![Cmd::Suspend],
            KeyCode::Char('l') => vec![Cmd::Repaint],
            _ => unknown(model, key.code),
        };
    }
    if key
        .modifiers
        .intersects(KeyModifiers::ALT | KeyModifiers::META | KeyModifiers::SUPER)
    {
        return unknown(model, key.code);
    }
    if model.setup.recorded.is_some()
        && model.help.is_none()
        && model.sheet.is_none()
        && let Some(cmds) = recorded::press(model, key.code)
    {
        return cmds;
    }
    if model.sheet.take().is_some() {
        return Vec::new();
    }
    if let Some(line) = model.help {
        return in_help(model, line, key.code);
    }
    if view::full_panel(model).unwrap_or(model.focus) == Panel::Extents
        && let Some(cmds) = map::press(model, key.code)
    {
        return cmds;
    }
    match key.code {
        KeyCode::Char('q') => vec![Cmd::Quit(None)],
        KeyCode::Char('Q') => {
            model.keep = true;
            vec![Cmd::Quit(None)]
        }
        KeyCode::Char('S') => vec![if model.running() {
            Cmd::Stop
        } else {
            Cmd::Start
        }],
        KeyCode::Char('r') => {
            event(model, Kind::Info, "statistics reset");
            model.say("statistics reset: totals count from now on".to_owned());
            vec![Cmd::Reset]
        }
        KeyCode::Char('x') => vec![Cmd::Export],
        KeyCode::Char('s') => vec![Cmd::Shrink],
        KeyCode::Char('a') => auto_key(model),
        KeyCode::Char('W') if workloads(model) > 1 => compare_by(model),
        KeyCode::Char(c @ '1'..='7') => {
            let page = Page::ALL.into_iter().zip('1'..).find(|(_, k)| *k == c);
            model.page = page.map_or(Page::Overview, |(page, _)| page);
            model.zoomed = false;
            model.offset = 0;
            Vec::new()
        }
        code => look(model, code).unwrap_or_else(|| policy(model, code)),
    }
}

/// Any key closes the help, except those that move it.
fn in_help(model: &mut Model, line: usize, code: KeyCode) -> Vec<Cmd> {
    model.help = match code {
        KeyCode::Down => Some(line + 1),
        KeyCode::PageDown => Some(line + 10),
        KeyCode::Up => Some(line.saturating_sub(1)),
        KeyCode::PageUp => Some(line.saturating_sub(10)),
        _ => None,
    };
    if let Some(line) = &mut model.help {
        *line = (*line).min(view::help_overflow(model.theme, model.size));
    }
    Vec::new()
}

fn policy(model: &mut Model, code: KeyCode) -> Vec<Cmd> {
    if let KeyCode::Char(c) = code
        && let Some(policy) = model.setup.policies.iter().position(|p| p.key == c)
    {
        return vec![Cmd::Toggle(policy)];
    }
    unknown(model, code)
}

/// Said once, or a cat on the keyboard would hide the footer.
fn unknown(model: &mut Model, code: KeyCode) -> Vec<Cmd> {
    if !model.unknown_said {
        model.unknown_said = true;
        model.say(format!(
            "key {code} does nothing here; ? lists the keys (said this once)"
        ));
    }
    Vec::new()
}

/// Keys that change only the look. `None`: no such key.
fn look(model: &mut Model, code: KeyCode) -> Option<Vec<Cmd>> {
    match code {
        KeyCode::Char('?') => model.help = Some(0),
        KeyCode::Char(',') => model.sheet = Some(Sheet::Settings),
        KeyCode::Char('d') => prompt::open(model, PromptKind::Compare),
        KeyCode::Char('g') => {
            if model.page != Page::Extents {
                (model.page, model.zoomed, model.offset) = (Page::Extents, false, 0);
            }
            prompt::open(model, PromptKind::GoTo);
        }
        KeyCode::Char('/') => prompt::open(model, PromptKind::Filter),
        KeyCode::Char('o') => prompt::open(model, PromptKind::Stack),
        KeyCode::Char('w') => {
            let kind = prompt::workload(model);
            prompt::open(model, kind);
        }
        KeyCode::Char(' ') => freeze(model),
        KeyCode::Tab => focus(model, 1),
        KeyCode::BackTab => focus(model, -1),
        KeyCode::Char('z') => {
            if model.page == Page::Overview {
                model.zoomed = !model.zoomed;
                model.offset = 0;
            }
        }
        KeyCode::Enter => {
            if model.page == Page::Overview {
                open(model);
                model.offset = 0;
            }
        }
        KeyCode::Esc => back(model),
        KeyCode::Char('i') => model.bytes = !model.bytes,
        KeyCode::Char('y') => model.from_zero = !model.from_zero,
        KeyCode::Char('h') => model.heat = !model.heat,
        KeyCode::Char('[') => zoom_time(model, 1),
        KeyCode::Char(']') => zoom_time(model, -1),
        KeyCode::Char('+' | '=') => rate(model, 1),
        KeyCode::Char('-') => rate(model, -1),
        KeyCode::Char('t') => {
            model.theme = model.theme.next();
            model.say(format!("theme: {}", model.theme.name()));
        }
        KeyCode::Left => scroll_time(model, -1),
        KeyCode::Right => scroll_time(model, 1),
        KeyCode::Home => model.end = model.shown().history.range().map(|(first, _)| first),
        KeyCode::End => model.end = None,
        KeyCode::Up => vertical(model, -1),
        KeyCode::Down => vertical(model, 1),
        KeyCode::PageUp => vertical(model, -10),
        KeyCode::PageDown => vertical(model, 10),
        _ => return None,
    }
    Some(Vec::new())
}

/// Opens the page of the focused panel, or that of the chosen layer of the stack.
fn open(model: &mut Model) {
    let page = if model.focus == Panel::Stack {
        layer_page(model)
    } else {
        model.focus.page()
    };
    match page {
        Some(page) => (model.page, model.zoomed) = (page, false),
        None => model.zoomed = true,
    }
}

/// The page of the chosen layer, should it have one.
fn layer_page(model: &Model) -> Option<Page> {
    let sample = model.shown().latest.as_deref()?;
    stack::page(sample, stack::chosen(model.layer, sample))
}

fn freeze(model: &mut Model) {
    model.frozen = match model.frozen.take() {
        Some(_) => None,
        None => Some(Box::new(model.live.clone())),
    };
}

fn focus(model: &mut Model, step: isize) {
    let panels: Vec<Panel> = view::layout(model).into_iter().map(|(p, _)| p).collect();
    let at = panels.iter().position(|p| *p == model.focus).unwrap_or(0);
    let next = at.saturating_add(panels.len()).saturating_add_signed(step);
    if let Some(panel) = next.checked_rem(panels.len()).and_then(|i| panels.get(i)) {
        model.focus = *panel;
        model.offset = 0;
    }
}

/// One step out: from the zoom, from the page, from the past.
fn back(model: &mut Model) {
    if model.zoomed {
        model.zoomed = false;
    } else if model.page != Page::Overview {
        model.page = Page::Overview;
    } else {
        model.end = None;
        model.only = None;
    }
    model.offset = 0;
}

pub(super) fn zoom_time(model: &mut Model, step: isize) {
    let merge = MERGES.get(model.merge).copied().unwrap_or(1);
    let samples = model.shown().history.range().map_or(0, |(a, z)| z - a + 1);
    if step > 0 && samples <= merge * view::chart_columns(model) {
        model.say("the chart shows the whole run already".to_owned());
        return;
    }
    model.merge = model
        .merge
        .saturating_add_signed(step)
        .min(MERGES.len() - 1);
    model.want(Redraw::Soon);
}

fn scroll_time(model: &mut Model, columns: i64) {
    let Some((first, last)) = model.shown().history.range() else {
        return;
    };
    let step = MERGES.get(model.merge).copied().unwrap_or(1) * 10;
    let end = model.end.unwrap_or(last);
    let end = if columns < 0 {
        end.saturating_sub(step).max(first)
    } else {
        end.saturating_add(step)
    };
    model.end = (end < last).then_some(end);
}

fn rate(model: &mut Model, step: isize) {
    let at = RATES.iter().position(|r| *r >= model.hz).unwrap_or(0);
    let at = at.saturating_add_signed(step).min(RATES.len() - 1);
    model.hz = RATES.get(at).copied().unwrap_or(10);
}

fn vertical(model: &mut Model, lines: isize) {
    match view::full_panel(model).unwrap_or(model.focus) {
        Panel::Throughput => {
            let n = workloads(model);
            let at = model.only.map_or(0, |w| w + 1);
            let next = (at + n + 1).saturating_add_signed(lines.signum());
            model.only = next.checked_rem(n + 1).and_then(|at| at.checked_sub(1));
        }
        Panel::Ab => {
            let most = view::ab_overflow(model);
            model.offset = model.offset.saturating_add_signed(lines).min(most);
        }
        Panel::Stack => {
            let latest = model.shown().latest.as_deref();
            let chosen = latest.map_or(0, |sample| stack::chosen(model.layer, sample));
            let layers = latest.map_or(0, |sample| sample.layers.len());
            let next = chosen.saturating_add_signed(lines);
            model.layer = next.min(layers.saturating_sub(1));
        }
        // Events stand newest last and are scrolled from their end.
        Panel::Events => {
            let most = model
                .shown()
                .log
                .matching(&model.filter)
                .count()
                .saturating_sub(1);
            model.offset = model.offset.saturating_add_signed(-lines).min(most);
        }
        panel => {
            let most = view::list_len(model, panel).saturating_sub(1);
            model.offset = model.offset.saturating_add_signed(lines).min(most);
        }
    }
}
