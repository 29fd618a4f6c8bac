//! fio's log files, kept in memory while the job runs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_fio::job::{Ddir, Job, PerDir};
use cairn_fio::output::{Histogram, LogEntry, LogKind, LogWindow};

use super::generate::Io;

/// Most bytes of one log that are kept: an I/O takes about 25.
const MOST: usize = 256 << 20;

/// The logs of one thread.
#[derive(Debug)]
pub(crate) struct Logger {
    options: cairn_fio::job::Logs,
    began: Instant,
    /// Added to the times, where they count from 1970.
    base_ms: u64,
    files: Vec<LogFile>,
    /// What the window of bandwidth and IOPS holds: bytes and I/Os.
    sums: PerDir<(u64, u64)>,
    window_ms: u64,
    window_began: u64,
    hists: PerDir<Histogram>,
    hist_ms: u64,
    hist_at: u64,
    blocks: PerDir<u64>,
    lost: u64,
}

#[derive(Debug)]
struct LogFile {
    kind: LogKind,
    name: String,
    text: String,
    window: Option<LogWindow>,
}

/// A log as it is written.
pub(crate) type Written = (String, String);

impl Logger {
    /// The logs that a job asks for; `thread` counts from 1.
    pub(crate) fn new(job: &Job, thread: u32) -> Option<Self> {
        let logs = &job.logs;
        let thread = logs.per_job.then_some(thread);
        let files: Vec<LogFile> = LogKind::asked_for(logs, &job.name)
            .into_iter()
            // The call is the whole I/O: there is no submission to log.
            .filter(|(kind, _)| *kind != LogKind::Slat)
            .map(|(kind, prefix)| LogFile {
                kind,
                name: kind.file_name(prefix, thread),
                text: String::new(),
                window: LogWindow::new(logs),
            })
            .collect();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let base_ms = if logs.unix_epoch {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ms)
        } else {
            0
        };
        let hist_ms = ms(logs.hist_every);
        (!files.is_empty()).then(|| Self {
            options: logs.clone(),
            began: Instant::now(),
            base_ms,
            files,
            sums: PerDir::default(),
            window_ms: ms(logs.avg),
            window_began: 0,
            hists: PerDir::all(Histogram::new()),
            hist_ms,
            hist_at: hist_ms,
            blocks: PerDir::default(),
            lost: 0,
        })
    }

    /// Times count from now.
    pub(crate) fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// Takes in an I/O that took `nanos`.
    pub(crate) fn io(&mut self, io: &Io, nanos: u64) {
        let Some(dir) = Ddir::ALL.get(io.dir).copied() else {
            return;
        };
        let since = self.began.elapsed();
        let passed = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let issued_ns = u64::try_from(since.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_sub(nanos);
        self.windows(passed, false);
        let sum = self.sums.get_mut(dir);
        *sum = (sum.0 + io.len, sum.1 + 1);
        *self.blocks.get_mut(dir) = io.len;
        if self.hist_ms > 0 {
            self.hists.get_mut(dir).record(nanos);
        }
        let single = self.window_ms == 0;
        for file in &mut self.files {
            let value = match file.kind {
                LogKind::Lat | LogKind::Clat => nanos,
                LogKind::Bw if single => rate(io.len, nanos),
                LogKind::Iops if single => 1,
                _ => continue,
            };
            if file.text.len() > MOST {
                self.lost += 1;
                continue;
            }
            let entry = LogEntry {
                time_ms: passed,
                value,
                dir,
                bs: io.len,
                offset: io.offset,
                largest: value,
                issued_ns,
            };
            let entries = match &mut file.window {
                Some(window) => window.record(passed, value, dir),
                None => vec![entry],
            };
            for entry in entries {
                let entry = LogEntry {
                    time_ms: entry.time_ms + self.base_ms,
                    ..entry
                };
                entry.write(&mut file.text, &self.options);
            }
        }
    }

    /// Ends the windows that are over.
    fn windows(&mut self, passed: u64, last: bool) {
        let over = self.window_ms > 0 && passed >= self.window_began + self.window_ms;
        if over || (last && self.window_ms > 0 && passed > self.window_began) {
            let span = (passed - self.window_began).max(1);
            for dir in Ddir::ALL {
                let (bytes, ios) = std::mem::take(self.sums.get_mut(dir));
                if ios == 0 {
                    continue;
                }
                for file in &mut self.files {
                    let value = match file.kind {
                        LogKind::Bw => bytes * 1000 / span / 1024,
                        LogKind::Iops => ios * 1000 / span,
                        _ => continue,
                    };
                    let entry = LogEntry {
                        time_ms: passed + self.base_ms,
                        value,
                        dir,
                        bs: 0,
                        offset: 0,
                        largest: value,
                        issued_ns: 0,
                    };
                    entry.write(&mut file.text, &self.options);
                }
            }
            self.window_began = passed;
        }
        if self.hist_ms > 0 && (passed >= self.hist_at || last) {
            for dir in Ddir::ALL {
                let hist = std::mem::take(self.hists.get_mut(dir));
                if hist.is_empty() {
                    continue;
                }
                for file in self.files.iter_mut().filter(|f| f.kind == LogKind::Hist) {
                    let bs = *self.blocks.get(dir);
                    let time = passed + self.base_ms;
                    file.text += &hist.log_line(time, dir, bs, self.options.hist_coarseness);
                }
            }
            self.hist_at = passed + self.hist_ms;
        }
    }

    /// The logs, and how many lines were too many.
    pub(crate) fn finish(mut self) -> (Vec<Written>, u64) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.windows(passed, true);
        for file in &mut self.files {
            if let Some(window) = &mut file.window {
                for entry in window.close(passed) {
                    let entry = LogEntry {
                        time_ms: entry.time_ms + self.base_ms,
                        ..entry
                    };
                    entry.write(&mut file.text, &self.options);
                }
            }
        }
        (
            self.files.into_iter().map(|f| (f.name, f.text)).collect(),
            self.lost,
        )
    }
}

/// KiB a second of one I/O.
fn rate(bytes: u64, nanos: u64) -> u64 {
    let kib = u128::from(bytes) * 1_000_000_000 / u128::from(nanos.max(1)) / 1024;
    u64::try_from(kib).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logger(text: &str) -> Option<Logger> {
        let plan =
            cairn_fio::parse_job_text("t", &format!("[j]\nsize=1m\nbs=4k\n{text}\n")).unwrap();
        Logger::new(&plan.jobs[0], 3)
    }

    fn io(offset: u64) -> Io {
        Io {
            dir: 1,
            region: 0,
            offset,
            len: 4096,
        }
    }

    #[test]
    fn each_io_has_a_line_in_each_log() {
        let mut l =
            logger("write_lat_log=run\nwrite_bw_log\nwrite_iops_log=x\nlog_offset=1").unwrap();
        for i in 0..5 {
            l.io(&io(i * 4096), 2000);
        }
        let (files, lost) = l.finish();
        let names: Vec<_> = files.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "j_bw.3.log",
                "x_iops.3.log",
                "run_lat.3.log",
                "run_clat.3.log"
            ]
        );
        assert!(files.iter().all(|f| f.1.lines().count() == 5) && lost == 0);
        let line = files[2].1.lines().last().unwrap();
        assert!(line.ends_with(", 2000, 1, 4096, 16384, 0"), "{line}");
        assert!(logger("rw=read").is_none());
    }

    #[test]
    fn an_issue_lies_before_the_completion() {
        let mut l = logger("write_lat_log=run\nlog_issue_time=1").unwrap();
        while l.began.elapsed() < Duration::from_millis(3) {}
        l.io(&io(0), 1_000_000);
        let (files, _) = l.finish();
        let line = files[0].1.lines().next().unwrap();
        let columns: Vec<u64> = line.split(", ").map(|c| c.parse().unwrap()).collect();
        // Milliseconds at the completion, nanoseconds at the issue, which was one millisecond before.
        assert_eq!(columns.len(), 6, "{line}");
        let (done, issued) = (columns[0] * 1_000_000, columns[5]);
        assert!(issued + 1_000_000 >= done && issued < done, "{line}");
    }

    #[test]
    fn windows_and_histograms_lose_nothing() {
        let mut l = logger(
            "write_bw_log=b\nwrite_iops_log=b\nlog_avg_msec=1\nwrite_hist_log=h\nlog_hist_msec=1",
        )
        .unwrap();
        let mut n: u64 = 0;
        while l.began.elapsed() < Duration::from_millis(20) {
            l.io(&io(0), 1000);
            n += 1;
        }
        let (files, _) = l.finish();
        let hist = &files.iter().find(|f| f.0.contains("clat_hist")).unwrap().1;
        let sum: u64 = hist
            .lines()
            .flat_map(|line| {
                line.split(", ")
                    .skip(3)
                    .map(|c| c.parse::<u64>().unwrap())
                    .collect::<Vec<_>>()
            })
            .sum();
        assert_eq!(sum, n);
        for (name, text) in files.iter().filter(|f| !f.0.contains("hist")) {
            assert!(
                text.lines().all(|l| l.ends_with(", 1, 0, 0")),
                "{name}: {text}"
            );
        }
    }
}
