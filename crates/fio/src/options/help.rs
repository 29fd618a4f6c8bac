//! `--cmdhelp` and `--enghelp`.

use std::fmt::Write;

use super::{OptionDef, Tier, all, find};
use crate::job::{EngineClass, IoEngine};

/// The list of all core options, one a line.
pub fn command_help() -> String {
    let mut text = String::new();
    for def in all().filter(|def| def.engines.is_empty()) {
        line(&mut text, def);
    }
    text
}

fn line(text: &mut String, def: &OptionDef) {
    let _ = writeln!(text, "{:<24}: {}", def.name, def.help);
}

/// Everything about one option, or `None` when there is none of that name.
pub fn option_help(name: &str) -> Option<String> {
    let def = find(name)?;
    let mut text = String::new();
    let mut row = |key: &str, value: &str| {
        let _ = writeln!(text, "{key:>20}: {value}");
    };
    row(def.name, def.help);
    for alias in def.aliases {
        row("alias", alias);
    }
    row("takes", &def.kind());
    row(
        "default",
        if def.default.is_empty() {
            "no default"
        } else {
            def.default
        },
    );
    if !def.engines.is_empty() {
        let engines: Vec<_> = def.engines.iter().map(|e| e.word()).collect();
        row("of ioengine", &engines.join(", "));
    }
    match def.tier {
        Tier::Must | Tier::Next => {}
        Tier::Noted => row("support", "accepted, without effect"),
        Tier::Refused => row("support", "refused"),
    }
    Some(text)
}

/// The list of engines, or the options of one; `None` when there is no such engine.
pub fn engine_help(engine: Option<&str>) -> Option<String> {
    let mut text = String::new();
    let Some(name) = engine else {
        text.push_str("Available IO engines:\n");
        for word in IoEngine::WORDS {
            if IoEngine::from_word(word).is_some_and(|e| e.class() != EngineClass::Outside) {
                let _ = writeln!(text, "\t{word}");
            }
        }
        return Some(text);
    };
    let engine = IoEngine::from_word(name)?;
    for def in all().filter(|def| def.engines.contains(&engine)) {
        line(&mut text, def);
    }
    if text.is_empty() {
        let _ = writeln!(text, "IO engine {engine} has no options");
    }
    Some(text)
}
