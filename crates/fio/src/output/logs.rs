//! The log files: bandwidth, IOPS, latencies, histograms.

use std::fmt::Write;

use super::{Histogram, Stats};
use crate::job::{Ddir, Logs, PerDir};

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// Bandwidth in KiB/s.
    Bw,
    /// I/Os per second.
    Iops,
    /// Total latency in ns.
    Lat,
    /// Completion latency in ns.
    Clat,
    /// Submission latency in ns.
    Slat,
    /// Histograms of completion latency.
    Hist,
}

impl LogKind {
    /// The part of the file's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bw => "bw",
            Self::Iops => "iops",
            Self::Lat => "lat",
            Self::Clat => "clat",
            Self::Slat => "slat",
            Self::Hist => "clat_hist",
        }
    }

    /// The logs a job asked for, with the prefix of each; an empty prefix stands for the job's name.
    pub fn asked_for<'l>(logs: &'l Logs, job: &'l str) -> Vec<(Self, &'l str)> {
        let wanted = [
            (Self::Bw, &logs.bw),
            (Self::Iops, &logs.iops),
            (Self::Lat, &logs.lat),
            (Self::Clat, &logs.lat),
            (Self::Slat, &logs.lat),
            (Self::Hist, &logs.hist),
        ];
        wanted
            .into_iter()
            .filter_map(|(kind, prefix)| {
                prefix
                    .as_deref()
                    .map(|p| (kind, if p.is_empty() { job } else { p }))
            })
            .collect()
    }

    /// Name of the file: `prefix_kind.thread.log`, without the thread where all clones share one. Threads
    /// count from 1.
    ///
    /// ```
    /// use cairn_fio::output::LogKind;
    /// assert_eq!(LogKind::Clat.file_name("run", Some(3)), "run_clat.3.log");
    /// assert_eq!(LogKind::Bw.file_name("run", None), "run_bw.log");
    /// ```
    pub fn file_name(self, prefix: &str, thread: Option<u32>) -> String {
        match thread {
            Some(thread) => format!("{prefix}_{}.{thread}.log", self.word()),
            None => format!("{prefix}_{}.log", self.word()),
        }
    }
}

const fn number(dir: Ddir) -> u8 {
    match dir {
        Ddir::Read => 0,
        Ddir::Write => 1,
        Ddir::Trim => 2,
    }
}

/// One I/O, or one direction of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// Since the start of the job, or since 1970, in ms.
    pub time_ms: u64,
    /// In the unit of the log.
    pub value: u64,
    /// Direction.
    pub dir: Ddir,
    /// Length in bytes; 0 for a window.
    pub bs: u64,
    /// Offset in bytes; 0 for a window.
    pub offset: u64,
    /// Largest value of a window; the value itself for one I/O.
    pub largest: u64,
    /// When the I/O was issued, in ns since the start of the job; 0 for a window.
    pub issued_ns: u64,
}

impl LogEntry {
    /// Adds the entry as a line, with the columns that the job's options ask for.
    pub fn write(&self, out: &mut String, logs: &Logs) {
        let _ = write!(out, "{}, {}", self.time_ms, self.value);
        if logs.both_values {
            let _ = write!(out, ", {}", self.largest);
        }
        let _ = write!(out, ", {}, {}", number(self.dir), self.bs);
        if logs.offset {
            let _ = write!(out, ", {}", self.offset);
        }
        // There are no priorities, which fio shows in decimal unless asked for them.
        out.push_str(if logs.prio { ", 0x0000" } else { ", 0" });
        if logs.issue_time {
            let _ = write!(out, ", {}", self.issued_ns);
        }
        out.push('\n');
    }
}

/// Collects values over `log_avg_msec` and gives one entry for each direction seen.
#[derive(Debug, Clone)]
pub struct LogWindow {
    length_ms: u64,
    largest: bool,
    sums: PerDir<Stats>,
    ends_ms: u64,
}

impl LogWindow {
    /// A window of the job's options; `None` when each I/O is logged.
    pub fn new(logs: &Logs) -> Option<Self> {
        let length_ms = u64::try_from(logs.avg.as_millis()).unwrap_or(u64::MAX);
        (length_ms > 0).then(|| Self {
            length_ms,
            largest: logs.max_value,
            sums: PerDir::default(),
            ends_ms: length_ms,
        })
    }

    /// Adds a value. When it lies behind the window, the entries of the window come out first.
    pub fn record(&mut self, time_ms: u64, value: u64, dir: Ddir) -> Vec<LogEntry> {
        let entries = if time_ms >= self.ends_ms {
            self.close(time_ms)
        } else {
            Vec::new()
        };
        self.sums.get_mut(dir).record(value);
        entries
    }

    /// Ends the window at a time and gives its entries, one for each direction that had values.
    pub fn close(&mut self, time_ms: u64) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        for dir in Ddir::ALL {
            let sum = std::mem::take(self.sums.get_mut(dir));
            if sum.count() == 0 {
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a mean of u64 values lies among them"
            )]
            let mean = sum.mean() as u64;
            entries.push(LogEntry {
                time_ms,
                value: if self.largest { sum.max() } else { mean },
                dir,
                bs: 0,
                offset: 0,
                largest: sum.max(),
                issued_ns: 0,
            });
        }
        // The next window ends at a multiple of the length, also after a gap.
        let passed = time_ms / self.length_ms;
        self.ends_ms = (passed + 1).saturating_mul(self.length_ms);
        entries
    }
}

impl Histogram {
    /// The histogram as a line of a `clat_hist` log: time, direction, block size, then the counts, with
    /// neighbours added up `coarseness` times (`log_hist_coarseness`, 0 to 6).
    pub fn log_line(&self, time_ms: u64, dir: Ddir, bs: u64, coarseness: u32) -> String {
        let mut line = format!("{time_ms}, {}, {bs}", number(dir));
        let stride = 1_usize << coarseness.min(6);
        for some in self.counts().chunks(stride) {
            let _ = write!(line, ", {}", some.iter().sum::<u64>());
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_asked_for() {
        let entry = LogEntry {
            time_ms: 5,
            value: 182,
            dir: Ddir::Write,
            bs: 4096,
            offset: 28672,
            largest: 190,
            issued_ns: 4_999_818,
        };
        let line = |logs: &Logs| {
            let mut out = String::new();
            entry.write(&mut out, logs);
            out
        };
        assert_eq!(line(&Logs::default()), "5, 182, 1, 4096, 0\n");
        let offset = Logs {
            offset: true,
            ..Logs::default()
        };
        assert_eq!(line(&offset), "5, 182, 1, 4096, 28672, 0\n");
        let prio = Logs {
            prio: true,
            ..Logs::default()
        };
        assert_eq!(line(&prio), "5, 182, 1, 4096, 0x0000\n");
        let both = Logs {
            both_values: true,
            issue_time: true,
            ..Logs::default()
        };
        assert_eq!(line(&both), "5, 182, 190, 1, 4096, 0, 4999818\n");
    }

    #[test]
    fn windows_give_a_row_for_each_direction() {
        let logs = Logs {
            avg: std::time::Duration::from_millis(100),
            ..Logs::default()
        };
        let mut window = LogWindow::new(&logs).expect("a window was asked for");
        assert!(window.record(10, 4, Ddir::Read).is_empty());
        assert!(window.record(99, 8, Ddir::Read).is_empty());
        assert!(window.record(99, 1, Ddir::Trim).is_empty());
        let entries = window.record(350, 7, Ddir::Read);
        let values: Vec<_> = entries
            .iter()
            .map(|e| (e.time_ms, e.value, e.dir))
            .collect();
        assert_eq!(values, [(350, 6, Ddir::Read), (350, 1, Ddir::Trim)]);
        assert!(window.record(399, 9, Ddir::Read).is_empty());
        assert_eq!(window.close(400).len(), 1);
        assert!(LogWindow::new(&Logs::default()).is_none());
    }

    #[test]
    fn histograms_get_coarser() {
        let mut h = Histogram::new();
        h.record_many(0, 1);
        h.record_many(1, 2);
        h.record_many(2, 4);
        let fine = h.log_line(9, Ddir::Read, 4096, 0);
        assert!(fine.starts_with("9, 0, 4096, 1, 2, 4, 0"));
        assert_eq!(fine.split(',').count(), 3 + 1856);
        let coarse = h.log_line(9, Ddir::Read, 4096, 1);
        assert!(coarse.starts_with("9, 0, 4096, 3, 4, 0"));
        assert_eq!(coarse.split(',').count(), 3 + 928);
    }
}
