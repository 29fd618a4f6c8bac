//! I/O taken from a trace instead of being drawn.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_fio::iolog::{Iolog, IologOp};
use cairn_fio::job::Job;
use cairn_trace::block::{BlockOp, BlockTrace, parse_blkparse, parse_msr};

use super::generate::{Io, READ, TRIM, WRITE};
use super::run::{Due, Step};
use crate::fio_error::FioError;

/// Largest trace that is read.
const FILE_LIMIT: u64 = 1 << 30;

/// What a job replays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// Paths, with the bytes that are touched of each.
    pub(crate) files: Vec<(String, u64)>,
    /// When, since the start, and what.
    steps: Vec<(Duration, Step)>,
    /// Which directions occur: reads, writes, trims, flushes.
    pub(crate) used: [bool; 4],
    /// Longest transfer.
    pub(crate) longest: u64,
}

impl Trace {
    /// The trace that a job replays, if it does.
    ///
    /// # Errors
    /// A file that cannot be read or understood, by its line.
    pub(crate) fn of(job: &Job) -> Result<Option<Arc<Self>>, FioError> {
        let mut trace = Self::default();
        for path in &job.replay.read_iolog {
            trace.load(job, path)?;
        }
        if job.replay.read_iolog.is_empty() {
            return Ok(None);
        }
        if trace.steps.is_empty() {
            let paths = job.replay.read_iolog.join(":");
            return Err(FioError::option(
                &job.name,
                "read_iolog",
                format!("{paths} holds no I/O that is left to replay"),
            ));
        }
        Ok(Some(Arc::new(trace)))
    }

    fn load(&mut self, job: &Job, path: &str) -> Result<(), FioError> {
        let broken = |e: String| FioError::option(&job.name, "read_iolog", format!("{path}: {e}"));
        let len = fs::metadata(path).map_err(|e| broken(e.to_string()))?.len();
        if len > FILE_LIMIT {
            return Err(broken(format!("larger than {} MiB", FILE_LIMIT >> 20)));
        }
        let text = fs::read_to_string(Path::new(path)).map_err(|e| broken(e.to_string()))?;
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
        if first.starts_with("fio version") {
            let log = Iolog::parse(&text, false).map_err(|e| broken(e.to_string()))?;
            for event in &log.events {
                let name = log.files.get(event.file).map_or("?", String::as_str);
                let (dir, offset, len) = match event.op {
                    IologOp::Read { offset, len } => (Some(READ), offset, len),
                    IologOp::Write { offset, len } => (Some(WRITE), offset, len),
                    IologOp::Trim { offset, len } => (Some(TRIM), offset, len),
                    IologOp::Sync | IologOp::DataSync => (None, 0, 0),
                    IologOp::Add | IologOp::Open | IologOp::Close => continue,
                };
                self.add(job, event.at, name, dir, (offset, len));
            }
            return Ok(());
        }
        // Seven fields with commas and no blanks are one format, words the other.
        let parsed = if first.split(',').count() >= 7 && !first.trim().contains(' ') {
            parse_msr(&text, false)
        } else {
            parse_blkparse(&text, false)
        };
        let trace: BlockTrace = parsed.map_err(|e| {
            broken(format!(
                "{e}; an iolog of fio, the text of blkparse or an MSR CSV is expected"
            ))
        })?;
        for event in &trace.events {
            let volume = trace.volumes.get(event.volume).map_or("?", String::as_str);
            let dir = match event.op {
                BlockOp::Read => Some(READ),
                BlockOp::Write => Some(WRITE),
                BlockOp::Discard => Some(TRIM),
                BlockOp::Flush => None,
            };
            let name = format!("/dev/{volume}");
            self.add(job, event.at, &name, dir, (event.offset, event.len));
        }
        Ok(())
    }

    /// Takes an I/O in, where the job wants it; `dir` is none for a flush.
    fn add(
        &mut self,
        job: &Job,
        at: Duration,
        name: &str,
        dir: Option<usize>,
        (offset, len): (u64, u64),
    ) {
        let r = &job.replay;
        let skipped = match dir {
            Some(READ) => r.skip.read,
            Some(WRITE) => r.skip.write,
            Some(_) => r.skip.trim,
            None => r.skip.sync,
        };
        if skipped || (dir.is_some() && len == 0) {
            return;
        }
        let name = r.redirect.as_deref().unwrap_or(name);
        let region = self.files.iter().position(|(known, _)| known == name);
        let region = region.unwrap_or_else(|| {
            self.files.push((name.to_owned(), 0));
            self.files.len() - 1
        });
        let offset = offset / u64::from(r.scale.max(1));
        let align = u64::from(r.align.max(1));
        let offset = offset - offset % align;
        if let Some((_, end)) = self.files.get_mut(region) {
            *end = (*end).max(offset.saturating_add(len)).max(1);
        }
        let step = match dir {
            Some(dir) => Step::Io(Io {
                dir,
                region,
                offset,
                len,
            }),
            None => Step::Flush(region),
        };
        self.longest = self.longest.max(len);
        if let Some(used) = self.used.get_mut(dir.unwrap_or(3)) {
            *used = true;
        }
        self.steps.push((at, step));
    }
}

/// Gives the steps of a trace one by one.
#[derive(Debug)]
pub(crate) struct Replayer {
    trace: Arc<Trace>,
    next: usize,
    began: Option<Instant>,
    /// Factor of the times; none replays as fast as it goes.
    pace: Option<f64>,
}

impl Replayer {
    pub(crate) fn new(trace: Arc<Trace>, job: &Job) -> Self {
        let r = &job.replay;
        Self {
            trace,
            next: 0,
            began: None,
            pace: (!r.no_stall).then(|| f64::from(r.time_scale) / 100.0),
        }
    }

    pub(crate) fn next(&mut self) -> Option<Due> {
        let (at, step) = self.trace.steps.get(self.next).copied()?;
        self.next += 1;
        let began = *self.began.get_or_insert_with(Instant::now);
        let due = self.pace.map(|pace| began + at.mul_f64(pace));
        Some((step, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str, options: &str) -> Result<Arc<Trace>, FioError> {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("t");
        fs::write(&path, text).unwrap();
        let job = format!("[j]\nread_iolog={}\n{options}\n", path.display());
        let plan = cairn_fio::parse_job_text("t", &job).unwrap();
        Trace::of(&plan.jobs[0]).map(Option::unwrap)
    }

    const LOG: &str = "fio version 2 iolog\n/a add\n/a open\n/a write 4096 8192\nwait 100\n/b read 0 512\n/a sync\n/a close\n";

    #[test]
    fn the_formats_are_told_apart() {
        let t = trace(LOG, "").unwrap();
        assert_eq!(t.files, [("/a".to_owned(), 12_288), ("/b".to_owned(), 512)]);
        assert_eq!(
            (t.steps.len(), t.longest, t.used),
            (3, 8192, [true, true, false, true])
        );
        let t = trace("128166372003061629,usr,0,Read,4096,512,1\n", "").unwrap();
        assert_eq!(t.files, [("/dev/usr.0".to_owned(), 4608)]);
        let t = trace("8,0 1 1 0.0 7 D W 8 + 8 [x]\n", "").unwrap();
        assert_eq!(t.files, [("/dev/8,0".to_owned(), 8192)]);
        let error = trace("what is this\n", "").unwrap_err().to_string();
        assert!(
            error.contains("line 1") && error.contains("blkparse"),
            "{error}"
        );
    }

    #[test]
    fn options_change_what_is_replayed() {
        let t = trace(
            LOG,
            "replay_redirect=/c\nreplay_scale=2\nreplay_align=4k\nreplay_skip=sync",
        )
        .unwrap();
        assert_eq!(t.files, [("/c".to_owned(), 8192)]);
        assert_eq!(t.steps.len(), 2);
        assert!(
            trace(LOG, "replay_skip=read,write,sync")
                .unwrap_err()
                .to_string()
                .contains("no I/O")
        );
    }
}
