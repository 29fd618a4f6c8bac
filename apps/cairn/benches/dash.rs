//! What the dashboard costs: the share of a core of its threads, live and frozen, and what the workload
//! loses to it, in pairs with the same scenario without a terminal.
//!
//! A pair is one process with the dashboard and one without, side by side: they take turns of half a second,
//! without, with, with, without, and the one whose turn it is not is stopped by SIGSTOP. What is compared is
//! operations by the time that the process was allowed to run, from the end of its warm-up on; on a machine whose
//! speed wanders this tells far more than runs one after the other. Each turn costs the dashboard a whole
//! repaint, which counts against it. No process is pinned to a CPU. The terminal is a pseudo terminal that a
//! thread of this bench drains into memory; that thread's time is told, and is no part of the dashboard.
//!
//! `cargo bench -p cairn-tui --bench dash`; with `--test` each time is short and nothing is to be read from
//! the figures. `CAIRN_BENCH_PAIRS` asks for another number of figures.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on may panic, and its results go to standard output"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

const CAIRN: &str = env!("CARGO_BIN_EXE_cairn");

/// Eight workers, so that all processors are busy.
const SCENARIO: &str = "randwrite";

/// The same, with the time that it warms up and runs.
const FILE: &str = r#"
name = "randwrite"
stack = "stats(sample=64)/ram(320m)"
seed = 42

[workload]
name = "randwrite"
kind = "fio"
options = "--rw=randwrite --ioengine=libaio --direct=1 --iodepth=64 --bs=4k --size=256m --numjobs=8 --norandommap --filename=/mnt/test1"
warmup = "300ms"

[policies]
flag-set = "check-first"
es-counters = "per-cpu"
"#;

/// Figures, of two pairs of runs each.
const PAIRS: usize = 8;

/// Time after a start when the workload is warm and counts from its beginning again.
const WARM: Duration = Duration::from_millis(1100);

/// One turn.
const TURN: Duration = Duration::from_millis(500);

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
    fn start(scenario: &str) -> Self {
        let size = PtySize {
            rows: 48,
            cols: 160,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(CAIRN);
        command.args(["dash", scenario, "--color", "256"]);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let output = Arc::new(Mutex::new(Vec::with_capacity(1 << 20)));
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

    /// Quits, and gives what was printed.
    fn quit(mut self) -> String {
        self.types("q");
        self.until(|dash| dash.text().contains("policy flag-set"));
        let text = self.text();
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{text}");
        text
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        let _ended = self.child.kill();
    }
}

/// Operations and the seconds they took, of a summary as text.
fn counted(summary: &str) -> (f64, f64) {
    let after = |word: &str| summary.rsplit(word).next().unwrap().split_whitespace();
    let mut rate = after("throughput ");
    let value: f64 = rate.next().unwrap().parse().unwrap();
    let unit = match rate.next().unwrap().trim_end_matches(',') {
        "IOPS" => 1.0,
        "kIOPS" => 1e3,
        "MIOPS" => 1e6,
        unit => panic!("{unit} is no rate of I/Os"),
    };
    let operations: f64 = after(", n ").next().unwrap().parse().unwrap();
    (operations, operations / (value * unit))
}

/// The process without a terminal.
struct Headless(std::process::Child);

impl Headless {
    fn start(scenario: &str) -> Self {
        let child = Command::new(CAIRN)
            .args(["dash", scenario, "--headless", "--duration", "600s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Ends it, and gives what was printed.
    fn end(mut self) -> String {
        signal(self.0.id(), Signal::INT);
        let mut text = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        out.read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        text
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ended = self.0.kill();
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A process that takes turns with another one.
struct Turns {
    pid: u32,
    since: Instant,
    stopped: Duration,
}

impl Turns {
    /// Stops a process that has become warm.
    fn new(pid: u32) -> Self {
        thread::sleep(WARM);
        signal(pid, Signal::STOP);
        Self {
            pid,
            since: Instant::now(),
            stopped: Duration::ZERO,
        }
    }

    fn go_on(&mut self) {
        self.stopped += self.since.elapsed();
        signal(self.pid, Signal::CONT);
    }

    fn take(&mut self) {
        self.go_on();
        thread::sleep(TURN);
        signal(self.pid, Signal::STOP);
        self.since = Instant::now();
    }

    /// Operations a second of the time it was not stopped.
    fn rate(&self, summary: &str) -> f64 {
        let (operations, seconds) = counted(summary);
        operations / (seconds - self.stopped.as_secs_f64())
    }
}

/// One of the two processes of a pair.
enum Arm {
    Dash(Dash),
    Headless(Headless),
}

impl Arm {
    /// Starts it, and stops it when it is warm.
    fn start(scenario: &str, dashboard: bool) -> (Self, Turns) {
        let (arm, pid) = if dashboard {
            let dash = Dash::start(scenario);
            let pid = dash.child.process_id().unwrap();
            (Self::Dash(dash), pid)
        } else {
            let headless = Headless::start(scenario);
            let pid = headless.0.id();
            (Self::Headless(headless), pid)
        };
        (arm, Turns::new(pid))
    }

    fn end(self, mut turns: Turns) -> f64 {
        turns.go_on();
        let summary = match self {
            Self::Dash(dash) => dash.quit(),
            Self::Headless(headless) => headless.end(),
        };
        turns.rate(&summary)
    }
}

/// Operations a second of two processes in turns, `arms` in the order of their starts: with the dashboard or
/// without. The order of the turns is that of the starts, or the other one if `turned`.
fn pair(scenario: &str, arms: [bool; 2], rounds: usize, turned: bool) -> [f64; 2] {
    let [(one, mut first), (two, mut second)] = arms.map(|arm| Arm::start(scenario, arm));
    for _ in 0..rounds {
        for late in [turned, !turned, !turned, turned] {
            if late {
                second.take();
            } else {
                first.take();
            }
        }
    }
    [one.end(first), two.end(second)]
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

/// A file with the scenario.
fn scenario() -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(FILE.as_bytes()).unwrap();
    file
}

/// Time on a processor of this bench so far: its terminal's reader, mostly.
fn own_time() -> Duration {
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("schedstat")).ok();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let ns = tasks.filter_map(|entry| read(entry)?.split_whitespace().next()?.parse::<u64>().ok());
    Duration::from_nanos(ns.sum())
}

/// The median, and the interval that holds it in 95 of 100 such series whatever the values' distribution is:
/// the order statistics about the middle that a binomial count leaves out with at most 2.5 % on either side.
fn median_with_interval(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let (mut below, mut term, mut rank) = (0.0, 0.5_f64.powi(i32::try_from(n).unwrap()), 0);
    for k in 0..n {
        below += term;
        if below > 0.025 {
            break;
        }
        rank = k + 1;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    // With too few values the ends are all that can be told.
    let low = rank.saturating_sub(1);
    (median(values), at(low), at(n - 1 - low))
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
    let (look, rounds, pairs) = if quick {
        (millis(500), 1, 1)
    } else {
        (Duration::from_secs(8), 3, PAIRS)
    };
    let asked = std::env::var("CAIRN_BENCH_PAIRS").ok();
    let pairs = asked.and_then(|n| n.parse().ok()).unwrap_or(pairs).max(1);
    let mut dash = Dash::start(SCENARIO);
    thread::sleep(Duration::from_secs(1));
    let own = own_time();
    let live = shares(&dash, look);
    let reader = own_time().saturating_sub(own).as_secs_f64() / look.as_secs_f64();
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
        "live {:.0} B/s to the terminal, frozen {:.0} B/s; its reader, outside of the dashboard, {reader:.4}",
        live.bytes_per_s, frozen.bytes_per_s
    );
    let file = scenario();
    let path = file.path().to_str().unwrap();
    let one = |dash_first: bool, turned: bool| {
        let rates = pair(path, [dash_first, !dash_first], rounds, turned);
        let [with, without] = if dash_first {
            rates
        } else {
            [rates[1], rates[0]]
        };
        println!(
            "{} first: {:.0} k/s with, {:.0} k/s without, {:.3}",
            if dash_first { "dashboard" } else { "headless " },
            with / 1e3,
            without / 1e3,
            with / without
        );
        with / without
    };
    if !quick {
        println!("not counted, so that the memory of what follows was in use just before:");
        one(false, false);
    }
    // Who is started later has the better memory of the two, so each figure is the mean of a pair with either
    // order; whose turn is first changes from figure to figure.
    let ratios: Vec<f64> = (0..pairs)
        .map(|number| {
            let turned = number % 2 == 1;
            (one(false, turned) * one(true, turned)).sqrt()
        })
        .collect();
    // Nothing against nothing, in the same way: what the machine can tell.
    let mut same = Vec::new();
    for number in 0..pairs.div_ceil(3) {
        let [first, second] = pair(path, [false, false], rounds, number % 2 == 1);
        same.push(second / first);
    }
    println!("headless over headless, the one started later over the other: {same:.3?}");
    let (kept, low, high) = median_with_interval(&ratios);
    verdict(
        "throughput, dashboard over headless",
        kept,
        KEPT,
        kept >= KEPT,
    );
    println!(
        "median of {pairs} figures, each of two pairs with {} turns of {TURN:?} an arm, order A B B A; 95 % interval \
         of the median {low:.4} to {high:.4}",
        2 * rounds
    );
    println!(
        "{{\"view_live\":{:.5},\"view_frozen\":{:.5},\"sampler\":{sampler:.5},\"reader\":{reader:.5},\
         \"kept\":{kept:.4},\"kept_low\":{low:.4},\"kept_high\":{high:.4},\"pairs\":{pairs}}}",
        live.view, frozen.view,
    );
}
