//! Cairn's NBD server beside nbdkit and qemu-nbd, under fio's nbd engine and nbdcopy.
//!
//! `cargo bench -p cairn-rivals --bench nbd [-- [--rounds N] [--json FILE] [FILTER]]`
//!
//! Each server is a process of its own on a Unix socket, filled before anything is measured. The arms
//! take turns within a round, and a cell is the median of its rounds; the bars are ratios of medians.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a bench ends with a message when something is missing, and exports nothing"
)]

mod client;
mod server;

use std::io::{self, Write as _};
use std::process::ExitCode;

use server::{Arm, Server};

/// Size of the exports that are read and written at random.
const SMALL: &str = "256m";
/// Size of the exports that are copied.
const LARGE: &str = "2g";

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

/// What one arm reached in one cell, round by round.
struct Row {
    cell: String,
    arm: Arm,
    seen: Vec<f64>,
}

impl Row {
    fn median(&self) -> Option<f64> {
        let mut all = self.seen.clone();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }
}

struct Args {
    rounds: u32,
    json: Option<String>,
    filter: Option<String>,
}

fn args() -> Result<Args, String> {
    let mut all = Args {
        rounds: 5,
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
            let held = report(&mut out, &rows);
            if let Some(file) = &args.json {
                std::fs::write(file, json(&rows)).expect("the file can be written");
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
        for cell in &cells {
            fio_cell(cell, &servers, args.rounds, &mut rows);
        }
    }
    if wanted("nbdcopy") && client::needs("nbdcopy").is_ok() {
        copies(args.rounds, &mut rows)?;
    }
    Ok(rows)
}

/// Starts and fills the servers whose programs are there.
fn start_all(arms: &[Arm], size: &str) -> Result<Vec<Server>, String> {
    let mut all = Vec::new();
    for arm in arms {
        match Server::start(*arm, size) {
            Ok(server) => {
                if *arm != Arm::CairnNull {
                    client::fill(&server.uri());
                }
                all.push(server);
            }
            Err(why) if matches!(arm, Arm::CairnRam | Arm::CairnNull) => return Err(why),
            Err(why) => {
                let _ = writeln!(io::stderr(), "skipped: {why}");
            }
        }
    }
    Ok(all)
}

fn fio_cell(cell: &Cell, servers: &[Server], rounds: u32, rows: &mut Vec<Row>) {
    let name = cell.name();
    let first = rows.len();
    rows.extend(servers.iter().map(|s| Row {
        cell: name.clone(),
        arm: s.arm,
        seen: Vec::new(),
    }));
    for _ in 0..rounds {
        for (i, server) in servers.iter().enumerate() {
            let iops = client::fio(&server.uri(), cell.rw, cell.depth, cell.jobs);
            if let (Some(row), Some(iops)) = (rows.get_mut(first + i), iops) {
                row.seen.push(iops);
            }
        }
    }
    let _ = writeln!(io::stderr(), "{name}: done");
}

/// Copies a full export to nowhere, with one server at a time for the memory it takes.
fn copies(rounds: u32, rows: &mut Vec<Row>) -> Result<(), String> {
    for arm in [Arm::CairnRam, Arm::Nbdkit, Arm::NbdkitMalloc, Arm::QemuNbd] {
        let servers = start_all(&[arm], LARGE)?;
        let Some(server) = servers.first() else {
            continue;
        };
        let seen = (0..rounds)
            .filter_map(|_| client::copy(&server.uri()))
            .collect();
        rows.push(Row {
            cell: "nbdcopy 2 GiB, MiB/s".to_owned(),
            arm,
            seen,
        });
    }
    Ok(())
}

/// One bar: the ratio of Cairn on RAM over a rival in a cell.
struct Bar {
    what: String,
    ratio: f64,
    need: f64,
}

fn ratio(rows: &[Row], cell: &str, over: Arm) -> Option<f64> {
    let find = |arm| {
        rows.iter()
            .find(|r| r.cell == cell && r.arm == arm)
            .and_then(Row::median)
    };
    Some(find(Arm::CairnRam)? / find(over)?)
}

/// Prints the table and the bars; whether all of them hold.
fn report(out: &mut impl io::Write, rows: &[Row]) -> bool {
    let mut cells: Vec<&str> = rows.iter().map(|r| r.cell.as_str()).collect();
    cells.dedup();
    let _ = write!(out, "{:<28}", "IOPS, median (x over it)");
    for arm in Arm::ALL {
        let _ = write!(out, "{:>20}", arm.name());
    }
    let _ = writeln!(out);
    for cell in &cells {
        let _ = write!(out, "{cell:<28}");
        for arm in Arm::ALL {
            let median = rows
                .iter()
                .find(|r| r.cell == *cell && r.arm == arm)
                .and_then(Row::median);
            let text = match (median, ratio(rows, cell, arm)) {
                (Some(m), Some(r)) => format!("{m:.0} ({r:.2})"),
                _ => "-".to_owned(),
            };
            let _ = write!(out, "{text:>20}");
        }
        let _ = writeln!(out);
    }
    let mut held = true;
    for bar in cells.iter().flat_map(|cell| bars(rows, cell)) {
        let holds = bar.ratio >= bar.need;
        held &= holds;
        let verdict = if holds { "holds" } else { "MISSED" };
        let _ = writeln!(
            out,
            "{verdict:<7} {}: {:.2}, bar {:.2}",
            bar.what, bar.ratio, bar.need
        );
    }
    held
}

/// The bars of one job's cells.
fn bars(rows: &[Row], cell: &str) -> Vec<Bar> {
    let over = |arm| ratio(rows, cell, arm);
    let bar = |arm: Arm, need| {
        over(arm).map(|ratio| Bar {
            what: format!("{cell} over {}", arm.name()),
            ratio,
            need,
        })
    };
    let mut all = Vec::new();
    if cell.ends_with("depth 1 jobs 1") {
        all.extend(bar(Arm::Nbdkit, 1.5));
        all.extend(bar(Arm::QemuNbd, 1.5));
    } else if cell.ends_with("depth 64 jobs 1") {
        let rivals = [
            bar(Arm::Nbdkit, 1.3),
            bar(Arm::QemuNbd, 2.0),
            bar(Arm::NbdkitMalloc, 1.0),
        ];
        let rivals: Vec<Bar> = rivals.into_iter().flatten().collect();
        // Or the client has no more to give.
        let ceiling = bar(Arm::CairnNull, 0.9).filter(|b| b.ratio >= b.need);
        if rivals.iter().all(|b| b.ratio >= b.need) {
            all.extend(rivals);
        } else if let Some(ceiling) = ceiling {
            all.push(ceiling);
        } else {
            all.extend(rivals);
        }
    }
    all
}

fn json(rows: &[Row]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|r| serde_json::json!({"cell": r.cell, "arm": r.arm.name(), "median": r.median(), "seen": r.seen}))
        .collect();
    serde_json::json!({ "rows": rows }).to_string()
}
