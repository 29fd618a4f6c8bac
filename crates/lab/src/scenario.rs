//! Scenarios: what is composed and what runs on it, as TOML.

mod load;

pub(crate) use load::MAX_TASKS;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_fio::options::closest;

/// A composed stack and the workloads that run on it.
///
/// # Examples
/// ```
/// let scenario = cairn_lab::Scenario::parse(
///     r#"
///     name = "mine"
///     stack = "stats/ram(64m)"
///     [workload]
///     kind = "fio"
///     options = "--rw=randread --bs=4k --size=32m"
///     "#,
///     "mine.toml",
/// )?;
/// assert_eq!(scenario.workloads.len(), 1);
/// # Ok::<(), cairn_lab::ScenarioError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its name, shown everywhere.
    pub name: String,
    /// What it is for, in one line; may be empty.
    pub about: String,
    /// The block stack, client to media.
    pub stack: String,
    /// Seed of every generator.
    pub seed: u64,
    /// What runs, in display order; comparisons look at the first one that the policy acts on.
    pub workloads: Vec<WorkloadSpec>,
    /// Arms to start with, by the name of the policy.
    pub policies: BTreeMap<String, String>,
}

/// One workload of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Its name, unique in the scenario.
    pub name: String,
    /// What it does.
    pub kind: WorkloadKind,
    /// How long it runs after the warm-up; `None` runs until it is stopped.
    pub runtime: Option<Duration>,
    /// What is left out of the statistics at the start. The longest of a scenario holds for all of its
    /// workloads, since all are measured over the same time.
    pub warmup: Duration,
}

/// What a workload does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkloadKind {
    /// Jobs in fio's language.
    Fio(FioSource),
    /// The creat-clo test of AIM7, as its access pattern on the buffer cache.
    CreatClo {
        /// Tasks, each a thread.
        tasks: usize,
    },
    /// The same on files of the ext4 layer.
    CreatCloFiles {
        /// Tasks, each a thread.
        tasks: usize,
    },
}

/// Where fio jobs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioSource {
    /// A command line without the program's name: `--rw=randwrite --bs=4k`.
    Options(String),
    /// A job file.
    Job(PathBuf),
}

/// A scenario that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    text: &'static str,
}

/// Largest scenario file that is read: an input without an end stops here.
const FILE_LIMIT: u64 = 16 << 20;

const PRESETS: &[PresetInfo] = &[
    PresetInfo {
        name: "mixed",
        about: "4 KiB random writes to one file beside create-close-delete on shared buffer heads",
        text: include_str!("../scenarios/mixed.toml"),
    },
    PresetInfo {
        name: "randwrite",
        about: "8 jobs, 4 KiB direct random writes to one file, two extent look-ups each",
        text: include_str!("../scenarios/randwrite.toml"),
    },
    PresetInfo {
        name: "creat-clo",
        about: "create-close-delete of files in one directory: 42 set calls on four shared buffer heads each",
        text: include_str!("../scenarios/creat-clo.toml"),
    },
    PresetInfo {
        name: "fragmented",
        about: "4 KiB random writes to a sparse file, an extent each; the cache is shrunk above 4096",
        text: include_str!("../scenarios/fragmented.toml"),
    },
];

impl Scenario {
    /// The scenarios that are built in, the default first.
    pub fn presets() -> &'static [PresetInfo] {
        PRESETS
    }

    /// A built-in scenario by its name.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|p| p.name == name)?;
        // A test reads every preset, so this never comes out as None for a known name.
        Self::parse(preset.text, &format!("{name}.toml")).ok()
    }

    /// A built-in scenario by its name, or one from a `.toml` file.
    ///
    /// Job files named in it are looked for beside it.
    ///
    /// # Errors
    /// [`ScenarioError`] if there is no such preset or file, or if the file says something that
    /// cannot be run; it names file, line and field.
    pub fn load(name_or_path: &str) -> Result<Self, ScenarioError> {
        if let Some(preset) = Self::preset(name_or_path) {
            return Ok(preset);
        }
        let path = std::path::Path::new(name_or_path);
        if !path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("toml"))
        {
            return Err(ScenarioError::Unknown {
                name: name_or_path.to_owned(),
            });
        }
        let text = read(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut scenario = Self::parse(&text, name_or_path)?;
        let folder = path.parent().unwrap_or_else(|| std::path::Path::new(""));
        for workload in &mut scenario.workloads {
            if let WorkloadKind::Fio(FioSource::Job(job)) = &mut workload.kind {
                *job = folder.join(&*job);
            }
        }
        Ok(scenario)
    }

    /// A scenario from TOML text; `file` is only named in errors.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] with line and field.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        load::parse(text, file)
    }

    /// The scenario as TOML that [`Self::parse`] reads back.
    pub fn to_toml(&self) -> String {
        load::print(self)
    }
}

/// The text of a file that is no larger than a scenario can be.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(FILE_LIMIT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_LIMIT {
        let what = format!(
            "longer than {} MiB; a scenario has some lines",
            FILE_LIMIT >> 20
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

/// Why a scenario was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Neither a preset nor a path that ends in `.toml`.
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no TOML, or says something that cannot be run.
    Invalid {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Field, or empty when the text is no TOML there.
        field: String,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let known: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
                write!(f, "no scenario `{name}`; ")?;
                if let Some(meant) = closest(name, known.iter().copied()) {
                    write!(f, "did you mean `{meant}`? ")?;
                }
                write!(
                    f,
                    "there are {}, or give the path of a .toml file",
                    known.join(", ")
                )
            }
            Self::Read { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Invalid {
                file,
                line,
                field,
                message,
            } => {
                write!(f, "{file}:{line}: ")?;
                if !field.is_empty() {
                    write!(f, "`{field}`: ")?;
                }
                f.write_str(message)
            }
        }
    }
}

impl Error for ScenarioError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}
