//! `cairn nbd`: stacks as network block devices.

mod sample;
mod tls;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use cairn_block::Stack;
use cairn_lab::Registry;
use cairn_nbd::codec::HandshakeLimits;
use cairn_nbd::{Export, Listener, Recorder, Server, ServerConfig, Stopper};

use super::dash;
use crate::cli::{NbdAction, NbdArgs, ServeArgs};
use crate::config;
use crate::exit::{DONE, Failed};
use crate::interrupt::Interrupt;
use crate::output::note;
use crate::tui;
use sample::Sampler;
use watch::Watch;

/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub(crate) fn run(args: NbdArgs, registry: &Registry) -> anyhow::Result<u8> {
    let NbdAction::Serve(args) = args.action;
    serve(&args, registry)
}

fn serve(args: &ServeArgs, registry: &Registry) -> anyhow::Result<u8> {
    let stacks = stacks(args, registry)?;
    let exports = stacks
        .iter()
        .map(|(name, stack)| {
            let export = Export::new(name.clone(), stack.device().clone())?;
            let about = args
                .description
                .clone()
                .filter(|_| name.is_empty())
                .unwrap_or_else(|| stack.spec().to_string());
            Ok(export.described(about)?.read_only(args.read_only))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut handshake = HandshakeLimits::default();
    (handshake.options, handshake.queries) = (args.max_options, args.max_queries);
    handshake.option_len = args.max_option;
    let wide = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let mut config = ServerConfig::new()
        .handshake(handshake)
        .in_flight(wide(args.max_requests), wide(args.max_bytes))
        .stalled(args.send_timeout)
        .connections(wide(args.max_conn))
        .handshake_time(args.handshake_timeout)
        .idle(args.idle_timeout)
        .threads(args.threads.into())
        .max_payload(args.max_payload);
    config = tls::with(config, args)?;
    // Behind a dashboard there is no line for a note: it is told among the events.
    let dashboard = args.dash && dash::has_screen();
    let (told, notes) = mpsc::sync_channel(64);
    config = config.notes(move |text: &str| {
        if dashboard {
            // With so many waiting, one more would not be read.
            let _ = told.try_send(text.to_owned());
        } else {
            note(text);
        }
    });
    let recorder = match &args.record {
        None => None,
        Some(file) => {
            let what = || format!("--record {}", file.display());
            Some(Arc::new(Recorder::create(file).with_context(what)?))
        }
    };
    if let Some(recorder) = &recorder {
        config = config.record(Arc::clone(recorder));
    }
    // Signals are watched before anybody can connect.
    let interrupt = Interrupt::watch().context("cannot watch for signals")?;
    let listener = listen(args)?;
    let uri = |name: &str| tls::uri(args, listener.uri(name));
    let server = Server::new(config, exports)?;
    for (name, _) in &stacks {
        note(&format!("serving {}", uri(name)));
    }
    let ended = thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&listener));
        let stopper = server.stopper();
        let flag = interrupt.flag();
        if dashboard {
            let screen = Screen {
                stacks: &stacks,
                stopper: &stopper,
                title: uri(""),
                notes,
            };
            let shown = screen.show(&|| serving.is_finished());
            stopper.stop();
            let ended = serving.join();
            tell(&stopper);
            return (ended, shown.map(Some));
        }
        let mut watch = args.dash.then(|| Watch::new(&stacks));
        while !flag.load(Ordering::Relaxed) && !serving.is_finished() {
            thread::sleep(LOOK);
            if let Some(watch) = &mut watch {
                watch.look(&stopper);
            }
        }
        stopper.stop();
        let ended = serving.join();
        tell(&stopper);
        (ended, Ok(None))
    });
    let (ended, shown) = ended;
    if let Some(recorder) = recorder {
        let what = "--record: the log is incomplete";
        recorder
            .finish()
            .map_err(|e| Failed(anyhow::Error::new(e).context(what)))?;
    }
    let shown = shown.map_err(Failed)?;
    match ended {
        Ok(Ok(())) => Ok(shown.or_else(|| interrupt.code()).unwrap_or(DONE)),
        Ok(Err(error)) => Err(Failed(error.into()).into()),
        Err(_) => Err(Failed(anyhow::anyhow!("the server panicked")).into()),
    }
}

/// A server behind the dashboard.
struct Screen<'a> {
    stacks: &'a [(String, Stack)],
    stopper: &'a Stopper,
    title: String,
    notes: Receiver<String>,
}

impl Screen<'_> {
    /// Shows it until the operator quits or a signal comes; gives the exit code for that.
    fn show(self, over: &(dyn Fn() -> bool + Sync)) -> anyhow::Result<u8> {
        let config = config::load(None, |name| std::env::var(name).ok())?.config;
        let options = dash::options(&crate::cli::DashArgs::default(), &config);
        let (to, samples) = mpsc::sync_channel(16);
        let (stacks, stopper, notes) = (self.stacks, self.stopper, self.notes);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut server = Sampler::new(stacks);
                loop {
                    thread::sleep(LOOK);
                    let over = over();
                    if !server.look(stopper, over, &to) || over {
                        return;
                    }
                }
            });
            let specs: Vec<String> = stacks.iter().map(|(_, s)| s.spec().to_string()).collect();
            tui::live(
                tui::Live {
                    scenario: self.title,
                    stack: specs.join(", "),
                    samples,
                    watch: Box::new(move |_| notes.try_recv().ok()),
                },
                options,
            )
        })
    }
}

/// Builds every stack before anybody can connect.
fn stacks(args: &ServeArgs, registry: &Registry) -> anyhow::Result<Vec<(String, Stack)>> {
    let blocks = registry.block_registry();
    let open = |spec: &str| blocks.open(spec).context("the stack");
    let mut all = vec![(String::new(), open(&args.spec)?)];
    for export in &args.exports {
        let (name, spec) = export
            .split_once('=')
            .with_context(|| format!("--export {export}: write NAME=SPEC"))?;
        let stack = open(spec).with_context(|| format!("--export {name}"))?;
        all.push((name.to_owned(), stack));
    }
    Ok(all)
}

fn listen(args: &ServeArgs) -> anyhow::Result<Listener> {
    // What is always encrypted may be reached from outside.
    let expose = args.expose || tls::required(args);
    match (&args.unix, args.tcp) {
        (Some(path), _) => Ok(Listener::unix(path)?),
        (None, Some(at)) => Listener::tcp(at, expose).map_err(|error| match error {
            cairn_nbd::ListenError::Exposed(_) => {
                anyhow::Error::new(error).context("--tcp without --expose")
            }
            other => other.into(),
        }),
        (None, None) => anyhow::bail!("give --unix PATH or --tcp ADDR"),
    }
}

/// What was served, once it is over.
fn tell(stopper: &Stopper) {
    let stats = stopper.stats();
    let t = stats.totals;
    note(&format!(
        "served {} connections: {} reads ({} bytes), {} writes ({} bytes), {} other requests, {} errors",
        stats.connections, t.reads, t.read_bytes, t.writes, t.written_bytes, t.others, t.errors
    ));
    if stats.refused + stats.broken > 0 {
        note(&format!(
            "{} connections were refused, {} broken off",
            stats.refused, stats.broken
        ));
    }
}
