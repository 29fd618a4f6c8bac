//! What the dashboard costs: the share of a core of its threads, live and frozen, and what the workload
//! loses to it, in pairs with the same scenario without a terminal.
//!
//! `cargo bench -p cairn-tui --bench dash`; with `--test` each time is short and nothing is to be read from
//! the figures.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on may panic, and its results go to standard output"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const CAIRN: &str = env!("CARGO_BIN_EXE_cairn");

/// Eight workers, so that all processors are busy.
const SCENARIO: &str = "randwrite";

/// The bars, in shares of a core and as a ratio.
const FROZEN: f64 = 0.002;
const LIVE: f64 = 0.02;
const SAMPLER: f64 = 0.01;
const KEPT: f64 = 0.98;

/// Rows and columns.
const CELLS: (NonZeroU16, NonZeroU16) = (
    NonZeroU16::new(48).expect("not 0"),
    NonZeroU16::new(160).expect("not 0"),
);

/// Longest wait for something on the screen.
const DEADLINE: Duration = Duration::from_mins(1);

/// A dashboard on a terminal of 160 x 48.
struct Dash {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Arc<Mutex<Vec<u8>>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Dash {
    fn start() -> Self {
        let size = PtySize {
            rows: 48,
            cols: 160,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(CAIRN);
        command.args(["dash", SCENARIO, "--color", "256"]);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let output = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&output);
        let mut reader = pair.master.try_clone_reader().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 16 << 10];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                seen.lock()
                    .unwrap()
                    .extend(bytes.get(..n).unwrap_or_default());
            }
        });
        let dash = Self {
            child,
            keys: pair.master.take_writer().unwrap(),
            output,
            _master: pair.master,
        };
        dash.until(|dash| dash.text().contains("IOPS"));
        dash
    }

    fn until(&self, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(
                begun.elapsed() < DEADLINE,
                "nothing to see: {}",
                self.text()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn bytes(&self) -> usize {
        self.output.lock().unwrap().len()
    }

    /// Time on a processor of each thread so far, by name.
    fn times(&self) -> BTreeMap<String, u64> {
        let mut times = BTreeMap::new();
        let tasks = format!("/proc/{}/task", self.child.process_id().unwrap());
        for task in fs::read_dir(tasks).unwrap().flatten() {
            let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let ns = read("schedstat");
            let ns = ns.split_whitespace().next().and_then(|ns| ns.parse().ok());
            *times.entry(read("comm").trim().to_owned()).or_insert(0) += ns.unwrap_or(0_u64);
        }
        times
    }

    /// What the self check says of the sampler: how late it woke, and what was dropped.
    fn lateness(&self) -> String {
        let mut parser = vt100::Parser::new(CELLS.0, CELLS.1, 0);
        parser.process(&self.output.lock().unwrap());
        let text = parser.screen().contents();
        let line = text.lines().find_map(|l| l.split_once("sampler late "));
        let rest = line.map_or("not on the screen", |(_, rest)| rest);
        let cell = rest.split('\u{2502}').next();
        cell.unwrap_or_default().trim().to_owned()
    }

    /// Quits, and reads the throughput of the summary, in thousands a second.
    fn quit(mut self) -> f64 {
        self.types("q");
        self.until(|dash| dash.text().contains("policy flag-set"));
        let text = self.text();
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{text}");
        throughput(&text)
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        let _ended = self.child.kill();
    }
}

/// Of a summary, as text.
fn throughput(summary: &str) -> f64 {
    let rest = summary.rsplit("throughput ").next().unwrap();
    let mut words = rest.split_whitespace();
    let value: f64 = words.next().unwrap().parse().unwrap();
    match words.next().unwrap().trim_end_matches(',') {
        "kIOPS" => value,
        "MIOPS" => value * 1000.0,
        "IOPS" => value / 1000.0,
        unit => panic!("{unit} is no rate of I/Os"),
    }
}

/// Shares of a core over a time, of the view with its input and of the sampler.
struct Shares {
    view: f64,
    sampler: f64,
    bytes_per_s: f64,
}

fn shares(dash: &Dash, time: Duration) -> Shares {
    let (before, bytes, begun) = (dash.times(), dash.bytes(), Instant::now());
    thread::sleep(time);
    let (after, seconds) = (dash.times(), begun.elapsed().as_secs_f64());
    let share = |holds: &dyn Fn(&str) -> bool| {
        let used = |times: &BTreeMap<String, u64>| {
            let of = times.iter().filter(|(name, _)| holds(name));
            of.map(|(_, ns)| *ns).sum::<u64>()
        };
        (used(&after) - used(&before)) as f64 / 1e9 / seconds
    };
    Shares {
        view: share(&|name| name == "cairn" || name.starts_with("dash-")),
        sampler: share(&|name| name == "sampler"),
        bytes_per_s: (dash.bytes() - bytes) as f64 / seconds,
    }
}

fn headless(time: Duration) -> f64 {
    let duration = format!("{}ms", time.as_millis());
    let output = Command::new(CAIRN)
        .args(["dash", SCENARIO, "--duration", &duration])
        .output()
        .unwrap();
    assert!(output.status.success());
    throughput(&String::from_utf8_lossy(&output.stdout))
}

fn with_dashboard(time: Duration) -> f64 {
    let dash = Dash::start();
    thread::sleep(time);
    dash.quit()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    }
}

fn verdict(name: &str, value: f64, bar: f64, holds: bool) {
    let word = if holds { "holds" } else { "MISSED" };
    println!("{name:<44} {value:>9.4}   bar {bar:<6}  {word}");
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--test");
    let millis = Duration::from_millis;
    let (look, run, most, least) = if quick {
        (millis(500), millis(500), 1, 1)
    } else {
        (Duration::from_secs(8), millis(2500), 24, 4)
    };
    // Seconds for the pairs; a longer run has more of them.
    let seconds = std::env::var("CAIRN_BENCH_SECONDS").ok();
    let seconds = seconds.and_then(|s| s.parse().ok()).unwrap_or(45);
    let mut dash = Dash::start();
    thread::sleep(Duration::from_secs(1));
    let live = shares(&dash, look);
    let late = dash.lateness();
    dash.types(" ");
    thread::sleep(Duration::from_secs(1));
    let frozen = shares(&dash, look);
    drop(dash);
    println!("dashboard at 160 x 48 on the scenario {SCENARIO}, shares of one core over {look:?}");
    verdict(
        "view and input, live at 10 frames/s",
        live.view,
        LIVE,
        live.view <= LIVE,
    );
    verdict(
        "view and input, frozen",
        frozen.view,
        FROZEN,
        frozen.view <= FROZEN,
    );
    let sampler = live.sampler;
    verdict("sampler, 8 workers", sampler, SAMPLER, sampler <= SAMPLER);
    println!("sampler as shown: {late}");
    println!(
        "live {:.0} B/s to the terminal, frozen {:.0} B/s",
        live.bytes_per_s, frozen.bytes_per_s
    );
    let mut ratios = Vec::new();
    let begun = Instant::now();
    for pair in 0..most {
        if pair >= least && begun.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        // The order alternates, so that what drifts is not the dashboard's.
        let (with, without) = if pair % 2 == 0 {
            let without = headless(run);
            (with_dashboard(run), without)
        } else {
            (with_dashboard(run), headless(run))
        };
        ratios.push(with / without);
        println!("pair {pair}: {with:.0} k/s with, {without:.0} k/s without");
    }
    let kept = median(&ratios);
    verdict(
        "throughput, dashboard over headless",
        kept,
        KEPT,
        kept >= KEPT,
    );
    println!("ratios of the pairs of {run:?}: {ratios:.3?}");
    println!(
        "{{\"view_live\":{:.5},\"view_frozen\":{:.5},\"sampler\":{sampler:.5},\"kept\":{kept:.4},\
         \"pairs\":{}}}",
        live.view,
        frozen.view,
        ratios.len()
    );
}
