//! The options of a bench: how long, which groups, where the JSON goes.

use std::path::PathBuf;
use std::time::Duration;

/// How a bench measures.
///
/// ```
/// let options = cairn_rivals::Options::parse(["--rounds", "5", "hint"].map(String::from)).unwrap();
/// assert_eq!(options.rounds, 5);
/// assert_eq!(options.filter.as_deref(), Some("hint"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Samples of each arm at each thread count.
    pub rounds: u32,
    /// Timed part of a sample.
    pub sample: Duration,
    /// Where the JSON report goes besides stdout.
    pub json: Option<PathBuf>,
    /// Groups whose name contains this; all without it.
    pub filter: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rounds: 150,
            sample: Duration::from_micros(1200),
            json: None,
            filter: None,
        }
    }
}

impl Options {
    /// What the options mean.
    pub const USAGE: &str = "\
options: [--rounds N] [--sample-us N] [--quick] [--json FILE] [FILTER]
  --rounds N     samples of each arm at each thread count (150)
  --sample-us N  timed part of a sample, in microseconds (1200)
  --quick        3 short rounds: shows that it runs, its figures mean little
  --json FILE    write the report as JSON to FILE too
  FILTER         only groups whose name contains it";

    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// The message names the argument at fault and shows the usage.
    pub fn from_args() -> Result<Self, String> {
        Self::parse(std::env::args().skip(1))
    }

    /// Reads a list of arguments. Without cargo's `--bench` among them a test run was asked for,
    /// but only an explicit `--test` shortens the run.
    ///
    /// # Errors
    /// The message names the argument at fault and shows the usage.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = |what: &str| {
                let text = args.next().unwrap_or_default();
                match text.parse::<u32>() {
                    Ok(n) if n > 0 => Ok(n),
                    _ => Err(format!(
                        "{what} needs a number above 0, not `{text}`\n{}",
                        Self::USAGE
                    )),
                }
            };
            match arg.as_str() {
                "--bench" => {}
                "--rounds" => options.rounds = number("--rounds")?,
                "--sample-us" => {
                    options.sample = Duration::from_micros(number("--sample-us")?.into());
                }
                "--quick" | "--test" => {
                    options.rounds = 3;
                    options.sample = Duration::from_micros(200);
                }
                "--json" => match args.next() {
                    Some(file) => options.json = Some(file.into()),
                    None => return Err(format!("--json needs a file\n{}", Self::USAGE)),
                },
                flag if flag.starts_with('-') => {
                    return Err(format!("unknown option `{flag}`\n{}", Self::USAGE));
                }
                filter => options.filter = Some(filter.into()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        Options::parse(args.iter().map(ToString::to_string))
    }

    #[test]
    fn options_are_read_and_bad_ones_are_named() {
        let quick = parse(&["--bench", "--quick", "--json", "x.json"]).unwrap();
        assert_eq!(quick.rounds, 3);
        assert_eq!(quick.json, Some("x.json".into()));
        assert!(parse(&["--rounds", "0"]).unwrap_err().contains("`0`"));
        assert!(parse(&["--what"]).unwrap_err().contains("`--what`"));
        assert!(parse(&["--json"]).unwrap_err().contains("file"));
    }
}
