//! Remarks on what is legal but most likely not meant.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::error::Location;
use crate::job::{Amount, Ddir, Job, VerifyKind};
use crate::options::{self, OptionDef};
use crate::plan::{Given, Plan};

/// What a lint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LintCode {
    /// `4MiB` is decimal with fio's default base.
    DecimalUnit,
    /// A `;` or `#` that touches a value cuts it.
    CommentCut,
    /// `iodepth` on an engine that works one call at a time.
    DepthIgnored,
    /// `time_based` without `runtime`.
    NoRuntime,
    /// The ramp is as long as the run.
    RampTooLong,
    /// Verification of blocks that may be written twice.
    VerifyWithoutMap,
    /// The region is smaller than a block.
    SizeBelowBlock,
    /// Direct I/O in blocks that are no multiple of the device's.
    UnalignedDirect,
    /// An option given twice in one section.
    DuplicateOption,
    /// Two jobs of one name.
    DuplicateName,
    /// A global section behind the last job.
    UnusedGlobal,
}

impl LintCode {
    /// The code as it is printed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::DecimalUnit => "decimal-unit",
            Self::CommentCut => "comment-cut",
            Self::DepthIgnored => "depth-ignored",
            Self::NoRuntime => "no-runtime",
            Self::RampTooLong => "ramp-too-long",
            Self::VerifyWithoutMap => "verify-without-map",
            Self::SizeBelowBlock => "size-below-block",
            Self::UnalignedDirect => "unaligned-direct",
            Self::DuplicateOption => "duplicate-option",
            Self::DuplicateName => "duplicate-name",
            Self::UnusedGlobal => "unused-global",
        }
    }
}

/// A remark on what is legal but most likely not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    /// What it is about.
    pub code: LintCode,
    /// Where.
    pub at: Location,
    /// What is odd, and what it means.
    pub text: String,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: warning [{}]: {}",
            self.at,
            self.code.word(),
            self.text
        )
    }
}

/// Logical block of the devices jobs are written for.
const DEVICE_BLOCK: u64 = 512;

/// Adds what can be said about a whole plan to the lints found while reading it.
pub(crate) fn check(plan: &mut Plan) {
    let mut found = Vec::new();
    let base = plan.jobs.first().map_or(1024, |job| job.report.kb_base);
    for given in &plan.globals {
        decimal_unit(given, base, &mut found);
    }
    let mut names = HashSet::new();
    for job in &plan.jobs {
        for given in &job.given {
            decimal_unit(given, job.report.kb_base, &mut found);
        }
        let mut report = |code, option: &str, text: String| {
            let at = place(plan, job, option);
            found.push(Lint { code, at, text });
        };
        one_job(job, &mut report);
        if !names.insert(job.name.as_str()) {
            let text = format!(
                "another job is called {} too; their results and files are hard to tell apart",
                job.name
            );
            report(LintCode::DuplicateName, "name", text);
        }
        duplicates(job, &mut found);
    }
    let used = plan
        .jobs
        .iter()
        .map(|job| job.globals.end)
        .max()
        .unwrap_or(0);
    if let Some(given) = plan.globals.get(used).filter(|_| !plan.jobs.is_empty()) {
        found.push(Lint {
            code: LintCode::UnusedGlobal,
            at: given.at.clone(),
            text: format!(
                "global option {} stands behind the last job and has no effect",
                given.name
            ),
        });
    }
    plan.lints.append(&mut found);
}

/// Where a job got an option from.
fn place(plan: &Plan, job: &Job, option: &str) -> Location {
    let own = job.given.iter().rev();
    let all = own.chain(plan.globals_of(job).iter().rev());
    let given = all
        .clone()
        .find(|given| given.name == option)
        .or_else(|| job.given.first());
    given.map_or(Location::Whole, |given| given.at.clone())
}

fn decimal_unit(given: &Given, base: u32, found: &mut Vec<Lint>) {
    let Some(value) = given.value.as_deref() else {
        return;
    };
    if base == 1000 || !options::find(given.name).is_some_and(OptionDef::takes_sizes) {
        return;
    }
    let odd = value.split([',', '/', ':', '-']).find(|part| {
        let digits = part.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = part.get(digits.len()..).unwrap_or("").to_ascii_lowercase();
        !digits.is_empty() && suffix.len() == 3 && suffix.ends_with("ib")
    });
    if let Some(part) = odd {
        let bytes = crate::value::size(part, 1024).unwrap_or(0);
        let binary = part.trim_end_matches(['i', 'I', 'b', 'B']);
        found.push(Lint {
            code: LintCode::DecimalUnit,
            at: given.at.clone(),
            text: format!(
                "{}: {part} is {bytes} bytes, since fio takes it for decimal; {binary} is binary",
                given.name
            ),
        });
    }
}

fn one_job(job: &Job, report: &mut impl FnMut(LintCode, &str, String)) {
    let (control, queue) = (&job.control, &job.queue);
    if queue.iodepth > 1 && queue.effective_depth() == 1 {
        let text = format!(
            "iodepth={} has no effect: ioengine {} does one I/O at a time",
            queue.iodepth, queue.ioengine
        );
        report(LintCode::DepthIgnored, "iodepth", text);
    }
    if control.time_based && control.runtime.is_zero() {
        report(
            LintCode::NoRuntime,
            "time_based",
            "time_based has no effect without runtime".to_owned(),
        );
    }
    if !control.runtime.is_zero() && control.ramp_time >= control.runtime {
        let text = format!(
            "ramp_time ({:?}) is not shorter than runtime ({:?})",
            control.ramp_time, control.runtime
        );
        report(LintCode::RampTooLong, "ramp_time", text);
    }
    let writes = job.access.rw.has(Ddir::Write);
    if job.verify.kind != VerifyKind::None
        && writes
        && job.access.rw.is_random()
        && job.random.norandommap
    {
        let text = "verify with norandommap: a block that is written twice is checked for its last content only".to_owned();
        report(LintCode::VerifyWithoutMap, "verify", text);
    }
    if let Some(Amount::Bytes(size)) = job.extent.size
        && size < job.min_block()
    {
        let text = format!(
            "size {size} is below the block size {}, so there is nothing to do",
            job.min_block()
        );
        report(LintCode::SizeBelowBlock, "size", text);
    }
    if queue.direct && !job.min_block().is_multiple_of(DEVICE_BLOCK) {
        let text = format!(
            "direct I/O in blocks of {} bytes, no multiple of {DEVICE_BLOCK}",
            job.min_block()
        );
        report(LintCode::UnalignedDirect, "bs", text);
    }
}

fn duplicates(job: &Job, found: &mut Vec<Lint>) {
    let mut seen: HashMap<&str, &Given> = HashMap::new();
    for given in &job.given {
        if let Some(earlier) = seen.insert(given.name, given) {
            found.push(Lint {
                code: LintCode::DuplicateOption,
                at: given.at.clone(),
                text: format!(
                    "{} was given before at {}; this one counts",
                    given.name, earlier.at
                ),
            });
        }
    }
}
