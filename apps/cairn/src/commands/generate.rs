//! `cairn generate`: completions and the manual page, from the definition of the command line.

use std::io;

use clap::CommandFactory as _;

use crate::cli::{Cli, GenerateArgs, GenerateWhat};
use crate::exit::DONE;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<u8> {
    let mut command = Cli::command();
    let mut text = Vec::new();
    match &args.what {
        GenerateWhat::Completions(args) => {
            clap_complete::generate(args.shell, &mut command, "cairn", &mut text);
        }
        GenerateWhat::Man => man(command, &mut text)?,
    }
    output::results(|out| out.write_all(&text))?;
    Ok(DONE)
}

/// One page: the program, and after it every command with its options.
fn man(command: clap::Command, text: &mut Vec<u8>) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    // Gives every command its full name, such as `cairn aim7 creat-clo`.
    command.build();
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut *text)?;
    commands(&command, text)
}

fn commands(of: &clap::Command, text: &mut Vec<u8>) -> io::Result<()> {
    for command in of.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        text.extend(format!(".SH {}\n", name.to_uppercase()).bytes());
        let about = command.get_about().map(ToString::to_string);
        text.extend(about.unwrap_or_default().bytes());
        text.push(b'\n');
        let page = clap_mangen::Man::new(command.clone());
        page.render_synopsis_section(&mut *text)?;
        if command.get_arguments().next().is_some() {
            page.render_options_section(&mut *text)?;
        }
        commands(command, text)?;
    }
    Ok(())
}
