//! Results on stdout, notes on stderr.

use std::io::{self, Write as _};

use serde::Serialize;

/// Says something that is no result.
pub(crate) fn note(text: &str) {
    // A closed stderr must not end the run.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes results and flushes them, so that a failing write is an error and not a lost tail.
pub(crate) fn results(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)?;
    out.flush()
}

/// Writes one JSON object and a line feed.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    results(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}
