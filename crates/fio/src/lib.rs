#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod lint;
mod print;
mod words;

pub mod error;
pub mod iolog;
pub mod job;
pub mod options;
pub mod output;
pub mod parse;
pub mod plan;
pub mod value;

pub use error::{Location, ParseError, ParseErrorKind};
pub use job::Job;
pub use lint::{Lint, LintCode};
pub use parse::{Parser, parse_command_line, parse_job_file, parse_job_text};
pub use plan::{Given, OutputFormat, Plan, RunOptions};
pub use print::PrintError;
