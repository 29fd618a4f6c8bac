//! Recorded runs: the samples of a run directory, to be shown in the views that show live ones.
//!
//! A directory holds less than a sample does: no layers, flag words or extents. Those panels say that they
//! have nothing to show.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cairn_lab::{
    BufferSample, CounterView, ExtentSample, FlagSample, Latency, PolicyInfo, Registry, Sample,
    Unit, WorkloadSample,
};
use serde_json::Value;

use crate::tui::Recording;

/// The newest form of `run.json` that is read.
const SCHEMA_VERSION: u64 = 1;

/// Longest file that is read.
const LONGEST: u64 = 1 << 30;

/// Reads a run directory.
///
/// # Errors
/// The file, the line and what was expected there; for a directory of a newer program both versions.
pub(crate) fn read(folder: &Path, registry: &Registry) -> anyhow::Result<Recording> {
    let text = |name: &str| {
        let path = folder.join(name);
        let mut text = String::new();
        let read = fs::File::open(&path)
            .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
            .with_context(|| path.display().to_string());
        read.map(|_| text)
    };
    let place = |name: &str| folder.join(name).display().to_string();
    let run: Value = serde_json::from_str(&text("run.json")?).with_context(|| place("run.json"))?;
    match run.get("schema_version").and_then(Value::as_u64) {
        Some(1..=SCHEMA_VERSION) => {}
        Some(newer) => bail!(
            "{}: the run was written in form {newer}, and this program reads forms up to \
             {SCHEMA_VERSION}",
            place("run.json")
        ),
        None => bail!(
            "{}: no schema_version, so no run of cairn",
            place("run.json")
        ),
    }
    let summary = run.get("summary").unwrap_or(&Value::Null);
    let words = |name: &str| text_of(summary, name).unwrap_or("?").to_owned();
    let mut units = BTreeMap::new();
    let workloads = summary.get("workloads").and_then(Value::as_array);
    for w in workloads.into_iter().flatten() {
        let name = text_of(w, "name").unwrap_or_default().to_owned();
        let about = text_of(w, "about").unwrap_or_default().to_owned();
        let unit = match text_of(w, "unit") {
            Some("op" | "ops" | "op/s" | "ops/s") => Unit::Op,
            _ => Unit::Io,
        };
        units.insert(name, (about, unit));
    }
    let slices = text("slices.csv")?;
    let mut table = Table::new(&slices).with_context(|| place("slices.csv"))?;
    let mut policies = Vec::new();
    let samples = samples(&mut table, &units, registry, &mut policies)
        .with_context(|| format!("{}:{}", place("slices.csv"), table.line))?;
    if samples.is_empty() {
        bail!("{}: the run has no samples", place("slices.csv"));
    }
    Ok(Recording {
        scenario: words("scenario"),
        stack: words("stack"),
        seed: summary.get("seed").and_then(Value::as_u64).unwrap_or(0),
        policies,
        samples,
        events: events(&text("events.csv").unwrap_or_default()),
    })
}

fn text_of<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// A table with named columns.
struct Table<'a> {
    names: Vec<String>,
    lines: std::str::Lines<'a>,
    /// Number of the line read last.
    line: usize,
}

impl<'a> Table<'a> {
    fn new(text: &'a str) -> anyhow::Result<Self> {
        let mut lines = text.lines();
        let names = fields(lines.next().context("it is empty")?);
        Ok(Self {
            names,
            lines,
            line: 1,
        })
    }

    fn next(&mut self) -> Option<Vec<String>> {
        self.line += 1;
        self.lines.next().map(fields)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// The field of a row in the column of this name.
    fn get<'r>(&self, row: &'r [String], name: &str) -> anyhow::Result<&'r str> {
        let at = self.names.iter().position(|n| n == name);
        let at = at.with_context(|| format!("there is no column {name}"))?;
        let field = row.get(at).map(String::as_str);
        field.with_context(|| format!("the row ends before column {name}"))
    }

    fn number(&self, row: &[String], name: &str) -> anyhow::Result<f64> {
        let text = self.get(row, name)?;
        let number = text
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite() && *x >= 0.0);
        number.with_context(|| format!("`{text}` in column {name} is no number"))
    }
}

/// The fields of a line; those in quotes may hold commas, and two quotes are one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let end = fields.last_mut();
        match (c, end) {
            ('"', Some(field)) if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => fields.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

/// Rows of the same time are one sample.
fn samples(
    table: &mut Table<'_>,
    units: &BTreeMap<String, (String, Unit)>,
    registry: &Registry,
    policies: &mut Vec<PolicyInfo>,
) -> anyhow::Result<Vec<Arc<Sample>>> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    while let Some(row) = table.next() {
        let t = Duration::from_secs_f64(table.number(&row, "t")?.min(1e9));
        if samples.last().is_none_or(|s| s.elapsed != t) {
            let before = samples.last().map_or(Duration::ZERO, |s| s.elapsed);
            let arms = arms(table.get(&row, "arm")?, registry, policies);
            samples.push(blank(
                samples.len() as u64,
                t,
                t.saturating_sub(before),
                arms,
            ));
        }
        let name = table.get(&row, "op")?.to_owned();
        let whole = |column: &str| table.number(&row, column).map(rounded);
        let (ops, bytes) = (whole("ops")?, whole("bytes")?);
        let sum = sums.entry(name.clone()).or_default();
        *sum = (sum.0 + ops, sum.1 + bytes);
        let earlier = samples.iter().rev().nth(1);
        let before = earlier.map_or(0, |s| s.extents.shrinks.reclaimed);
        let Some(sample) = samples.last_mut() else {
            continue;
        };
        let seconds = sample.interval.as_secs_f64().max(1e-9);
        let recent = Latency {
            n: ops,
            p50: whole("p50")?,
            p99: whole("p99")?,
            p999: whole("p999")?,
            ..Latency::default()
        };
        let (about, unit) = units
            .get(&name)
            .cloned()
            .unwrap_or((String::new(), Unit::Io));
        sample.workloads.push(WorkloadSample {
            ops: sum.0,
            bytes: sum.1,
            ran: t,
            ops_per_s: ops as f64 / seconds,
            bytes_per_s: bytes as f64 / seconds,
            recent,
            ..blank_workload(&name, &about, unit)
        });
        sample.settling |= table.get(&row, "settle")? == "1";
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (hits, misses) = (signed(whole("hits")?), signed(whole("misses")?));
        // The difference of both counters was recorded as one.
        let off = signed(whole("exact")?) - signed(whole("approx")?);
        let view = |exact: i64, off: i64| CounterView {
            exact,
            approx: exact - off,
            bound: 0,
        };
        sample.extents.hits = view(hits, off);
        sample.extents.misses = view(misses, 0);
        sample.flags.avoided = whole("avoided_rmw")?;
        // Runs of before these were counted have no such columns.
        if table.has("reclaimed") {
            let shrinks = &mut sample.extents.shrinks;
            (shrinks.scans, shrinks.reclaimed) = (whole("shrink_scans")?, whole("reclaimed")?);
            shrinks.reclaimed_per_s = shrinks.reclaimed.saturating_sub(before) as f64 / seconds;
        }
    }
    Ok(samples.into_iter().map(Arc::new).collect())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and the cast saturates"
)]
fn rounded(x: f64) -> u64 {
    x.round() as u64
}

pub(crate) fn blank(seq: u64, elapsed: Duration, interval: Duration, arms: Vec<usize>) -> Sample {
    Sample {
        seq,
        elapsed,
        interval,
        late: Duration::ZERO,
        dropped: 0,
        running: true,
        settling: false,
        failure: None,
        first_error: None,
        workloads: Vec::new(),
        arms,
        layers: Vec::new(),
        extents: ExtentSample::default(),
        flags: FlagSample::default(),
        buffers: BufferSample::default(),
        comparison: None,
        auto: None,
        checks: cairn_lab::Checks::default(),
        machine: None,
    }
}

/// A workload that did nothing.
pub(crate) fn blank_workload(name: &str, about: &str, unit: Unit) -> WorkloadSample {
    WorkloadSample {
        name: name.into(),
        about: about.into(),
        workers: 0,
        unit,
        ops: 0,
        bytes: 0,
        errors: 0,
        errors_in_all: 0,
        ran: Duration::ZERO,
        ops_per_s: 0.0,
        bytes_per_s: 0.0,
        recent: Latency::default(),
        buckets: Arc::default(),
        total: Latency::default(),
        response: None,
    }
}

/// The arms of `flag-set=check-first es-counters=per-cpu`; policies and arms that are new are learnt.
fn arms(text: &str, registry: &Registry, policies: &mut Vec<PolicyInfo>) -> Vec<usize> {
    let mut chosen = vec![0; policies.len()];
    for (name, arm) in text
        .split([' ', ';'])
        .filter_map(|word| word.split_once('='))
    {
        let at = policies.iter().position(|p| p.name == name);
        let at = at.unwrap_or_else(|| {
            let known = registry.policies().into_iter().find(|p| p.name == name);
            policies.push(known.unwrap_or_else(|| PolicyInfo::new(name, '?', &[], "", "recorded")));
            chosen.push(0);
            policies.len() - 1
        });
        let Some(policy) = policies.get_mut(at) else {
            continue;
        };
        let index = policy.arms.iter().position(|a| a == arm);
        let index = index.unwrap_or_else(|| {
            policy.arms.push(arm.to_owned());
            policy.arms.len() - 1
        });
        if let Some(slot) = chosen.get_mut(at) {
            *slot = index;
        }
    }
    chosen
}

/// What was noted; a row that does not read is left out.
fn events(text: &str) -> Vec<(Duration, String)> {
    let mut events = Vec::new();
    for line in text.lines().skip(1) {
        let row = fields(line);
        if let [t, kind, mark, words, ..] = row.as_slice()
            && let Ok(t) = t.parse::<f64>()
            && (0.0..1e9).contains(&t)
        {
            let parts = [kind, mark, words].map(String::as_str);
            let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            events.push((Duration::from_secs_f64(t), parts.join(" ")));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "t,arm,op,ops,bytes,p50,p99,p999,hits,misses,exact,approx,avoided_rmw,settle\n";

    fn folder(run: &str, slices: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run.json"), run).unwrap();
        fs::write(folder.path().join("slices.csv"), format!("{HEAD}{slices}")).unwrap();
        folder
    }

    fn said(folder: &tempfile::TempDir) -> String {
        let error = read(folder.path(), &Registry::default()).unwrap_err();
        format!("{error:#}")
    }

    const RUN: &str = "{\"schema_version\":1,\"summary\":{\"scenario\":\"mixed\",\"stack\":\"ram(1g)\",\"seed\":7,\
        \"workloads\":[{\"name\":\"a, b\",\"about\":\"x\",\"unit\":\"op\"}]}}";

    #[test]
    fn rows_become_samples() {
        let rows = "0.1000,flag-set=always-rmw mine=new,\"a, b\",50,0,7,8,9,5,1,6,4,3,0\n\
                    0.1000,flag-set=always-rmw mine=new,c,10,40960,7,8,9,5,1,6,4,3,0\n\
                    0.3000,flag-set=check-first mine=new,\"a, b\",100,0,7,8,9,9,1,10,10,4,1\n";
        let folder = folder(RUN, rows);
        fs::write(
            folder.path().join("events.csv"),
            "t,kind,mark,text\n0.2,policy,flag-set,\"always-rmw to \"\"x\"\"\"\n",
        )
        .unwrap();
        let run = read(folder.path(), &Registry::default()).unwrap();
        assert_eq!((run.scenario.as_str(), run.seed), ("mixed", 7));
        assert_eq!(run.samples.len(), 2);
        let [first, last] = [&run.samples[0], &run.samples[1]];
        assert_eq!(
            (first.arms.clone(), last.arms.clone()),
            (vec![0, 0], vec![1, 0])
        );
        assert_eq!(
            run.policies[0].key, 'c',
            "known policies keep their letters"
        );
        assert_eq!(first.workloads[0].unit, Unit::Op);
        assert_eq!(last.workloads[0].ops, 150);
        assert!((last.workloads[0].ops_per_s - 500.0).abs() < 1e-6);
        assert_eq!(
            (first.extents.hits.exact, first.extents.hits.approx),
            (5, 3)
        );
        assert!(!first.settling && last.settling);
        assert_eq!(run.events[0].1, "policy flag-set always-rmw to \"x\"");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let newer = folder("{\"schema_version\":2}", "");
        let text = said(&newer);
        assert!(
            text.contains("form 2") && text.contains("up to 1"),
            "{text}"
        );
        assert!(said(&folder("{}", "")).contains("schema_version"));
        assert!(said(&folder("no json", "")).contains("run.json"));
        assert!(said(&folder(RUN, "")).contains("no samples"));
        let text = said(&folder(RUN, "0.1,a=b,op,x,0,7,8,9,5,1,6,4,3,0\n"));
        assert!(
            text.contains("slices.csv:2") && text.contains("`x` in column ops"),
            "{text}"
        );
        let text = said(&folder(RUN, "0.1,a=b,op,1\n"));
        assert!(text.contains("ends before column"), "{text}");
        let empty = tempfile::tempdir().unwrap();
        assert!(said(&empty).contains("run.json"));
    }
}
