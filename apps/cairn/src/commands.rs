//! One file per command.

mod ab;
mod aim7;
mod compare;
mod config;
mod dash;
mod fio;
mod generate;
mod image;
mod list;
mod nbd;
mod replay;
mod report;
mod stack;

use cairn_lab::Registry;

use crate::cli::{Cli, Command, DashArgs};

/// Runs a command and returns the exit code.
pub(crate) fn run(cli: Cli, registry: &Registry) -> anyhow::Result<u8> {
    match cli.command {
        None => {
            let args = DashArgs {
                config: cli.config,
                ..DashArgs::default()
            };
            dash::run(&args, registry)
        }
        Some(Command::Dash(args)) => dash::run(&args, registry),
        Some(Command::Fio(args)) => fio::run(args, registry),
        Some(Command::Aim7(args)) => aim7::run(args, registry),
        Some(Command::Ab(args)) => ab::run(args, registry),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Image(args)) => image::run(&args),
        Some(Command::Stack(args)) => stack::run(&args, registry),
        Some(Command::Nbd(args)) => nbd::run(args, registry),
        Some(Command::List(args)) => list::run(&args, registry),
        Some(Command::Generate(args)) => generate::run(&args),
        Some(Command::Config(args)) => config::run(&args),
    }
}
