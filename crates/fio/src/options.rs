//! The table of options: one entry each, shared by the parser, the help, the suggestions and the printer.

use crate::job::{IoEngine, Job};
use crate::value::{Bare, Reason};

mod apply;
mod buffers;
mod control;
mod engines;
mod extent;
mod files;
mod help;
mod host;
mod logs;
mod pace;
mod queue;
mod random;
mod refused;
mod replay;
mod report;
mod setter;
mod suggest;
mod verify;
mod workload;

pub use help::{command_help, engine_help, option_help};
pub(crate) use setter::Set;
pub use suggest::closest;
pub use suggest::nearest;
pub(crate) use suggest::{names, nearest_word};

/// How far an option is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Acts, in any engine that runs this model.
    Must,
    /// Read into the model; an engine that does not act on it must refuse it by name when it changes
    /// the job, see [`Plan::changing`](crate::Plan::changing).
    Next,
    /// Accepted, without effect on a stack in user space, and noted.
    Noted,
    /// Refused by name.
    Refused,
}

/// One option of a job.
pub struct OptionDef {
    /// Canonical name, the key of `job options` in JSON.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// How far it is supported.
    pub tier: Tier,
    /// Value when it is not given, as it would be written; empty for none.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// Engines it belongs to; empty for all.
    pub engines: &'static [IoEngine],
    pub(crate) set: Set,
    /// The model has no field for it, so only its text tells whether it changes the job.
    pub(crate) unmodelled: bool,
}

impl std::fmt::Debug for OptionDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OptionDef")
            .field("name", &self.name)
            .field("tier", &self.tier)
            .finish_non_exhaustive()
    }
}

/// What an option wants when it stands alone or gets a wrong value.
pub(crate) enum ApplyError {
    /// A value is needed.
    Missing,
    /// The value is wrong.
    Bad(Reason),
}

/// Every option, core ones first, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static OptionDef> {
    const TABLES: [&[OptionDef]; 15] = [
        workload::TABLE,
        random::TABLE,
        queue::TABLE,
        extent::TABLE,
        files::TABLE,
        control::TABLE,
        pace::TABLE,
        buffers::TABLE,
        verify::TABLE,
        replay::TABLE,
        report::TABLE,
        logs::TABLE,
        host::TABLE,
        refused::TABLE,
        engines::TABLE,
    ];
    TABLES.into_iter().flatten()
}

/// The definition of a name or alias.
///
/// ```
/// use cairn_fio::options;
/// assert_eq!(options::find("blocksize").map(|def| def.name), Some("bs"));
/// assert_eq!(options::nearest("iodpeth"), Some("iodepth"));
/// ```
pub fn find(name: &str) -> Option<&'static OptionDef> {
    all().find(|def| def.name == name || def.aliases.contains(&name))
}

impl OptionDef {
    /// Whether a job with only this option differs from one with none.
    pub fn changes(&self, value: Option<&str>) -> bool {
        if self.unmodelled {
            return value.unwrap_or("1") != self.default;
        }
        let plain = Job::default();
        let mut job = Job::default();
        self.apply(&mut job, value).is_err() || job != plain
    }

    /// Whether a job file may have the option without a value.
    pub fn may_stand_alone(&self) -> bool {
        matches!(self.set, Set::Flag(_) | Set::OptText(_))
    }

    /// Whether the option takes 0 or 1, and on the command line alone means 1.
    pub(crate) fn is_bool(&self) -> bool {
        matches!(self.set, Set::Bool(_))
    }

    /// Whether the option is a flag, which fio leaves out of `job options` when it stands alone.
    pub fn is_flag(&self) -> bool {
        matches!(self.set, Set::Flag(_))
    }

    /// Whether the value may carry the suffixes of sizes.
    pub(crate) fn takes_sizes(&self) -> bool {
        matches!(
            self.set,
            Set::Int(..) | Set::Sizes(..) | Set::Amount(_) | Set::Custom(..)
        )
    }

    /// What kind of value the option takes, in words.
    pub fn kind(&self) -> String {
        match &self.set {
            Set::Flag(_) => "nothing, 0 or 1".to_owned(),
            Set::Bool(_) => "0 or 1".to_owned(),
            Set::Int(min, max, _) => limits("a number", *min, *max),
            Set::Sizes(min, max, _) => {
                limits("one to three numbers for read,write,trim", *min, *max)
            }
            Set::Amount(_) => "a size or a share of the file (512m, 50%)".to_owned(),
            Set::Time(Bare::Seconds, _) => {
                "a time, bare numbers are seconds (90, 500ms, 2m)".to_owned()
            }
            Set::Time(Bare::Millis, _) => "a time, bare numbers are milliseconds".to_owned(),
            Set::Time(Bare::Micros, _) => {
                "a time, bare numbers are microseconds (500, 20ms)".to_owned()
            }
            Set::Text(_) => "a text".to_owned(),
            Set::OptText(_) => "nothing or a text".to_owned(),
            Set::Words(words, _) => format!("one of {}", words.join(", ")),
            Set::Custom(kind, _) => (*kind).to_owned(),
            Set::Refused(reason) => format!("not supported: {reason}"),
        }
    }
}

fn limits(what: &str, min: u64, max: u64) -> String {
    match (min, max) {
        (0, u64::MAX) => what.to_owned(),
        (min, max) if max >= u64::from(u32::MAX) => format!("{what}, at least {min}"),
        (min, max) => format!("{what}, {min} to {max}"),
    }
}

/// Shorthand of the tables.
const fn opt(
    name: &'static str,
    aliases: &'static [&'static str],
    tier: Tier,
    default: &'static str,
    help: &'static str,
    set: Set,
) -> OptionDef {
    OptionDef {
        name,
        aliases,
        tier,
        default,
        help,
        engines: &[],
        set,
        unmodelled: false,
    }
}

impl OptionDef {
    /// For options of some engines only.
    const fn of(mut self, engines: &'static [IoEngine]) -> Self {
        self.engines = engines;
        self
    }

    /// For options the model has no field for.
    const fn unmodelled(mut self) -> Self {
        self.unmodelled = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = HashSet::new();
        for def in all() {
            for name in std::iter::once(&def.name).chain(def.aliases) {
                assert!(seen.insert(*name), "{name} stands twice");
            }
        }
    }

    #[test]
    fn defaults_change_nothing() {
        for def in all().filter(|def| !def.default.is_empty() && def.tier != Tier::Refused) {
            assert!(
                !def.changes(Some(def.default)),
                "{}={}",
                def.name,
                def.default
            );
        }
    }
}
