//! Results on stdout, notes on stderr.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::exit::Failed;

/// Says something that is no result.
pub(crate) fn note(text: &str) {
    // A closed stderr must not end the run.
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// The text with control characters written out: what a file or an argument holds must not steer the
/// terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let shown: Box<dyn Iterator<Item = char>> = if c.is_control() && c != '\n' && c != '\t'
            {
                Box::new(c.escape_default())
            } else {
                Box::new(std::iter::once(c))
            };
            shown
        })
        .collect()
}

/// Writes results and flushes them, so that a failing write is an error and not a lost tail.
pub(crate) fn results(
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| Failed(anyhow::Error::new(error).context("cannot write to stdout")).into())
}

/// Writes one JSON object and a line feed.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    results(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\0\r\nc"), "a\\u{1b}[2Jb\\u{0}\\r\nc");
    }
}
