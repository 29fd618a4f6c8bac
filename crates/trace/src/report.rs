//! What a replay found. Plain data; serialisable with the feature `serde`.

use core::fmt;

use cairn_extents::{Extent, Info};

/// Answers of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tally {
    /// Answers in the trace.
    pub total: u64,
    /// Those that the model gave too, or could not contradict.
    pub agreed: u64,
    /// Those that could not be predicted; only when lenient.
    pub unknown: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.agreed += other.agreed;
        self.unknown += other.unknown;
    }

    /// Answers that contradict the model.
    pub fn diverged(self) -> u64 {
        self.total - self.agreed - self.unknown
    }
}

/// An entry as a report shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct EntryReport {
    /// First block.
    pub lblk: u32,
    /// Blocks.
    pub len: u32,
    /// Physical block, if the status has one.
    pub pblk: Option<u64>,
    /// `W`, `U`, `D`, `H` or `UD`.
    pub status: &'static str,
    /// Looked up before.
    pub referenced: bool,
}

impl From<Extent> for EntryReport {
    fn from(e: Extent) -> Self {
        Self {
            lblk: e.lblk,
            len: e.len,
            pblk: e.status.physical(),
            status: e.status.kind().letters(),
            referenced: e.referenced,
        }
    }
}

/// One side of a divergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum Answer {
    /// An entry.
    Entry(EntryReport),
    /// Entries that the shrinker freed.
    Freed(u64),
    /// No entry.
    Miss,
}

impl Answer {
    pub(crate) fn of(found: Option<Extent>) -> Self {
        found.map_or(Self::Miss, |e| Self::Entry(e.into()))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Miss => f.write_str("miss"),
            Self::Freed(n) => write!(f, "{n} freed"),
            Self::Entry(e) => {
                write!(f, "[{}/{}) ", e.lblk, e.len)?;
                if let Some(p) = e.pblk {
                    write!(f, "{p} ")?;
                }
                f.write_str(e.status)?;
                f.write_str(if e.referenced { " R" } else { "" })
            }
        }
    }
}

/// A place where the kernel and the model disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Divergence {
    /// Line of the decompressed text, from 1.
    pub line: u64,
    /// `lookup`, `range` or `shrink`.
    pub event: &'static str,
    /// Device, `7,2`.
    pub dev: String,
    /// Inode; a shrinker pass has none.
    pub ino: Option<u64>,
    /// Block asked for; a shrinker pass has none.
    pub lblk: Option<u32>,
    /// What the kernel answered.
    pub kernel: Answer,
    /// What the model answered.
    pub model: Answer,
    /// The last operation that the workload noted in the trace.
    pub after: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} dev {}", self.line, self.event, self.dev)?;
        if let Some(ino) = self.ino {
            write!(f, " ino {ino}")?;
        }
        if let Some(lblk) = self.lblk {
            write!(f, " lblk {lblk}")?;
        }
        write!(f, ": kernel {}, model {}", self.kernel, self.model)?;
        if let Some(after) = &self.after {
            write!(f, ", after {after}")?;
        }
        Ok(())
    }
}

/// The model's totals at the end, over all devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Totals {
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Entries held.
    pub objects: u64,
    /// Entries that the shrinker may take.
    pub reclaimable: u64,
    /// Maps with something to reclaim.
    pub inodes_on_list: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, info: &Info) {
        self.hits += info.hits;
        self.misses += info.misses;
        self.objects += info.objects;
        self.reclaimable += info.reclaimable;
        self.inodes_on_list += info.inodes_on_list;
    }
}

/// A total that differs from the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Difference {
    /// Which.
    pub key: &'static str,
    /// The kernel's value, `None` if its text has none.
    pub kernel: Option<u64>,
    /// The model's value, `None` if it has none.
    pub model: Option<u64>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |v: Option<u64>| v.map_or_else(|| "none".to_owned(), |v| v.to_string());
        write!(
            f,
            "{} kernel {} model {}",
            self.key,
            side(self.kernel),
            side(self.model)
        )
    }
}

/// The comparison with an info file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InfoReport {
    /// Whether all totals are equal.
    pub agreed: bool,
    /// Those that are not.
    pub differences: Vec<Difference>,
}

/// Everything about one trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FileReport {
    /// The path as given.
    pub file: String,
    /// `vacant` or `overwrite`.
    pub generation: &'static str,
    /// Whether the referenced mark was compared.
    pub compare_referenced: bool,
    /// Devices seen.
    pub devices: Vec<String>,
    /// Events of the cache, and markers.
    pub events: u64,
    /// Other events.
    pub ignored: u64,
    /// Answers whose question is not in the trace.
    pub unpaired: u64,
    /// Events lost, as far as the trace says how many.
    pub lost: u64,
    /// Look-ups.
    pub lookups: Tally,
    /// Range searches.
    pub ranges: Tally,
    /// Shrinker passes.
    pub shrinks: Tally,
    /// The model's totals at the end.
    pub model: Totals,
    /// The comparison with the info file, if one was given.
    pub info: Option<InfoReport>,
    /// The first divergences.
    pub divergences: Vec<Divergence>,
}

impl FileReport {
    /// Whether nothing contradicts.
    pub fn agrees(&self) -> bool {
        let diverged = self.lookups.diverged() + self.ranges.diverged() + self.shrinks.diverged();
        diverged == 0 && self.info.as_ref().is_none_or(|i| i.agreed)
    }

    /// The summary line; lenient ones show what could not be predicted.
    pub fn summary(&self, lenient: bool) -> String {
        summary(self.lookups, self.ranges, self.shrinks, lenient)
    }
}

pub(crate) fn summary(lookups: Tally, ranges: Tally, shrinks: Tally, lenient: bool) -> String {
    let group = |name: &str, t: Tally| {
        if lenient {
            format!(
                "{name} {} agreed {} unknown {}",
                t.total, t.agreed, t.unknown
            )
        } else {
            format!("{name} {} agreed {}", t.total, t.agreed)
        }
    };
    format!(
        "{}  {}  {}",
        group("lookups", lookups),
        group("ranges", ranges),
        group("shrinks", shrinks)
    )
}

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RunReport {
    /// One for each trace that could be read.
    pub files: Vec<FileReport>,
    /// 0 all agree, 1 something diverges, 2 something could not be read.
    pub exit: u8,
}
