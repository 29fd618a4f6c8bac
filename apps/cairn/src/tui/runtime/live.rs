//! The dashboard over what somebody else samples: a server, for one.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use cairn_lab::Sample;

use super::{Dash, QUEUE, exit_code, look};
use crate::tui::guard::PanicHook;
use crate::tui::model::{Model, Setup};
use crate::tui::{Options, Watch, input};

/// Something that goes on without a lab.
pub struct Live {
    /// What it is.
    pub scenario: String,
    /// Its stack spec.
    pub stack: String,
    /// Its samples, until it ends.
    pub samples: Receiver<Arc<Sample>>,
    /// Sees every sample; what it answers is noted among the events.
    pub watch: Box<Watch>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// Shows it until the operator quits or a signal ends it; gives the exit code for that.
///
/// # Errors
/// As [`run`](super::run).
pub fn live(live: Live, options: Options) -> anyhow::Result<u8> {
    crossterm::style::force_color_output(true);
    let (messages, inbox) = mpsc::sync_channel(QUEUE);
    let hook = PanicHook::install(messages.clone());
    let signals = input::SignalWatch::start(messages.clone()).context("cannot watch signals")?;
    let watch = Arc::new(Mutex::new(live.watch));
    input::samples(live.samples, Arc::clone(&watch), messages.clone())
        .context("cannot start a thread for samples")?;
    let model = Model::new(Setup {
        scenario: live.scenario,
        stack: live.stack,
        ..look(options)
    });
    let mut dash = Dash::open(model, options, messages, watch)?;
    dash.drive(&inbox);
    let end = dash.end;
    drop(dash);
    drop((hook, signals));
    Ok(exit_code(end))
}
