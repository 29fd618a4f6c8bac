//! Two run directories side by side. They were not made in pairs, so this is for looking only.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::page::Page;
use super::run::{Slice, slices};
use super::{Content, ReportError, RunDir};
use crate::ab::AbResult;
use crate::environment::Environment;
use crate::rundir::RunFile;
use crate::stats::{median, rank};

/// Two run directories, compared without pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this form.
    pub schema_version: u32,
    /// How it was made, and what that means.
    pub estimator: &'static str,
    /// What differs between the machines and programs.
    pub environment: Vec<String>,
    /// One row for each arm or workload that both have.
    pub rows: Vec<Row>,
}

/// One thing that both runs measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What.
    pub name: String,
    /// Values of the first and of the second.
    pub values: [usize; 2],
    /// Median of the first.
    pub a: f64,
    /// Median of the second.
    pub b: f64,
    /// Ratio of the medians, second over first.
    pub ratio: f64,
    /// Two-sided p of the Mann-Whitney test.
    pub p: f64,
}

const RUNS: &str =
    "Mann-Whitney over runs, unpaired: whatever changed between the two days is in it too";
const SLICES: &str = "Mann-Whitney over slices of 1 s of one run each, unpaired, time-confounded: slices of one run \
     resemble each other, so p is too small";

/// Compares two run directories.
///
/// # Errors
/// [`ReportError::Different`] where they did not run the same workload.
pub fn compare_runs(first: &RunDir, second: &RunDir) -> Result<Comparison, ReportError> {
    match (&first.content, &second.content) {
        (Content::Ab(a), Content::Ab(b)) => comparisons(a, b),
        (Content::Run(a), Content::Run(b)) => {
            let [a_slices, b_slices] = [first, second].map(|dir| seconds(&slices(&dir.slices)));
            single_runs(a, b, &a_slices, &b_slices)
        }
        _ => Err(different("one is a comparison and the other a single run")),
    }
}

fn comparisons(a: &AbResult, b: &AbResult) -> Result<Comparison, ReportError> {
    same("scenario", &a.scenario, &b.scenario)?;
    same("workload", &a.workload, &b.workload)?;
    same("stack", &a.stack, &b.stack)?;
    let mut rows = Vec::new();
    for (arm, mine) in a.arms.iter().zip(&a.values) {
        let other = b
            .arms
            .iter()
            .zip(&b.values)
            .find(|(other, _)| *other == arm);
        if let Some((_, theirs)) = other.filter(|_| a.policy == b.policy) {
            rows.push(row(&format!("{} = {arm}", a.policy), mine, theirs));
        }
    }
    if rows.is_empty() {
        return Err(different(&format!(
            "no arm is in both: {} of {} and {} of {}",
            a.arms.join(", "),
            a.policy,
            b.arms.join(", "),
            b.policy
        )));
    }
    Ok(Comparison {
        schema_version: 1,
        estimator: RUNS,
        environment: environments(&a.environment, &b.environment),
        rows,
    })
}

/// Operations of the slices of each workload.
type Rates = BTreeMap<String, Vec<f64>>;

fn single_runs(
    a: &RunFile,
    b: &RunFile,
    a_rates: &Rates,
    b_rates: &Rates,
) -> Result<Comparison, ReportError> {
    same("stack", &a.summary.stack, &b.summary.stack)?;
    let about = |run: &RunFile| {
        let all = run.summary.workloads.iter();
        let lines = all.map(|w| format!("{}: {}, {} workers", w.name, w.about, w.workers));
        lines.collect::<Vec<_>>().join("; ")
    };
    same("workloads", &about(a), &about(b))?;
    let mut environment = environments(&a.environment, &b.environment);
    for (p, q) in a.summary.policies.iter().zip(&b.summary.policies) {
        if p != q {
            environment.push(format!("policy {}: {} / {}", p.name, p.arm, q.arm));
        }
    }
    let rows = a_rates
        .iter()
        .filter_map(|(name, rates)| Some(row(name, rates, b_rates.get(name)?)));
    Ok(Comparison {
        schema_version: 1,
        estimator: SLICES,
        environment,
        rows: rows.collect(),
    })
}

fn different(message: &str) -> ReportError {
    ReportError::Different {
        message: message.to_owned(),
    }
}

fn same(what: &str, a: &str, b: &str) -> Result<(), ReportError> {
    if a == b {
        Ok(())
    } else {
        Err(different(&format!(
            "different {what}, so there is nothing to compare: `{a}` and `{b}`"
        )))
    }
}

fn row(name: &str, a: &[f64], b: &[f64]) -> Row {
    let (x, y) = (median(a), median(b));
    Row {
        name: name.to_owned(),
        values: [a.len(), b.len()],
        a: x,
        b: y,
        ratio: y / x,
        p: rank::mann_whitney(a, b),
    }
}

/// Operations of whole seconds, by workload; settle windows left out.
fn seconds(all: &[Slice]) -> Rates {
    let mut open: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    let mut whole = Rates::new();
    for s in all {
        let (before, time, ops) = open.get(s.op.as_str()).copied().unwrap_or((s.t, 0.0, 0.0));
        let step = s.t - before;
        let (mut time, mut ops) = if s.settle {
            (0.0, 0.0)
        } else {
            (time + step, ops + s.ops)
        };
        if step <= 0.0 {
            (time, ops) = (0.0, 0.0);
        }
        if time >= 1.0 {
            whole.entry(s.op.clone()).or_default().push(ops / time);
            (time, ops) = (0.0, 0.0);
        }
        open.insert(&s.op, (s.t, time, ops));
    }
    whole
}

fn environments(a: &Environment, b: &Environment) -> Vec<String> {
    a.lines()
        .into_iter()
        .zip(b.lines())
        .filter(|(x, y)| x != y)
        .map(|((what, x), (_, y))| format!("{what}: {x} / {y}"))
        .collect()
}

impl Comparison {
    /// Prints the comparison as text.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.environment.is_empty() {
            writeln!(to, "environment: the same as far as it is recorded")?;
        }
        for line in &self.environment {
            writeln!(to, "differs: {line}")?;
        }
        writeln!(to, "{}", self.estimator)?;
        for r in &self.rows {
            let [n, m] = r.values;
            writeln!(
                to,
                "{:<32} A {:>12.1} (n {n})  B {:>12.1} (n {m})  {:+.2} %  p {:.4}",
                r.name,
                r.a,
                r.b,
                100.0 * (r.ratio - 1.0),
                r.p
            )?;
        }
        writeln!(
            to,
            "For a claim run cairn ab: pairs, interleaved, on one machine."
        )
    }

    /// The comparison as a page.
    pub fn html(&self) -> String {
        let mut page = Page::new("Two runs side by side");
        page.text(self.estimator);
        page.heading("What differs around them");
        if self.environment.is_empty() {
            page.text("Nothing, as far as it is recorded.");
        }
        page.list(self.environment.iter().map(String::as_str));
        page.heading("Figures");
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|r| {
                vec![
                    r.name.clone(),
                    format!("{:.1}", r.a),
                    format!("{:.1}", r.b),
                    format!("{:+.2} %", 100.0 * (r.ratio - 1.0)),
                    format!("{:.4}", r.p),
                ]
            })
            .collect();
        page.table(&["what", "first", "second", "second/first - 1", "p"], &rows);
        page.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_without_the_settle_window() {
        let slice = |t: f64, settle| Slice {
            t,
            arm: String::new(),
            op: "w".to_owned(),
            ops: 50.0,
            p50: 0.0,
            p99: 0.0,
            settle,
        };
        let mut all: Vec<Slice> = (0..=20).map(|i| slice(f64::from(i) * 0.5, false)).collect();
        let rates = seconds(&all);
        assert_eq!(rates["w"].len(), 10);
        assert!(rates["w"].iter().all(|r| (r - 100.0).abs() < 1e-9));
        all[3].settle = true;
        assert_eq!(seconds(&all)["w"].len(), 9);
    }
}
