//! No size makes the views panic.

use cairn_tui::tui::model::{Model, Page, Prompt, PromptKind, Sheet};
use cairn_tui::tui::update::{Msg, update};
use cairn_tui::tui::view;

use crate::scene::{self, ASCII, COLOUR};
use crate::themes::PANELS;

fn sizes() -> Vec<(u16, u16)> {
    let mut sizes: Vec<_> = (0..60).flat_map(|w| (0..20).map(move |h| (w, h))).collect();
    sizes.extend([
        (79, 24),
        (80, 23),
        (80, 24),
        (81, 25),
        (139, 40),
        (140, 39),
        (140, 40),
    ]);
    sizes.extend([(160, 48), (300, 80), (500, 9), (31, 200), (1000, 100)]);
    sizes
}

fn sweep(mut model: Model) {
    for size in sizes() {
        model.size = size;
        for page in Page::ALL {
            model.page = page;
            let buf = scene::draw(&model);
            assert_eq!((buf.area.width, buf.area.height), size);
            assert!(
                view::layout(&model)
                    .iter()
                    .all(|(_, area)| area.right() <= size.0)
            );
        }
        model.page = Page::Overview;
    }
}

#[test]
fn with_everything_to_show() {
    sweep(scene::mixed(COLOUR, (80, 24)));
}

#[test]
fn with_nothing_to_show_yet() {
    sweep(scene::empty(ASCII, (80, 24)));
}

#[test]
fn with_help_and_zoomed_panels() {
    let mut model = scene::mixed(ASCII, (80, 24));
    for size in sizes() {
        model.size = size;
        model.help = Some(3);
        scene::draw(&model);
        model.help = None;
        model.zoomed = true;
        for panel in PANELS {
            model.focus = panel;
            scene::draw(&model);
        }
        model.zoomed = false;
    }
}

#[test]
fn with_sheets_prompts_and_a_cursor() {
    let mut model = scene::mixed(ASCII, (80, 24));
    for size in sizes() {
        model.size = size;
        for sheet in [Sheet::Settings, Sheet::Saved(Box::new(scene::saved()))] {
            model.sheet = Some(sheet);
            scene::draw(&model);
        }
        model.sheet = None;
        model.page = Page::Extents;
        model.cursor = Some(65_535);
        for kind in [PromptKind::GoTo, PromptKind::Compare] {
            model.prompt = Some(Prompt {
                kind,
                text: "runs/somewhere".to_owned(),
                error: None,
            });
            scene::draw(&model);
        }
        let said = "`(` is never closed (column 4)\n  ram(1g\n     ^\n  write `ram(1g)`";
        model.prompt = Some(Prompt {
            kind: PromptKind::Stack,
            text: "ram(1g".to_owned(),
            error: Some(said.to_owned().into()),
        });
        scene::draw(&model);
        model.prompt = None;
    }
}

#[test]
fn a_small_screen_says_what_it_needs() {
    let mut model = scene::mixed(ASCII, (28, 7));
    let text = scene::text(&scene::draw(&model)).replace('\n', " ");
    assert!(
        text.contains("need 30x8, have 28x7; the run goes on; q quits"),
        "{text}"
    );
    update(&mut model, Msg::Resize(80, 24));
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("Throughput"),
        "a larger screen is used at once"
    );
}
