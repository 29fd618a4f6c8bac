//! The command line: what each command accepts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Compose a storage stack, run workloads on it, flip a policy and see what it does.
///
/// Without a command the dashboard opens on the scenario `mixed`; where stdout is no terminal the
/// same scenario runs for 5 s and a text summary is printed.
#[derive(Debug, Parser)]
#[command(
    name = "cairn",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The dashboard, live
    Dash(DashArgs),
    /// Run fio's own command line and job files on a Cairn stack
    #[command(disable_help_flag = true)]
    Fio(FioArgs),
    /// Run an AIM7 workload
    Aim7(Aim7Args),
    /// Replay kernel traces through the extent status cache, the kernel's answers as oracle
    Replay(ReplayArgs),
    /// Show what a stack spec means
    Stack(StackArgs),
    /// What exists, one line each
    List(ListArgs),
}

/// `cairn dash`.
#[derive(Debug, Args)]
pub(crate) struct DashArgs {
    /// A preset's name (see `cairn list scenarios`) or a path to a .toml file
    #[arg(default_value = "mixed")]
    pub(crate) scenario: String,
    /// Stack to use instead of the scenario's, client to media: `stats/delay(read=50us)/ram(1g)`
    #[arg(long, value_name = "SPEC")]
    pub(crate) stack: Option<String>,
    /// Run without a terminal and print a summary
    #[arg(long)]
    pub(crate) headless: bool,
    /// How long to run without a terminal, 5s by default; implies --headless
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Form of the summary without a terminal, text by default; implies --headless
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Colours of the dashboard; without it `NO_COLOR`, `COLORTERM` and `TERM` decide
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
}

impl DashArgs {
    /// What `cairn` without a command does.
    pub(crate) fn bare() -> Self {
        Self {
            scenario: "mixed".to_owned(),
            stack: None,
            headless: false,
            duration: None,
            format: None,
            color: Color::Auto,
            ascii: false,
        }
    }
}

/// Form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// Colours of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Color {
    /// What the environment says.
    #[default]
    Auto,
    /// Bold and reversed only.
    None,
    /// The terminal's own 16 colours.
    #[value(name = "16")]
    Sixteen,
    /// 256 colours.
    #[value(name = "256")]
    Palette,
    /// 24-bit colours.
    True,
}

/// `cairn fio`: everything is fio's, but for Cairn's own options.
#[derive(Debug, Args)]
pub(crate) struct FioArgs {
    /// fio's options and job files, and `--stack`, `--map`, `--on`, `--lenient`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

/// `cairn aim7`.
#[derive(Debug, Args)]
pub(crate) struct Aim7Args {
    /// The workload.
    #[command(subcommand)]
    pub(crate) workload: Aim7Workload,
}

/// The AIM7 workloads.
#[derive(Debug, Subcommand)]
pub(crate) enum Aim7Workload {
    /// Open a new file, close it, delete it; one job is 1000 times that
    CreatClo(CreatCloArgs),
}

/// `cairn aim7 creat-clo`.
#[derive(Debug, Args)]
pub(crate) struct CreatCloArgs {
    /// Tasks, each a thread (the kernel patch's benchmark used 3000)
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) tasks: u32,
    /// Jobs that each task runs (the kernel patch's benchmark used 100)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) loops: u32,
    /// Run for this time instead of a number of loops: `10s`
    #[arg(long, value_name = "T", value_parser = duration, conflicts_with = "loops")]
    pub(crate) duration: Option<Duration>,
    /// Stack under the buffer cache
    #[arg(long, value_name = "SPEC")]
    pub(crate) stack: Option<String>,
    /// Which of the two loads of this name
    #[arg(long, value_enum, default_value_t = Variant::Patch)]
    pub(crate) variant: Variant,
    /// What the tasks work on
    #[arg(long, value_enum, default_value_t = On::Pattern)]
    pub(crate) on: On,
    /// How a hint bit that may be set already is set
    #[arg(long, value_name = "ARM", default_value = "check-first", value_parser = ["always-rmw", "check-first"])]
    pub(crate) flag_set: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The two loads called creat-clo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// Each time open a new file, close it, delete it.
    Patch,
    /// AIM's own: create and close one name 1000 times, then delete it; needs files.
    Aim7,
}

/// What creat-clo works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The measured sequence of buffer operations, without a file system.
    Pattern,
    /// Files of the file layer.
    File,
}

/// `cairn replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Traces, as text or .gz
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// The kernel's `es_shrinker_info` of the end of the trace, to be compared too
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_info: Option<PathBuf>,
    /// For traces that begin on a mounted file system or have lost events
    #[arg(long, conflicts_with = "expect_info")]
    pub(crate) lenient: bool,
    /// How `cache` treats what is there already; otherwise the trace decides
    #[arg(long, value_enum)]
    pub(crate) generation: Option<Generation>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How caching an extent treats entries that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Generation {
    /// Only into vacant ranges (Linux up to 6.18).
    Vacant,
    /// Over entries of the same kind (later kernels).
    Overwrite,
}

/// `cairn stack`.
#[derive(Debug, Args)]
pub(crate) struct StackArgs {
    /// What to do with the spec.
    #[command(subcommand)]
    pub(crate) action: StackAction,
}

/// What to do with a stack spec.
#[derive(Debug, Subcommand)]
pub(crate) enum StackAction {
    /// The tree with limits and capabilities at each level; checks limits, allocates nothing
    Explain(ExplainArgs),
}

/// `cairn stack explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The stack, client to media: `stats/delay(read=50us,p99=400us)/ram(4g)`
    pub(crate) spec: String,
    /// Print the tree as TOML
    #[arg(long, conflicts_with = "json")]
    pub(crate) toml: bool,
    /// Print the tree as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `cairn list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: What,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Presets for `cairn dash`.
    Scenarios,
    /// Switches that flip live.
    Policies,
    /// Devices and layers of a stack spec.
    Layers,
    /// I/O engines of `cairn fio`.
    Engines,
}

/// Reads a time that something is to last.
fn duration(text: &str) -> Result<Duration, String> {
    let time = cairn_lab::parse_duration(text)?;
    if time.is_zero() {
        return Err("the time must be longer than 0".to_owned());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_lasts_longer_than_nothing() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("0s").is_err());
        assert!(duration("5").is_err());
    }
}
