//! Replaying a fixture through any model.

use std::path::Path;

use cairn_extents::{Generation, Rules};
use cairn_trace::{FileReport, KernelInfo, Lines, Model, Replayer, Survey, parse_line};

pub(crate) fn replay<M: Model>(
    text: &[u8],
    info: Option<&Path>,
    generation: Option<Generation>,
    make: impl Fn(Rules) -> M,
) -> FileReport {
    let mut survey = Survey::default();
    each(text, |_, event| survey.observe(event));
    let mut replayer = Replayer::new(survey.settings(generation), make);
    each(text, |line, event| {
        replayer.feed(line, event).expect("a capture replays");
    });
    let info = info.map(|path| {
        let text = std::fs::read_to_string(path).expect("the info file");
        KernelInfo::parse(&text).expect("the kernel's text")
    });
    replayer.finish(info.as_ref())
}

fn each(text: &[u8], mut run: impl FnMut(u64, &cairn_trace::Event<'_>)) {
    let mut lines = Lines::new(text).expect("memory reads");
    while let Some((line, text)) = lines.next_line().expect("memory reads") {
        if let Some(event) = parse_line(text).expect("the kernel's text") {
            run(line, &event);
        }
    }
}
