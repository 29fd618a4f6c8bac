//! What is shown while jobs run: the lines at the start and the ETA line.

use std::fmt::{self, Write};

use super::{Unit, shorten};
use crate::job::{Ddir, PerDir, RwMode};
use crate::plan::Plan;

/// What one thread is doing, with fio's letter for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Not there yet.
    NotCreated,
    /// Created, not started.
    Created,
    /// Setting up.
    Initialised,
    /// Reading files beforehand.
    PreReading,
    /// Running, not measured yet.
    Ramping,
    /// Doing I/O of this kind.
    Running(RwMode),
    /// Checking what was written.
    Verifying,
    /// Flushing.
    Syncing,
    /// Cleaning up.
    Finishing,
    /// Done, result not collected.
    Exited,
    /// Done.
    Reaped,
    /// Done with an error.
    Failed,
}

impl RunState {
    /// fio's letter.
    pub const fn letter(self) -> char {
        match self {
            Self::NotCreated => 'P',
            Self::Created => 'C',
            Self::Initialised => 'I',
            Self::PreReading => 'p',
            Self::Ramping => '/',
            Self::Running(mode) => match mode {
                RwMode::Read => 'R',
                RwMode::RandRead => 'r',
                RwMode::Write => 'W',
                RwMode::RandWrite => 'w',
                RwMode::Rw => 'M',
                RwMode::RandRw => 'm',
                RwMode::Trim | RwMode::TrimWrite => 'D',
                RwMode::RandTrim | RwMode::RandTrimWrite => 'd',
            },
            Self::Verifying => 'V',
            Self::Syncing => 'F',
            Self::Finishing => 'f',
            Self::Exited => 'E',
            Self::Reaped => '_',
            Self::Failed => 'X',
        }
    }

    /// Whether the thread counts as running.
    const fn runs(self) -> bool {
        matches!(
            self,
            Self::PreReading
                | Self::Ramping
                | Self::Running(_)
                | Self::Verifying
                | Self::Syncing
                | Self::Finishing
        )
    }
}

/// The line that tells how far the run is.
///
/// ```
/// use cairn_fio::job::{PerDir, RwMode};
/// use cairn_fio::output::{EtaLine, RunState};
/// let line = EtaLine {
///     states: vec![RunState::Running(RwMode::RandWrite), RunState::Running(RwMode::RandRead)],
///     open_files: 2,
///     done_percent: Some(45.0),
///     bytes_per_s: PerDir { read: 430_964_736, write: 432_013_312, trim: 0 },
///     iops: PerDir { read: 105_216, write: 105_472, trim: 0 },
///     eta_s: Some(11),
/// };
/// assert_eq!(
///     line.to_string(),
///     "Jobs: 2 (f=2): [w(1),r(1)][45.0%][r=411MiB/s,w=412MiB/s][r=105k,w=105k IOPS][eta 00m:11s]"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EtaLine {
    /// State of each thread, in order.
    pub states: Vec<RunState>,
    /// Files open.
    pub open_files: u32,
    /// How much is done; `None` when it cannot be known.
    pub done_percent: Option<f64>,
    /// Bytes per second since the last line.
    pub bytes_per_s: PerDir<u64>,
    /// I/Os per second since the last line.
    pub iops: PerDir<u64>,
    /// Seconds left.
    pub eta_s: Option<u64>,
}

impl fmt::Display for EtaLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.states.iter().filter(|state| state.runs()).count();
        write!(f, "Jobs: {running} (f={}): [", self.open_files)?;
        let letters: Vec<char> = self.states.iter().map(|state| state.letter()).collect();
        for (index, same) in letters.chunk_by(|a, b| a == b).enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(
                f,
                "{comma}{}({})",
                same.first().copied().unwrap_or('?'),
                same.len()
            )?;
        }
        match self.done_percent {
            Some(percent) => write!(f, "][{percent:.1}%]")?,
            None => f.write_str("][-.-%]")?,
        }
        rates(f, &self.bytes_per_s, "", |n| {
            shorten(n, 4, true, Unit::BytesPerSecond)
        })?;
        rates(f, &self.iops, " IOPS", |n| shorten(n, 4, false, Unit::None))?;
        match self.eta_s {
            Some(seconds) => write!(f, "[eta {}]", clock(seconds)),
            None => Ok(()),
        }
    }
}

fn rates(
    f: &mut fmt::Formatter<'_>,
    rates: &PerDir<u64>,
    unit: &str,
    show: impl Fn(u64) -> String,
) -> fmt::Result {
    let parts: Vec<String> = [(Ddir::Read, 'r'), (Ddir::Write, 'w'), (Ddir::Trim, 't')]
        .iter()
        .map(|(dir, letter)| (*rates.get(*dir), letter))
        .filter(|(rate, _)| *rate > 0)
        .map(|(rate, letter)| format!("{letter}={}", show(rate)))
        .collect();
    if parts.is_empty() {
        Ok(())
    } else {
        write!(f, "[{}{unit}]", parts.join(","))
    }
}

/// `00m:11s`, with hours and days where there are some.
fn clock(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    if days > 0 {
        let _ = write!(text, "{days:02}d:");
    }
    if days > 0 || hours > 0 {
        let _ = write!(text, "{hours:02}h:");
    }
    text + &format!("{minutes:02}m:{:02}s", seconds % 60)
}

impl Plan {
    /// What fio tells before it starts: a line for each job, the version, the number of threads.
    ///
    /// ```
    /// let plan = cairn_fio::parse_job_text("j", "[j]\nrw=randread\nthread\nnumjobs=2\n")?;
    /// assert_eq!(
    ///     plan.banner("fio-3.33"),
    ///     "j: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n\
    ///      ...\nfio-3.33\nStarting 2 threads\n"
    /// );
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn banner(&self, version: &str) -> String {
        let mut text = String::new();
        let (mut threads, mut processes) = (0, 0);
        for job in &self.jobs {
            let size = |n: u64| {
                shorten(
                    n,
                    job.report.significant_figures,
                    job.report.kb_base != 1000,
                    Unit::Bytes,
                )
            };
            let range = |dir: Ddir| {
                let sizes = job.access.bs.get(dir);
                format!("{}-{}", size(sizes.min()), size(sizes.max()))
            };
            let _ = writeln!(
                text,
                "{}: (g={}): rw={}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}",
                job.name,
                job.group,
                job.access.rw,
                range(Ddir::Read),
                range(Ddir::Write),
                range(Ddir::Trim),
                job.queue.ioengine,
                job.queue.iodepth
            );
            if job.control.numjobs > 1 {
                text.push_str("...\n");
            }
            let count = if job.control.thread {
                &mut threads
            } else {
                &mut processes
            };
            *count += u64::from(job.control.numjobs);
        }
        let some = |count: u64, one: &str, many: &str| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
        };
        let parts: Vec<String> = [
            some(threads, "thread", "threads"),
            some(processes, "process", "processes"),
        ]
        .into_iter()
        .flatten()
        .collect();
        text + &format!("{version}\nStarting {}\n", parts.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_fio_prints_them() {
        let mut line = EtaLine {
            states: vec![
                RunState::Running(RwMode::RandRw),
                RunState::NotCreated,
                RunState::NotCreated,
            ],
            open_files: 1,
            bytes_per_s: PerDir {
                read: 10_485_000,
                write: 0,
                trim: 0,
            },
            ..EtaLine::default()
        };
        assert_eq!(
            line.to_string(),
            "Jobs: 1 (f=1): [m(1),P(2)][-.-%][r=10.00MiB/s]"
        );
        line.bytes_per_s.read = 0;
        line.states = vec![RunState::Reaped];
        line.eta_s = Some(90_061);
        assert_eq!(
            line.to_string(),
            "Jobs: 0 (f=1): [_(1)][-.-%][eta 01d:01h:01m:01s]"
        );
    }
}
