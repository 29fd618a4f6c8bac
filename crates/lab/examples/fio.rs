//! Runs a fio command line on a stack: `cargo run --release -p cairn-lab --example fio -- --rw=randwrite --size=64m`.

use std::error::Error;
use std::io::{self, Write as _};

use cairn_lab::{FioOptions, Registry, run_fio};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        words = ["--name=demo", "--rw=randwrite", "--bs=4k", "--size=64m"]
            .map(str::to_owned)
            .to_vec();
    }
    let plan = cairn_fio::parse_command_line(&words)?;
    let mut notes = Vec::new();
    let result = run_fio(
        &plan,
        FioOptions::default(),
        &Registry::default(),
        &mut |n| notes.push(n.to_owned()),
    )?;
    for note in notes {
        writeln!(io::stderr(), "{note}")?;
    }
    for job in &result.jobs {
        for (name, side) in [
            ("read", &job.directions.read),
            ("write", &job.directions.write),
        ] {
            if side.total_ios > 0 {
                let seconds = side.runtime_ms.max(1) as f64 / 1e3;
                writeln!(
                    io::stdout(),
                    "{} {name}: {} I/Os, {:.1} kIOPS, mean latency {:.2} us, error {}",
                    job.jobname,
                    side.total_ios,
                    side.total_ios as f64 / seconds / 1e3,
                    side.clat.stats.mean() / 1e3,
                    job.error,
                )?;
            }
        }
    }
    Ok(())
}
