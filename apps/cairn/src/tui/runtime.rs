//! The loop around the pure parts: waits for messages, executes commands, draws within its budget.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGTSTP};

use cairn_lab::{Lab, Registry, RunDir, Sample, Scenario};

use super::guard::{Guard, PanicHook};
use super::model::{Model, Redraw, Saved, Setup};
use super::panel::{Ctx, ab};
use super::recorder::Recorder;
use super::theme::{ColorDepth, Theme};
use super::update::{Cmd, Msg, Refusal, Seek, recorded, update};
use super::{Around, Options, Outcome, Recording, Watch, change, input, svg, view};

mod pulse;
mod screen;

use pulse::Pulse;
use screen::Screen;

mod live;

pub use live::{Live, live};

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
    run_with(lab, options, Around::default())
}

/// As [`run`], with somebody else who sees the samples, and with a registry from which another stack can be
/// built while the dashboard is open.
///
/// # Errors
/// As [`run`].
pub fn run_with(lab: Lab, options: Options, around: Around<'_>) -> anyhow::Result<Outcome> {
    // The theme alone decides on colours; crossterm's own reading of NO_COLOR would also cancel
    // bold and reversed.
    crossterm::style::force_color_output(true);
    let (messages, inbox) = mpsc::sync_channel(QUEUE);
    let hook = PanicHook::install(messages.clone());
    let signals = input::SignalWatch::start(messages.clone()).context("cannot watch signals")?;
    let recorder = Recorder::start(&lab, around.out, around.command);
    let recorder = recorder.context("--out")?;
    let (mut record, mut others) = (recorder.taker(), around.watch);
    let watch: Box<Watch> = Box::new(move |sample| {
        record(sample);
        others(sample)
    });
    let watch = Arc::new(Mutex::new(watch));
    forward(&lab, &watch, &messages)?;
    let model = Model::new(setup(&lab, options));
    let mut dash = Dash::open(model, options, messages, watch)?;
    (dash.lab, dash.registry) = (Some(lab), around.registry);
    dash.model.out = recorder.folder();
    dash.model.setup.settings = around.settings;
    dash.recorder = Some(recorder);
    dash.drive(&inbox);

    let Dash {
        lab,
        recorder,
        guard,
        model,
        end,
        ..
    } = dash;
    drop(guard);
    drop(hook);
    let lab = lab.context("no workload could be started again")?;
    let out = recorder.as_ref().and_then(Recorder::folder);
    let summary = match recorder {
        Some(recorder) => with_screen(&model, |screen| {
            recorder.finish(lab, &model.live.log, screen)
        })
        .context("--out")?,
        None => lab.finish(),
    };
    drop(signals);
    let code = match end {
        Some(End::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(255),
        Some(End::Asked) | None => u8::from(model.wrong().is_some()),
    };
    Ok(Outcome {
        summary,
        out,
        compared: ab::sentence(&Ctx::new(&model)),
        screen: model.keep.then(|| text(&picture(&model))),
        code,
    })
}

/// The screen as it is drawn.
fn picture(model: &Model) -> Buffer {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buf = Buffer::empty(area);
    view::render(model, area, &mut buf);
    buf
}

/// What is to be done with the screen as it is, as a picture and as text.
fn with_screen<T>(model: &Model, then: impl FnOnce(cairn_lab::Screen<'_>) -> T) -> T {
    let buf = picture(model);
    then(cairn_lab::Screen {
        svg: &svg::picture(&buf, &model.setup.scenario),
        text: &text(&buf),
    })
}

/// The characters of a screen, lines without trailing blanks.
fn text(buf: &Buffer) -> String {
    let width = usize::from(buf.area.width).max(1);
    let mut text = String::new();
    for row in buf.content.chunks(width) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Shows a recorded run in the same views until the operator quits or a signal ends it.
///
/// # Errors
/// As [`run`].
pub fn replay(recording: Recording, options: Options) -> anyhow::Result<u8> {
    crossterm::style::force_color_output(true);
    let (messages, inbox) = mpsc::sync_channel(QUEUE);
    let hook = PanicHook::install(messages.clone());
    let signals = input::SignalWatch::start(messages.clone()).context("cannot watch signals")?;
    let watch: Box<Watch> = Box::new(|_| None);
    let first = recording.samples.first();
    let last = recording.samples.last();
    let arms = first.map_or_else(Vec::new, |s| s.arms.clone());
    let model = Model::new(Setup {
        scenario: recording.scenario,
        stack: recording.stack,
        recorded: Some(last.map_or(Duration::ZERO, |s| s.elapsed)),
        seed: recording.seed,
        workloads: Vec::new(),
        arms,
        policies: recording.policies,
        interval: cairn_lab::Options::default().interval,
        ..look(options)
    });
    let mut dash = Dash::open(model, options, messages, Arc::new(Mutex::new(watch)))?;
    dash.player = Some(Player {
        samples: recording.samples,
        events: recording.events,
        at: 0,
        playing: None,
    });
    dash.seek(Seek::End);
    dash.drive(&inbox);
    let end = dash.end;
    drop(dash);
    drop((hook, signals));
    Ok(exit_code(end))
}

/// Sends the samples of a lab on to the dashboard.
fn forward(
    lab: &Lab,
    watch: &Arc<Mutex<Box<Watch>>>,
    messages: &SyncSender<Msg>,
) -> anyhow::Result<()> {
    let samples = lab
        .take_samples()
        .context("the lab's samples are taken already")?;
    input::samples(samples, Arc::clone(watch), messages.clone())
        .context("cannot start a thread for samples")
}

fn setup(lab: &Lab, options: Options) -> Setup {
    let policies = lab.policies();
    let list = policies.list().to_vec();
    Setup {
        scenario: lab.scenario().name.clone(),
        stack: lab.stack().to_owned(),
        seed: lab.scenario().seed,
        workloads: change::editable(lab.scenario()),
        arms: (0..list.len()).map(|i| policies.arm(i)).collect(),
        policies: list,
        ..look(options)
    }
}

/// A setup without a run: how it is to look.
fn look(options: Options) -> Setup {
    Setup {
        scenario: String::new(),
        stack: String::new(),
        recorded: None,
        seed: 0,
        workloads: Vec::new(),
        arms: Vec::new(),
        policies: Vec::new(),
        settings: Vec::new(),
        interval: cairn_lab::Options::default().interval,
        theme: Theme {
            depth: ColorDepth::choose(options.color, |name| std::env::var(name).ok()),
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

/// 0, or what a signal says.
fn exit_code(end: Option<End>) -> u8 {
    match end {
        Some(End::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(255),
        Some(End::Asked) | None => 0,
    }
}

struct Dash<'a> {
    model: Model,
    /// `None` only while one is exchanged for another.
    lab: Option<Lab>,
    /// Keeps what its samples say.
    recorder: Option<Recorder>,
    registry: Option<&'a Registry>,
    watch: Arc<Mutex<Box<Watch>>>,
    messages: SyncSender<Msg>,
    /// Samples of the lab before may still be on their way.
    stale: bool,
    guard: Guard,
    screen: Screen,
    end: Option<End>,
    /// The terminal was given back for a stop; nothing is drawn until the process goes on.
    away: bool,
    /// What a stop of the process still waits for.
    pause: Pause,
    /// The recorded run that is shown instead of a lab's.
    player: Option<Player>,
}

/// A recorded run and the place in it.
struct Player {
    samples: Vec<Arc<Sample>>,
    events: Vec<(Duration, String)>,
    /// Samples shown.
    at: usize,
    /// When the next one is due, while it plays.
    playing: Option<Instant>,
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

impl Dash<'_> {
    /// Takes the terminal and starts to read keys.
    fn open(
        model: Model,
        options: Options,
        messages: SyncSender<Msg>,
        watch: Arc<Mutex<Box<Watch>>>,
    ) -> anyhow::Result<Self> {
        let guard = Guard::take(options.mouse).context("cannot set the terminal up")?;
        input::keys(messages.clone()).context("cannot start a thread for keys")?;
        Ok(Self {
            model,
            lab: None,
            recorder: None,
            registry: None,
            watch,
            messages,
            stale: false,
            guard,
            screen: Screen::new().context("cannot write to the terminal")?,
            end: None,
            away: false,
            pause: Pause::None,
            player: None,
        })
    }

    fn drive(&mut self, inbox: &Receiver<Msg>) {
        let mut pulse = Pulse::new();
        while self.end.is_none() {
            let now = Instant::now();
            self.play(now);
            let due = self.due();
            if due.is_some_and(|due| due <= now) {
                self.draw();
                pulse.frames += 1;
                continue;
            }
            let next = self.player.as_ref().and_then(|player| player.playing);
            let due = due.into_iter().chain(next).min();
            let wait = due.map_or(PULSE, |due| due.saturating_duration_since(now).min(PULSE));
            match inbox.recv_timeout(wait) {
                Ok(msg) => {
                    pulse.note(&msg);
                    self.take(msg);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match pulse.beat(&mut self.model) {
                // A recorded run has no sampler that could be silent.
                Some(Msg::Stalled(_)) if self.player.is_some() => {}
                Some(msg) => self.take(msg),
                None => {}
            }
        }
    }

    /// Shows the next sample of a recorded run when its time has come.
    fn play(&mut self, now: Instant) {
        let Some(player) = &mut self.player else {
            return;
        };
        if player.playing.is_none_or(|due| due > now) {
            return;
        }
        let gap = |i: usize| player.samples.get(i).map(|s| s.interval);
        player.playing = gap(player.at).map(|gap| now + gap.min(PULSE));
        self.seek(Seek::By(1));
    }

    fn seek(&mut self, to: Seek) {
        let Some(player) = &mut self.player else {
            return;
        };
        let last = player.samples.len();
        player.at = match to {
            Seek::Start => 1,
            Seek::End => last,
            Seek::By(n) => {
                let n = isize::try_from(n).unwrap_or(0);
                player.at.saturating_add_signed(n).clamp(1, last.max(1))
            }
        };
        if player.at >= last {
            player.playing = None;
        }
        recorded::show(&mut self.model, &player.samples, &player.events, player.at);
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
            self.stale &= sample.seq > 0;
            if self.stale {
                return;
            }
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
            Cmd::Suspend => self.suspend(),
            Cmd::Reenter => {
                self.away = false;
                if self.guard.again().is_err() {
                    self.end = Some(End::Signal(SIGHUP));
                }
                self.screen.repaint();
            }
            Cmd::Play => {
                if let Some(player) = &mut self.player {
                    if player.playing.is_none() && player.at >= player.samples.len() {
                        player.at = 0;
                    }
                    player.playing = match player.playing {
                        Some(_) => None,
                        None => Some(Instant::now()),
                    };
                }
            }
            Cmd::Seek(to) => self.seek(to),
            Cmd::Repaint => self.screen.repaint(),
            Cmd::Export => self.export(),
            Cmd::Compare(path) => {
                let msg = match saved(&path) {
                    Ok(saved) => Msg::Saved(Box::new(saved)),
                    Err(text) => Msg::Refused(text.into()),
                };
                self.take(msg);
            }
            Cmd::Quit(signal) => self.end = Some(signal.map_or(End::Asked, End::Signal)),
            Cmd::SetStack(spec) => {
                self.rebuild(|scenario, registry| change::stack(scenario, &spec, registry));
            }
            Cmd::SetWorkload(index, text) => {
                self.rebuild(|scenario, _| change::workload(scenario, index, &text));
            }
            cmd => {
                if let Some(msg) = self.lab.as_ref().and_then(|lab| ask(lab, &cmd)) {
                    self.take(msg);
                }
            }
        }
    }

    /// Writes the run as far as it is.
    fn export(&mut self) {
        let (Some(recorder), Some(lab)) = (&self.recorder, &self.lab) else {
            return;
        };
        let log = &self.model.live.log;
        let msg = match with_screen(&self.model, |screen| recorder.export(lab, log, screen)) {
            Ok(folder) => Msg::Exported(folder),
            Err(error) => refused(format!("the run cannot be written: {error}")),
        };
        self.take(msg);
    }

    /// Ends the lab that runs; what was to be written of its run is written.
    fn end_lab(&mut self) {
        let Some(lab) = self.lab.take() else { return };
        let Some(recorder) = &self.recorder else {
            return drop(lab);
        };
        let (out, log) = (recorder.folder(), &self.model.live.log);
        let written = with_screen(&self.model, |screen| recorder.finish(lab, log, screen));
        match (written, out) {
            (Ok(_), Some(folder)) => self.take(Msg::Exported(folder)),
            (Ok(_), None) => {}
            (Err(error), _) => {
                self.take(refused(format!("the run was not written: {error}")));
            }
        }
    }

    /// Runs a changed scenario in place of the one that runs. The change is checked before anything stops;
    /// should the changed one not start all the same, the old one starts again.
    fn rebuild(
        &mut self,
        change: impl FnOnce(&mut Scenario, &Registry) -> Result<String, Refusal>,
    ) {
        let (Some(registry), Some(lab)) = (self.registry, &self.lab) else {
            let text = "nothing can be composed here: the program gave the dashboard no registry";
            return self.take(refused(text.to_owned()));
        };
        let old = change::as_it_stands(lab);
        let mut new = old.clone();
        let what = match change(&mut new, registry) {
            Ok(what) => what,
            Err(refusal) => return self.take(Msg::Refused(refusal)),
        };
        // Both at once may not fit into memory.
        self.end_lab();
        self.stale = true;
        let start = |scenario| Lab::start(scenario, registry, cairn_lab::Options::default());
        let (lab, refusal) = match start(new) {
            Ok(lab) => (Ok(lab), None),
            Err(error) => (start(old), Some(error)),
        };
        let followed = lab
            .map_err(anyhow::Error::from)
            .and_then(|lab| forward(&lab, &self.watch, &self.messages).map(|()| lab));
        let lab = match followed {
            Ok(lab) => lab,
            Err(error) => {
                let text = format!("no workload can be started again: {error}");
                return self.take(Msg::Panic(text));
            }
        };
        let recorded = self.recorder.as_mut().map(|r| r.go_on(&lab));
        self.model.out = self.recorder.as_ref().and_then(Recorder::folder);
        let msg = Msg::Rebuilt {
            what: match &refusal {
                None => what,
                Some(_) => "the one before, again".to_owned(),
            },
            stack: lab.stack().to_owned(),
            workloads: change::editable(lab.scenario()),
        };
        self.lab = Some(lab);
        self.take(msg);
        if let Some(Err(error)) = recorded {
            self.take(refused(format!("this run will not be written: {error}")));
        }
        if let Some(error) = refusal {
            self.take(refused(format!("not started: {error}")));
        }
    }

    /// Stops the process until someone continues it; the signal that does so sets the terminal up
    /// again.
    fn suspend(&mut self) {
        if leads_session() {
            let text = "no shell to suspend to: the dashboard is the terminal's first program";
            return self.take(refused(text.to_owned()));
        }
        match self.pause {
            Pause::None
                if self.lab.is_some() && self.model.running() && self.model.stalled.is_none() =>
            {
                self.pause = Pause::Into;
                self.execute(Cmd::Stop);
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
            self.take(refused(format!("cannot suspend: {error}")));
            self.execute(Cmd::Reenter);
        }
    }
}

fn refused(text: String) -> Msg {
    Msg::Refused(text.into())
}

/// Asks the lab for what a command wants; what there is to say about it.
fn ask(lab: &Lab, cmd: &Cmd) -> Option<Msg> {
    match cmd {
        Cmd::Toggle(policy) => return toggle(lab, *policy),
        Cmd::Stop => lab.stop_workload(),
        Cmd::Start => {
            if let Err(error) = lab.start_workload() {
                let text = format!("cannot start the workload: {error}");
                return Some(refused(text));
            }
        }
        Cmd::Reset => lab.reset(),
        Cmd::ShowBlocks(from, blocks) => lab.show_blocks(*from, *blocks),
        Cmd::ShowFile(number) => lab.show_file(*number),
        Cmd::Shrink => return Some(Msg::Shrunk(lab.shrink())),
        Cmd::Auto(plan) => {
            if let Err(error) = lab.start_auto(*plan) {
                return Some(refused(format!("no auto A/B: {error}")));
            }
        }
        Cmd::StopAuto => lab.stop_auto(),
        Cmd::CompareBy(workload) => lab.compare_by(*workload),
        _ => {}
    }
    None
}

/// What a recorded run came to.
fn saved(path: &str) -> Result<Saved, String> {
    if path.is_empty() {
        return Err(
            "the directory of a run is wanted, such as runs/2026-11-30T17-42-05".to_owned(),
        );
    }
    let run = RunDir::read(Path::new(path)).map_err(|e| e.to_string())?;
    let summary = run.summary().cloned();
    Ok(Saved {
        folder: path.to_owned(),
        summary: summary
            .ok_or_else(|| format!("{path}: a comparison of two arms; cairn report shows it"))?,
    })
}

fn toggle(lab: &Lab, policy: usize) -> Option<Msg> {
    let policies = lab.policies();
    let arms = policies.list().get(policy).map_or(0, |p| p.arms.len());
    let arm = (policies.arm(policy) + 1).checked_rem(arms)?;
    Some(match policies.set(policy, arm) {
        Ok(()) => Msg::Armed { policy, arm },
        Err(error) => refused(error.to_string()),
    })
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
