//! `cairn ab`: two arms of a policy against each other.

use std::fmt::Write as _;

use anyhow::Context as _;
use cairn_lab::{Ab, Limits, Registry, run_ab};

use crate::cli::AbArgs;
use crate::exit::{DONE, FAILED, Failed};
use crate::interrupt::Interrupt;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: AbArgs, registry: &Registry) -> anyhow::Result<u8> {
    let interrupt = Interrupt::watch().context("cannot watch SIGINT and SIGTERM")?;
    let ab = Ab {
        command: command(&args),
        scenario: args.scenario,
        arms: args.arms,
        pairs: args.pairs as usize,
        run_time: args.run_time,
        warmup: args.warmup,
        mde: args.mde / 100.0,
        limits: Limits {
            steal: args.max_steal / 100.0,
            others: args.max_others / 100.0,
        },
        out: args.out,
        cancel: Some(interrupt.flag()),
        ..Ab::new(&args.policy)
    };
    let result = run_ab(&ab, registry, &mut output::note).map_err(|error| {
        if error.is_usage() {
            anyhow::Error::from(error)
        } else {
            Failed(error.into()).into()
        }
    })?;
    if args.json {
        output::json(&result)?;
    } else {
        output::results(|out| result.write_text(out))?;
    }
    let code = if result.usable { DONE } else { FAILED };
    Ok(interrupt.code().unwrap_or(code))
}

/// The line that repeats the comparison.
fn command(args: &AbArgs) -> String {
    let mut line = format!("cairn ab {}", args.policy);
    if let Some(scenario) = &args.scenario {
        // Writing to a String cannot fail.
        let _ = write!(line, " --scenario {scenario}");
    }
    if let Some([a, b]) = &args.arms {
        let _ = write!(line, " --arms {a},{b}");
    }
    let _ = write!(
        line,
        " --pairs {} --run-time {}ms --warmup {}ms",
        args.pairs,
        args.run_time.as_millis(),
        args.warmup.as_millis()
    );
    for (name, value, usual) in [
        ("mde", args.mde, 2.0),
        ("max-others", args.max_others, 5.0),
        ("max-steal", args.max_steal, 1.0),
    ] {
        if (value - usual).abs() > f64::EPSILON {
            let _ = write!(line, " --{name} {value}");
        }
    }
    line
}
