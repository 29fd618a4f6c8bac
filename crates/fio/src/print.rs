//! A plan back into a job file or a command line.

use std::fmt::{self, Write};

use crate::error::Location;
use crate::plan::{Given, Plan};

/// A plan that no job file, or no command line, can express.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrintError {
    /// A value with a comment sign, a line end, a blank at its end or a variable.
    Value {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A name that cannot stand in brackets.
    Section {
        /// The name.
        name: String,
    },
    /// `kb_base` in the middle of a command line holds for what follows only; a file's holds for its
    /// whole section.
    Base,
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { option, value } => write!(
                f,
                "{option}={value:?} cannot stand in a job file: it has a comment sign, a line end, a blank at its end or a variable"
            ),
            Self::Section { name } => {
                write!(
                    f,
                    "{name:?} cannot be the name of a section: 1 to 255 characters without ] at the end, ; and #"
                )
            }
            Self::Base => f.write_str("kb_base must come first among the options of its section"),
        }
    }
}

impl std::error::Error for PrintError {}

/// A run of options under one heading.
struct Block<'p> {
    heading: &'p str,
    /// Globals of several files, which have no section of their own.
    inherited: &'p [Given],
    options: &'p [Given],
    /// The wall between two files, which no option asked for.
    wall: bool,
}

impl Block<'_> {
    fn is_global(&self) -> bool {
        self.heading.starts_with("global")
    }

    fn all(&self) -> impl Iterator<Item = &Given> {
        self.inherited.iter().chain(self.options)
    }
}

impl Plan {
    /// The jobs as one job file, with includes, variables and expressions filled in.
    ///
    /// Reading it again gives equal jobs and globals. Jobs of several files carry the globals of their own
    /// file in their own section.
    ///
    /// ```
    /// let plan = cairn_fio::parse_job_text("a", "[global]\nbs=(2*4k)\n[j]\nrw=randread # comment\n")?;
    /// let text = plan.to_job_file()?;
    /// assert_eq!(text, "[global]\nbs=(2*4k)\n\n[j]\nrw=randread\n");
    /// assert_eq!(cairn_fio::parse_job_text("b", &text)?, plan);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What only a command line can express.
    pub fn to_job_file(&self) -> Result<String, PrintError> {
        let mut text = String::new();
        for block in self.blocks() {
            check_section(block.heading)?;
            check_base(&block)?;
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "[{}]", block.heading);
            for given in block.all() {
                check_value(given)?;
                let _ = match &given.value {
                    Some(value) => writeln!(text, "{}={value}", given.name),
                    None => writeln!(text, "{}", given.name),
                };
            }
            if block.wall {
                text.push_str("stonewall\n");
            }
        }
        Ok(text)
    }

    /// The jobs as words of a command line, globals included, each at its place.
    ///
    /// A job that was renamed keeps its new name; what its section was called is lost.
    ///
    /// ```
    /// let plan = cairn_fio::parse_job_text("a", "[global]\nbs=8k\n[j]\nrw=randread\n")?;
    /// assert_eq!(plan.to_arguments(), ["--name=global", "--bs=8k", "--name=j", "--rw=randread"]);
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn to_arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        for block in self.blocks() {
            let mut names = block
                .options
                .iter()
                .rev()
                .filter(|g| g.name == "name" && !block.is_global());
            let renamed = names.find_map(|g| g.value.as_deref());
            words.push(format!("--name={}", renamed.unwrap_or(block.heading)));
            let own = block.options.iter().filter(|g| g.name != "name");
            let (base, others): (Vec<_>, Vec<_>) = own.partition(|g| g.name == "kb_base");
            for given in block.inherited.iter().chain(base).chain(others) {
                words.push(match &given.value {
                    Some(value) => format!("--{}={value}", given.name),
                    None => format!("--{}", given.name),
                });
            }
            if block.wall {
                words.push("--stonewall".to_owned());
            }
        }
        words
    }

    /// [`Plan::to_arguments`] as one line for a shell, behind the name of a program: `--showcmd`.
    pub fn to_shell(&self, program: &str) -> String {
        let words = self.to_arguments();
        let quoted = words.iter().map(|word| quote(word));
        std::iter::once(program.to_owned())
            .chain(quoted)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut printed = 0;
        // What holds for the jobs of one of several files cannot stand in a global section of one.
        let several = self.jobs.iter().any(|job| job.globals.start > 0);
        for job in &self.jobs {
            if !several {
                self.global_blocks(&mut blocks, printed, job.globals.end);
                printed = printed.max(job.globals.end);
            }
            let globals = self.globals_of(job);
            let asked = globals
                .iter()
                .chain(&job.given)
                .any(|g| g.name == "stonewall");
            blocks.push(Block {
                heading: &job.section,
                inherited: if several { globals } else { &[] },
                options: &job.given,
                wall: job.control.stonewall && !asked,
            });
        }
        if !several {
            self.global_blocks(&mut blocks, printed, self.globals.len());
        }
        blocks
    }

    /// The globals from .. to, each section apart: its engine's options belong to its own engine.
    fn global_blocks<'p>(&'p self, blocks: &mut Vec<Block<'p>>, from: usize, to: usize) {
        let inner = self
            .global_starts
            .iter()
            .copied()
            .filter(|start| *start > from && *start < to);
        let mut edges: Vec<usize> = std::iter::once(from).chain(inner).chain([to]).collect();
        edges.dedup();
        for pair in edges.windows(2) {
            if let [start, end] = *pair
                && let Some(options) = self.globals.get(start..end).filter(|list| !list.is_empty())
            {
                blocks.push(Block {
                    heading: "global",
                    inherited: &[],
                    options,
                    wall: false,
                });
            }
        }
    }
}

fn check_section(name: &str) -> Result<(), PrintError> {
    let good = !name.is_empty()
        && name.len() <= 255
        && !name.contains([';', '#', '\n'])
        && !name.contains(char::is_control);
    if good {
        Ok(())
    } else {
        Err(PrintError::Section {
            name: name.to_owned(),
        })
    }
}

fn check_base(block: &Block<'_>) -> Result<(), PrintError> {
    let late = block.all().enumerate().any(|(index, given)| {
        let in_order = matches!(given.at, Location::Argument { .. }) || !block.inherited.is_empty();
        given.name == "kb_base" && index > 0 && in_order
    });
    if late { Err(PrintError::Base) } else { Ok(()) }
}

fn check_value(given: &Given) -> Result<(), PrintError> {
    let Some(value) = given.value.as_deref() else {
        return Ok(());
    };
    let outer = value.trim_end_matches(|c: char| c.is_whitespace() || c.is_control());
    let variable = ["${", "$pagesize", "$mb_memory", "$ncpus"]
        .iter()
        .any(|v| value.contains(v));
    let fits = given.name.len() + value.len() + 2 < crate::parse::LINE_LIMIT;
    if outer == value && !value.contains([';', '#', '\n']) && !variable && fits {
        Ok(())
    } else {
        Err(PrintError::Value {
            option: given.name,
            value: value.to_owned(),
        })
    }
}

/// A word that a POSIX shell reads back as it is.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
