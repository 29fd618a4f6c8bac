//! Every page in every size class, as text.

use cairn_tui::tui::model::{Model, Page, Panel, Sheet};
use cairn_tui::tui::theme::Theme;
use cairn_tui::tui::update::{Msg, update};

use crate::scene::{self, ASCII, COLOUR, MONO};

const CLASSES: [(&str, (u16, u16)); 3] = [
    ("wide", (160, 48)),
    ("compact", (80, 24)),
    ("mini", (40, 12)),
];

fn check(name: &str, model: &Model) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, scene::text(&scene::draw(model))));
}

#[test]
fn every_page_in_every_class() {
    for (class, size) in CLASSES {
        for page in Page::ALL {
            let mut model = scene::mixed(MONO, size);
            model.page = page;
            let page = page.name().replace('/', "").to_lowercase();
            check(&format!("{class}_{page}"), &model);
        }
    }
}

#[test]
fn the_smallest_wide_and_mini_screens() {
    check("wide_140x40", &scene::mixed(MONO, (140, 40)));
    check("mini_30x8", &scene::mixed(MONO, (30, 8)));
    check("too_small_28x7", &scene::mixed(MONO, (28, 7)));
}

#[test]
fn ascii_overviews() {
    for (class, size) in CLASSES {
        check(&format!("ascii_{class}"), &scene::mixed(ASCII, size));
    }
}

#[test]
fn help_in_every_class() {
    for (class, size) in CLASSES {
        let mut model = scene::mixed(MONO, size);
        model.help = Some(0);
        check(&format!("help_{class}"), &model);
    }
}

#[test]
fn sheets_in_every_class() {
    for (class, size) in CLASSES {
        let mut model = scene::mixed(MONO, size);
        model.sheet = Some(Sheet::Settings);
        check(&format!("settings_{class}"), &model);
        model.sheet = Some(Sheet::Saved(Box::new(scene::saved())));
        check(&format!("saved_{class}"), &model);
    }
}

#[test]
fn a_place_in_the_map_of_extents() {
    for (class, size) in CLASSES {
        let mut model = scene::mixed(MONO, size);
        model.page = Page::Extents;
        model.cursor = Some(20_000);
        check(&format!("place_{class}"), &model);
    }
}

#[test]
fn flags_of_many_heads() {
    for (class, size) in CLASSES {
        let mut model = scene::many_heads(MONO, size);
        model.page = Page::Flags;
        check(&format!("many_heads_{class}"), &model);
    }
}

#[test]
fn an_interleaved_comparison() {
    for (class, size) in CLASSES {
        check(&format!("auto_{class}"), &scene::auto(MONO, size));
    }
    let mut model = scene::auto(MONO, (160, 48));
    model.page = Page::Ab;
    check("auto_ab_wide", &model);
}

#[test]
fn latencies_over_time() {
    for (class, size) in CLASSES {
        let mut model = scene::auto(MONO, size);
        (model.page, model.heat) = (Page::Latency, true);
        check(&format!("heat_{class}"), &model);
    }
}

#[test]
fn before_the_first_sample() {
    check("empty_compact", &scene::empty(MONO, (80, 24)));
}

#[test]
fn a_failed_worker_is_named() {
    let mut model = scene::mixed(MONO, (80, 24));
    let text = "thread randwrite.1 panicked at src/x.rs:7: index out of range".to_owned();
    update(&mut model, Msg::Panic(text));
    check("failed_compact", &model);
}

#[test]
fn a_zoomed_panel_fills_the_page() {
    let mut model = scene::mixed(MONO, (80, 24));
    model.focus = Panel::Throughput;
    model.zoomed = true;
    model.merge = 2;
    check("zoomed_throughput", &model);
}

/// Colours and modifiers too, for three screens.
#[test]
fn styles() {
    for (class, size) in CLASSES {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let theme: Theme = COLOUR;
        let buf = scene::draw(&scene::mixed(theme, size));
        settings.bind(|| insta::assert_snapshot!(format!("styles_{class}"), format!("{buf:?}")));
    }
}
