//! `cairn fio`: fio's own command line and job files, on a Cairn stack.

mod write;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cairn_fio::output::RunResult;
use cairn_fio::plan::{Eta, OwnOption, Plan, Show};
use cairn_fio::{Parser, options};
use cairn_lab::{FioError, FioOptions, On, Registry, run_fio};

use crate::cli::FioArgs;
use crate::exit::{DONE, FAILED, Failed};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;
use write::Writer;

/// What `cairn fio --help` says; the options themselves are fio's.
const HELP: &str = "\
Run fio's own command line and job files on a Cairn stack

Usage: cairn fio [fio options] [job options] [job files]

Cairn's own options:
  --stack SPEC       stack that the paths live on; by default a ram as large as the jobs need
  --map PATH=SPEC    another stack for paths that begin with PATH; repeatable
  --on file|device   paths are files of the file layer, or windows of the device
  --sample N         time one I/O in N, at random; counts stay exact
  --allow-exec       run the commands of exec_prerun and exec_postrun on this machine
  --lenient          list unknown options instead of refusing them

A path in a job is never opened on this machine unless --map says so.
fio's options: cairn fio --cmdhelp, --cmdhelp=OPTION, --enghelp, --enghelp=ENGINE
";

/// Runs the command.
pub(crate) fn run(args: FioArgs, registry: &Registry) -> anyhow::Result<u8> {
    let words = args
        .args
        .into_iter()
        .map(|word| {
            word.into_string()
                .map_err(|word| anyhow::anyhow!("{}: no UTF-8", Path::new(&word).display()))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let plan = Parser::new()
        .own_option("stack", true)
        .own_option("map", true)
        .own_option("on", true)
        .own_option("sample", true)
        .own_option("allow-exec", false)
        .command_line(&words)?;
    if let Some(show) = &plan.run.show {
        return shown(show, &plan);
    }
    for note in &plan.notes {
        output::note(note);
    }
    for lint in &plan.lints {
        output::note(&lint.to_string());
    }
    if plan.run.parse_only {
        return Ok(DONE);
    }
    if plan.jobs.is_empty() {
        bail!("no jobs: give a job file, or --name=NAME and its options");
    }
    execute(&plan, registry)
}

/// Answers a request that runs no job.
fn shown(show: &Show, plan: &Plan) -> anyhow::Result<u8> {
    let text = match show {
        Show::Help => HELP.to_owned(),
        Show::Version => format!(
            "cairn {} ({})\n",
            env!("CARGO_PKG_VERSION"),
            cairn_fio::output::FIO_VERSION
        ),
        Show::CmdHelp(None) => options::command_help(),
        Show::CmdHelp(Some(name)) if name == "all" => options::command_help(),
        Show::CmdHelp(Some(name)) => options::option_help(name)
            .with_context(|| format!("--cmdhelp={name}: no such option"))?,
        Show::EngHelp(engine) => options::engine_help(engine.as_deref()).with_context(|| {
            format!(
                "--enghelp={}: no such engine",
                engine.as_deref().unwrap_or("")
            )
        })?,
        Show::ShowCmd => plan.to_shell("cairn fio") + "\n",
        _ => bail!("this request is not known here"),
    };
    output::results(|out| out.write_all(text.as_bytes()))?;
    Ok(DONE)
}

/// Runs the jobs and writes their results.
fn execute(plan: &Plan, registry: &Registry) -> anyhow::Result<u8> {
    let own = own_options(&plan.own)?;
    let mut writer = Writer::new(&plan.run)?;
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    let eta = match plan.run.eta {
        Eta::Never => false,
        Eta::Always => true,
        Eta::Auto => io::stderr().is_terminal(),
    };
    let mut line = eta.then(|| Progress::redrawn(plan.run.eta_newline));
    let mut waiting = false;
    let mut progress = |progress: &cairn_lab::Progress| {
        if interrupt.code().is_some() && !waiting {
            waiting = true;
            output::note("ending: waiting for the I/Os under way; the same signal again aborts");
        }
        if let Some(line) = &mut line {
            line.update(|| progress.line.to_string());
        }
    };
    let mut broken: Option<anyhow::Error> = None;
    let mut status = |result: RunResult| {
        if broken.is_none() {
            broken = writer.write(&result).err();
        }
    };
    let mut logs: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let folder = plan
        .run
        .aux_path
        .as_deref()
        .map_or_else(PathBuf::new, PathBuf::from);
    let mut take_log =
        |name: &str, content: &[u8]| logs.push((folder.join(name), content.to_owned()));
    let result = run_fio(
        plan,
        FioOptions {
            stack: own.stack,
            map: own.map,
            on: own.on,
            sample: own.sample,
            allow_exec: own.allow_exec,
            cancel: Some(interrupt.flag()),
            progress: Some(&mut progress),
            progress_interval: plan.run.eta_interval,
            status: Some(&mut status),
            status_interval: plan.run.status_interval.unwrap_or_default(),
            logs: Some(&mut take_log),
            ..FioOptions::default()
        },
        registry,
        &mut output::note,
    )
    .map_err(begun)?;
    drop(line);
    if let Some(error) = broken {
        return Err(error);
    }
    writer.write(&result)?;
    writer.finish()?;
    for (path, content) in logs {
        fs::write(&path, content)
            .with_context(|| format!("{}: the file cannot be written", path.display()))
            .map_err(Failed)?;
    }
    let failed = result
        .jobs
        .iter()
        .any(|job| job.error != 0 || job.errors.is_some_and(|(count, _)| count > 0));
    Ok(interrupt
        .code()
        .unwrap_or(if failed { FAILED } else { DONE }))
}

/// Laying out files is work that had begun; every other refusal comes before it.
fn begun(error: FioError) -> anyhow::Error {
    match error {
        FioError::Layout { .. } | FioError::Thread(_) => Failed(error.into()).into(),
        _ => error.into(),
    }
}

/// Cairn's own options among fio's.
#[derive(Debug, Default, PartialEq)]
struct Own {
    stack: Option<String>,
    map: Vec<(String, String)>,
    on: Option<On>,
    sample: u32,
    allow_exec: bool,
}

fn own_options(given: &[OwnOption]) -> anyhow::Result<Own> {
    let mut own = Own::default();
    for option in given {
        let value = option.value.as_deref().unwrap_or("");
        match option.name.as_str() {
            name @ ("stack" | "on") if given.iter().filter(|o| o.name == name).count() > 1 => {
                bail!("--{name} is given more than once: give one, as only one can hold")
            }
            "stack" => own.stack = Some(value.to_owned()),
            "allow-exec" => own.allow_exec = true,
            "map" => match value.split_once('=') {
                Some((path, spec)) if !path.is_empty() => {
                    own.map.push((path.to_owned(), spec.to_owned()));
                }
                _ => {
                    bail!("--map={value}: write --map PATH=SPEC, as in --map /dev/nvme0n1=ram(4g)")
                }
            },
            "sample" => {
                let wrong = || format!("--sample={value}: give a whole number from 1 to 1000000");
                let n: u32 = value.parse().with_context(wrong)?;
                if n == 0 || n > 1_000_000 {
                    bail!("{}", wrong());
                }
                own.sample = n;
            }
            _ => {
                own.on = Some(match value {
                    "file" => On::File,
                    "device" => On::Device,
                    _ => bail!("--on={value}: write --on=file or --on=device"),
                });
            }
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, value: &str) -> anyhow::Result<Own> {
        own_options(&[OwnOption {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        }])
    }

    #[test]
    fn own_options_say_what_would_be_right() {
        assert_eq!(
            own("map", "/dev/a=ram(1g)").unwrap().map,
            [("/dev/a".to_owned(), "ram(1g)".to_owned())]
        );
        assert_eq!(own("on", "device").unwrap().on, Some(On::Device));
        assert!(
            own("map", "ram(1g)")
                .unwrap_err()
                .to_string()
                .contains("PATH=SPEC")
        );
        assert!(own("map", "=ram(1g)").is_err());
        let stack = |spec: &str| OwnOption {
            name: "stack".to_owned(),
            value: Some(spec.to_owned()),
        };
        let twice = own_options(&[stack("ram(1g)"), stack("ram(2g)")]).unwrap_err();
        assert!(
            twice
                .to_string()
                .contains("--stack is given more than once")
        );
        assert!(
            own("on", "disk")
                .unwrap_err()
                .to_string()
                .contains("--on=file")
        );
    }
}
