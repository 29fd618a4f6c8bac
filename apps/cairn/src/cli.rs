//! The command line: what each command accepts.

mod image;
mod nbd;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

pub(crate) use image::{GetArgs, ImageAction, ImageArgs, ImageFile, ImagePath, MkfsArgs, PutArgs};
pub(crate) use nbd::{NbdAction, NbdArgs, ServeArgs, Tls};

/// Compose a storage stack, run workloads on it, flip a policy and see what it does.
///
/// Without a command the dashboard opens on the scenario `mixed`; where stdout is no terminal the
/// same scenario runs for 5 s and a text summary is printed. Colours, characters, mouse, frames a second and
/// that scenario can be set in a configuration file; `cairn config print` shows it in full.
#[derive(Debug, Parser)]
#[command(
    name = "cairn",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Configuration to read instead of `$XDG_CONFIG_HOME/cairn/config.toml`; `cairn dash` has it too
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
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
    /// Compare two arms of a policy in interleaved pairs
    Ab(AbArgs),
    /// Make the report of a run directory, or print what it holds
    Report(ReportArgs),
    /// Two run directories side by side, for looking only
    Compare(CompareArgs),
    /// Replay kernel traces through the extent status cache, the kernel's answers as oracle
    Replay(ReplayArgs),
    /// Make, look into, fill and check ext4 file systems in image files
    Image(ImageArgs),
    /// Show what a stack spec means
    Stack(StackArgs),
    /// Serve stacks to NBD clients: the kernel's, qemu's, nbdcopy, fio
    Nbd(NbdArgs),
    /// What exists, one line each
    List(ListArgs),
    /// Completions for a shell, or the manual page
    Generate(GenerateArgs),
    /// The configuration
    Config(ConfigArgs),
}

/// `cairn generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// What to generate.
    #[command(subcommand)]
    pub(crate) what: GenerateWhat,
}

/// What can be generated.
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateWhat {
    /// Completions, to be sourced by the shell
    Completions(CompletionsArgs),
    /// The manual page, for `man -l -`
    Man,
}

/// `cairn generate completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    pub(crate) shell: clap_complete::Shell,
}

/// `cairn config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What to do with the configuration.
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print it in full, as a file would hold it
    Print(ConfigPrintArgs),
}

/// `cairn config print`.
#[derive(Debug, Args)]
pub(crate) struct ConfigPrintArgs {
    /// File to read instead of `$XDG_CONFIG_HOME/cairn/config.toml`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// `cairn dash`.
#[derive(Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options of a command line, each given or not"
)]
pub(crate) struct DashArgs {
    /// A preset's name (see `cairn list scenarios`), a path to a .toml file, or the directory of a recorded run [default: mixed]
    pub(crate) scenario: Option<String>,
    /// Stack to use instead of the scenario's, client to media: `stats/delay(read=50us)/ram(1g)`
    #[arg(long, value_name = "SPEC")]
    pub(crate) stack: Option<String>,
    /// Run without a terminal and print a summary
    #[arg(long)]
    pub(crate) headless: bool,
    /// How long to run without a terminal, 5s by default; implies --headless
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Form of the results without a terminal, text by default; implies --headless
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Lines of text instead of a screen, for screen readers and logs: one a second and one an event
    #[arg(long, conflicts_with_all = ["headless", "format"])]
    pub(crate) plain: bool,
    /// Colours of the dashboard; without it the configuration, `NO_COLOR`, `COLORTERM` and `TERM` decide
    #[arg(long, value_enum)]
    pub(crate) color: Option<Color>,
    /// Draw with ASCII characters only, as on the Linux console or in a locale that is not UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Take mouse events: a click focuses a panel or switches a policy, the wheel zooms time
    #[arg(long)]
    pub(crate) mouse: bool,
    /// Write the run to this directory, new or empty, when it ends
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Serve metrics as OpenMetrics text on this loopback address, such as 127.0.0.1:9187
    #[arg(long, value_name = "ADDR", value_parser = loopback)]
    pub(crate) listen: Option<SocketAddr>,
    /// Write the same metrics to this file once a second, for a textfile collector
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Configuration to read instead of `$XDG_CONFIG_HOME/cairn/config.toml`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// One JSON object a sample, as it comes.
    Jsonl,
    /// One line a sample and workload, as it comes.
    Csv,
}

/// Colours of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Color {
    /// What the environment says.
    #[default]
    Auto,
    /// Bold and reversed only.
    None,
    /// The terminal's own 16 colours.
    #[value(name = "16")]
    #[serde(rename = "16")]
    Sixteen,
    /// 256 colours.
    #[value(name = "256")]
    #[serde(rename = "256")]
    Palette,
    /// 24-bit colours.
    True,
}

impl Color {
    /// The word that chooses it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Sixteen => "16",
            Self::Palette => "256",
            Self::True => "true",
        }
    }
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
    /// Stack under the buffer cache; by default ram
    #[arg(long, value_name = "SPEC")]
    pub(crate) stack: Option<String>,
    /// Which of the two loads of this name
    #[arg(long, value_enum, default_value_t = Variant::Patch)]
    pub(crate) variant: Variant,
    /// What the tasks work on
    #[arg(long, value_enum, default_value_t = On::File)]
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

/// `cairn ab`.
#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    /// Policy to switch (see `cairn list policies`)
    pub(crate) policy: String,
    /// A preset's name or a path to a .toml file; by default the one that the policy was made for
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// Both arms; by default the first two of the policy
    #[arg(long, value_name = "A,B", value_parser = two_arms)]
    pub(crate) arms: Option<[String; 2]>,
    /// Pairs to keep; fixed before the first run
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) pairs: u32,
    /// Measured time of a run
    #[arg(long, value_name = "T", value_parser = duration, default_value = "1.5s")]
    pub(crate) run_time: Duration,
    /// Time before it that is left out
    #[arg(long, value_name = "T", value_parser = cairn_lab::parse_duration, default_value = "500ms")]
    pub(crate) warmup: Duration,
    /// Smallest interesting difference, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub(crate) mde: f64,
    /// Share of the CPUs in use that other processes may take from a run, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub(crate) max_others: f64,
    /// Share that the hypervisor may take, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub(crate) max_steal: f64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// New folder for plan, runs, data and report
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// `cairn report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory
    pub(crate) dir: PathBuf,
    /// html rewrites report.html in it, the others print
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub(crate) format: ReportFormat,
}

/// `cairn compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The first run directory
    pub(crate) first: PathBuf,
    /// The second
    pub(crate) second: PathBuf,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page without a script.
    Html,
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// Reads `A,B`.
fn two_arms(text: &str) -> Result<[String; 2], String> {
    match text
        .split(',')
        .map(str::trim)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok([(*a).to_owned(), (*b).to_owned()]),
        _ => {
            Err("give both arms with a comma between them, as in always-rmw,check-first".to_owned())
        }
    }
}

/// Reads a share in percent.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(x) if (0.0..=100.0).contains(&x) => Ok(x),
        _ => Err("give a number of percent from 0 to 100".to_owned()),
    }
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

/// Reads an address that only this machine can reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:9187".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("metrics are served to this machine only: take 127.0.0.1 or [::1]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every option of every command is named in the README.
    #[test]
    fn the_readme_names_every_option() {
        fn missing(command: &clap::Command, to: &mut Vec<String>) {
            let readme = include_str!("../README.md");
            let longs = command.get_arguments().filter_map(clap::Arg::get_long);
            let named = |long: &&str| {
                let option = format!("--{long}");
                let mut found = readme.match_indices(&option);
                let ends = |at: usize| {
                    let rest = readme.get(at + option.len()..).unwrap_or("");
                    !rest.starts_with(|c: char| c == '-' || c.is_alphanumeric())
                };
                ["help", "version"].contains(long) || found.any(|(at, _)| ends(at))
            };
            let unnamed = longs.filter(|long| !named(long));
            to.extend(unnamed.map(|long| format!("{} --{long}", command.get_name())));
            for command in command.get_subcommands() {
                missing(command, to);
            }
        }
        let mut all = Vec::new();
        missing(&Cli::command(), &mut all);
        assert_eq!(all, Vec::<String>::new());
    }

    #[test]
    fn a_configuration_can_be_named_without_a_command() {
        let cli = Cli::try_parse_from(["cairn", "--config", "mine.toml"]).unwrap();
        assert_eq!(
            cli.config.as_deref(),
            Some(std::path::Path::new("mine.toml"))
        );
        assert!(cli.command.is_none());
        assert!(Cli::try_parse_from(["cairn", "--config", "mine.toml", "ab", "batch"]).is_err());
    }

    #[test]
    fn a_run_lasts_longer_than_nothing() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("0s").is_err());
        assert!(duration("5").is_err());
    }

    #[test]
    fn metrics_stay_on_this_machine() {
        assert!(loopback("127.0.0.1:0").is_ok() && loopback("[::1]:9187").is_ok());
        assert!(
            loopback("0.0.0.0:9187")
                .unwrap_err()
                .contains("this machine")
        );
        assert!(loopback("localhost").unwrap_err().contains("port"));
    }

    #[test]
    fn the_word_of_a_colour_chooses_it() {
        for color in Color::value_variants() {
            let word = color.to_possible_value().unwrap();
            assert_eq!(word.get_name(), color.word());
        }
    }
}
