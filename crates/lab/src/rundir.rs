//! Writes the directory of a run: what was measured, sample by sample, and what it came to.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::folder::{Folder, csv};
use crate::lab::Lab;
use crate::latency::Hist;
use crate::policy::{Policies, PolicyInfo};
use crate::sample::Sample;
use crate::scenario::Scenario;
use crate::summary::Summary;

/// Version of the data form.
const SCHEMA_VERSION: u32 = 1;

/// Bytes of samples kept of a run that nobody asked to be written: about half a day of one workload.
const MOST: usize = 128 << 20;

/// `run.json` of a run that was no comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunFile {
    pub(crate) schema_version: u32,
    /// `run`.
    pub(crate) kind: Cow<'static, str>,
    pub(crate) cairn: String,
    /// When it ended, seconds since 1970.
    pub(crate) at: u64,
    /// Command line that repeats it.
    pub(crate) command: String,
    pub(crate) environment: Environment,
    /// The scenario as TOML.
    pub(crate) scenario: String,
    pub(crate) summary: Summary,
    pub(crate) latency: Vec<Buckets>,
    /// Samples written to slices.csv.
    pub(crate) samples: u64,
}

/// The latencies of a workload since the last reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Buckets {
    pub(crate) workload: String,
    /// Upper ends of the buckets that hold something, in ns, and how much.
    pub(crate) buckets: Vec<(u64, u64)>,
}

/// The directory of a run under way.
///
/// # Examples
/// ```
/// use cairn_lab::{Lab, Options, Registry, RunWriter, Scenario};
///
/// let folder = std::env::temp_dir().join(format!("cairn-doc-{}", std::process::id()));
/// let lab = Lab::start(Scenario::preset("creat-clo").expect("a preset"), &Registry::default(), Options::default())?;
/// let samples = lab.take_samples().expect("the first to ask");
/// let mut run = RunWriter::create(&folder, &lab.policies())?;
/// run.sample(&*samples.recv()?);
/// run.finish(lab, "cairn dash creat-clo --headless", None)?;
/// assert!(folder.join("report.html").exists());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunWriter {
    /// Where it goes at the end, if it goes anywhere.
    folder: Option<Folder>,
    policies: Vec<PolicyInfo>,
    slices: String,
    events: String,
    samples: u64,
    arms: Option<Vec<usize>>,
    failed: bool,
}

impl RunWriter {
    /// Makes the directory, which must be new or empty.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn create(path: &Path, policies: &Policies) -> io::Result<Self> {
        Ok(Self {
            folder: Some(Folder::create(path)?),
            ..Self::in_memory(policies)
        })
    }

    /// Keeps the run in memory, so that it can be [exported](Self::export); `finish` writes nothing.
    pub fn in_memory(policies: &Policies) -> Self {
        Self {
            folder: None,
            policies: policies.list().to_vec(),
            slices: "t,arm,op,ops,bytes,p50,p99,p999,hits,misses,exact,approx,avoided_rmw,settle,\
                     shrink_scans,reclaimed\n"
                .to_owned(),
            events: "t,kind,mark,text\n".to_owned(),
            samples: 0,
            arms: None,
            failed: false,
        }
    }

    /// Takes a sample in. It is kept in memory until the end, so that writing disturbs nothing that is measured.
    pub fn sample(&mut self, sample: &Sample) {
        self.samples += 1;
        let t = sample.elapsed.as_secs_f64();
        let known = self.arms.as_ref() == Some(&sample.arms);
        let before = if known {
            None
        } else {
            self.arms.replace(sample.arms.clone())
        };
        if let Some(before) = before {
            let policies = self.policies.clone();
            for ((policy, now), then) in policies.iter().zip(&sample.arms).zip(before) {
                if *now != then {
                    let name = |arm: usize| policy.arms.get(arm).map_or("", String::as_str);
                    let text = format!("{} to {}", name(then), name(*now));
                    self.event(sample.elapsed, "policy", &policy.name, &text);
                }
            }
        }
        if !self.failed
            && let Some(error) = &sample.first_error
        {
            self.failed = true;
            self.event(sample.elapsed, "error", "", error);
        }
        let arm: Vec<String> = self
            .policies
            .iter()
            .zip(&sample.arms)
            .map(|(p, arm)| format!("{}={}", p.name, p.arms.get(*arm).map_or("", String::as_str)))
            .collect();
        let arm = csv(&arm.join(" "));
        let e = &sample.extents;
        let seconds = sample.interval.as_secs_f64();
        for w in &sample.workloads {
            // Writing to a String cannot fail.
            let _ = writeln!(
                self.slices,
                "{t:.4},{arm},{},{:.0},{:.0},{},{},{},{},{},{},{},{},{},{},{}",
                csv(&w.name),
                w.ops_per_s * seconds,
                w.bytes_per_s * seconds,
                w.recent.p50,
                w.recent.p99,
                w.recent.p999,
                e.hits.exact,
                e.misses.exact,
                e.hits.exact + e.misses.exact,
                e.hits.approx + e.misses.approx,
                sample.flags.avoided,
                u8::from(sample.settling),
                e.shrinks.scans,
                e.shrinks.reclaimed
            );
        }
        if self.folder.is_none() && self.slices.len() > MOST {
            self.forget(sample.elapsed);
        }
    }

    /// Leaves the older half of the samples out: nobody has asked for them.
    fn forget(&mut self, at: Duration) {
        let head = self.slices.find('\n').map_or(0, |end| end + 1);
        let half = self.slices.len() / 2;
        let rest = self.slices.as_bytes().get(half..).unwrap_or_default();
        if let Some(line) = rest.iter().position(|b| *b == b'\n') {
            self.slices.replace_range(head..=half + line, "");
            let text = "older samples are left out: too many to keep unasked; --out keeps all";
            self.event(at, "note", "", text);
        }
    }

    /// Takes in something that happened.
    pub fn event(&mut self, at: Duration, kind: &str, mark: &str, text: &str) {
        let _ = writeln!(
            self.events,
            "{:.3},{},{},{}",
            at.as_secs_f64(),
            csv(kind),
            csv(mark),
            csv(text)
        );
    }

    /// Where it is written to when it ends.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(Folder::path)
    }

    /// Writes the run as far as it is, to a directory of its own, and goes on. What it came to is what it came to
    /// until the last sample.
    ///
    /// # Errors
    /// Why the directory cannot be made, or a file not be written; [`AlreadyExists`](io::ErrorKind::AlreadyExists) if
    /// it holds something.
    pub fn export(
        &self,
        path: &Path,
        lab: &Lab,
        command: &str,
        screen: Option<Screen<'_>>,
    ) -> io::Result<()> {
        let folder = Folder::create(path)?;
        let (summary, hists) = lab.so_far();
        self.write(&folder, lab.scenario(), command, screen, &summary, &hists)
    }

    /// Ends the lab and writes everything: `run.json`, `slices.csv`, `events.csv`, `report.html`, `screen.svg`,
    /// which is the main chart unless a screen is given, and that screen as `screen.txt`. `command` is the line
    /// that repeats the run.
    ///
    /// # Errors
    /// Why a file cannot be written.
    pub fn finish(
        self,
        lab: Lab,
        command: &str,
        screen: Option<Screen<'_>>,
    ) -> io::Result<Summary> {
        let scenario: Scenario = lab.scenario().clone();
        let (summary, hists, _) = lab.finish_with_distributions();
        if let Some(folder) = &self.folder {
            self.write(folder, &scenario, command, screen, &summary, &hists)?;
        }
        Ok(summary)
    }

    fn write(
        &self,
        folder: &Folder,
        scenario: &Scenario,
        command: &str,
        screen: Option<Screen<'_>>,
        summary: &Summary,
        hists: &[Hist],
    ) -> io::Result<()> {
        let file = RunFile {
            schema_version: SCHEMA_VERSION,
            kind: "run".into(),
            cairn: env!("CARGO_PKG_VERSION").to_owned(),
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
            command: command.to_owned(),
            environment: Environment::read(),
            scenario: scenario.to_toml(),
            latency: summary
                .workloads
                .iter()
                .zip(hists)
                .map(|(w, hist)| Buckets {
                    workload: w.name.clone(),
                    buckets: crate::latency::buckets(hist),
                })
                .collect(),
            summary: summary.clone(),
            samples: self.samples,
        };
        folder.write("slices.csv", self.slices.as_bytes())?;
        folder.write("events.csv", self.events.as_bytes())?;
        if let Some(screen) = screen {
            folder.write("screen.svg", screen.svg.as_bytes())?;
            folder.write("screen.txt", screen.text.as_bytes())?;
        }
        folder.json("run.json", &file)?;
        crate::report::write(folder.path()).map_err(io::Error::other)
    }
}

/// A screen as it was drawn, to be kept with a run.
#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    /// As a picture.
    pub svg: &'a str,
    /// As text.
    pub text: &'a str,
}
