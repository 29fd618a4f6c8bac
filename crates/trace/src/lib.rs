#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod block;
mod command;
mod event;
mod info;
mod lenient;
mod model;
mod parse;
mod read;
mod replay;
mod report;
mod survey;

pub use command::{ReplayOptions, run_replay};
pub use event::{Device, EsEvent, Event, Mapping, Op, Task, Time};
pub use info::{InfoError, KernelInfo};
pub use lenient::LenientReplayer;
pub use model::{Model, Shrunk, cairn_model};
pub use parse::{ParseError, parse_line};
pub use read::{LONGEST_LINE, Lines, ReadError};
pub use replay::{ReplayError, Replayer};
pub use report::{
    Answer, Difference, Divergence, EntryReport, FileReport, InfoReport, RunReport, Tally, Totals,
};
pub use survey::{Settings, Survey};
