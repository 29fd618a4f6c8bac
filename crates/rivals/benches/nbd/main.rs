//! Cairn's NBD server beside nbdkit and qemu-nbd, under fio's nbd engine and nbdcopy.
//!
//! `cargo bench -p cairn-rivals --bench nbd [-- [--rounds N] [--json FILE] [FILTER]]`
//!
//! Each server is a process of its own on a Unix socket. Before each cell every export of every arm is written
//! and read once, for memory that was idle is slow. The arms take turns within a round, each round beginning with another
//! one; a bar is the median of the ratios of the rounds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a bench ends with a message when something is missing, and exports nothing"
)]

mod client;
mod report;
mod server;

use std::io::{self, Write as _};
use std::process::ExitCode;

use report::Row;
use server::{Arm, Server};

/// Size of the exports that are read and written at random.
const SMALL: &str = "64m";
/// Size of the exports that are copied.
const LARGE: &str = "2g";
/// Rounds of cells that have no bar.
const SHOWN: u32 = 3;
/// Name of the copies' cells.
const COPY: &str = "nbdcopy 2 GiB, MiB/s";

/// Random 4 KiB requests of one kind.
struct Cell {
    rw: &'static str,
    depth: u32,
    jobs: u32,
}

impl Cell {
    fn name(&self) -> String {
        format!("{} depth {} jobs {}", self.rw, self.depth, self.jobs)
    }
}

struct Args {
    rounds: u32,
    json: Option<String>,
    filter: Option<String>,
}

fn args() -> Result<Args, String> {
    let mut all = Args {
        rounds: 8,
        json: None,
        filter: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(arg) = given.next() {
        match arg.as_str() {
            "--bench" => {}
            "--quick" | "--test" => all.rounds = 1,
            "--rounds" => {
                all.rounds = given
                    .next()
                    .and_then(|n| n.parse().ok())
                    .filter(|n| *n > 0)
                    .ok_or("--rounds needs a number above 0")?;
            }
            "--json" => all.json = Some(given.next().ok_or("--json needs a file")?),
            flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
            filter => all.filter = Some(filter.to_owned()),
        }
    }
    Ok(all)
}

fn main() -> ExitCode {
    // This program is the server too, in a process of its own.
    let mut given = std::env::args().skip(1);
    if given.next().as_deref() == Some("--serve") {
        server::serve(&given.next().unwrap(), &given.next().unwrap());
        return ExitCode::SUCCESS;
    }
    let args = match args() {
        Ok(args) => args,
        Err(why) => {
            let _ = writeln!(
                io::stderr(),
                "{why}: [--rounds N] [--quick] [--json FILE] [FILTER]"
            );
            return ExitCode::from(2);
        }
    };
    match measure(&args) {
        Ok(rows) => {
            let mut out = io::stdout().lock();
            let held = report::print(&mut out, &rows);
            if let Some(file) = &args.json {
                std::fs::write(file, report::json(&rows)).expect("the file can be written");
            }
            if held {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(why) => {
            let _ = writeln!(io::stdout(), "skipped: {why}");
            ExitCode::SUCCESS
        }
    }
}

fn measure(args: &Args) -> Result<Vec<Row>, String> {
    client::needs("fio")?;
    let wanted = |name: &str| {
        args.filter
            .as_ref()
            .is_none_or(|f| name.contains(f.as_str()))
    };
    let mut rows = Vec::new();
    let cells: Vec<Cell> = [1, 4]
        .into_iter()
        .flat_map(|jobs| [1, 64].map(|depth| (jobs, depth)))
        .flat_map(|(jobs, depth)| ["randread", "randwrite"].map(|rw| Cell { rw, depth, jobs }))
        .filter(|cell| wanted(&cell.name()))
        .collect();
    if !cells.is_empty() {
        let servers = start_all(&Arm::ALL, SMALL)?;
        let servers: Vec<&Server> = servers.iter().collect();
        for cell in &cells {
            for server in &servers {
                warm(server)?;
            }
            let rounds = match (cell.jobs, cell.depth) {
                // One wake-up after the other: on which CPUs they happen to be makes the widest spread.
                (1, 1) => 2 * args.rounds,
                (1, _) => args.rounds,
                // Cells without a bar are shown from fewer rounds.
                _ => args.rounds.min(SHOWN),
            };
            rows.extend(turns(&cell.name(), &servers, rounds, |uris| {
                client::fio(uris, cell.rw, cell.depth, cell.jobs)
            }));
        }
    }
    if wanted("nbdcopy") && client::needs("nbdcopy").is_ok() {
        copies(args.rounds, &mut rows)?;
    }
    Ok(rows)
}

/// Starts the servers whose programs are there.
fn start_all(arms: &[Arm], size: &str) -> Result<Vec<Server>, String> {
    let mut all = Vec::new();
    for arm in arms {
        match Server::start(*arm, size) {
            Ok(server) => all.push(server),
            Err(why) if matches!(arm, Arm::CairnRam | Arm::CairnNull) => return Err(why),
            Err(why) => {
                let _ = writeln!(io::stderr(), "skipped: {why}");
            }
        }
    }
    Ok(all)
}

fn warm(server: &Server) -> Result<(), String> {
    client::warm(&server.uri()).map_err(|e| format!("{}: {e}", server.arm.name()))
}

/// Measures servers in turns, each round beginning with another one.
fn turns(
    cell: &str,
    servers: &[&Server],
    rounds: u32,
    measure: impl Fn(&[String]) -> Vec<Option<f64>>,
) -> Vec<Row> {
    let mut rows: Vec<Row> = servers.iter().map(|s| Row::new(cell, s.arm)).collect();
    for round in 0..rounds as usize {
        let first = round % servers.len();
        let mut uris: Vec<String> = servers.iter().map(|s| s.uri()).collect();
        uris.rotate_left(first);
        let mut seen = measure(&uris);
        seen.rotate_right(first);
        for (row, seen) in rows.iter_mut().zip(seen) {
            row.seen.push(seen);
        }
    }
    let _ = writeln!(io::stderr(), "{cell}: done");
    rows
}

/// Copies a full export to nowhere, beside one rival at a time for the memory it takes.
fn copies(rounds: u32, rows: &mut Vec<Row>) -> Result<(), String> {
    let ours = Server::start(Arm::CairnRam, LARGE)?;
    warm(&ours)?;
    for rival in [Arm::Nbdkit, Arm::NbdkitMalloc, Arm::QemuNbd] {
        let servers = start_all(&[rival], LARGE)?;
        let Some(other) = servers.first() else {
            continue;
        };
        warm(other)?;
        let cell = format!("{COPY}, {}", rival.name());
        rows.extend(turns(&cell, &[&ours, other], rounds.min(SHOWN), |uris| {
            uris.iter().map(|uri| client::copy(uri)).collect()
        }));
    }
    Ok(())
}
