//! The page of a comparison.

use super::page::{Page, date};
use super::svg::{Scale, Svg, left, right, short};
use crate::ab::AbResult;

fn percent(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{:+.2} %", 100.0 * (ratio - 1.0))
    } else {
        "-".to_owned()
    }
}

pub(super) fn page(result: &AbResult, events: &str) -> String {
    let [a, b] = &result.arms;
    let mut page = Page::new(&format!("{}: {a} against {b}", result.policy));
    page.dim(&format!(
        "scenario {}, workload {}, stack {}, seed {}; {}",
        result.scenario,
        result.workload,
        result.stack,
        result.seed,
        date(result.at)
    ));
    page.verdict(&result.verdict, result.usable);
    page.text(&format!(
        "A is {a}, B is {b}. {} of {} planned pairs count, {} were rejected because others used the machine. Each \
         run of {} s, after {} s that are left out, had a fresh device; both runs of a pair did the same operations. \
         The order was drawn in blocks AB BA or BA AB beforehand. A run is one value. Differences below {:.1} % were \
         declared uninteresting beforehand.",
        result.pairs,
        result.pairs_planned,
        result.rejected,
        result.run_seconds,
        result.warmup_seconds,
        100.0 * result.mde
    ));
    page.heading("Pair by pair");
    page.raw(&pairs(result).inline());
    let rows: Vec<Vec<String>> = (0..result.ratios.len().max(result.aa_ratios.len()))
        .map(|i| {
            let at = |list: &[f64]| list.get(i).map_or_else(|| "-".to_owned(), |r| percent(*r));
            vec![
                (i + 1).to_string(),
                at(&result.ratios),
                at(&result.aa_ratios),
            ]
        })
        .collect();
    page.table(&["pair", "B against A", "A against itself"], &rows);
    page.text(&format!(
        "A against itself ({} pairs): {} [{}, {}]; so this machine resolves {:.2} %.",
        result.aa.pairs,
        percent(result.aa.effect),
        percent(result.aa.lo),
        percent(result.aa.hi),
        100.0 * result.aa.resolution
    ));
    metrics(&mut page, result);
    latency(&mut page, result);
    mechanism(&mut page, result);
    page.heading("What to know beside");
    page.list(result.remarks.iter().map(String::as_str));
    page.heading("The machine");
    let lines = result.environment.lines();
    let rows: Vec<_> = lines
        .into_iter()
        .map(|(what, text)| vec![what.to_owned(), text])
        .collect();
    page.table(&["what", ""], &rows);
    page.code("Repeat with", &result.command);
    super::run::events(&mut page, events);
    page.finish()
}

fn metrics(page: &mut Page, result: &AbResult) {
    page.heading("All metrics");
    page.raw(&forest(result).inline());
    let rows: Vec<Vec<String>> = result
        .metrics
        .iter()
        .map(|m| {
            vec![
                format!(
                    "{} ({}){}",
                    m.name,
                    m.unit,
                    if m.primary { ", primary" } else { "" }
                ),
                short(m.a),
                short(m.b),
                percent(m.effect),
                format!("{} to {}", percent(m.lo), percent(m.hi)),
                format!("{:.4}", m.p),
                format!("{:.4}", m.p_holm),
                m.estimator.to_string(),
            ]
        })
        .collect();
    page.table(
        &[
            "metric",
            "A",
            "B",
            "B/A - 1",
            "95 % interval",
            "p",
            "p of all (Holm)",
            "interval from",
        ],
        &rows,
    );
    page.dim("p is that of the signed-rank test. The verdict rests on the primary metric alone.");
}

fn latency(page: &mut Page, result: &AbResult) {
    if result.quantiles.is_empty() {
        return;
    }
    page.heading("Latency of both arms");
    let most = result
        .quantiles
        .iter()
        .map(|q| q.a_ns.max(q.b_ns))
        .max()
        .unwrap_or(1)
        .max(2) as f64;
    let mut svg = Svg::new(
        "latency quantiles of both arms, logarithmic",
        40.0 + 34.0 * result.quantiles.len() as f64,
    );
    let scale = Scale::from_zero(most.log10());
    let bottom = 10.0 + 34.0 * result.quantiles.len() as f64;
    for power in 0..=12_i32 {
        let x = scale.x(f64::from(power));
        if f64::from(power) <= most.log10() * 1.05 {
            svg.line("grid", x, 4.0, x, bottom, 1.0);
            svg.text(
                x,
                bottom + 18.0,
                "middle",
                "dim",
                &format!("{} ns", short(10_f64.powi(power))),
            );
        }
    }
    for (i, q) in result.quantiles.iter().enumerate() {
        let y = 14.0 + 34.0 * i as f64;
        svg.text(
            left() - 10.0,
            y + 8.0,
            "end",
            "",
            &format!("p{}", 100.0 * q.q),
        );
        svg.rect(
            "a",
            left(),
            y - 6.0,
            scale.x((q.a_ns.max(1) as f64).log10()) - left(),
            9.0,
        );
        svg.rect(
            "b",
            left(),
            y + 5.0,
            scale.x((q.b_ns.max(1) as f64).log10()) - left(),
            9.0,
        );
    }
    page.raw(&svg.inline());
    let rows: Vec<Vec<String>> = result
        .quantiles
        .iter()
        .map(|q| {
            vec![
                format!(
                    "p{}{}",
                    100.0 * q.q,
                    if q.few {
                        " (fewer than 10 samples above)"
                    } else {
                        ""
                    }
                ),
                q.a_ns.to_string(),
                q.b_ns.to_string(),
                percent(q.ratio),
                format!("{} to {}", percent(q.lo), percent(q.hi)),
            ]
        })
        .collect();
    page.table(
        &[
            "quantile",
            "A (ns)",
            "B (ns)",
            "shift within pairs",
            "95 % interval",
        ],
        &rows,
    );
    page.dim("Upper bar: A, lower bar: B, each of all its runs together; the shift is of the runs' own quantiles.");
}

fn mechanism(page: &mut Page, result: &AbResult) {
    if result.mechanism.is_empty() {
        return;
    }
    page.heading("What the policy changes");
    let most = result
        .mechanism
        .iter()
        .map(|c| c.a_per_op.max(c.b_per_op))
        .fold(0.0, f64::max);
    let mut svg = Svg::new(
        "counts for each operation",
        20.0 + 40.0 * result.mechanism.len() as f64,
    );
    let scale = Scale::from_zero(most * 1.15);
    for (i, c) in result.mechanism.iter().enumerate() {
        let y = 24.0 + 40.0 * i as f64;
        // Long names go over two lines.
        let parts = [" of ", " to ", " that "].into_iter().find_map(|word| {
            let (first, rest) = c.name.split_once(word)?;
            Some((first, format!("{} {rest}", word.trim())))
        });
        let (first, rest) = parts.unwrap_or((&c.name, String::new()));
        svg.text(left() - 10.0, y - 4.0, "end", "", first);
        svg.text(left() - 10.0, y + 10.0, "end", "dim", &rest);
        for (class, value, at) in [("a", c.a_per_op, y - 14.0), ("b", c.b_per_op, y + 1.0)] {
            let end = scale.x(value);
            svg.rect(class, left(), at, end - left(), 12.0);
            svg.text(end + 6.0, at + 10.0, "start", "dim", &format!("{value:.3}"));
        }
    }
    page.raw(&svg.inline());
    let rows: Vec<Vec<String>> = result
        .mechanism
        .iter()
        .map(|c| {
            vec![
                c.name.to_string(),
                format!("{:.3}", c.a_per_op),
                format!("{:.3}", c.b_per_op),
                match (c.must_move, c.moved()) {
                    (true, true) => "must move, moved",
                    (true, false) => "must move, did not",
                    _ => "",
                }
                .to_owned(),
            ]
        })
        .collect();
    page.table(&["for each operation", "A", "B", ""], &rows);
    page.dim(
        "Counted in a run of its own for each arm, with the same seed, since counting costs time.",
    );
    if let Some(explained) = &result.explained {
        page.text(&explained.sentence());
    }
}

/// The main chart, for a file of its own.
pub(super) fn picture(result: &AbResult) -> String {
    pairs(result).alone()
}

/// Every pair as a dot, the interval under them, for both series.
fn pairs(result: &AbResult) -> Svg {
    let mut svg = Svg::new("ratio of the primary metric, pair by pair", 190.0);
    let primary = result.metrics.first();
    let ends = primary.map(|m| [m.lo, m.hi]).unwrap_or_default();
    let all = result.ratios.iter().chain(&result.aa_ratios).copied();
    let band = [1.0 - result.mde, 1.0 + result.mde];
    let scale = Scale::around(all.chain(ends.into_iter().filter(|e| *e > 0.0)).chain(band));
    svg.rect(
        "band",
        scale.x(band[0]),
        10.0,
        scale.x(band[1]) - scale.x(band[0]),
        140.0,
    );
    for tick in scale.ticks() {
        let x = scale.x(tick);
        svg.line("grid", x, 10.0, x, 150.0, 1.0);
        svg.text(
            x,
            168.0,
            "middle",
            "dim",
            &format!("{:+.1} %", 100.0 * (tick - 1.0)),
        );
    }
    svg.line("axis", scale.x(1.0), 10.0, scale.x(1.0), 150.0, 1.5);
    let rows = [
        (
            "b",
            "B against A",
            &result.ratios,
            primary.map(|m| (m.effect, m.lo, m.hi)),
            45.0,
        ),
        (
            "a",
            "A against itself",
            &result.aa_ratios,
            Some((result.aa.effect, result.aa.lo, result.aa.hi)),
            115.0,
        ),
    ];
    for (class, label, ratios, interval, y) in rows {
        svg.text(left() - 10.0, y + 4.0, "end", "", label);
        for (i, ratio) in ratios.iter().enumerate() {
            // Spread over a few heights, so that equal ratios do not hide each other.
            svg.dot(class, scale.x(*ratio), y - 14.0 + 4.0 * (i % 4) as f64, 3.5);
        }
        if let Some((effect, lo, hi)) = interval.filter(|(e, ..)| e.is_finite()) {
            svg.line(class, scale.x(lo), y + 16.0, scale.x(hi), y + 16.0, 3.0);
            svg.dot(&format!("{class} hollow"), scale.x(effect), y + 16.0, 5.0);
        }
    }
    svg.text(
        right(),
        186.0,
        "end",
        "dim",
        "bar: 95 % interval of the median; grey band: not interesting",
    );
    svg
}

/// One line for each metric.
fn forest(result: &AbResult) -> Svg {
    let height = 30.0 * result.metrics.len() as f64;
    let mut svg = Svg::new(
        "ratio B / A of every metric with its interval",
        height + 50.0,
    );
    let values = result.metrics.iter().flat_map(|m| [m.lo, m.hi]);
    let scale = Scale::around(values.chain([1.0 - result.mde, 1.0 + result.mde]));
    for tick in scale.ticks() {
        let x = scale.x(tick);
        svg.line("grid", x, 5.0, x, height + 10.0, 1.0);
        svg.text(
            x,
            height + 28.0,
            "middle",
            "dim",
            &format!("{:+.1} %", 100.0 * (tick - 1.0)),
        );
    }
    svg.line("axis", scale.x(1.0), 5.0, scale.x(1.0), height + 10.0, 1.5);
    for (i, m) in result.metrics.iter().enumerate() {
        let y = 22.0 + 30.0 * i as f64;
        svg.text(left() - 10.0, y + 4.0, "end", "", &m.name);
        let class = if m.primary { "b" } else { "none" };
        svg.line(class, scale.x(m.lo), y, scale.x(m.hi), y, 3.0);
        svg.dot(&format!("{class} hollow"), scale.x(m.effect), y, 5.0);
    }
    svg
}
