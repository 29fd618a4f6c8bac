//! What a comparison writes while it runs, so that a crash loses nothing.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::plan::{Pair, Side};
use super::result::AbResult;
use super::run::{Run, RunRecord};
use crate::folder::{Folder, csv};
use crate::latency::buckets;

/// The files of one comparison; writes nothing where no folder was asked for.
pub(crate) struct Files {
    folder: Option<Folder>,
    began: Instant,
    plan: Plan,
    slices: String,
    events: String,
}

#[derive(Serialize)]
struct Plan {
    schema_version: u32,
    series: Vec<Planned>,
    rejections: Vec<Rejection>,
}

#[derive(Serialize)]
struct Planned {
    series: &'static str,
    arms: [String; 2],
    pairs: Vec<Pair>,
}

#[derive(Serialize)]
struct Rejection {
    series: &'static str,
    pair: usize,
    reason: String,
}

#[derive(Serialize)]
struct RunFile<'a> {
    schema_version: u32,
    series: &'static str,
    pair: usize,
    run: &'a RunRecord,
    /// Why the run does not count.
    polluted: Option<&'a str>,
    /// Upper ends of the buckets that hold something, in ns, and how much.
    latency_buckets: Vec<(u64, u64)>,
}

impl Files {
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            folder: path.map(Folder::create).transpose()?,
            began: Instant::now(),
            plan: Plan {
                schema_version: super::result::SCHEMA_VERSION,
                series: Vec::new(),
                rejections: Vec::new(),
            },
            slices: "series,run,pair,side,arm,window,ops_per_s,dropped\n".to_owned(),
            events: "t,kind,mark,text\n".to_owned(),
        })
    }

    /// The plan of a series, before its first run.
    pub(crate) fn planned(
        &mut self,
        series: &'static str,
        arms: [&str; 2],
        pairs: &[Pair],
    ) -> io::Result<()> {
        self.plan.series.push(Planned {
            series,
            arms: arms.map(str::to_owned),
            pairs: pairs.to_vec(),
        });
        self.event(
            "series",
            series,
            &format!("{} pairs of {} and {}", pairs.len(), arms[0], arms[1]),
        );
        self.write_plan()
    }

    /// A run, as soon as it is over.
    pub(crate) fn run(
        &mut self,
        series: &'static str,
        number: usize,
        pair: usize,
        run: &Run,
        polluted: Option<&str>,
    ) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let side = match run.record.side {
            Side::A => 'A',
            Side::B => 'B',
        };
        for (window, rate) in run.record.windows.iter().enumerate() {
            let dropped = u32::from(window < run.record.dropped);
            let arm = csv(&run.record.arm);
            // Writing to a String cannot fail.
            let _ = writeln!(
                self.slices,
                "{series},{number},{pair},{side},{arm},{window},{rate:.1},{dropped}"
            );
        }
        let file = RunFile {
            schema_version: super::result::SCHEMA_VERSION,
            series,
            pair,
            run: &run.record,
            polluted,
            latency_buckets: buckets(&run.hist),
        };
        folder.json(&format!("runs/{number:04}-{side}.json"), &file)
    }

    /// A pair that does not count.
    pub(crate) fn rejected(
        &mut self,
        series: &'static str,
        pair: usize,
        reason: &str,
    ) -> io::Result<()> {
        self.plan.rejections.push(Rejection {
            series,
            pair,
            reason: reason.to_owned(),
        });
        self.event("rejected", series, &format!("pair {}: {reason}", pair + 1));
        self.write_plan()
    }

    /// The end.
    pub(crate) fn result(self, result: &AbResult) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        folder.write("slices.csv", self.slices.as_bytes())?;
        folder.write("events.csv", self.events.as_bytes())?;
        folder.json("run.json", result)?;
        crate::report::write(folder.path()).map_err(io::Error::other)
    }

    fn event(&mut self, kind: &str, mark: &str, text: &str) {
        let t = self.began.elapsed().as_secs_f64();
        let _ = writeln!(self.events, "{t:.3},{kind},{mark},{}", csv(text));
    }

    fn write_plan(&self) -> io::Result<()> {
        match &self.folder {
            Some(folder) => folder.json("plan.json", &self.plan),
            None => Ok(()),
        }
    }
}
