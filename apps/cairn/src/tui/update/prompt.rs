//! The line that takes text: a filter for the events, a stack spec, the options of a workload, a place in a
//! file, the directory of a run.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Cmd, map};
use crate::tui::model::{Model, Page, Prompt, PromptKind};

/// Longest text that is taken in.
const LONGEST: usize = 4_000;

/// Opens the line with the text that holds now.
pub(super) fn open(model: &mut Model, kind: PromptKind) {
    let text = match kind {
        PromptKind::Filter => {
            model.page = Page::Log;
            model.zoomed = false;
            model.filter.clone()
        }
        PromptKind::Stack => model.setup.stack.clone(),
        PromptKind::Workload(index) => match model.setup.workloads.get(index) {
            Some((_, text)) => text.clone(),
            None => return,
        },
        PromptKind::GoTo | PromptKind::Compare => String::new(),
    };
    model.prompt = Some(Prompt {
        kind,
        text,
        error: None,
    });
}

/// The workload that is edited first: the one in the chart.
pub(super) fn workload(model: &Model) -> PromptKind {
    let latest = model.live.latest.as_ref();
    let compared = latest.and_then(|s| s.comparison.as_ref()?.workload);
    PromptKind::Workload(model.only.or(compared).unwrap_or(0))
}

/// Takes a key in; the line is open.
pub(super) fn press(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    let Some(mut prompt) = model.prompt.take() else {
        return Vec::new();
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let mut cmds = Vec::new();
    match (key.code, control) {
        (KeyCode::Char('c'), true) => return vec![Cmd::Quit(None)],
        (KeyCode::Esc, _) => {
            if prompt.kind == PromptKind::Filter {
                model.filter.clear();
            }
            return cmds;
        }
        (KeyCode::Enter, _) if prompt.kind == PromptKind::GoTo => {
            match map::go_to(model, prompt.text.trim()) {
                Ok(show) => return show,
                Err(text) => prompt.error = Some(text.into()),
            }
            model.prompt = Some(prompt);
            return cmds;
        }
        (KeyCode::Enter, _) => {
            cmds = accept(&mut prompt);
            let open = !cmds.is_empty();
            if prompt.kind == PromptKind::Filter {
                model.filter.clone_from(&prompt.text);
            }
            // It stays until the answer comes: a refusal is shown with what was typed.
            model.prompt = open.then_some(prompt);
            return cmds;
        }
        (KeyCode::Tab, _) => {
            if let PromptKind::Workload(index) = prompt.kind {
                let next = (index + 1).checked_rem(model.setup.workloads.len());
                open(model, PromptKind::Workload(next.unwrap_or(0)));
                return cmds;
            }
        }
        (KeyCode::Backspace, _) => {
            prompt.text.pop();
        }
        (KeyCode::Char('u'), true) => prompt.text.clear(),
        (KeyCode::Char('w'), true) => {
            let kept = prompt.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            prompt.text.truncate(kept);
        }
        (KeyCode::Char(c), false) if prompt.text.len() < LONGEST => prompt.text.push(c),
        _ => {}
    }
    prompt.error = None;
    if prompt.kind == PromptKind::Filter {
        model.filter.clone_from(&prompt.text);
        model.offset = 0;
    }
    model.prompt = Some(prompt);
    cmds
}

fn accept(prompt: &mut Prompt) -> Vec<Cmd> {
    let text = prompt.text.trim().to_owned();
    match prompt.kind {
        PromptKind::Filter => {
            prompt.text = text;
            Vec::new()
        }
        PromptKind::Stack => vec![Cmd::SetStack(text)],
        PromptKind::Compare => vec![Cmd::Compare(text)],
        // Taken before.
        PromptKind::GoTo => Vec::new(),
        PromptKind::Workload(index) => vec![Cmd::SetWorkload(index, text)],
    }
}
