//! `$pagesize`, `$mb_memory`, `$ncpus` and `${VAR}` in values.

use super::Parser;
use crate::value::{Reason, evaluate};

/// What the keywords of job files stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keywords {
    /// `$pagesize`, in bytes.
    pub pagesize: u64,
    /// `$mb_memory`, in MiB.
    pub mb_memory: u64,
    /// `$ncpus`.
    pub ncpus: u64,
}

impl Keywords {
    /// The figures of this machine; where one cannot be had, 4096 bytes, 1 MiB and 1 CPU.
    pub fn of_this_machine() -> Self {
        Self {
            pagesize: page_size().unwrap_or(4096),
            mb_memory: memory_mib().unwrap_or(1),
            ncpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        }
    }
}

/// The page size from the auxiliary vector (type 6, `AT_PAGESZ`), which needs no system call of our own.
fn page_size() -> Option<u64> {
    let bytes = std::fs::read("/proc/self/auxv").ok()?;
    let words: Vec<u64> = bytes
        .chunks_exact(size_of::<usize>())
        .map(|chunk| {
            chunk.iter().enumerate().fold(0, |sum, (i, byte)| {
                let place = if cfg!(target_endian = "little") {
                    i
                } else {
                    chunk.len() - 1 - i
                };
                sum | u64::from(*byte) << (8 * place)
            })
        })
        .collect();
    words.chunks_exact(2).find_map(|pair| match pair {
        [6, value] => Some(*value),
        _ => None,
    })
}

fn memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

impl Parser<'_> {
    /// Puts the environment in for `${VAR}`, and figures for the keywords.
    pub(super) fn expand(&self, value: &str) -> Result<String, Reason> {
        let mut text = String::with_capacity(value.len());
        let mut rest = value;
        while let Some((before, tail)) = rest.split_once("${") {
            let Some((name, after)) = tail.split_once('}') else {
                break;
            };
            text.push_str(before);
            text.push_str(&(self.env)(name).unwrap_or_default());
            rest = after;
        }
        text.push_str(rest);
        let replaced = text
            .replace("$pagesize", &self.keywords.pagesize.to_string())
            .replace("$mb_memory", &self.keywords.mb_memory.to_string())
            .replace("$ncpus", &self.keywords.ncpus.to_string());
        if replaced == text {
            return Ok(text);
        }
        // Only what could be a sum is computed, so that keywords also work within names.
        let starts_as_number = replaced.starts_with(|c: char| c.is_ascii_digit() || c == '(');
        let has_operator = replaced.contains(['+', '-', '*', '/', '%']);
        if starts_as_number && has_operator {
            return evaluate(&replaced, None).map(|n| n.to_string());
        }
        Ok(replaced)
    }
}
