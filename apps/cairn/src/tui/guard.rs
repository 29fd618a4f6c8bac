//! Takes the terminal and gives it back exactly once, whatever happens: on return, on a panic of the
//! drawing thread, on a signal.
//!
//! Everything is written to a duplicate of the terminal's descriptor, not through
//! `std::io::stdout()`: its lock and its line buffer could be in use by the thread that panicked.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, queue};

use super::update::Msg;

/// The terminal is ours. Swapped by whoever leaves, so that only one does.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Mouse events were asked for.
static MOUSE: AtomicBool = AtomicBool::new(false);
/// Where to write on the way out.
static TERMINAL: OnceLock<File> = OnceLock::new();
/// The panic of another thread that found the channel full.
static LATE_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// A duplicate of standard output.
///
/// # Errors
/// When the system has no descriptor left.
pub(super) fn terminal() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// The terminal in the dashboard's mode, until dropped.
#[derive(Debug)]
pub(super) struct Guard(());

impl Guard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be set to raw mode; it is as it was then.
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        MOUSE.store(mouse, Ordering::Relaxed);
        if TERMINAL.get().is_none() {
            // A second dashboard in one process writes to the same terminal.
            let _first = TERMINAL.set(terminal()?);
        }
        let guard = Self(());
        enter()?;
        Ok(guard)
    }

    /// Gives the terminal back; [`Guard::again`] takes it once more.
    #[expect(
        clippy::unused_self,
        reason = "only who took the terminal may give it back"
    )]
    pub(super) fn leave(&self) {
        leave();
    }

    /// Takes the terminal again, from whatever mode it was put into meanwhile.
    ///
    /// # Errors
    /// As [`Guard::take`].
    #[expect(
        clippy::unused_self,
        reason = "only who took the terminal may take it again"
    )]
    pub(super) fn again(&self) -> io::Result<()> {
        leave();
        enter()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    // Before the first change: half an entry has to be undone too.
    ACTIVE.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    if let Some(mut out) = TERMINAL.get() {
        let mut bytes = Vec::new();
        queue!(bytes, EnterAlternateScreen, cursor::Hide)?;
        if MOUSE.load(Ordering::Relaxed) {
            queue!(bytes, EnableMouseCapture)?;
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Undoes [`enter`], once. Errors are ignored: there is nobody left to tell.
pub(super) fn leave() {
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Some(mut out) = TERMINAL.get() {
        let mut bytes = Vec::new();
        let mouse = MOUSE.load(Ordering::Relaxed);
        // Writing to a vector cannot fail.
        let _infallible = queue!(bytes, EndSynchronizedUpdate);
        if mouse {
            let _infallible = queue!(bytes, DisableMouseCapture);
        }
        let _infallible = queue!(bytes, LeaveAlternateScreen, cursor::Show);
        let _dead_terminal = out.write_all(&bytes);
    }
    let _dead_terminal = disable_raw_mode();
}

/// The panic of another thread that the channel had no room for.
pub(super) fn late_panic() -> Option<String> {
    LATE_PANIC
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// The panic hook of the dashboard, until dropped.
///
/// The default hook prints to the terminal, under the live view. So a panic of another thread
/// becomes a message; a panic of the drawing thread gives the terminal back first.
pub(super) struct PanicHook {
    before: Arc<Hook>,
}

impl PanicHook {
    /// Installs the hook; the calling thread is the drawing one.
    pub(super) fn install(messages: SyncSender<Msg>) -> Self {
        let before: Arc<Hook> = panic::take_hook().into();
        let old = Arc::clone(&before);
        let drawing = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            hook(drawing, &messages, info, old.as_ref());
        }));
        Self { before }
    }
}

impl Drop for PanicHook {
    fn drop(&mut self) {
        // A panicking thread may not change the hook; the process is about to end then anyway.
        if !thread::panicking() {
            let before = Arc::clone(&self.before);
            panic::set_hook(Box::new(move |info| before(info)));
        }
    }
}

fn hook(drawing: ThreadId, messages: &SyncSender<Msg>, info: &PanicHookInfo<'_>, old: &Hook) {
    let current = thread::current();
    if current.id() == drawing {
        leave();
        old(info);
        return;
    }
    let text = describe(current.name(), info);
    if messages.try_send(Msg::Panic(text.clone())).is_err() {
        *LATE_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

fn describe(thread: Option<&str>, info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let words = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place = info
        .location()
        .map(|l| format!(", at {}:{}", l.file(), l.line()))
        .unwrap_or_default();
    format!(
        "thread {} panicked: {words}{place}",
        thread.unwrap_or("without a name")
    )
}
