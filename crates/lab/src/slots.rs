//! Hits and misses row by row, so that the rows are the sum.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_extents::{BackendKind, CounterMode, CounterReport, Counters, SlotRow};

use crate::sample::SlotSample;

/// Remembers what the rows said at the reset.
pub(crate) struct Slots {
    /// CPUs that the system may ever have.
    cpus: Vec<u32>,
    base: HashMap<(BackendKind, String), (i64, i64)>,
    base_shared: (i64, i64),
    /// What the shared arm counted.
    shared: (i64, i64),
    mode: Option<CounterMode>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible");
        let cpus = possible.map(|list| cpus(&list)).unwrap_or_default();
        Self {
            cpus,
            base: HashMap::new(),
            base_shared: (0, 0),
            shared: (0, 0),
            mode: None,
        }
    }

    /// Rows begin again here; what they held in all, hits and misses.
    pub(crate) fn reset(&mut self, counters: &Counters) -> (i64, i64) {
        let (rows, _) = self.read(counters);
        let (hits, misses) = sums(&rows);
        let base = |row: SlotRow| ((row.backend, row.label), (row.hits, row.misses));
        self.base = rows.into_iter().map(base).collect();
        self.base_shared = self.shared;
        (hits + self.shared.0, misses + self.shared.1)
    }

    /// All rows since the reset, the shared arm's last, and the report of the same moment.
    pub(crate) fn take(&mut self, counters: &Counters) -> (Vec<SlotSample>, CounterReport) {
        let since = |now: i64, base: i64| u64::try_from(now - base).unwrap_or(0);
        let (rows, report) = self.read(counters);
        let mut all: Vec<SlotSample> = rows
            .into_iter()
            .map(|row| {
                let name = (row.backend, row.label);
                let base = self.base.get(&name).copied().unwrap_or_default();
                SlotSample {
                    label: match name.1.as_str() {
                        "base" => Arc::from("past slots"),
                        label => Arc::from(label),
                    },
                    hits: since(row.hits, base.0),
                    misses: since(row.misses, base.1),
                }
            })
            .collect();
        all.push(SlotSample {
            label: Arc::from("shared"),
            hits: since(self.shared.0, self.base_shared.0),
            misses: since(self.shared.1, self.base_shared.1),
        });
        (all, report)
    }

    /// Whether a row is worth a line: it counted, or it may at any time.
    pub(crate) fn shown(&self, row: &SlotSample) -> bool {
        let may = match row.label.strip_prefix("cpu ") {
            Some(cpu) => cpu.parse().is_ok_and(|cpu| self.cpus.contains(&cpu)),
            None => &*row.label == "shared" && self.mode == Some(CounterMode::Shared),
        };
        may || row.hits > 0 || row.misses > 0
    }

    /// Rows first, then the sums, and from both what the shared arm counted.
    ///
    /// What is counted between the two looks is not the shared arm's. While the other arm receives, the
    /// shared one stands still, so the smallest difference ever seen is nearest to it; while the shared one
    /// receives, the rows stand still and the difference is exact.
    fn read(&mut self, counters: &Counters) -> (Vec<SlotRow>, CounterReport) {
        let rows = counters.slots();
        let report = counters.report();
        let (hits, misses) = sums(&rows);
        let over = (report.hits.exact - hits, report.misses.exact - misses);
        self.shared = if self.mode == Some(report.mode) && report.mode == CounterMode::PerCpu {
            (self.shared.0.min(over.0), self.shared.1.min(over.1))
        } else {
            over
        };
        self.mode = Some(report.mode);
        (rows, report)
    }
}

fn sums(rows: &[SlotRow]) -> (i64, i64) {
    let add = |(hits, misses): (i64, i64), row: &SlotRow| (hits + row.hits, misses + row.misses);
    rows.iter().fold((0, 0), add)
}

/// The kernel's list of CPUs, such as `0-3,8`.
fn cpus(list: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
            all.extend(from..=to.min(from.saturating_add(65_535)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_extents::{Config, ExtentCache, Status};

    #[test]
    fn rows_add_up_whatever_arm_counted() {
        let cache = ExtentCache::new(Config::new());
        let map = cache.map(1);
        let _ = map.insert(0, 8, Status::Written(0)).unwrap();
        let mut slots = Slots::new();
        let count = |mode, hits: u32, misses: u32| {
            cache.set_counter_mode(mode);
            for _ in 0..hits {
                map.lookup(0);
            }
            for _ in 0..misses {
                map.lookup(9);
            }
        };
        let sum = |rows: &[SlotSample]| {
            let all = rows.iter().filter(|r| slots_shown(r));
            all.fold((0, 0), |(h, m), r| (h + r.hits, m + r.misses))
        };
        count(CounterMode::Shared, 5, 2);
        count(CounterMode::PerCpu, 30, 4);
        slots.reset(cache.counters());
        for (mode, hits, misses) in [
            (CounterMode::PerCpu, 7, 1),
            (CounterMode::Shared, 100, 3),
            (CounterMode::PerCpu, 11, 0),
        ] {
            let before = sum(&slots.take(cache.counters()).0);
            count(mode, hits, misses);
            let after = sum(&slots.take(cache.counters()).0);
            let more = (after.0 - before.0, after.1 - before.1);
            assert_eq!(more, (u64::from(hits), u64::from(misses)), "{mode:?}");
        }
        let (rows, _) = slots.take(cache.counters());
        let shared = rows.iter().find(|r| &*r.label == "shared").unwrap();
        assert_eq!((shared.hits, shared.misses), (100, 3));
        assert!(rows.iter().all(|r| &*r.label != "base"));
    }

    fn slots_shown(row: &SlotSample) -> bool {
        Slots::new().shown(row)
    }

    #[test]
    fn only_cpus_that_can_be_have_a_row() {
        assert_eq!(cpus("0-1\n"), [0, 1]);
        assert_eq!(cpus("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpus(""), Vec::<u32>::new());
        let slots = Slots {
            cpus: vec![0, 1],
            ..Slots::new()
        };
        let row = |label: &str, hits| SlotSample {
            label: Arc::from(label),
            hits,
            misses: 0,
        };
        assert!(slots.shown(&row("cpu 1", 0)));
        assert!(!slots.shown(&row("cpu 2", 0)) && slots.shown(&row("cpu 2", 1)));
        assert!(!slots.shown(&row("past slots", 0)) && !slots.shown(&row("shared", 0)));
    }
}
