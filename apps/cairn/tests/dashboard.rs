//! The dashboard without a terminal: every screen as text, what every theme must keep, every size,
//! and what messages do.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on may panic"
)]

#[path = "support/scene.rs"]
mod scene;

#[path = "dashboard/history.rs"]
mod history;
#[path = "dashboard/keys.rs"]
mod keys;
#[path = "dashboard/screens.rs"]
mod screens;
#[path = "dashboard/sizes.rs"]
mod sizes;
#[path = "dashboard/themes.rs"]
mod themes;
#[path = "dashboard/updates.rs"]
mod updates;
