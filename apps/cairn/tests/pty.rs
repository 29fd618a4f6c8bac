//! The real program on a pseudo-terminal: keys, pages, sizes, signals, a panic; and each time the
//! terminal is as it was afterwards.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// For a condition that holds within a fraction of a second on a quiet machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Set for this test program when it plays the part of the dashboard.
const PART: &str = "CAIRN_TEST_PART";

/// One terminal at a time: each of these runs a workload on all processors.
static ONE: Mutex<()> = Mutex::new(());

struct Dash {
    /// Nothing more will come from it.
    silent: Arc<AtomicBool>,
    screen: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    _one: MutexGuard<'static, ()>,
}

impl Dash {
    fn start(command: CommandBuilder, (cols, rows): (u16, u16)) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = native_pty_system().openpty(size(cols, rows)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        // Only the child may hold the terminal open, or its end would not be seen here.
        drop(pair.slave);
        let screen = vt100::Parser::new(cells(rows), cells(cols), 0);
        let screen = Arc::new(Mutex::new(screen));
        let mut output = pair.master.try_clone_reader().unwrap();
        let shown = Arc::clone(&screen);
        let silent = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&silent);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut bytes) {
                shown
                    .lock()
                    .unwrap()
                    .process(bytes.get(..n).unwrap_or_default());
            }
            closed.store(true, Ordering::Release);
        });
        Self {
            silent,
            screen,
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
            _one: one,
        }
    }

    fn mixed(size: (u16, u16)) -> Self {
        Self::running(&[], &[], size)
    }

    /// The dashboard with arguments and environment of one's own, once it shows a rate.
    fn running(args: &[&str], env: &[(&str, &str)], size: (u16, u16)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cairn"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        for (name, value) in env {
            command.env(name, value);
        }
        let mut dash = Self::start(command, size);
        dash.sees("[RUN]");
        // The rate of a workload and its latency stand on one line.
        dash.sees("p99");
        dash.until("rate", |dash| {
            let text = dash.text();
            ["IOPS", "op/s"].iter().any(|unit| text.contains(unit))
        });
        dash
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < DEADLINE, "no {what} on:\n{}", self.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn sees(&mut self, words: &str) {
        self.until(words, |dash| dash.text().contains(words));
    }

    fn sees_no(&mut self, words: &str) {
        self.until(&format!("end of {words}"), |dash| {
            !dash.text().contains(words)
        });
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        let mut parser = self.screen.lock().unwrap();
        parser.screen_mut().set_size(cells(rows), cells(cols));
        drop(parser);
        self.master.resize(size(cols, rows)).unwrap();
    }

    fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        let status = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end: its code, with the terminal as it was before.
    fn ends(mut self) -> (u32, String) {
        let mut code = None;
        self.until("end", |dash| {
            code = dash
                .child
                .try_wait()
                .unwrap()
                .map(|status| status.exit_code());
            code.is_some()
        });
        self.until("end of the output", |dash| {
            dash.silent.load(Ordering::Acquire)
        });
        self.until("normal screen with a cursor", |dash| {
            let parser = dash.screen.lock().unwrap();
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        });
        (code.unwrap(), self.text())
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        // After a failed test; one that has ended cannot be killed, and need not.
        let _ended = self.child.kill();
    }
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

#[test]
fn policies_pages_help_sizes_and_quit() {
    let mut dash = Dash::mixed((80, 24));
    dash.sees(">B per-cpu<");
    dash.types("p");
    dash.sees(">A shared<");
    dash.sees("1 mark");
    dash.types("c");
    dash.sees(">A always-rmw<");
    dash.types("?");
    dash.sees("any other key closes");
    dash.types("x");
    dash.sees_no("any other key closes");
    dash.types("4");
    dash.sees("[4 Flags]");
    dash.types("1");
    dash.resize(160, 48);
    dash.sees("Self check");
    dash.resize(40, 12);
    dash.sees_no("Self check");
    dash.sees("op/s creat-clo");
    dash.resize(20, 5);
    dash.sees("need 30x8");
    dash.resize(80, 24);
    dash.sees("Throughput");
    dash.types(" ");
    dash.sees("FROZEN");
    dash.types(" S");
    dash.sees("[STOP]");
    dash.types("S");
    dash.sees("[RUN]");
    dash.types("Q");
    let (code, text) = dash.ends();
    assert_eq!(code, 0);
    assert!(text.contains("policy flag-set always-rmw"), "{text}");
    assert!(
        text.contains("q quit"),
        "the screen stays above it:\n{text}"
    );
}

#[test]
fn a_key_and_a_new_size_at_the_same_time_are_both_seen() {
    let mut dash = Dash::running(&["dash", "creat-clo"], &[], (80, 24));
    for _ in 0..12 {
        for (key, page, cols, rows) in [("4", "[4 ", 100, 30), ("1", "[1 ", 80, 24)] {
            dash.types(key);
            dash.resize(cols, rows);
            dash.sees(page);
            dash.until("frame of the new width", |dash| {
                let text = dash.text();
                let mut widths = text.lines().map(|line| line.chars().count());
                widths.any(|width| width == usize::from(cols))
            });
        }
    }
    dash.types("q");
    assert_eq!(dash.ends().0, 0);
}

#[test]
fn stack_and_workload_are_edited_while_it_runs() {
    let mut dash = Dash::running(&["dash", "creat-clo"], &[], (80, 24));
    dash.types("o");
    dash.sees("stack: stats");
    // Ctrl-U empties the line.
    dash.types("\u{15}ram(64m\r");
    dash.sees("never closed");
    dash.types(")\r");
    dash.sees("a new run begins: stack ram(64m)");
    dash.types("w");
    dash.sees("creat-clo: tasks=8");
    dash.types("\u{15}tasks=1\r");
    dash.sees("a new run begins: creat-clo tasks=1");
    dash.sees("[RUN]");
    dash.types("7/tasks");
    dash.sees("with \"tasks\"");
    dash.types("\rq");
    let (code, text) = dash.ends();
    assert_eq!(code, 0);
    assert!(text.contains("stack ram(64m)"), "{text}");
}

#[test]
fn the_interleaved_comparison_runs_by_itself() {
    let mut dash = Dash::running(&["dash", "creat-clo"], &[], (160, 48));
    dash.types("a");
    dash.sees("auto A B B A");
    dash.sees("2 of 24 pairs");
    dash.sees("paired t");
    dash.types("a");
    dash.sees("auto A/B of flag-set ended");
    dash.types("q");
    assert_eq!(dash.ends().0, 0);
}

#[test]
fn a_recorded_run_is_played_in_the_same_views() {
    let folder = tempfile::tempdir().unwrap();
    let run = "{\"schema_version\":1,\"summary\":{\"scenario\":\"mixed\",\"stack\":\"ram(1g)\",\"seed\":7,\
               \"workloads\":[{\"name\":\"randwrite\",\"about\":\"\",\"unit\":\"io\"}]}}";
    fs::write(folder.path().join("run.json"), run).unwrap();
    let mut slices =
        "t,arm,op,ops,bytes,p50,p99,p999,hits,misses,exact,approx,avoided_rmw,settle\n".to_owned();
    for i in 1..=30_u32 {
        let arm = if i < 20 { "per-cpu" } else { "shared" };
        writeln!(
            slices,
            "{:.4},es-counters={arm},randwrite,{},0,900,9000,9900,{i},0,{i},{i},0,0",
            f64::from(i) / 10.0,
            1000 * i
        )
        .unwrap();
    }
    fs::write(folder.path().join("slices.csv"), slices).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cairn"));
    command.args(["dash", folder.path().to_str().unwrap()]);
    command.env("TERM", "xterm-256color");
    let mut dash = Dash::start(command, (160, 48));
    dash.sees("[RECORDED]  00:00:03");
    dash.sees("300.0 kIOPS");
    dash.sees(">A shared<");
    dash.types("p");
    dash.sees("it can be looked at, not changed");
    dash.types("\u{1b}[H");
    dash.sees("10.00 kIOPS");
    dash.sees(">B per-cpu<");
    dash.types("\u{1b}[C");
    dash.sees("20.00 kIOPS");
    dash.types(" ");
    dash.sees("300.0 kIOPS");
    dash.types("q");
    assert_eq!(dash.ends().0, 0);
}

#[test]
fn control_c_quits_like_q() {
    let mut dash = Dash::mixed((80, 24));
    dash.types("\u{3}");
    let (code, text) = dash.ends();
    assert_eq!(code, 0);
    assert!(text.contains("throughput"), "{text}");
}

#[test]
fn a_failed_operation_is_seen_named_and_told_by_the_exit_code() {
    let stack = "error(op=write,skip=2000,rate=0.001,seed=1)/ram(320m)";
    let mut dash = Dash::running(&["dash", "randwrite", "--stack", stack], &[], (80, 24));
    dash.sees("errors ");
    dash.types("7");
    dash.sees("first failed operation: randwrite");
    dash.types("q");
    assert_eq!(dash.ends().0, 1);
}

#[test]
fn the_console_gets_ascii_only() {
    for env in [("TERM", "linux"), ("LC_ALL", "C")] {
        let mut dash = Dash::running(&[], &[env], (80, 24));
        dash.sees("+ Stack");
        let text = dash.text();
        assert!(text.is_ascii(), "{env:?}:\n{text}");
        dash.types("q");
        assert_eq!(dash.ends().0, 0);
    }
}

#[test]
fn signals_end_it_with_their_number() {
    for (name, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
        let dash = Dash::mixed((80, 24));
        dash.signal(name);
        assert_eq!(dash.ends().0, code, "{name}");
    }
}

#[test]
fn a_closed_terminal_ends_it() {
    let dash = Dash::mixed((80, 24));
    let pid = dash.child.process_id().unwrap();
    drop(dash);
    let begun = Instant::now();
    while alive(pid) {
        assert!(
            begun.elapsed() < DEADLINE,
            "process {pid} outlives its terminal"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

fn alive(pid: u32) -> bool {
    // A zombie has ended; nobody waits for it here.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
fn a_panic_elsewhere_is_shown_and_stops_only_the_workload() {
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "plays_a_part", "--nocapture"]);
    command.env(PART, "panic");
    command.env("TERM", "xterm-256color");
    let mut dash = Dash::start(command, (80, 24));
    dash.sees("[FAILED]");
    dash.sees("worker for the test panicked");
    dash.types("7");
    dash.sees("test wants it");
    dash.types("q");
    let (code, text) = dash.ends();
    assert_eq!(code, 1);
    assert!(text.contains("summary of the part"), "{text}");
}

/// Not a test of its own: the dashboard in a process in which another thread panics.
#[test]
fn plays_a_part() {
    if std::env::var_os(PART).is_none() {
        return;
    }
    let scenario = cairn_lab::Scenario::preset("mixed").unwrap();
    let registry = cairn_lab::Registry::default();
    let lab = cairn_lab::Lab::start(scenario, &registry, cairn_lab::Options::default()).unwrap();
    thread::Builder::new()
        .name("worker for the test".to_owned())
        .spawn(|| {
            // Long enough for the dashboard to have set its hook: it does so first of all.
            thread::sleep(Duration::from_secs(1));
            panic!("the test wants it");
        })
        .unwrap();
    let outcome = cairn_tui::tui::run(lab, cairn_tui::tui::Options::default()).unwrap();
    println!(
        "summary of the part, {} workloads",
        outcome.summary.workloads.len()
    );
    std::process::exit(i32::from(outcome.code));
}

#[test]
fn a_run_is_written_when_it_ends_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let path = out.to_str().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cairn"));
    command.args(["dash", "creat-clo", "--out", path]);
    command.env("TERM", "xterm-256color");
    command.cwd(folder.path());
    let mut dash = Dash::start(command, (80, 24));
    dash.sees("op/s");
    dash.types("c");
    dash.sees(">A always-rmw<");
    // A sample has shown the switch when its arms are compared.
    dash.sees("slices ");
    dash.types("x");
    dash.sees("the run so far is in runs/20");
    dash.types("q");
    assert_eq!(dash.ends().0, 0);
    let exported = fs::read_dir(folder.path().join("runs")).unwrap();
    let exported = exported.map(|f| f.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(exported.len(), 1);
    for run in [&out, &exported[0]] {
        for name in [
            "run.json",
            "slices.csv",
            "events.csv",
            "report.html",
            "screen.svg",
            "screen.txt",
        ] {
            assert!(run.join(name).is_file(), "{name} is missing");
        }
        let screen = fs::read_to_string(run.join("screen.txt")).unwrap();
        assert!(screen.contains(">A always-rmw<"), "{screen}");
    }
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cairn"));
    command.args(["dash", path]);
    command.env("TERM", "xterm-256color");
    let mut dash = Dash::start(command, (80, 24));
    dash.sees("[RECORDED]");
    dash.sees("creat-clo");
    dash.types("7");
    dash.sees("check-first to always-rmw");
    dash.types("q");
    assert_eq!(dash.ends().0, 0);
}

/// The example is built with all tests; with this one alone it may not be there.
#[test]
fn a_layer_and_a_policy_of_ones_own_show_up() {
    let program = Path::new(env!("CARGO_BIN_EXE_cairn")).with_file_name("examples/own_layer");
    if !program.is_file() {
        println!("skipped: {} is not built", program.display());
        return;
    }
    let mut command = CommandBuilder::new(program);
    command.args(["dash", "--stack", "stats/yielding/ram(256m)"]);
    command.env("TERM", "xterm-256color");
    let mut dash = Dash::start(command, (160, 48));
    dash.sees("IOPS");
    // The layer in the stack, the policy among the others, both known only to the example.
    dash.sees("yielding   ");
    dash.sees("f yielding");
    dash.sees(">A off<");
    dash.types("f");
    dash.sees(">B on<");
    dash.sees("yielding: now on");
    dash.types("q");
    let (code, text) = dash.ends();
    assert_eq!(code, 0);
    assert!(text.contains("policy yielding on"), "{text}");
}
