//! Help: every key, and what each number means and over which time it is taken.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

use super::wide::columns;
use crate::tui::format::fold;
use crate::tui::theme::{Role, Theme};
use crate::tui::widget::Canvas;

/// Keys, in the order of need.
const KEYS: &[(&str, &str)] = &[
    (
        "a policy's letter",
        "switch it to its next arm, while all runs",
    ),
    (
        "a",
        "auto A/B: switches the policy chosen last A B B A by itself, and ends",
    ),
    (
        "W",
        "A/B by another workload; after the last, by the one the policy acts on",
    ),
    ("Space", "freeze the view; data are still collected"),
    ("S", "stop or start the workload"),
    ("r", "reset the statistics"),
    ("s", "shrink the extent cache once, as memory pressure does"),
    ("1 - 7", "pages"),
    ("Tab Shift-Tab", "move the focus (thick border)"),
    (
        "Enter, Esc",
        "open the page of the focused panel or the chosen layer, go back",
    ),
    ("z", "zoom the focused panel"),
    (
        "[ ]",
        "more or less time in the chart, or of the file in the map",
    ),
    (
        "Left Right",
        "back and forth in time; Home End: oldest, now",
    ),
    (
        "Up Down",
        "scroll; choose the chart's workload, or a layer of the stack",
    ),
    ("i", "chart operations or bytes"),
    ("y", "chart axis cut, or from zero"),
    ("h", "latency page: a histogram, or latencies over time"),
    ("+ -", "frames a second, 1 to 30"),
    ("t", "theme: fewer colours, mono, ASCII"),
    ("Ctrl-L", "draw everything again"),
    ("Ctrl-Z", "suspend; fg comes back"),
    (
        "w",
        "edit the workload's options; Tab: the next one. A new run begins",
    ),
    ("o", "edit the stack's spec. A new run begins"),
    ("g", "go to an offset of the file in the map of extents"),
    ("d", "put a recorded run beside this one"),
    (",", "what everything is set to"),
    ("/", "find in the events; Esc shows all again"),
    (
        "x",
        "write the run so far to runs/TIME: data, report, screen",
    ),
    ("q, Ctrl-C", "quit; the summary is printed"),
    ("Q", "as q, and leaves the screen as text above it"),
];

/// Numbers, panel by panel.
const NUMBERS: &[(&str, &str)] = &[
    (
        "Throughput",
        "operations that ended in one sample (about 100 ms), a second. A column is one sample or the mean of several; the title says how many. An arrow at the edge: beyond the axis. Blank: settle window after a switch, stopped, or a lost sample; a column of several samples leaves those of a settle window out.",
    ),
    (
        "Stack",
        "requests that passed the layer in the last sample, a second.",
    ),
    (
        "p50 ... p99.99",
        "latency that so many per cent of operations stayed below. now: the last sample; all: since the last reset; A, B: the arm's slices. due: all, counted from when the workload's rate planned each operation.",
    ),
    ("max", "the slowest single operation of the same time."),
    (
        "?",
        "after a percentile: fewer than 10 operations lie beyond it.",
    ),
    (
        "hits, misses",
        "extent look-ups the cache could or could not answer, since the last reset; a second: in the last sample.",
    ),
    (
        "shrinks",
        "scans of at most 128 cached extents each, since the last reset. A scan reclaims what was not looked up since the scan before. Above the limit (policy extent-limit) the cache is shrunk a hundred times a second; delayed extents stay.",
    ),
    ("exact", "the sum over all slots, read one after another."),
    ("approx", "what a reader gets with a single load."),
    (
        "differ, bound",
        "their difference now, and the most it can be.",
    ),
    ("set", "calls that want a flag bit to be set."),
    ("RMW", "of them, those that did a locked read-modify-write."),
    (
        "avoided",
        "of them, those that found the bit set and left the word alone. Rates: the last sample; by bit: since reset.",
    ),
    (
        "Extents",
        "share of the named file's blocks by what the cache knows of them, now; < and > show another file. Other inodes have entries too, so that all objects may be more.",
    ),
    (
        "A/B",
        "mean rate of the arm's slices in this run, a second or more each, settle windows left out; sd: their spread; n: how many.",
    ),
    (
        "B vs A",
        "B's mean over A's, minus one, with its 95 % interval. Welch, unpaired, time-confounded: the arms ran at different times, so it is a hint; cairn ab gives the paired figure.",
    ),
    (
        "separated",
        "the interval leaves 0 out: chance alone would do that in 5 of 100 comparisons. Below 8 slices of either arm nothing is said after switches by hand.",
    ),
    (
        "auto A/B",
        "neighbouring slices of A and B form a pair; the mean of the pairs' log ratios with its paired t interval. provisional: before the number of pairs fixed beforehand. A/A: what neighbours of the same arm differ by; less than that cannot be told. drift: second half over first. At its end the policy goes back to the arm from before.",
    ),
    (
        "draw, cpu",
        "time a frame of this view takes (last 64), and its share of one core (last second).",
    ),
    (
        "invariants",
        "each looked at once a second. extents: entries of the files' maps are as many as counted, in order and on the device, no device block twice. references: the buffer index leads to buffers of the right blocks. sums: each approximate counter is within its bound of the exact sum, no entry goes uncounted. In brackets: how many were looked at.",
    ),
    (
        "steal, others",
        "CPU time of the last second that the hypervisor gave away, and that other programs used.",
    ),
    (
        "late, drops",
        "how late the sampler woke (last minute), and samples lost on the way here.",
    ),
];

pub(super) fn render(theme: Theme, line: usize, area: Rect, buf: &mut Buffer) {
    let glyphs = theme.glyphs();
    let more = overflow(theme, (area.width, area.height));
    let title = if more > 0 {
        " Help   arrows scroll, any other key closes "
    } else {
        " Help   any key closes "
    };
    let block = Block::bordered()
        .border_set(glyphs.focus)
        .border_style(theme.style(Role::Focus))
        .title(Span::styled(title, theme.style(Role::Strong)));
    let inner = block.inner(area);
    block.render(area, buf);
    for (lines, rect) in layout(theme, inner) {
        let shown = lines.get(line.min(more)..).unwrap_or_default();
        Canvas::new(buf, rect).lines(0, shown);
    }
}

/// Lines that do not fit.
pub(super) fn overflow(theme: Theme, (width, height): (u16, u16)) -> usize {
    let inner = Rect::new(0, 0, width.saturating_sub(2), height.saturating_sub(2));
    layout(theme, inner)
        .into_iter()
        .map(|(lines, rect)| lines.len().saturating_sub(usize::from(rect.height)))
        .max()
        .unwrap_or(0)
}

/// Keys beside numbers where there is room, else one after the other.
fn layout(theme: Theme, inner: Rect) -> Vec<(Vec<Line<'static>>, Rect)> {
    if inner.width >= 120 {
        let [left, right] = columns(inner, [Constraint::Length(66), Constraint::Fill(1)]);
        return vec![
            (section(theme, "Keys", KEYS, 18, left.width), left),
            (section(theme, "Numbers", NUMBERS, 15, right.width), right),
        ];
    }
    let name = if inner.width >= 60 { 18 } else { 0 };
    let mut lines = section(theme, "Keys", KEYS, name, inner.width);
    lines.push(Line::default());
    lines.extend(section(theme, "Numbers", NUMBERS, name, inner.width));
    vec![(lines, inner)]
}

/// Entries with their name in a column of `name` cells; with 0, the name opens the text.
fn section(
    theme: Theme,
    title: &str,
    entries: &[(&str, &str)],
    name: usize,
    width: u16,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(Span::styled(
        format!(" {title}"),
        theme.style(Role::Strong),
    ))];
    let width = usize::from(width).saturating_sub(name + 3).max(8);
    for (key, text) in entries {
        let mut head = format!("{key:<name$}");
        let text = if name == 0 {
            head = String::new();
            format!("{key}: {text}")
        } else {
            (*text).to_owned()
        };
        for row in fold(&text, width) {
            lines.push(Line::from(vec![
                Span::styled(format!("  {head}"), theme.style(Role::Key)),
                Span::raw(row),
            ]));
            head = " ".repeat(name);
        }
    }
    lines
}
