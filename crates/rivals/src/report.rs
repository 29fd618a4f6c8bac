//! The table for people and the JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::bar::Bar;
use crate::bench::Group;
use crate::machine::Machine;
use crate::stats::Spread;
use crate::worker::Placement;

/// Version of the JSON report; a field that changes its meaning raises it.
const SCHEMA: u32 = 1;

fn label(threads: usize, placement: Placement) -> String {
    format!(
        "{threads} thread{} {}",
        if threads == 1 { "" } else { "s" },
        placement.name()
    )
    .trim_end()
    .into()
}

/// Number of threads and placements that occur in a group. A placement that came up in less than a
/// tenth of the samples is left out: the machine moved a CPU for a moment, which compares nothing.
fn columns(group: &Group) -> Vec<(usize, Placement)> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for (&column, samples) in group.arms.iter().flat_map(|a| &a.seen) {
        *counts.entry(column).or_default() += samples.len();
    }
    let most = |threads| {
        let same = counts.iter().filter(move |((t, _), _)| *t == threads);
        same.map(|(_, n)| *n).max().unwrap_or(0)
    };
    let often = |((threads, _), n): &(&(usize, Placement), &usize)| 10 * **n >= most(*threads);
    counts.iter().filter(often).map(|(c, _)| *c).collect()
}

pub(crate) fn table(out: &mut String, groups: &[Group], bars: &[Bar], round_trips: &[f64]) {
    let _ = writeln!(
        out,
        "nanoseconds per operation: p10 [median, p90] of the samples kept; ratio of p10 over, and \
         nanoseconds more than, the first arm's"
    );
    if let Some(trips) = Spread::of(round_trips) {
        let _ = writeln!(
            out,
            "round trip of a cache line between the two CPUs: p10 {:.0} ns, median {:.0} ns, p90 {:.0} ns",
            trips.p10, trips.median, trips.p90
        );
    }
    for group in groups {
        for (threads, placement) in columns(group) {
            let _ = writeln!(out, "\n{}, {}", group.name, label(threads, placement));
            let base = group
                .arms
                .first()
                .and_then(|a| a.spread(threads, placement));
            for arm in &group.arms {
                let Some(s) = arm.spread(threads, placement) else {
                    continue;
                };
                let ratio = base.map_or(f64::NAN, |b| s.p10 / b.p10);
                let added = base.map_or(f64::NAN, |b| s.p10 - b.p10);
                let _ = writeln!(
                    out,
                    "  {:<44} {:>9.3} [{:>9.3}, {:>9.3}] {:>8.3} x {:>+9.2}  n {:>4}, dropped {}",
                    arm.name,
                    s.p10,
                    s.median,
                    s.p90,
                    ratio,
                    added,
                    s.samples,
                    arm.dropped.get(&threads).unwrap_or(&0),
                );
            }
        }
    }
    let _ = writeln!(out, "\nbars");
    for bar in bars {
        let verdicts = bar.judge(groups);
        if verdicts.is_empty() {
            let _ = writeln!(
                out,
                "  {:<60} {:>8}  not measured",
                bar.what,
                bar.bound_text()
            );
        }
        for v in verdicts {
            let _ = writeln!(
                out,
                "  {:<60} {:>8}  {:>7.3}  {}  {}",
                bar.what,
                bar.bound_text(),
                v.ratio,
                if v.holds { "holds " } else { "MISSED" },
                label(v.threads, v.placement),
            );
        }
    }
}

pub(crate) fn json(
    name: &str,
    machine: &Machine,
    groups: &[Group],
    bars: &[Bar],
    round_trips: &[f64],
) -> Value {
    let groups_json: Vec<Value> = groups
        .iter()
        .flat_map(|group| {
            columns(group)
                .into_iter()
                .flat_map(move |(threads, placement)| {
                    let base = group
                        .arms
                        .first()
                        .and_then(|a| a.spread(threads, placement));
                    group.arms.iter().filter_map(move |arm| {
                        let s = arm.spread(threads, placement)?;
                        Some(json!({
                            "group": group.name,
                            "arm": arm.name,
                            "threads": threads,
                            "placement": placement.name(),
                            "unit": "ns/op",
                            "p10": s.p10,
                            "median": s.median,
                            "p90": s.p90,
                            "ratio": base.map(|b| s.p10 / b.p10),
                            "added_ns": base.map(|b| s.p10 - b.p10),
                            "samples": s.samples,
                            "dropped": arm.dropped.get(&threads).unwrap_or(&0),
                        }))
                    })
                })
        })
        .collect();
    let bars_json: Vec<Value> = bars
        .iter()
        .flat_map(|bar| {
            bar.judge(groups).into_iter().map(move |v| {
                json!({
                    "bar": bar.what,
                    "bound": bar.bound_text(),
                    "arm": bar.arm,
                    "over": bar.over,
                    "threads": v.threads,
                    "placement": v.placement.name(),
                    "ratio": v.ratio,
                    "holds": v.holds,
                })
            })
        })
        .collect();
    let trips = Spread::of(round_trips);
    json!({
        "schema_version": SCHEMA,
        "bench": name,
        "machine": machine.json(),
        "round_trip_ns": trips.map(|t| json!({"p10": t.p10, "median": t.median, "p90": t.p90})),
        "arms": groups_json,
        "bars": bars_json,
    })
}
