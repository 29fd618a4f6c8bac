//! Replaying a fixture through any model.

use std::path::Path;

use cairn_extents::{Generation, Rules};
use cairn_trace::{Event, FileReport, KernelInfo, Model, Replayer, Survey, parse_line};

/// A trace, parsed once to be replayed many times.
pub(crate) struct Parsed<'a> {
    survey: Survey,
    events: Vec<(u64, Event<'a>)>,
}

impl<'a> Parsed<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut survey = Survey::default();
        let mut events = Vec::new();
        for (line, text) in (1..).zip(text.split(|&b| b == b'\n')) {
            if let Some(event) = parse_line(text).expect("the kernel's text") {
                survey.observe(&event);
                events.push((line, event));
            }
        }
        Self { survey, events }
    }

    pub(crate) fn replay<M: Model>(
        &self,
        info: Option<&Path>,
        generation: Option<Generation>,
        make: impl Fn(Rules) -> M,
    ) -> FileReport {
        let mut replayer = Replayer::new(self.survey.settings(generation), make);
        for (line, event) in &self.events {
            replayer.feed(*line, event).expect("a capture replays");
        }
        let info = info.map(|path| {
            let text = std::fs::read_to_string(path).expect("the info file");
            KernelInfo::parse(&text).expect("the kernel's text")
        });
        replayer.finish(info.as_ref())
    }
}
