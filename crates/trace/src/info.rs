//! The kernel's `es_shrinker_info` text, read and compared.

use core::fmt;

use crate::report::{Difference, InfoReport};
use cairn_extents::Info;

/// The totals in an info text. Times are read over: they are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelInfo {
    objects: Option<u64>,
    reclaimable: Option<u64>,
    hits: Option<u64>,
    misses: Option<u64>,
    inodes_on_list: Option<u64>,
    shrunk: Option<u64>,
    max_inode: Option<u64>,
    max_objects: Option<u64>,
    max_reclaimable: Option<u64>,
}

/// Why a text is not that of `es_shrinker_info`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfoError {
    /// A line does not read as any known one.
    Line {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A line is missing.
    Missing {
        /// How it should read.
        expected: &'static str,
    },
}

impl fmt::Display for InfoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, text } => {
                write!(
                    f,
                    "{line}: expected a line of es_shrinker_info, found {text:?}"
                )
            }
            Self::Missing { expected } => write!(f, "the line `{expected}` is missing"),
        }
    }
}

impl std::error::Error for InfoError {}

impl KernelInfo {
    /// Reads the text.
    ///
    /// # Errors
    /// [`InfoError`] for a line that is not known and for totals that are missing.
    pub fn parse(text: &str) -> Result<Self, InfoError> {
        let mut info = Self::default();
        for (i, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            info.line(&words).ok_or_else(|| InfoError::Line {
                line: i + 1,
                text: line.chars().take(60).collect(),
            })?;
        }
        for (value, expected) in [
            (info.objects, "N objects"),
            (info.reclaimable, "N reclaimable objects"),
            (info.hits, "N/N cache hits/misses"),
            (info.shrunk, "N shrunk objects"),
        ] {
            if value.is_none() {
                return Err(InfoError::Missing { expected });
            }
        }
        Ok(info)
    }

    fn line(&mut self, words: &[&str]) -> Option<()> {
        let number = |s: &str| s.parse::<u64>().ok();
        match *words {
            [] | ["stats:" | "average:" | "maximum:"] => {}
            [n, "us", "scan", "time"]
            | [n, "us", "max", "scan", "time"]
            | [n, "ms", "last", "sorted", "interval"] => {
                number(n)?;
            }
            [n, "objects"] => self.objects = Some(number(n)?),
            [n, "reclaimable", "objects"] => self.reclaimable = Some(number(n)?),
            [n, "shrunk", "objects"] => self.shrunk = Some(number(n)?),
            [n, "inodes", "on", "list"] | [n, "inodes", "on", "lru", "list"] => {
                self.inodes_on_list = Some(number(n)?);
            }
            [both, "cache", "hits/misses"] => {
                let (hits, misses) = both.split_once('/')?;
                self.hits = Some(number(hits)?);
                self.misses = Some(number(misses)?);
            }
            [
                ino,
                "inode",
                objects,
                "objects,",
                reclaimable,
                "reclaimable)",
            ] => {
                self.max_inode = Some(number(ino)?);
                self.max_objects = Some(number(objects.strip_prefix('(')?)?);
                self.max_reclaimable = Some(number(reclaimable)?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Compares with the statistics of a model.
    pub fn compare(&self, model: &Info) -> InfoReport {
        let listed = (model.inodes_on_list > 0).then_some(model.inodes_on_list);
        let largest = model.largest;
        let pairs = [
            ("objects", self.objects, Some(model.objects)),
            ("reclaimable", self.reclaimable, Some(model.reclaimable)),
            ("hits", self.hits, Some(model.hits)),
            ("misses", self.misses, Some(model.misses)),
            ("inodes_on_list", self.inodes_on_list, listed),
            ("shrunk", self.shrunk, Some(model.averages.freed)),
            ("max_inode", self.max_inode, largest.map(|l| l.ino)),
            (
                "max_objects",
                self.max_objects,
                largest.map(|l| u64::from(l.objects)),
            ),
            (
                "max_reclaimable",
                self.max_reclaimable,
                largest.map(|l| u64::from(l.reclaimable)),
            ),
        ];
        let differences: Vec<Difference> = pairs
            .into_iter()
            .filter(|(_, kernel, model)| kernel != model)
            .map(|(key, kernel, model)| Difference { key, kernel, model })
            .collect();
        InfoReport {
            agreed: differences.is_empty(),
            differences,
        }
    }
}
