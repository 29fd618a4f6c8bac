//! What came out, and what was asked for.

use std::io;

use crate::server::Arm;

/// What one arm reached in one cell, round by round.
pub(crate) struct Row {
    cell: String,
    arm: Arm,
    pub(crate) seen: Vec<Option<f64>>,
}

impl Row {
    pub(crate) fn new(cell: &str, arm: Arm) -> Self {
        Self {
            cell: cell.to_owned(),
            arm,
            seen: Vec::new(),
        }
    }

    fn median(&self) -> Option<f64> {
        median(self.seen.iter().flatten().copied())
    }
}

fn median(of: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    let upper = all.get(all.len() / 2)?;
    let lower = all.get(all.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

fn row<'r>(rows: &'r [Row], cell: &str, arm: Arm) -> Option<&'r Row> {
    rows.iter().find(|r| r.cell == cell && r.arm == arm)
}

/// Cairn on RAM over another arm: the median of the ratios of the rounds.
fn ratio(rows: &[Row], cell: &str, over: Arm) -> Option<f64> {
    let ours = row(rows, cell, Arm::CairnRam)?;
    let other = row(rows, cell, over)?;
    let pairs = ours.seen.iter().zip(&other.seen);
    median(pairs.filter_map(|(a, b)| Some((*a)? / (*b)?)))
}

/// One line of the verdict.
struct Bar {
    what: String,
    ratio: f64,
    need: f64,
    /// What else would do: the ratio over the client's own ceiling.
    or: Option<(f64, f64)>,
}

impl Bar {
    fn holds(&self) -> bool {
        self.ratio >= self.need || self.or.is_some_and(|(ratio, need)| ratio >= need)
    }
}

/// Prints the table and the bars; whether all of them hold.
pub(crate) fn print(out: &mut impl io::Write, rows: &[Row]) -> bool {
    let mut cells: Vec<&str> = rows.iter().map(|r| r.cell.as_str()).collect();
    cells.dedup();
    let width = cells.iter().map(|c| c.len()).max().unwrap_or(0).max(24);
    let _ = write!(out, "{:<width$}", "IOPS (cairn ram over it)");
    for arm in Arm::ALL {
        let _ = write!(out, "{:>18}", arm.name());
    }
    let _ = writeln!(out);
    for cell in &cells {
        let _ = write!(out, "{cell:<width$}");
        for arm in Arm::ALL {
            let median = row(rows, cell, arm).and_then(Row::median);
            let text = match (median, ratio(rows, cell, arm)) {
                (Some(m), _) if arm == Arm::CairnRam => format!("{m:.0}"),
                (Some(m), Some(r)) => format!("{m:.0} ({r:.2})"),
                _ => "-".to_owned(),
            };
            let _ = write!(out, "{text:>18}");
        }
        let _ = writeln!(out);
    }
    let mut held = true;
    for bar in cells.iter().flat_map(|cell| bars(rows, cell)) {
        let holds = bar.holds();
        held &= holds;
        let verdict = if holds { "held" } else { "MISSED" };
        let (what, ratio, need) = (&bar.what, bar.ratio, bar.need);
        let _ = write!(out, "{verdict:<7}{what}: {ratio:.2}, bar {need:.2}");
        if let Some((ratio, need)) = bar.or {
            let _ = write!(
                out,
                "; or {ratio:.2} of the same server over null, bar {need:.2}"
            );
        }
        let _ = writeln!(out);
    }
    held
}

/// The bars of one job's cells. Those of four jobs and the copies are shown only.
fn bars(rows: &[Row], cell: &str) -> Vec<Bar> {
    let bar = |arm: Arm, need| {
        ratio(rows, cell, arm).map(|ratio| Bar {
            what: format!("{cell} over {}", arm.name()),
            ratio,
            need,
            or: None,
        })
    };
    let mut all = Vec::new();
    if cell.ends_with("depth 1 jobs 1") {
        all.extend(bar(Arm::Nbdkit, 1.5));
        all.extend(bar(Arm::QemuNbd, 1.5));
    } else if cell.ends_with("depth 64 jobs 1") {
        // A client that has no more to give cannot show that a server is faster.
        let ceiling = ratio(rows, cell, Arm::CairnNull).map(|ratio| (ratio, 0.9));
        let nbdkit = [bar(Arm::Nbdkit, 1.3), bar(Arm::NbdkitMalloc, 1.0)];
        all.extend(
            nbdkit
                .into_iter()
                .flatten()
                .map(|bar| Bar { or: ceiling, ..bar }),
        );
        all.extend(bar(Arm::QemuNbd, 2.0));
    }
    all
}

pub(crate) fn json(rows: &[Row]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|r| serde_json::json!({"cell": r.cell, "arm": r.arm.name(), "median": r.median(), "ratio": ratio(rows, &r.cell, r.arm), "seen": r.seen}))
        .collect();
    serde_json::json!({ "rows": rows }).to_string()
}
