//! Where results go, in the forms asked for.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cairn_fio::output::RunResult;
use cairn_fio::plan::RunOptions;

use crate::exit::Failed;
use crate::output;

/// Writes results to stdout, or to the file of `--output`.
#[derive(Debug)]
pub(super) struct Writer<'p> {
    run: &'p RunOptions,
    file: Option<OutputFile>,
}

/// The file of `--output`.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    /// Written beside its place, and put there whole or not at all; `None` for a pipe or a device,
    /// which must not be replaced.
    partial: Option<PathBuf>,
    file: File,
}

impl<'p> Writer<'p> {
    /// Opens the file of `--output`, so that a wrong path is told before the run.
    pub(super) fn new(run: &'p RunOptions) -> anyhow::Result<Self> {
        let file = match run.output.as_deref() {
            Some(path) => {
                let file = OutputFile::create(path).with_context(|| format!("--output={path}"))?;
                Some(file)
            }
            None => None,
        };
        Ok(Self { run, file })
    }

    /// Writes one set of results in every form asked for.
    pub(super) fn write(&mut self, result: &RunResult) -> anyhow::Result<()> {
        let text = result.formatted(self.run);
        match &mut self.file {
            Some(output) => {
                let written = output.file.write_all(text.as_bytes());
                written.map_err(|error| lost(&output.path, error))
            }
            None => output::results(|out| out.write_all(text.as_bytes())),
        }
    }

    /// Puts the file in place.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(OutputFile {
            path,
            partial: Some(partial),
            ..
        }) = &self.file
        {
            fs::rename(partial, path).map_err(|error| lost(path, error))?;
        }
        Ok(())
    }
}

impl OutputFile {
    fn create(path: &str) -> io::Result<Self> {
        // Through a link to what it means, so that the link stays.
        let path = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        let special = fs::metadata(&path).is_ok_and(|there| !there.is_file());
        if special || path.as_os_str().is_empty() {
            // Opening says what is wrong with a folder or an empty name.
            let file = File::options().write(true).open(&path)?;
            return Ok(Self {
                path,
                partial: None,
                file,
            });
        }
        let partial = PathBuf::from(format!("{}.partial", path.display()));
        let file = File::create(&partial)?;
        Ok(Self {
            path,
            partial: Some(partial),
            file,
        })
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // Only there when the run did not come to its end.
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

/// Results that were measured could not be kept.
fn lost(path: &Path, error: io::Error) -> anyhow::Error {
    Failed(anyhow::Error::new(error).context(format!("--output={}", path.display()))).into()
}
