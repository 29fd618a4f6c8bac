//! `cairn aim7`: the AIM7 workloads.

use anyhow::Context as _;
use cairn_lab::{CreatClo, Registry, Variant, prepare_creat_clo};

use crate::cli::{self, Aim7Args, Aim7Workload, CreatCloArgs};
use crate::exit::{self, DONE};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(args: Aim7Args, registry: &Registry) -> anyhow::Result<u8> {
    let Aim7Workload::CreatClo(args) = args.workload;
    creat_clo(args, registry)
}

fn creat_clo(args: CreatCloArgs, registry: &Registry) -> anyhow::Result<u8> {
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    let length = args.duration.map_or_else(
        || format!("{} jobs each", args.loops),
        |time| format!("{time:?}"),
    );
    let ready = prepare_creat_clo(
        &CreatClo {
            tasks: args.tasks as usize,
            loops: args.loops,
            duration: args.duration,
            variant: match args.variant {
                cli::Variant::Patch => Variant::Patch,
                cli::Variant::Aim7 => Variant::Aim7,
            },
            stack: args.stack,
            on: match args.on {
                cli::On::Pattern => None,
                cli::On::File => Some(cairn_lab::On::File),
            },
            policies: vec![("flag-set".to_owned(), args.flag_set)],
            cancel: Some(interrupt.flag()),
        },
        registry,
    )
    .map_err(exit::of_lab)?;
    if args.on == cli::On::File {
        output::note("file layer: ext4");
    }
    let progress = Progress::start(&format!(
        "running creat-clo: {} tasks, {length}",
        args.tasks
    ));
    let result = ready.run().map_err(exit::of_lab)?;
    drop(progress);
    if args.json {
        output::json(&result)?;
    } else {
        output::results(|out| result.write_text(out))?;
    }
    Ok(interrupt.code().unwrap_or(DONE))
}
