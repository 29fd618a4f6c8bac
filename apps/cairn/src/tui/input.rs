//! Threads that turn the outside into messages: keys, signals, samples.
//!
//! Keys are read on a thread of their own because a lost terminal makes that read spin or never
//! return; nothing waits for this thread at the end.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};

use cairn_lab::Sample;

use super::Watch;
use super::update::Msg;

/// How long an orderly end may take after a signal; a hung-up terminal waits less, as nobody sees
/// the end.
const PATIENCE: Duration = Duration::from_secs(5);
const HANGUP: Duration = Duration::from_secs(1);

/// Starts to read keys.
///
/// # Errors
/// When no thread can be had.
pub(super) fn keys(messages: SyncSender<Msg>) -> io::Result<()> {
    thread::Builder::new()
        .name("dash-keys".to_owned())
        .spawn(move || {
            loop {
                let msg = match event::read() {
                    Ok(Event::Key(key)) => Msg::Key(key),
                    Ok(Event::Mouse(event)) => Msg::Mouse(event),
                    Ok(Event::Resize(width, height)) => Msg::Resize(width, height),
                    Ok(_) => continue,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => Msg::InputGone,
                };
                let gone = matches!(msg, Msg::InputGone);
                if messages.send(msg).is_err() || gone {
                    return;
                }
            }
        })
        .map(drop)
}

/// Shows samples to `watch` and forwards them, until the sampler or the dashboard ends. While the dashboard is busy this waits,
/// the lab's channel fills, and the sampler counts what it must drop.
///
/// # Errors
/// When no thread can be had.
pub(super) fn samples(
    from: Receiver<Arc<Sample>>,
    watch: Arc<Mutex<Box<Watch>>>,
    messages: SyncSender<Msg>,
) -> io::Result<()> {
    thread::Builder::new()
        .name("dash-samples".to_owned())
        .spawn(move || {
            for sample in from {
                // Whoever watched and panicked is not asked again; the view goes on.
                let word = watch.lock().ok().and_then(|mut watch| watch(&sample));
                if let Some(text) = word
                    && messages.send(Msg::Refused(text.into())).is_err()
                {
                    return;
                }
                if messages.send(Msg::Sample(sample)).is_err() {
                    return;
                }
            }
        })
        .map(drop)
}

/// Watches signals until dropped.
pub(super) struct SignalWatch {
    handle: Handle,
}

impl SignalWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// When a handler cannot be installed or no thread can be had.
    pub(super) fn start(messages: SyncSender<Msg>) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT])?;
        let handle = signals.handle();
        thread::Builder::new()
            .name("dash-signals".to_owned())
            .spawn(move || {
                let mut ending = false;
                for signal in &mut signals {
                    let msg = match signal {
                        SIGTSTP => Msg::Suspend,
                        SIGCONT => {
                            // Must arrive: the dashboard draws nothing before it.
                            if messages.send(Msg::Continue).is_err() {
                                return;
                            }
                            continue;
                        }
                        _ if ending => exit(signal),
                        _ => {
                            ending = true;
                            patience(signal);
                            Msg::Terminate(signal)
                        }
                    };
                    // A full channel means that the drawing thread hangs; the patience ends that.
                    let _full = messages.try_send(msg);
                }
            })?;
        Ok(Self { handle })
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Ends the process if it is still there after a while.
fn patience(signal: i32) {
    let wait = if signal == SIGHUP { HANGUP } else { PATIENCE };
    // Without a thread there is no patience: better late than a process that cannot be ended.
    let _none = thread::Builder::new()
        .name("dash-patience".to_owned())
        .spawn(move || {
            thread::sleep(wait);
            exit(signal);
        });
}

/// Gives the terminal back and ends the process as the signal would have.
fn exit(signal: i32) -> ! {
    super::guard::leave();
    std::process::exit(128 + signal)
}
