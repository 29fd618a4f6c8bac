//! What every theme must keep: mono sets no colour, ASCII stays below U+0080, and no theme loses a
//! fact.

use cairn_tui::tui::model::{Model, Page, Panel};
use cairn_tui::tui::theme::{ColorDepth, Theme};
use ratatui::style::{Color, Modifier};

use crate::scene::{self, ASCII, MONO};

const SIZES: [(u16, u16); 5] = [(160, 48), (140, 40), (80, 24), (40, 12), (30, 8)];

/// Every page, the help and every zoomed panel, at every size.
fn screens(theme: Theme, mut check: impl FnMut(&Model)) {
    for size in SIZES {
        let mut model = scene::mixed(theme, size);
        for page in Page::ALL {
            model.page = page;
            check(&model);
        }
        model.page = Page::Overview;
        model.zoomed = true;
        for panel in PANELS {
            model.focus = panel;
            check(&model);
        }
        model.help = Some(0);
        check(&model);
    }
}

pub(crate) const PANELS: [Panel; 11] = [
    Panel::Stack,
    Panel::Throughput,
    Panel::Policies,
    Panel::Ab,
    Panel::Latency,
    Panel::Counters,
    Panel::Flags,
    Panel::Extents,
    Panel::Workload,
    Panel::SelfCheck,
    Panel::Events,
];

#[test]
fn mono_sets_no_colour_and_only_bold_and_reversed() {
    for theme in [MONO, ASCII] {
        screens(theme, |model| {
            for cell in scene::draw(model).content() {
                assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
                let rest = cell.modifier - Modifier::BOLD - Modifier::REVERSED;
                assert!(rest.is_empty(), "{rest:?} in {:?}", model.page);
            }
        });
    }
}

#[test]
fn ascii_stays_ascii() {
    screens(ASCII, |model| {
        for cell in scene::draw(model).content() {
            assert!(
                cell.symbol().is_ascii(),
                "{:?} in {:?}",
                cell.symbol(),
                model.page
            );
        }
    });
}

#[test]
fn every_glyph_is_one_cell_wide() {
    screens(MONO, |model| {
        let buf = scene::draw(model);
        for y in 0..buf.area.height {
            let line: String = (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
            let width = ratatui::text::Line::raw(line.as_str()).width();
            assert_eq!(width, usize::from(buf.area.width), "{line}");
        }
    });
}

/// The text of a screen does not depend on the colours, so no fact is told by colour alone.
#[test]
fn colours_change_no_character() {
    // The header names the theme.
    let below = |model: &Model| {
        let text = scene::text(&scene::draw(model));
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for size in SIZES {
        let mono = below(&scene::mixed(MONO, size));
        for depth in [ColorDepth::Sixteen, ColorDepth::Palette, ColorDepth::True] {
            let theme = Theme {
                depth,
                ascii: false,
            };
            assert!(
                below(&scene::mixed(theme, size)) == mono,
                "{depth:?} at {size:?}"
            );
        }
    }
}

#[test]
fn the_key_facts_are_in_every_class_and_theme() {
    for theme in [MONO, ASCII, scene::COLOUR] {
        for size in SIZES {
            let text = scene::text(&scene::draw(&scene::mixed(theme, size)));
            let mut facts = vec!["mixed", "[RUN]", "200.7 kIOPS", "24.1 us", "q quit"];
            facts.extend(["c flag-set", ">B ", "p es-counters"]);
            if size.1 > 8 {
                facts.extend([
                    "check-first<",
                    ">B per-cpu<",
                    ">128<",
                    "+9.4 %",
                    "[+8.6, +10.2]",
                    "separated",
                ]);
            }
            for fact in facts {
                assert!(
                    text.contains(fact),
                    "{fact} is missing at {size:?}:\n{text}"
                );
            }
        }
    }
}
