//! What a command line or job file asks for: run options, globals and jobs.

use std::time::Duration;

use crate::error::Location;
use crate::job::Job;
use crate::lint::Lint;
use crate::options::{self, OptionDef, Tier};
use crate::words::words;

/// An option as it was given.
#[derive(Debug, Clone)]
pub struct Given {
    /// Canonical name.
    pub name: &'static str,
    /// Its value, or `None` when the option stood alone.
    pub value: Option<String>,
    /// Where it stood.
    pub at: Location,
}

/// An unknown option that `--lenient` let pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// As written.
    pub name: String,
    /// Its value, if it had one.
    pub value: Option<String>,
    /// Where it stood.
    pub at: Location,
}

/// Where an option stood is no part of what it says.
impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.value == other.value
    }
}

words! {
    /// `--output-format=`.
    pub enum OutputFormat {
        /// fio's text.
        Normal = "normal",
        /// Fields by semicolon.
        Terse = "terse" | "minimal",
        /// JSON.
        Json = "json",
        /// JSON with the histogram bins.
        JsonPlus = "json+",
        /// One JSON object per line.
        JsonLines = "jsonl",
    }
}

words! {
    /// `--eta=`.
    pub enum Eta {
        /// When standard error is a terminal.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// A request that prints something and runs no job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Show {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--cmdhelp[=option]`.
    CmdHelp(Option<String>),
    /// `--enghelp[=engine[,option]]`.
    EngHelp(Option<String>),
    /// `--showcmd`.
    ShowCmd,
}

/// Options of the whole run.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of the command line"
)]
pub struct RunOptions {
    /// `--output=`: file that takes the results.
    pub output: Option<String>,
    /// `--output-format=`, in the order given; never empty.
    pub formats: Vec<OutputFormat>,
    /// `--terse-version=` (default 3): 2 to 5.
    pub terse_version: u8,
    /// `--append-terse`: terse lines after the text.
    pub append_terse: bool,
    /// `--eta=` (default auto).
    pub eta: Eta,
    /// `--eta-interval=` (default 1 s).
    pub eta_interval: Duration,
    /// `--eta-newline=`: a new line instead of overwriting, this often.
    pub eta_newline: Option<Duration>,
    /// `--status-interval=`: the whole status, this often.
    pub status_interval: Option<Duration>,
    /// `--parse-only`.
    pub parse_only: bool,
    /// `--readonly`: refuse jobs that write or trim.
    pub readonly: bool,
    /// `--warnings-fatal`.
    pub warnings_fatal: bool,
    /// `--lenient`: unknown options are listed instead of refused.
    pub lenient: bool,
    /// `--max-jobs=`.
    pub max_jobs: Option<u32>,
    /// `--section=`, each.
    pub sections: Vec<String>,
    /// `--aux-path=`: folder of state files.
    pub aux_path: Option<String>,
    /// `--bandwidth-log[=FILE]`: aggregate bandwidth; `Some("")` is the default name.
    pub bandwidth_log: Option<String>,
    /// A request that runs no job.
    pub show: Option<Show>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            output: None,
            formats: vec![OutputFormat::Normal],
            terse_version: 3,
            append_terse: false,
            eta: Eta::Auto,
            eta_interval: Duration::from_secs(1),
            eta_newline: None,
            status_interval: None,
            parse_only: false,
            readonly: false,
            warnings_fatal: false,
            lenient: false,
            max_jobs: None,
            sections: Vec::new(),
            aux_path: None,
            bandwidth_log: None,
            show: None,
        }
    }
}

/// An option that the caller declared as its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnOption {
    /// Its name.
    pub name: String,
    /// Its value, if it takes one.
    pub value: Option<String>,
}

/// Everything a command line asked for.
///
/// Two plans are equal when they run the same: their remarks, which name places, are not compared.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Options of the whole run.
    pub run: RunOptions,
    /// Options given in global sections, in order.
    pub globals: Vec<Given>,
    /// The jobs in order, without their clones.
    pub jobs: Vec<Job>,
    /// The caller's own options, in order.
    pub own: Vec<OwnOption>,
    /// Unknown options of global sections that `--lenient` let pass.
    pub ignored: Vec<Ignored>,
    /// Remarks for standard error: options accepted without effect, and the like.
    pub notes: Vec<String>,
    /// What is legal but most likely not meant, for standard error.
    pub lints: Vec<Lint>,
    /// Where in the globals each global section starts.
    pub(crate) global_starts: Vec<usize>,
}

/// One thread of the run: a job or one of its clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobClone {
    /// Index into [`Plan::jobs`].
    pub job: usize,
    /// Number within the job, from 0.
    pub sub: u32,
    /// Number within the run, from 0.
    pub thread: u32,
    /// Reporting group.
    pub group: u32,
    /// Index of the report this clone is merged into.
    pub report: usize,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.run == other.run
            && self.globals == other.globals
            && self.jobs == other.jobs
            && self.own == other.own
            && self.ignored == other.ignored
    }
}

impl Plan {
    /// Every thread of the run in fio's order, with the report each is merged into.
    ///
    /// Neighbours of one group are merged when they ask for `group_reporting`; jobs with `stats=0` run
    /// but are left out of the count of reports, and get the index of the report before them.
    ///
    /// ```
    /// let plan = cairn_fio::parse_job_text("j", "[a]\nnumjobs=2\ngroup_reporting\n[b]\n")?;
    /// let reports: Vec<_> = plan.clones().iter().map(|c| c.report).collect();
    /// assert_eq!(reports, [0, 0, 1]);
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn clones(&self) -> Vec<JobClone> {
        let mut list = Vec::new();
        let mut report: Option<usize> = None;
        let mut last_group = None;
        let mut thread = 0;
        for (index, job) in self.jobs.iter().enumerate() {
            for sub in 0..job.control.numjobs {
                if job.report.stats {
                    let merge = job.report.group_reporting && last_group == Some(job.group);
                    if !merge {
                        report = Some(report.map_or(0, |n| n + 1));
                    }
                    last_group = Some(job.group);
                }
                list.push(JobClone {
                    job: index,
                    sub,
                    thread,
                    group: job.group,
                    report: report.unwrap_or(0),
                });
                thread += 1;
            }
        }
        list
    }

    /// The globals in force for a job.
    pub fn globals_of(&self, job: &Job) -> &[Given] {
        self.globals.get(job.globals.clone()).unwrap_or_default()
    }

    /// What JSON shows as `global options`.
    pub fn global_options(&self) -> Vec<(String, String)> {
        shown(&self.globals)
    }

    /// What was given for a job, globals included, the last of each name only, with its definition.
    pub fn effective(&self, job: &Job) -> Vec<(Given, &'static OptionDef)> {
        let mut list: Vec<(Given, &'static OptionDef)> = Vec::new();
        for given in self.globals_of(job).iter().chain(&job.given) {
            if let Some(def) = options::find(given.name) {
                list.retain(|(g, _)| g.name != given.name);
                list.push((given.clone(), def));
            }
        }
        list
    }

    /// The effective options of a tier that change the job from what it is by default.
    ///
    /// An engine asks for [`Tier::Next`] and refuses, by name, each it does not act on: so none that
    /// changes what is measured is dropped in silence.
    ///
    /// ```
    /// use cairn_fio::options::Tier;
    /// let plan = cairn_fio::parse_job_text("j", "[j]\nflow=2\nlat_percentiles=0\n")?;
    /// let named: Vec<_> = plan.changing(&plan.jobs[0], Tier::Next).iter().map(|(g, _)| g.name).collect();
    /// assert_eq!(named, ["flow"]);
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn changing(&self, job: &Job, tier: Tier) -> Vec<(Given, &'static OptionDef)> {
        let mut list = self.effective(job);
        list.retain(|(given, def)| def.tier == tier && def.changes(given.value.as_deref()));
        list
    }
}

impl Job {
    /// What JSON shows as `job options`: canonical names in the order given, without flags that stood
    /// alone.
    pub fn json_options(&self) -> Vec<(String, String)> {
        shown(&self.given)
    }
}

fn shown(list: &[Given]) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = Vec::new();
    for given in list {
        let Some(value) = &given.value else { continue };
        // JSON wants each key once: the last one counts, as it does for the job.
        shown.retain(|(name, _)| name != given.name);
        shown.push((given.name.to_owned(), value.clone()));
    }
    shown
}
