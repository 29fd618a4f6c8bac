//! `cairn replay`: kernel traces through the extent status cache.

use std::io::{self, IsTerminal as _};

use cairn_extents::Generation;
use cairn_trace::{ReplayOptions, run_replay};

use crate::cli::{self, ReplayArgs};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    let options = ReplayOptions {
        expect_info: args.expect_info.clone(),
        lenient: args.lenient,
        json: args.json,
        generation: args.generation.map(|generation| match generation {
            cli::Generation::Vacant => Generation::VacantOnly,
            cli::Generation::Overwrite => Generation::Overwrite,
        }),
        progress: io::stderr().is_terminal(),
    };
    let mut code = 0;
    output::results(|out| {
        code = run_replay(&args.traces, &options, out, &mut io::stderr())?;
        Ok(())
    })?;
    Ok(code)
}
