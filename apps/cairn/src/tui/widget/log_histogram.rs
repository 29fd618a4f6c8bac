//! Operations by latency: a histogram on a logarithmic axis for each series, one above the other, and a
//! map of the same over time.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget;

use cairn_lab::Buckets;

use super::Canvas;
use crate::tui::format::{cells, fit, time};
use crate::tui::theme::{Role, Theme};

/// Cells left of a plot.
const MARGIN: u16 = 9;

/// Cells from one label of an axis to the next, at least.
const LABEL: usize = 10;

/// The buckets that hold anything: from the first to behind the last.
fn range<'a>(all: impl Iterator<Item = &'a Buckets>) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    for buckets in all {
        let first = buckets.counts.iter().position(|n| *n > 0);
        let last = buckets.counts.iter().rposition(|n| *n > 0);
        if let (Some(first), Some(last)) = (first, last) {
            let (lo, hi) = found.unwrap_or((first, last + 1));
            found = Some((lo.min(first), hi.max(last + 1)));
        }
    }
    found
}

/// Buckets `lo..hi` spread over `n` cells: those of cell `i`, one at least.
fn part((lo, hi): (usize, usize), n: usize, i: usize) -> (usize, usize) {
    let from = lo + i * (hi - lo) / n.max(1);
    let to = lo + (i + 1) * (hi - lo) / n.max(1);
    (from, to.max(from + 1))
}

fn sum(buckets: &Buckets, (from, to): (usize, usize)) -> u64 {
    let part = buckets.counts.get(from..to.min(Buckets::LEN));
    part.unwrap_or_default().iter().map(|n| u64::from(*n)).sum()
}

/// One histogram.
#[derive(Debug)]
pub struct Series<'a> {
    /// Its name, left of it.
    pub name: &'a str,
    /// Its operations.
    pub buckets: &'a Buckets,
    /// Its colour.
    pub style: Style,
}

/// Histograms over one axis.
#[derive(Debug)]
pub struct LogHistogram<'a> {
    /// From top to bottom.
    pub series: &'a [Series<'a>],
    /// Colours and glyphs.
    pub theme: Theme,
}

impl Widget for &LogHistogram<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let (width, height) = (canvas.width(), canvas.height());
        let Some(range) = range(self.series.iter().map(|s| s.buckets)) else {
            return;
        };
        let n = fit(self.series.len()).max(1);
        if width < MARGIN + 10 || height < n + 1 {
            return;
        }
        let plot = usize::from(width - MARGIN);
        // Whole buckets are as wide as each other.
        let buckets = range.1 - range.0;
        let cells_shown = if buckets <= plot {
            buckets * (plot / buckets).min(6)
        } else {
            plot
        };
        let rows = (height - 1) / n;
        for (i, series) in (0..n).zip(self.series) {
            let base = (i + 1) * rows - 1;
            let name = self.theme.cut(series.name, usize::from(MARGIN - 1));
            canvas.text(0, base, &name, series.style);
            self.bars(&mut canvas, series, range, cells_shown, (base, rows));
        }
        self.axis(&mut canvas, range, cells_shown, n * rows);
    }
}

impl LogHistogram<'_> {
    fn bars(
        &self,
        canvas: &mut Canvas<'_>,
        series: &Series<'_>,
        range: (usize, usize),
        n: usize,
        (base, rows): (u16, u16),
    ) {
        let heights: Vec<u64> = (0..n)
            .map(|i| sum(series.buckets, part(range, n, i)))
            .collect();
        let most = heights.iter().copied().max().unwrap_or(0).max(1);
        let spark = self.theme.glyphs().spark;
        let full = spark.last().copied().unwrap_or('#');
        for (x, count) in (MARGIN..).zip(heights) {
            if count == 0 {
                continue;
            }
            let level = count as f64 / most as f64 * f64::from(rows) * 8.0;
            // What happened is visible, be it ever so rare.
            let level = cells(level).max(1);
            for row in 0..rows {
                let glyph = match level.saturating_sub(row * 8) {
                    0 => break,
                    8.. => full,
                    some => spark.get(usize::from(some) - 1).copied().unwrap_or(full),
                };
                canvas.glyph(x, base - row, glyph, series.style);
            }
        }
    }

    fn axis(&self, canvas: &mut Canvas<'_>, range: (usize, usize), n: usize, y: u16) {
        let dim = self.theme.style(Role::Dim);
        let mut free = 0;
        for i in 0..n {
            let (bucket, _) = part(range, n, i);
            let begins = i == 0 || part(range, n, i - 1).0 != bucket;
            if i >= free && begins {
                canvas.text(MARGIN + fit(i), y, &time(Buckets::floor(bucket)), dim);
                free = i + LABEL;
            }
        }
    }
}

/// Latency over time: the darker a cell, the more of its column's operations took so long.
#[derive(Debug)]
pub struct HeatMap<'a> {
    /// Columns, oldest first.
    pub columns: &'a [Option<Buckets>],
    /// Colours and glyphs.
    pub theme: Theme,
}

impl HeatMap<'_> {
    /// Columns that fit into so many cells.
    pub fn columns_in(width: u16) -> usize {
        usize::from(width.saturating_sub(MARGIN))
    }
}

impl Widget for &HeatMap<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut canvas = Canvas::new(buf, area);
        let height = usize::from(canvas.height());
        let Some(range) = range(self.columns.iter().flatten()) else {
            return;
        };
        if height == 0 {
            return;
        }
        let rows = height.min(range.1 - range.0).max(1);
        let dim = self.theme.style(Role::Dim);
        let [_, shades @ ..] = self.theme.glyphs().words;
        for row in 0..rows {
            let slice = part(range, rows, rows - 1 - row);
            if row % 2 == 0 || row + 1 == rows {
                let label = time(Buckets::floor(slice.0));
                canvas.right(MARGIN - 1, fit(row), &label, dim);
            }
            for (x, column) in (MARGIN..).zip(self.columns) {
                let Some(column) = column else { continue };
                let all: u64 = column.counts.iter().map(|n| u64::from(*n)).sum();
                let here = sum(column, slice);
                if here == 0 {
                    continue;
                }
                // A shade is a factor of ten.
                let shade = match all / here {
                    0..10 => 3,
                    10..100 => 2,
                    100..1000 => 1,
                    _ => 0,
                };
                let glyph = shades.get(shade).copied().unwrap_or('?');
                canvas.glyph(x, fit(row), glyph, self.theme.style(Role::Plain));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::ColorDepth;

    const THEME: Theme = Theme {
        depth: ColorDepth::None,
        ascii: true,
    };

    fn buckets(values: &[(u64, u64)]) -> Buckets {
        let mut buckets = Buckets::default();
        for (ns, n) in values {
            buckets.add(*ns, *n);
        }
        buckets
    }

    fn rows(buf: &Buffer) -> Vec<String> {
        let row = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
        (0..buf.area.height).map(row).collect()
    }

    #[test]
    fn the_fuller_bucket_is_higher_and_a_lone_operation_is_seen() {
        let a = buckets(&[(1_000, 1_000), (2_000, 500), (60_000, 1)]);
        let area = Rect::new(0, 0, 60, 3);
        let mut buf = Buffer::empty(area);
        let series = [Series {
            name: "A",
            buckets: &a,
            style: Style::new(),
        }];
        (&LogHistogram {
            series: &series,
            theme: THEME,
        })
            .render(area, &mut buf);
        let rows = rows(&buf);
        assert_eq!(rows[0].matches('#').count(), 2, "{rows:?}");
        assert!(rows[1].trim_end().ends_with('.'), "{rows:?}");
        assert!(
            rows[1].starts_with('A') && rows[2].contains("896ns"),
            "{rows:?}"
        );
    }

    #[test]
    fn a_map_has_fast_operations_below_and_slow_ones_above() {
        let columns = [
            Some(buckets(&[(1_000, 900)])),
            None,
            Some(buckets(&[(1_000, 900), (9_000, 1)])),
        ];
        let area = Rect::new(0, 0, 12, 4);
        let mut buf = Buffer::empty(area);
        (&HeatMap {
            columns: &columns,
            theme: THEME,
        })
            .render(area, &mut buf);
        let rows = rows(&buf);
        assert!(rows[3].ends_with("4 4"), "{rows:?}");
        assert!(rows[0].ends_with("  2"), "{rows:?}");
    }

    #[test]
    fn nothing_and_no_room_draw_nothing() {
        for (w, h) in [(0, 0), (5, 5), (30, 1), (30, 8)] {
            let area = Rect::new(0, 0, w, h);
            let mut buf = Buffer::empty(area);
            let empty = Buckets::default();
            let series = [Series {
                name: "A",
                buckets: &empty,
                style: Style::new(),
            }];
            (&LogHistogram {
                series: &series,
                theme: THEME,
            })
                .render(area, &mut buf);
            (&HeatMap {
                columns: &[None],
                theme: THEME,
            })
                .render(area, &mut buf);
            assert_eq!(buf, Buffer::empty(area));
        }
    }
}
