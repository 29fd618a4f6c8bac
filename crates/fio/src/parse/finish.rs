//! What can only be said once a job, or all of them, are known.

use crate::error::{Location, ParseError, ParseErrorKind};
use crate::job::{Ddir, Job, VerifyKind};
use crate::plan::Plan;

/// Settles what follows from several options of a job.
pub(super) fn job(job: &mut Job, at: &Location, plan: &Plan) -> Result<(), ParseError> {
    // A pattern alone asks for its verification, without headers.
    let kind_given = plan
        .globals_of(job)
        .iter()
        .chain(&job.given)
        .any(|g| g.name == "verify");
    if !kind_given && job.verify.pattern.is_some() {
        job.verify.kind = VerifyKind::Pattern;
        job.verify.headers = false;
    }
    if plan.run.readonly && (job.access.rw.has(Ddir::Write) || job.access.rw.has(Ddir::Trim)) {
        let kind = ParseErrorKind::Conflict {
            job: job.name.clone(),
            reason: format!(
                "rw={} changes data, which --readonly forbids; use read or randread",
                job.access.rw
            ),
        };
        return Err(ParseError::new(at.clone(), kind));
    }
    Ok(())
}

/// Groups, limits and what was asked for but is not there.
pub(super) fn plan(plan: &mut Plan, names: &[String]) -> Result<(), ParseError> {
    for section in &plan.run.sections {
        if !names.contains(section) {
            let section = section.clone();
            return Err(ParseError::new(
                Location::Whole,
                ParseErrorKind::NoSection { section },
            ));
        }
    }
    // Without jobs there is nothing to run; to be parsed only, that is no error in fio either.
    if plan.jobs.is_empty() && !plan.run.parse_only {
        return Err(ParseError::new(Location::Whole, ParseErrorKind::NoJobs));
    }
    let mut group = 0;
    for (index, job) in plan.jobs.iter_mut().enumerate() {
        if index > 0 && (job.control.stonewall || job.control.new_group) {
            group += 1;
        }
        job.group = group;
    }
    let total: u64 = plan
        .jobs
        .iter()
        .map(|job| u64::from(job.control.numjobs))
        .sum();
    let limit = plan.run.max_jobs.map_or(DEFAULT_MAX_JOBS, u64::from);
    if total > limit {
        let kind = ParseErrorKind::TooManyJobs { jobs: total, limit };
        return Err(ParseError::new(Location::Whole, kind));
    }
    Ok(())
}

/// fio's own limit.
const DEFAULT_MAX_JOBS: u64 = 4096;
