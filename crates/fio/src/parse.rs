//! Job files and command lines into a [`Plan`].

use std::fmt;
use std::io::Read;

use crate::error::{ParseError, ParseErrorKind};
use crate::plan::Plan;

mod args;
mod builder;
mod file;
mod finish;
mod keywords;
mod run_options;

pub use keywords::Keywords;

/// Longest line of a job file, as in fio.
pub const LINE_LIMIT: usize = 4096;

/// Includes nested deeper than this are refused.
pub const INCLUDE_LIMIT: usize = 16;

/// Largest job file that is read: far more than anybody writes, and an input without an end stops here.
pub const FILE_LIMIT: u64 = 16 << 20;

/// Reads a job file, `-` being standard input.
type ReadFile<'a> = Box<dyn Fn(&str) -> std::io::Result<Vec<u8>> + 'a>;
/// Looks up an environment variable.
type ReadEnv<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// A parser with its surroundings: files, environment, machine, and the caller's own options.
///
/// ```
/// use cairn_fio::Parser;
/// let plan = Parser::new()
///     .own_option("stack", true)
///     .command_line(["--stack", "ram(1g)", "--name=a", "--rw=randread"])?;
/// assert_eq!(plan.own[0].value.as_deref(), Some("ram(1g)"));
/// # Ok::<(), cairn_fio::ParseError>(())
/// ```
pub struct Parser<'a> {
    read: ReadFile<'a>,
    env: ReadEnv<'a>,
    keywords: Keywords,
    lenient: bool,
    own: Vec<(String, bool)>,
}

impl fmt::Debug for Parser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser")
            .field("keywords", &self.keywords)
            .field("lenient", &self.lenient)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

impl Default for Parser<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Parser<'a> {
    /// A parser of this machine: real files, the process's environment.
    pub fn new() -> Self {
        Self {
            read: Box::new(read_file),
            env: Box::new(|name| std::env::var(name).ok()),
            keywords: Keywords::of_this_machine(),
            lenient: false,
            own: Vec::new(),
        }
    }

    /// Takes files from `read` instead of the file system.
    #[must_use]
    pub fn files(mut self, read: impl Fn(&str) -> std::io::Result<Vec<u8>> + 'a) -> Self {
        self.read = Box::new(read);
        self
    }

    /// Takes variables from `env` instead of the process's environment.
    #[must_use]
    pub fn environment(mut self, env: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.env = Box::new(env);
        self
    }

    /// Replaces what `$ncpus` and its like stand for.
    #[must_use]
    pub const fn keywords(mut self, keywords: Keywords) -> Self {
        self.keywords = keywords;
        self
    }

    /// Lists unknown options instead of refusing them.
    #[must_use]
    pub const fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Declares an option of the command line that is the caller's; it ends up in [`Plan::own`].
    #[must_use]
    pub fn own_option(mut self, name: &str, takes_value: bool) -> Self {
        self.own.push((name.to_owned(), takes_value));
        self
    }

    /// Parses a command line, without the program's name.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn command_line<I, S>(&self, args: I) -> Result<Plan, ParseError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let words: Vec<String> = args
            .into_iter()
            .map(|word| word.as_ref().to_owned())
            .collect();
        args::parse(self, &words)
    }

    /// Parses one job file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn job_file(&self, path: &str) -> Result<Plan, ParseError> {
        let mut builder = builder::Builder::new(self);
        file::parse_path(&mut builder, path)?;
        builder.finish()
    }

    /// Parses the text of a job file; `name` stands for the file in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn job_text(&self, name: &str, text: &str) -> Result<Plan, ParseError> {
        let mut builder = builder::Builder::new(self);
        file::parse_text(&mut builder, name, text.as_bytes())?;
        builder.finish()
    }

    fn load(&self, path: &str) -> Result<Vec<u8>, ParseError> {
        (self.read)(path).map_err(|error| {
            let kind = ParseErrorKind::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            };
            ParseError::new(crate::Location::Whole, kind)
        })
    }
}

fn read_file(path: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == "-" {
        let stdin = std::io::stdin().lock();
        stdin.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(path)?;
        file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > FILE_LIMIT {
        let what = format!(
            "longer than {} MiB; a job file has some lines",
            FILE_LIMIT >> 20
        );
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Parses a fio command line, without the program's name, on this machine.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse_command_line<I, S>(args: I) -> Result<Plan, ParseError>
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    Parser::new().command_line(args)
}

/// Parses a job file; `-` is standard input.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse_job_file(path: &str) -> Result<Plan, ParseError> {
    Parser::new().job_file(path)
}

/// Parses the text of a job file; `name` stands for the file in messages.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse_job_text(name: &str, text: &str) -> Result<Plan, ParseError> {
    Parser::new().job_text(name, text)
}
