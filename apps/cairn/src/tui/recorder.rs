//! The record of a run under way: every sample as it comes, written when somebody asks, and at the end if that
//! was asked for.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_lab::{Lab, RunWriter, Sample, Screen, Summary};

use super::log::{Kind, Log};

/// Where exported runs go.
const FOLDER: &str = "runs";

/// The record, and a handle on it for the thread that samples come in on.
pub(super) struct Recorder {
    tape: Arc<Mutex<Tape>>,
    /// Directory of `--out`.
    out: Option<PathBuf>,
    /// Runs that ended while the dashboard was open.
    ended: u32,
    command: String,
}

/// What samples are written on.
struct Tape {
    run: RunWriter,
    /// Samples of a run that has ended may still come in.
    stale: bool,
}

impl Recorder {
    /// Makes the directory of `--out`, which must be new or empty.
    pub(super) fn start(lab: &Lab, out: Option<PathBuf>, command: String) -> io::Result<Self> {
        let run = open(lab, out.as_deref())?;
        Ok(Self {
            tape: Arc::new(Mutex::new(Tape { run, stale: false })),
            out,
            ended: 0,
            command,
        })
    }

    /// Whoever sees each sample.
    pub(super) fn taker(&self) -> impl FnMut(&Sample) + Send + use<> {
        let tape = Arc::clone(&self.tape);
        move |sample| {
            let mut tape = lock(&tape);
            tape.stale &= sample.seq > 0;
            if !tape.stale {
                tape.run.sample(sample);
            }
        }
    }

    /// Where the run is written to at its end.
    pub(super) fn folder(&self) -> Option<String> {
        let tape = lock(&self.tape);
        Some(tape.run.folder()?.display().to_string())
    }

    /// Writes the run as far as it is to a directory named by the time; the directory.
    pub(super) fn export(&self, lab: &Lab, log: &Log, screen: Screen<'_>) -> io::Result<String> {
        let mut run = lock(&self.tape).run.clone();
        note(&mut run, log);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = stamp(now.unwrap_or_default());
        let mut number = 1;
        loop {
            let name = match number {
                1 => stamp.clone(),
                n => format!("{stamp}-{n}"),
            };
            let folder = Path::new(FOLDER).join(name);
            match run.export(&folder, lab, &self.command, Some(screen)) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
                ended => return ended.map(|()| folder.display().to_string()),
            }
        }
    }

    /// Ends the lab, and writes its run if that was asked for.
    pub(super) fn finish(&self, lab: Lab, log: &Log, screen: Screen<'_>) -> io::Result<Summary> {
        let mut run = {
            let mut tape = lock(&self.tape);
            tape.stale = true;
            let next = RunWriter::in_memory(&lab.policies());
            std::mem::replace(&mut tape.run, next)
        };
        note(&mut run, log);
        run.finish(lab, &self.command, Some(screen))
    }

    /// Goes on with another run, into a directory beside that of `--out`.
    pub(super) fn go_on(&mut self, lab: &Lab) -> io::Result<()> {
        self.ended += 1;
        let out = self.out.as_ref().map(|out| {
            let mut name = out.clone().into_os_string();
            name.push(format!("-{}", self.ended + 1));
            PathBuf::from(name)
        });
        let run = open(lab, out.as_deref())?;
        lock(&self.tape).run = run;
        Ok(())
    }
}

fn open(lab: &Lab, out: Option<&Path>) -> io::Result<RunWriter> {
    match out {
        Some(folder) => RunWriter::create(folder, &lab.policies()),
        None => Ok(RunWriter::in_memory(&lab.policies())),
    }
}

fn lock(tape: &Mutex<Tape>) -> MutexGuard<'_, Tape> {
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds what the dashboard noted.
fn note(run: &mut RunWriter, log: &Log) {
    for event in log.iter() {
        let kind = match event.kind {
            // The writer sees these in the samples itself.
            Kind::Switch => continue,
            Kind::Info => "note",
            Kind::Warn => "warning",
            Kind::Bad => "error",
        };
        run.event(event.at, kind, "", &event.text);
    }
}

/// `2026-11-30T17-42-05`, in UTC.
fn stamp(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    format!(
        "{year}-{month:02}-{:02}T{:02}-{:02}-{:02}",
        days + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_the_time() {
        for (seconds, name) in [
            (0, "1970-01-01T00-00-00"),
            (951_782_400, "2000-02-29T00-00-00"),
            (1_796_060_525, "2026-11-30T17-42-05"),
            (1_798_761_599, "2026-12-31T23-59-59"),
        ] {
            assert_eq!(stamp(Duration::from_secs(seconds)), name);
        }
    }
}
