//! The pictures in docs/ are the real views of fixed scenes; a stale picture fails here.
//! `CAIRN_BLESS=1 cargo test -p cairn-tui --test screenshots` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on may panic"
)]

#[path = "support/scene.rs"]
#[expect(dead_code, reason = "shared with the other dashboard tests")]
mod scene;

use std::fs;
use std::path::PathBuf;

use cairn_tui::tui::model::Model;
use cairn_tui::tui::svg;

fn check(name: &str, title: &str, model: &Model) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let picture = svg::picture(&scene::draw(model), title);
    if std::env::var_os("CAIRN_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, picture).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == picture,
        "docs/{name} is stale: run CAIRN_BLESS=1 cargo test -p cairn-tui --test screenshots"
    );
}

#[test]
fn wide() {
    let model = scene::mixed(scene::COLOUR, (160, 48));
    check("dashboard.svg", "The dashboard of Cairn, 160 x 48", &model);
}

#[test]
fn compact() {
    let model = scene::mixed(scene::COLOUR, (80, 24));
    check(
        "dashboard-compact.svg",
        "The dashboard of Cairn, 80 x 24",
        &model,
    );
}
