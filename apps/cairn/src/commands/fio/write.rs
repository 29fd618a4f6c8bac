//! Where results go, in which of fio's forms.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cairn_fio::output::{RunResult, Unit, shorten};
use cairn_fio::plan::RunOptions;
use cairn_lab::Progress;

use crate::output;

/// Writes results to stdout, or to the file of `--output`.
#[derive(Debug)]
pub(super) struct Writer<'p> {
    run: &'p RunOptions,
    file: Option<OutputFile>,
}

/// The file of `--output`: written beside its place, and put there whole or not at all.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    partial: PathBuf,
    file: File,
}

impl<'p> Writer<'p> {
    /// Opens the file of `--output`, so that a wrong path is told before the run.
    pub(super) fn new(run: &'p RunOptions) -> io::Result<Self> {
        let file = run.output.as_deref().map(OutputFile::create).transpose()?;
        Ok(Self { run, file })
    }

    /// Writes one set of results in every form asked for.
    pub(super) fn write(&mut self, result: &RunResult) -> io::Result<()> {
        let text = result.formatted(self.run);
        match &mut self.file {
            Some(output) => output
                .file
                .write_all(text.as_bytes())
                .map_err(|error| named(&output.path, &error)),
            None => output::results(|out| out.write_all(text.as_bytes())),
        }
    }

    /// Puts the file in place.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.file {
            Some(output) => std::fs::rename(&output.partial, &output.path)
                .map_err(|error| named(&output.path, &error)),
            None => Ok(()),
        }
    }
}

/// fio's status line.
pub(super) fn eta(progress: &Progress) -> String {
    let moved = |rates: [f64; 3], suffix: &str, number: &dyn Fn(u64) -> String| {
        let shown: Vec<_> = ["r", "w", "t"]
            .iter()
            .zip(rates)
            .filter(|(_, rate)| *rate >= 1.0)
            .map(|(letter, rate)| format!("{letter}={}", number(rate as u64)))
            .collect();
        if shown.is_empty() {
            String::new()
        } else {
            format!("[{}{suffix}]", shown.join(","))
        }
    };
    let done = progress
        .done
        .map_or_else(|| "-.-%".to_owned(), |done| format!("{:.1}%", 100.0 * done));
    let left = progress.remaining.map_or_else(
        || "--".to_owned(),
        |left| format!("{:02}m:{:02}s", left.as_secs() / 60, left.as_secs() % 60),
    );
    format!(
        "Jobs: {} (f={}): [{}][{done}]{}{}[eta {left}]",
        progress.running,
        progress.running,
        progress.letters,
        moved(progress.bytes_per_s, "", &|rate| shorten(
            rate,
            4,
            true,
            Unit::BytesPerSecond
        )),
        moved(progress.ios_per_s, " IOPS", &|rate| shorten(
            rate,
            4,
            false,
            Unit::None
        )),
    )
}

impl OutputFile {
    fn create(path: &str) -> io::Result<Self> {
        let path = PathBuf::from(path);
        let partial = PathBuf::from(format!("{}.partial", path.display()));
        let file = File::create(&partial).map_err(|error| named(&path, &error))?;
        Ok(Self {
            path,
            partial,
            file,
        })
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // Only there when the run did not come to its end.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("--output={}: {error}", path.display()),
    )
}
