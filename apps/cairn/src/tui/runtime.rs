//! The loop around the pure parts: waits for messages, executes commands, draws within its budget.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGTSTP};

use cairn_lab::Lab;

use super::guard::{self, Guard, PanicHook};
use super::model::{Model, Redraw, Setup};
use super::theme::{ColorDepth, Theme};
use super::update::{Cmd, Msg, update};
use super::{Options, Outcome, Watch, input, view};

/// Messages that may wait for the drawing thread.
const QUEUE: usize = 256;
/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// The pulse of the own figures, and how long the sampler may be silent unnoticed.
const PULSE: Duration = Duration::from_secs(1);

/// Shows a running lab until the operator quits or a signal ends it, then finishes the lab.
///
/// To be called on the main thread with a terminal on standard output. The terminal is as it was
/// when this returns, with an error too; nothing is printed.
///
/// # Errors
/// When the terminal cannot be taken, or the threads for keys and signals cannot be had.
pub fn run(lab: Lab, options: Options) -> anyhow::Result<Outcome> {
    run_watched(lab, options, Box::new(|_| None))
}

/// As [`run`], and shows every sample to `watch` on a thread of its own, before it is drawn and whether or
/// not it is. What `watch` answers is noted among the events.
///
/// # Errors
/// As [`run`].
pub fn run_watched(lab: Lab, options: Options, watch: Box<Watch>) -> anyhow::Result<Outcome> {
    // The theme alone decides on colours; crossterm's own reading of NO_COLOR would also cancel
    // bold and reversed.
    crossterm::style::force_color_output(true);
    let (messages, inbox) = mpsc::sync_channel(QUEUE);
    let hook = PanicHook::install(messages.clone());
    let signals = input::SignalWatch::start(messages.clone()).context("cannot watch signals")?;
    let samples = lab
        .take_samples()
        .context("the lab's samples are taken already")?;
    input::samples(samples, watch, messages.clone())
        .context("cannot start a thread for samples")?;
    let guard = Guard::take(options.mouse).context("cannot set the terminal up")?;
    input::keys(messages).context("cannot start a thread for keys")?;
    let screen = Screen::new().context("cannot write to the terminal")?;
    let mut dash = Dash {
        model: Model::new(setup(&lab, options)),
        lab,
        guard,
        screen,
        end: None,
        away: false,
        pause: Pause::None,
    };
    dash.drive(&inbox);

    let Dash {
        lab,
        guard,
        model,
        end,
        ..
    } = dash;
    drop(guard);
    drop(hook);
    let summary = lab.finish();
    drop(signals);
    let code = match end {
        Some(End::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(255),
        Some(End::Asked) | None => u8::from(model.failure.is_some() || model.error.is_some()),
    };
    Ok(Outcome { summary, code })
}

fn setup(lab: &Lab, options: Options) -> Setup {
    let policies = lab.policies();
    let list = policies.list().to_vec();
    let depth = ColorDepth::choose(options.color, |name| std::env::var(name).ok());
    Setup {
        scenario: lab.scenario().name.clone(),
        stack: lab.stack().to_owned(),
        seed: lab.scenario().seed,
        arms: (0..list.len()).map(|i| policies.arm(i)).collect(),
        policies: list,
        interval: cairn_lab::Options::default().interval,
        theme: Theme {
            depth,
            ascii: options.ascii,
        },
        hz: options.hz.clamp(1, 30),
        size: crossterm::terminal::size().unwrap_or((80, 24)),
    }
}

/// Why it is over.
#[derive(Clone, Copy)]
enum End {
    /// The operator quit.
    Asked,
    /// A signal, or a lost terminal, which counts as a hang-up.
    Signal(i32),
}

struct Dash {
    model: Model,
    lab: Lab,
    guard: Guard,
    screen: Screen,
    end: Option<End>,
    /// The terminal was given back for a stop; nothing is drawn until the process goes on.
    away: bool,
    /// What a stop of the process still waits for.
    pause: Pause,
}

/// On the way into a stop of the process and out of it. Time spent stopped is no latency, so the workers
/// rest meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// None is under way.
    None,
    /// The workers were stopped; the process stops when the sampler has seen it.
    Into,
    /// The process goes on; the workers start when the sampler has seen that time has passed.
    OutOf,
}

impl Dash {
    fn drive(&mut self, inbox: &Receiver<Msg>) {
        let mut pulse = Pulse::new();
        while self.end.is_none() {
            let now = Instant::now();
            let due = self.due();
            if due.is_some_and(|due| due <= now) {
                self.draw();
                pulse.frames += 1;
                continue;
            }
            let wait = due.map_or(PULSE, |due| (due - now).min(PULSE));
            match inbox.recv_timeout(wait) {
                Ok(msg) => {
                    pulse.note(&msg);
                    self.take(msg);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(msg) = pulse.beat(&mut self.model) {
                self.take(msg);
            }
        }
    }

    /// When to draw, if there is anything to draw.
    fn due(&self) -> Option<Instant> {
        let gap = match self.model.redraw {
            _ if self.away => return None,
            Redraw::No => return None,
            Redraw::Soon => FRAME,
            // A little less than the period, or a sample that comes a moment early would wait for
            // the next one.
            Redraw::AtRate => (Duration::from_secs(1) / u32::from(self.model.hz.max(1)))
                .mul_f64(0.9)
                .max(FRAME),
        };
        Some(self.screen.last + gap)
    }

    fn draw(&mut self) {
        self.model.redraw = Redraw::No;
        match self.screen.draw(&self.model) {
            Ok((took, bytes)) => self.model.meter.drawn(took, bytes),
            // There is no terminal any more: the end is that of a hang-up.
            Err(_) => self.end = Some(End::Signal(SIGHUP)),
        }
    }

    fn take(&mut self, msg: Msg) {
        if let Msg::Sample(sample) = &msg {
            let rests = !sample.running;
            match self.pause {
                Pause::Into if rests => self.stop_process(true),
                Pause::OutOf => {
                    self.pause = Pause::None;
                    self.execute(Cmd::Start);
                }
                Pause::Into | Pause::None => {}
            }
        }
        for cmd in update(&mut self.model, msg) {
            self.execute(cmd);
        }
    }

    fn execute(&mut self, cmd: Cmd) {
        match cmd {
            Cmd::Toggle(policy) => self.toggle(policy),
            Cmd::Stop => self.lab.stop_workload(),
            Cmd::Start => {
                if let Err(error) = self.lab.start_workload() {
                    self.take(Msg::Refused(format!("cannot start the workload: {error}")));
                }
            }
            Cmd::Reset => self.lab.reset(),
            Cmd::Suspend => self.suspend(),
            Cmd::Reenter => {
                self.away = false;
                if self.guard.again().is_err() {
                    self.end = Some(End::Signal(SIGHUP));
                }
                self.screen.repaint();
            }
            Cmd::Repaint => self.screen.repaint(),
            Cmd::Quit(signal) => self.end = Some(signal.map_or(End::Asked, End::Signal)),
        }
    }

    fn toggle(&mut self, policy: usize) {
        let policies = self.lab.policies();
        let arms = policies.list().get(policy).map_or(0, |p| p.arms.len());
        let Some(arm) = (policies.arm(policy) + 1).checked_rem(arms) else {
            return;
        };
        let msg = match policies.set(policy, arm) {
            Ok(()) => Msg::Armed { policy, arm },
            Err(error) => Msg::Refused(error.to_string()),
        };
        self.take(msg);
    }

    /// Stops the process until someone continues it; the signal that does so sets the terminal up
    /// again.
    fn suspend(&mut self) {
        if leads_session() {
            let text = "no shell to suspend to: the dashboard is the terminal's first program";
            return self.take(Msg::Refused(text.to_owned()));
        }
        match self.pause {
            Pause::None if self.model.running() && self.model.stalled.is_none() => {
                self.pause = Pause::Into;
                self.lab.stop_workload();
            }
            Pause::None => self.stop_process(false),
            // Asked again, as by someone who does not want to wait for the sampler.
            Pause::Into | Pause::OutOf => self.stop_process(true),
        }
    }

    /// Gives the terminal back and stops; the workers start afterwards if they ran.
    fn stop_process(&mut self, ran: bool) {
        self.pause = if ran { Pause::OutOf } else { Pause::None };
        self.guard.leave();
        self.away = true;
        if let Err(error) = signal_hook::low_level::emulate_default_handler(SIGTSTP) {
            self.take(Msg::Refused(format!("cannot suspend: {error}")));
            self.execute(Cmd::Reenter);
        }
    }
}

/// Whether nobody in this terminal could continue the process: it leads its session.
fn leads_session() -> bool {
    // "pid (name) state ppid pgrp session ...", and the name may hold anything.
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else {
        return false;
    };
    let session = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(3));
    session.and_then(|s| s.parse().ok()) == Some(std::process::id())
}

/// What is looked at once a second.
struct Pulse {
    last: Instant,
    sample: Instant,
    frames: u32,
    cpu: Option<Duration>,
}

impl Pulse {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            last: now,
            sample: now,
            frames: 0,
            cpu: thread_cpu(),
        }
    }

    fn note(&mut self, msg: &Msg) {
        if matches!(msg, Msg::Sample(_) | Msg::Continue) {
            self.sample = Instant::now();
        }
    }

    fn beat(&mut self, model: &mut Model) -> Option<Msg> {
        let now = Instant::now();
        let passed = now - self.last;
        if passed < PULSE {
            return None;
        }
        self.last = now;
        model.meter.fps = Some(f64::from(self.frames) / passed.as_secs_f64());
        self.frames = 0;
        let cpu = thread_cpu();
        model.meter.cpu = cpu
            .zip(self.cpu)
            .map(|(new, old)| new.saturating_sub(old).as_secs_f64() / passed.as_secs_f64());
        self.cpu = cpu;
        if let Some(text) = guard::late_panic() {
            return Some(Msg::Panic(text));
        }
        let silent = now - self.sample;
        (silent >= PULSE).then_some(Msg::Stalled(silent))
    }
}

/// Time on a CPU of this thread, where the kernel tells it.
fn thread_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Collects a frame's bytes, so that the terminal gets each frame in one write.
#[derive(Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// The frame is written when it is complete, whatever flushes on the way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Screen {
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    bytes: FrameBytes,
    out: File,
    last: Instant,
    repaint: bool,
}

impl Screen {
    fn new() -> io::Result<Self> {
        let bytes = FrameBytes::default();
        let backend = CrosstermBackend::new(bytes.clone());
        Ok(Self {
            terminal: Terminal::new(backend)?,
            bytes,
            out: guard::terminal()?,
            last: Instant::now()
                .checked_sub(PULSE)
                .unwrap_or_else(Instant::now),
            repaint: false,
        })
    }

    /// The next frame draws every cell.
    fn repaint(&mut self) {
        self.repaint = true;
    }

    /// Draws a frame: the time it took and the bytes it wrote.
    fn draw(&mut self, model: &Model) -> io::Result<(Duration, usize)> {
        let began = Instant::now();
        self.last = began;
        queue!(self.bytes, BeginSynchronizedUpdate)?;
        if self.repaint {
            self.repaint = false;
            // Not `clear`: that asks the terminal where the cursor is and waits for the answer.
            let size = self.terminal.size()?;
            self.terminal
                .resize(Rect::new(0, 0, size.width, size.height))?;
        }
        self.terminal
            .draw(|frame| view::render(model, frame.area(), frame.buffer_mut()))?;
        queue!(self.bytes, EndSynchronizedUpdate)?;
        let mut bytes = self.bytes.0.borrow_mut();
        self.out.write_all(&bytes)?;
        let written = bytes.len();
        bytes.clear();
        Ok((began.elapsed(), written))
    }
}
