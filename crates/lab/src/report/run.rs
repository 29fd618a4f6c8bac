//! The page of a run that was no comparison.

use super::page::{Page, date};
use super::svg::{Scale, Svg, left, right, short};
use crate::rundir::{Buckets, RunFile};
use crate::summary::Summary;

/// Points of a curve at most; longer runs show means of neighbours.
const POINTS: usize = 400;

/// One row of slices.csv, as far as charts need it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slice {
    pub(super) t: f64,
    pub(super) arm: String,
    pub(super) op: String,
    pub(super) ops: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) settle: bool,
}

/// Reads slices.csv; rows that are no rows are left out.
pub(super) fn slices(text: &str) -> Vec<Slice> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let f = fields(line);
            let number = |i: usize| f.get(i)?.parse::<f64>().ok();
            Some(Slice {
                t: number(0)?,
                arm: f.get(1)?.clone(),
                op: f.get(2)?.clone(),
                ops: number(3)?,
                p50: number(5)?,
                p99: number(6)?,
                settle: number(13)? > 0.0,
            })
        })
        .collect()
}

/// The fields of a line of CSV.
pub(super) fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut all, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => push(&mut all, c),
        }
    }
    all
}

fn push(all: &mut [String], c: char) {
    if let Some(last) = all.last_mut() {
        last.push(c);
    }
}

pub(super) fn page(file: &RunFile, slices_csv: &str, events_csv: &str) -> String {
    let s = &file.summary;
    let mut page = Page::new(&format!("scenario {}", s.scenario));
    page.dim(&format!(
        "stack {}, seed {}; {}",
        s.stack,
        s.seed,
        date(file.at)
    ));
    let headline: Vec<String> = s
        .workloads
        .iter()
        .map(|w| {
            let unit = if w.unit == "io" { "IOPS" } else { "ops/s" };
            format!(
                "{}: {} {unit}, p99 {} ns",
                w.name,
                short(w.ops_per_s),
                short(w.latency_ns.p99 as f64)
            )
        })
        .collect();
    let well = s.failure.is_none() && s.first_error.is_none();
    page.verdict(&headline.join("; "), well);
    if let Some(what) = s.failure.as_ref().or(s.first_error.as_ref()) {
        page.text(&format!("Went wrong first: {what}"));
    }
    page.text(
        "One run, described; it compares nothing. A comparison that holds is made by cairn ab.",
    );
    let all = slices(slices_csv);
    for w in &s.workloads {
        workload(&mut page, file, &all, &w.name);
    }
    figures(&mut page, s);
    page.heading("The scenario");
    page.raw(&format!(
        "<pre>{}</pre>\n",
        super::page::escape(&file.scenario)
    ));
    page.heading("The machine");
    let lines = file.environment.lines();
    let rows: Vec<_> = lines
        .into_iter()
        .map(|(what, text)| vec![what.to_owned(), text])
        .collect();
    page.table(&["what", ""], &rows);
    page.code("Repeat with", &file.command);
    events(&mut page, events_csv);
    page.finish()
}

fn figures(page: &mut Page, s: &Summary) {
    page.heading("Figures");
    let rows: Vec<Vec<String>> = s
        .workloads
        .iter()
        .map(|w| {
            vec![
                format!("{} ({})", w.name, w.about),
                w.workers.to_string(),
                w.ops.to_string(),
                short(w.ops_per_s),
                short(w.bytes_per_s),
                w.errors.to_string(),
                format!("{:.2}", w.seconds),
            ]
        })
        .collect();
    page.table(
        &[
            "workload",
            "workers",
            "operations",
            "a second",
            "bytes a second",
            "errors",
            "seconds",
        ],
        &rows,
    );
    let rows: Vec<Vec<String>> = s
        .policies
        .iter()
        .map(|p| vec![p.name.clone(), p.arm.clone()])
        .collect();
    page.table(&["policy", "arm at the end"], &rows);
    let rows: Vec<Vec<String>> = s
        .counters
        .iter()
        .map(|c| {
            vec![
                c.name.to_string(),
                c.exact.to_string(),
                c.approx.to_string(),
                c.bound.to_string(),
            ]
        })
        .collect();
    page.table(
        &[
            "counter of the extent cache",
            "exact",
            "approximate",
            "bound",
        ],
        &rows,
    );
    if s.flags.counted {
        page.text(&format!(
            "Set calls on flag words: {}, of them {} read-modify-writes and {} avoided.",
            s.flags.sets, s.flags.rmws, s.flags.avoided
        ));
    }
}

fn workload(page: &mut Page, file: &RunFile, all: &[Slice], name: &str) {
    let mine: Vec<&Slice> = all.iter().filter(|s| s.op == name).collect();
    page.heading(name);
    if mine.len() > 1 {
        page.raw(&rate(&mine, name).inline());
        page.raw(&times(&mine, name).inline());
    }
    if let Some(buckets) = file.latency.iter().find(|b| b.workload == name) {
        page.raw(&distribution(buckets).inline());
    }
    if let Some(w) = file.summary.workloads.iter().find(|w| w.name == name) {
        let l = &w.latency_ns;
        let few = |share: f64| (1.0 - share) * (l.n as f64) < 10.0;
        let mark = |value: u64, share: f64| {
            if few(share) {
                format!("{value} (few)")
            } else {
                value.to_string()
            }
        };
        page.table(
            &[
                "latency (ns)",
                "min",
                "p50",
                "p90",
                "p99",
                "p99.9",
                "p99.99",
                "max",
                "mean",
            ],
            &[vec![
                format!("{} samples", l.n),
                l.min.to_string(),
                l.p50.to_string(),
                l.p90.to_string(),
                mark(l.p99, 0.99),
                mark(l.p999, 0.999),
                mark(l.p9999, 0.9999),
                l.max.to_string(),
                format!("{:.0}", l.mean),
            ]],
        );
    }
}

pub(super) fn events(page: &mut Page, csv: &str) {
    let rows: Vec<Vec<String>> = csv.lines().skip(1).map(fields).collect();
    if !rows.is_empty() {
        page.heading("What happened");
        page.table(&["seconds", "kind", "mark", "text"], &rows);
    }
}

/// The main chart, for a file of its own.
pub(super) fn picture(file: &RunFile, slices_csv: &str) -> String {
    let all = slices(slices_csv);
    let name = file.summary.workloads.first().map_or("", |w| &w.name);
    let mine: Vec<&Slice> = all.iter().filter(|s| s.op == name).collect();
    rate(&mine, name).alone()
}

/// Curves over time, with a scale at the left and the times below.
fn curves(title: &str, series: &[(&str, Vec<(f64, f64)>)], unit: &str) -> Svg {
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 170.0;
    let mut svg = Svg::new(title, 200.0);
    let points = || series.iter().flat_map(|(_, p)| p);
    let most = points().map(|p| p.1).fold(0.0, f64::max);
    let (x, y) = (Scale::around(points().map(|p| p.0)), Scale::from_zero(most));
    svg.text(left(), 14.0, "start", "dim", title);
    for tick in y.ticks() {
        let at = y.y(tick, BOTTOM, TOP);
        svg.line("grid", left(), at, right(), at, 1.0);
        svg.text(
            left() - 10.0,
            at + 4.0,
            "end",
            "dim",
            &format!("{} {unit}", short(tick)),
        );
    }
    for tick in x.ticks() {
        svg.text(
            x.x(tick),
            BOTTOM + 18.0,
            "middle",
            "dim",
            &format!("{} s", short(tick)),
        );
    }
    for (class, points) in series {
        let size = points.len().div_ceil(POINTS).max(1);
        let line: Vec<(f64, f64)> = points
            .chunks(size)
            .map(|part| {
                let n = part.len() as f64;
                let sum = part.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
                (x.x(sum.0 / n), y.y(sum.1 / n, BOTTOM, TOP))
            })
            .collect();
        // A line is not filled: its class only gives the colour of the stroke.
        svg.path(class, &line);
    }
    svg
}

fn rate(mine: &[&Slice], name: &str) -> Svg {
    let mut before = None;
    let points = mine
        .iter()
        .filter_map(|s| {
            let since = before.replace(s.t)?;
            (s.t > since).then(|| (s.t, s.ops / (s.t - since)))
        })
        .collect();
    curves(
        &format!("{name}: operations a second"),
        &[("a", points)],
        "/s",
    )
}

fn times(mine: &[&Slice], name: &str) -> Svg {
    let of = |value: fn(&Slice) -> f64| mine.iter().map(|s| (s.t, value(s) / 1e3)).collect();
    let series = [("a", of(|s| s.p50)), ("b", of(|s| s.p99))];
    curves(
        &format!("{name}: latency p50 (lower line) and p99 (upper line)"),
        &series,
        "us",
    )
}

/// How latencies are spread, in bars of a sixteenth of a power of two.
fn distribution(buckets: &Buckets) -> Svg {
    const BARS: f64 = 8.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 130.0;
    let mut bars: std::collections::BTreeMap<i64, u64> = std::collections::BTreeMap::new();
    for (ns, n) in &buckets.buckets {
        #[expect(clippy::cast_possible_truncation, reason = "a small number")]
        let bar = (((*ns).max(1) as f64).log2() * BARS).floor() as i64;
        *bars.entry(bar).or_default() += n;
    }
    let mut svg = Svg::new("how latencies are spread", 160.0);
    svg.text(
        left(),
        14.0,
        "start",
        "dim",
        "latency, share of operations by size, logarithmic",
    );
    let most = bars.values().copied().max().unwrap_or(1).max(1) as f64;
    let x = Scale::around(bars.keys().flat_map(|b| [*b as f64, *b as f64 + 1.0]));
    for (bar, n) in &bars {
        let (from, to) = (x.x(*bar as f64), x.x(*bar as f64 + 1.0));
        let h = ((*n as f64) / most * (BOTTOM - TOP)).max(0.7);
        svg.rect("a", from, BOTTOM - h, (to - from - 0.5).max(0.5), h);
    }
    svg.line("axis", left(), BOTTOM, right(), BOTTOM, 1.0);
    if let (Some(first), Some(last)) = (bars.keys().next(), bars.keys().next_back()) {
        let mut power = 10.0_f64.powf((*first as f64 / BARS * std::f64::consts::LOG10_2).ceil());
        while power.log2() * BARS <= *last as f64 + 1.0 {
            let at = x.x(power.log2() * BARS);
            svg.line("axis", at, BOTTOM, at, BOTTOM + 4.0, 1.0);
            svg.text(
                at,
                BOTTOM + 18.0,
                "middle",
                "dim",
                &format!("{} ns", short(power)),
            );
            power *= 10.0;
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_csv() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",d"), ["a", "b, \"c\"", "d"]);
        let text = "head\n0.1,x=y z,w,10,40,5,6,7,1,2,3,3,0,1\nbroken\n";
        let got = slices(text);
        assert_eq!(got.len(), 1);
        assert_eq!(
            (got[0].op.as_str(), got[0].settle, got[0].arm.as_str()),
            ("w", true, "x=y z")
        );
    }
}
