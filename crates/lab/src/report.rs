//! Run directories read back: as a page, as text, as data, and one beside another.
//!
//! Everything here comes from the files of the directory alone, so a report can be made again at any time and
//! comes out byte for byte the same.

mod ab;
mod compare;
mod page;
mod run;
mod svg;

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use compare::{Comparison as RunComparison, compare_runs};

use crate::ab::AbResult;
use crate::folder::Folder;
use crate::rundir::RunFile;
use crate::summary::Summary;

/// Largest file of a run directory that is read.
const FILE_LIMIT: u64 = 256 << 20;

/// Newest version of the data form that this program knows.
const NEWEST: u64 = 1;

/// A run directory that was read.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    pub(crate) content: Content,
    slices: String,
    events: String,
}

/// What a run directory holds.
#[derive(Debug)]
pub(crate) enum Content {
    Ab(Box<AbResult>),
    Run(Box<RunFile>),
}

impl RunDir {
    /// Reads a run directory.
    ///
    /// # Errors
    /// [`ReportError`] names the file that is missing, cannot be read, or comes from a newer version.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let file = path.join("run.json");
        let text = text(&file)?;
        let broken = |e: serde_json::Error| ReportError::Broken {
            path: file.clone(),
            message: e.to_string(),
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
        let version = value
            .get("schema_version")
            .and_then(serde_json::Value::as_u64);
        match version {
            Some(NEWEST) => {}
            Some(version) => {
                return Err(ReportError::Version {
                    path: file,
                    version,
                });
            }
            None => {
                return Err(ReportError::Broken {
                    path: file,
                    message: "has no schema_version, so it is no run of cairn".to_owned(),
                });
            }
        }
        let content = match value.get("kind").and_then(serde_json::Value::as_str) {
            Some("ab") => Content::Ab(
                serde_json::from_value(value)
                    .map(Box::new)
                    .map_err(broken)?,
            ),
            Some("run") => Content::Run(
                serde_json::from_value(value)
                    .map(Box::new)
                    .map_err(broken)?,
            ),
            other => {
                return Err(ReportError::Broken {
                    message: format!("kind {} is neither ab nor run", other.unwrap_or("(none)")),
                    path: file,
                });
            }
        };
        Ok(Self {
            slices: text_or_none(&path.join("slices.csv"))?,
            events: text_or_none(&path.join("events.csv"))?,
            path: path.to_owned(),
            content,
        })
    }

    /// The report as one page without a script.
    pub fn html(&self) -> String {
        match &self.content {
            Content::Ab(result) => ab::page(result, &self.events),
            Content::Run(file) => run::page(file, &self.slices, &self.events),
        }
    }

    /// What the run came to; `None` for a comparison, which came to more than one thing.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.content {
            Content::Ab(_) => None,
            Content::Run(file) => Some(&file.summary),
        }
    }

    /// The main chart alone.
    pub fn svg(&self) -> String {
        match &self.content {
            Content::Ab(result) => ab::picture(result),
            Content::Run(file) => run::picture(file, &self.slices),
        }
    }

    /// Prints the results as text.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        match &self.content {
            Content::Ab(result) => result.write_text(to),
            Content::Run(file) => file.summary.write_text(to),
        }
    }

    /// Prints the results as JSON: `run.json` as it was read.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_json(&self, to: &mut dyn Write) -> io::Result<()> {
        match &self.content {
            Content::Ab(result) => serde_json::to_writer_pretty(&mut *to, result)?,
            Content::Run(file) => serde_json::to_writer_pretty(&mut *to, file)?,
        }
        writeln!(to)
    }

    /// Writes `report.html` anew, and `screen.svg` where there is none.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn write_report(&self) -> Result<(), ReportError> {
        let folder = Folder::open(&self.path);
        let write = |name, text: String| {
            folder
                .write(name, text.as_bytes())
                .map_err(ReportError::Write)
        };
        write("report.html", self.html())?;
        if !self.path.join("screen.svg").exists() {
            write("screen.svg", self.svg())?;
        }
        Ok(())
    }
}

/// Makes the report of a directory whose data is there.
pub(crate) fn write(path: &Path) -> Result<(), ReportError> {
    RunDir::read(path)?.write_report()
}

fn text(path: &Path) -> Result<String, ReportError> {
    let read = |source| ReportError::Read {
        path: path.to_owned(),
        source,
    };
    let len = fs::metadata(path).map_err(read)?.len();
    if len > FILE_LIMIT {
        return Err(read(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {} MiB", FILE_LIMIT >> 20),
        )));
    }
    fs::read_to_string(path).map_err(read)
}

/// A file that need not be there.
fn text_or_none(path: &Path) -> Result<String, ReportError> {
    match text(path) {
        Err(ReportError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(String::new())
        }
        other => other,
    }
}

/// Why a run directory was of no use.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReportError {
    /// A file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A version that this program does not know.
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// Two runs that cannot be compared.
    Different {
        /// What differs.
        message: String,
    },
    /// The report cannot be written.
    Write(io::Error),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => {
                write!(f, "{}: {source}", path.display())?;
                if source.kind() == io::ErrorKind::NotFound {
                    f.write_str("; a run directory is what --out made, and holds run.json")?;
                }
                Ok(())
            }
            Self::Broken { path, message } => write!(f, "{}: {message}", path.display()),
            Self::Version { path, version } => write!(
                f,
                "{}: schema version {version}, and this program knows version {NEWEST}; use a newer cairn",
                path.display()
            ),
            Self::Different { message } => f.write_str(message),
            Self::Write(e) => write!(f, "writing the report: {e}"),
        }
    }
}

impl Error for ReportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Write(e) => Some(e),
            _ => None,
        }
    }
}
