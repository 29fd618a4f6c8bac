//! The dashboard: a live view of one [`cairn_lab::Lab`] on a terminal.
//!
//! It is built the Elm way. [`update::update`] turns a message into a new [`model::Model`] and a list
//! of commands; [`view::render`] turns the model into cells. Both are pure: no clock, no I/O, no
//! environment, so each screen can be compared with a picture. Only `runtime` executes commands
//! and draws, and only `guard` touches the state of the terminal.
//!
//! Numbers come from [`cairn_lab::Sample`]; nothing is measured here except the dashboard's own
//! cost.

use cairn_lab::Registry;

mod change;
pub mod format;
mod guard;
pub mod history;
mod input;
pub mod log;
pub mod meter;
pub mod model;
pub mod panel;
mod recorder;
mod runtime;
pub mod svg;
pub mod theme;
pub mod update;
pub mod view;
pub mod widget;

pub use change::refusal;
pub use runtime::{Live, live, replay, run, run_with};
pub use theme::ColorDepth;

/// A run that is over, to be shown in the views of a live one.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Name of the scenario.
    pub scenario: String,
    /// Its stack spec.
    pub stack: String,
    /// Its seed.
    pub seed: u64,
    /// The policies, in display order.
    pub policies: Vec<cairn_lab::PolicyInfo>,
    /// The samples, oldest first and numbered from 0.
    pub samples: Vec<std::sync::Arc<cairn_lab::Sample>>,
    /// What was noted, and when.
    pub events: Vec<(std::time::Duration, String)>,
}

/// What a dashboard works with beyond its lab.
pub struct Around<'a> {
    /// What can be composed. Without it neither the stack nor the workloads can be edited.
    pub registry: Option<&'a Registry>,
    /// Sees every sample, on a thread of its own, before it is drawn and whether or not it is. What it
    /// answers is noted among the events.
    pub watch: Box<Watch>,
    /// Directory that the run is written to at its end; new or empty.
    pub out: Option<std::path::PathBuf>,
    /// The command line that repeats the run, for the directories it is written to.
    pub command: String,
    /// What else is set, and to what; shown among the settings.
    pub settings: Vec<(String, String)>,
}

impl Default for Around<'_> {
    fn default() -> Self {
        Self {
            registry: None,
            watch: Box::new(|_| None),
            out: None,
            command: "cairn dash".to_owned(),
            settings: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

/// Somebody else who wants to see each sample, and may have a word to say about it.
pub type Watch = dyn FnMut(&cairn_lab::Sample) -> Option<String> + Send;

/// How the dashboard is to look and behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Colours; `None`: as the environment suggests.
    pub color: Option<ColorDepth>,
    /// Draw with characters below U+0080 only.
    pub ascii: bool,
    /// Frames a second, 1 to 30.
    pub hz: u8,
    /// Take mouse events: a click focuses or toggles, the wheel zooms. The terminal's own selection
    /// then needs Shift.
    pub mouse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            color: None,
            ascii: false,
            hz: 10,
            mouse: false,
        }
    }
}

/// How the dashboard ended.
#[derive(Debug)]
pub struct Outcome {
    /// The finished run, to be printed on the normal screen.
    pub summary: cairn_lab::Summary,
    /// Directory that it was written to.
    pub out: Option<String>,
    /// What the last comparison came to, in a sentence.
    pub compared: Option<String>,
    /// The last screen as text, if the operator asked to leave it.
    pub screen: Option<String>,
    /// Exit code of the program: 0; 1 after a failed worker or operation; 128+n after signal n.
    pub code: u8,
}
