//! A drawn screen as an SVG picture.
//!
//! Lines, blocks and Braille dots are drawn as shapes, so the picture is the same whatever font the
//! reader has; only words are text, each run stretched to the cells it had.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

mod shape;

/// Width of a cell: that of the first font named below, at 14 px.
const W: f64 = 8.43;
/// Height of a cell.
const H: f64 = 17.0;
/// Space around the screen.
const PAD: f64 = 12.0;

const PAPER: &str = "#12161c";
const INK: &str = "#dbe2ea";

/// What a shape or a run of text is painted with: colour, and opacity in per cent.
type Paint = (String, u8);

/// The picture of `buf`.
///
/// ```
/// use ratatui::buffer::Buffer;
/// let buf = Buffer::with_lines(["a < b"]);
/// let picture = cairn_tui::tui::svg::picture(&buf, "example");
/// assert!(picture.contains("&lt;"));
/// ```
pub fn picture(buf: &Buffer, title: &str) -> String {
    let width = f64::from(buf.area.width) * W + 2.0 * PAD;
    let height = f64::from(buf.area.height) * H + 2.0 * PAD;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n",
        escape(title)
    );
    let mut shapes = BTreeMap::new();
    let mut texts = String::new();
    for y in 0..buf.area.height {
        row(buf, y, &mut shapes, &mut texts);
    }
    for ((_, (fill, opacity)), path) in shapes {
        let (path, opacity) = (path.finish(), opacity_attribute(opacity));
        let _infallible = writeln!(out, "<path d=\"{path}\" fill=\"{fill}\"{opacity}/>");
    }
    out.push_str(&texts);
    out.push_str("</svg>\n");
    out
}

/// Grounds are layer 0, shapes layer 1.
type Shapes = BTreeMap<(u8, Paint), shape::Path>;

fn row(buf: &Buffer, y: u16, shapes: &mut Shapes, texts: &mut String) {
    let mut run: Option<Run> = None;
    for x in 0..buf.area.width {
        let Some(cell) = buf.cell((buf.area.x + x, buf.area.y + y)) else {
            continue;
        };
        let (ink, ground) = paints(cell);
        let (left, top) = (PAD + f64::from(x) * W, PAD + f64::from(y) * H);
        if let Some(ground) = ground {
            shapes.entry((0, ground)).or_default().rect(left, top, W, H);
        }
        let symbol = cell.symbol();
        let glyph = symbol.chars().next().unwrap_or(' ');
        let drawn = shape::draw(glyph, left, top, |share, x, y, w, h| {
            let opacity = u8::try_from(u32::from(ink.1) * share / 100).unwrap_or(100);
            let path = shapes.entry((1, (ink.0.clone(), opacity))).or_default();
            path.rect(x, y, w, h);
        });
        let bold = cell.modifier.contains(Modifier::BOLD);
        if drawn || glyph == ' ' {
            Run::end(run.take(), texts);
            continue;
        }
        match &mut run {
            Some(open) if open.ink == ink && open.bold == bold => open.text.push_str(symbol),
            _ => {
                Run::end(run.take(), texts);
                run = Some(Run {
                    left,
                    base: top + 13.0,
                    ink,
                    bold,
                    text: symbol.to_owned(),
                });
            }
        }
    }
    Run::end(run, texts);
}

/// Characters in a row that look alike.
struct Run {
    left: f64,
    base: f64,
    ink: Paint,
    bold: bool,
    text: String,
}

impl Run {
    fn end(run: Option<Self>, texts: &mut String) {
        let Some(run) = run else { return };
        let length = run.text.chars().count() as f64 * W;
        let weight = if run.bold { " font-weight=\"700\"" } else { "" };
        let _infallible = writeln!(
            texts,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" fill=\"{}\"{}{weight}>{}</text>",
            run.left,
            run.base,
            run.ink.0,
            opacity_attribute(run.ink.1),
            escape(&run.text)
        );
    }
}

fn opacity_attribute(percent: u8) -> String {
    if percent >= 100 {
        String::new()
    } else {
        format!(" opacity=\"{}\"", f64::from(percent) / 100.0)
    }
}

/// Ink and ground of a cell; no ground where it is the paper's.
fn paints(cell: &Cell) -> (Paint, Option<Paint>) {
    let opacity = if cell.modifier.contains(Modifier::DIM) {
        60
    } else {
        100
    };
    let ink = color(cell.fg).unwrap_or_else(|| INK.to_owned());
    let ground = color(cell.bg);
    if cell.modifier.contains(Modifier::REVERSED) {
        let paper = ground.unwrap_or_else(|| PAPER.to_owned());
        return ((paper, 100), Some((ink, opacity)));
    }
    ((ink, opacity), ground.map(|ground| (ground, 100)))
}

/// The colours that the true-colour theme uses; others belong to the terminal.
fn color(color: Color) -> Option<String> {
    match color {
        Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
        _ => None,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
