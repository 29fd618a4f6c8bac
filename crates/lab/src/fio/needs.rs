//! What the clones of a plan ask of files and devices, before any of them exist.

use std::sync::Arc;

use cairn_fio::Plan;
use cairn_fio::job::{Amount, Ddir, EngineClass, Fallocate, Job};
use cairn_fio::plan::JobClone;

use super::clones::DEFAULT_SEED;
use super::ground::{Held, Need, On, Uses};
use crate::engine::generate::{Region, mix};
use crate::engine::names::NameOp;
use crate::engine::replay::Trace;
use crate::engine::target::SpaceOp;
use crate::file::Fresh;
use crate::fio_error::FioError;

/// Largest block a job may use: a buffer of this size is held by each worker.
const MAX_BLOCK: u64 = 1 << 30;

/// One thread of the run before its files exist.
#[derive(Debug, Clone)]
pub(crate) struct CloneNeeds {
    pub(crate) clone: JobClone,
    /// Paths with the region of each that is worked on.
    pub(crate) files: Vec<(String, Region)>,
    /// What it replays instead of drawing its I/Os.
    pub(crate) trace: Option<Arc<Trace>>,
}

/// Where a path lives when nobody said: fio's device engines and paths below /dev are devices.
pub(crate) fn default_on(job: &Job, path: &str) -> On {
    if path.starts_with("/dev/") || job.queue.ioengine.is_device_engine() {
        On::Device
    } else {
        On::File
    }
}

/// The files and regions of every clone. `len` gives the length of the device a path will be a window
/// of, if that is known.
///
/// # Errors
/// Sizes that cannot be.
pub(crate) fn needs(
    plan: &Plan,
    len: impl Fn(&str) -> Option<u64>,
) -> Result<Vec<CloneNeeds>, FioError> {
    let mut all = Vec::new();
    for clone in plan.clones() {
        let Some(job) = plan.jobs.get(clone.job) else {
            continue;
        };
        let trace = Trace::of(job)?;
        let files = match &trace {
            Some(trace) => {
                let files = trace.files.iter();
                let whole = files.map(|(path, len)| {
                    (
                        path.clone(),
                        Region {
                            start: 0,
                            len: *len,
                        },
                    )
                });
                whole.collect()
            }
            None if job.queue.ioengine.class() == EngineClass::Cpu => Vec::new(),
            None => files_of(job, clone.sub, &len)?,
        };
        all.push(CloneNeeds {
            clone,
            files,
            trace,
        });
    }
    if all.is_empty() {
        return Err(FioError::NoJobs);
    }
    Ok(all)
}

fn files_of(
    job: &Job,
    sub: u32,
    len: &impl Fn(&str) -> Option<u64>,
) -> Result<Vec<(String, Region)>, FioError> {
    let count = job.files.count();
    let unit = job.min_block().max(1);
    if job.max_block() > MAX_BLOCK {
        return Err(FioError::option(
            &job.name,
            "bs",
            format!(
                "{} is above the largest block, {MAX_BLOCK}",
                job.max_block()
            ),
        ));
    }
    let mut sizes = fastrand::Rng::with_seed(mix(DEFAULT_SEED, u64::from(sub), 1));
    (0..count)
        .map(|index| {
            let path = job.files.path(&job.name, sub, index);
            let filesize = (job.files.filesize).map(|(lo, hi)| match lo.cmp(&hi) {
                std::cmp::Ordering::Less => sizes.u64(lo..=hi),
                _ => lo,
            });
            let own = match job.extent.size {
                Some(Amount::Bytes(n)) => Some(n / u64::from(count)),
                _ => None,
            };
            // What shares are of: the file as it was asked for, else the device, else the part that is
            // worked on.
            let whole = filesize.or_else(|| len(&path)).or(own);
            let percent_of = |amount: Amount, option: &str| match (amount, whole) {
                (Amount::Bytes(n), _) => Ok(n),
                (share, Some(whole)) => Ok(share.of(whole)),
                (_, None) => Err(FioError::option(
                    &job.name,
                    option,
                    "a share needs a device of known size: give bytes, or a stack with --stack",
                )),
            };
            let base = match job.extent.offset {
                Some(offset) => percent_of(offset, "offset")?,
                None => 0,
            };
            let step = match job.extent.offset_increment {
                Some(step) => percent_of(step, "offset_increment")?,
                None => 0,
            };
            let align = match job.extent.offset_align {
                0 => unit,
                n => n,
            };
            let start = step.saturating_mul(u64::from(sub)).saturating_add(base);
            let start = start - start % align;
            let size = match (filesize, job.extent.size, whole) {
                // `size` in bytes is how much is done of such a file, a share is how much of it is used.
                (Some(whole), Some(Amount::Percent(p)), _) => Amount::Percent(p)
                    .of(whole)
                    .min(whole.saturating_sub(start)),
                (Some(whole), _, _) | (None, None, Some(whole)) => whole.saturating_sub(start),
                (None, Some(size), _) => percent_of(size, "size")? / u64::from(count),
                (None, None, None) => {
                    return Err(FioError::option(
                        &job.name,
                        "size",
                        "is missing, and there is no device of known size to take it from",
                    ));
                }
            };
            let size = size - size % unit;
            if size == 0 {
                return Err(FioError::job(
                    &job.name,
                    format!("{path}: its share of the size is below one block of {unit} bytes"),
                ));
            }
            if start.checked_add(size).is_none() {
                return Err(FioError::option(
                    &job.name,
                    "offset",
                    "offset and size pass 2^64",
                ));
            }
            Ok((path, Region { start, len: size }))
        })
        .collect()
}

/// What all clones together ask of each path, in the order of first use.
pub(crate) fn merge(plan: &Plan, clones: &[CloneNeeds], on: Option<On>) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for clone in clones {
        let Some(job) = plan.jobs.get(clone.clone.job) else {
            continue;
        };
        let reads = match &clone.trace {
            Some(trace) => trace.used.first().copied().unwrap_or(false),
            None => job.access.rw.has(Ddir::Read),
        };
        let read = reads || job.files.overwrite;
        let op = NameOp::of(job.queue.ioengine);
        let uses = Uses {
            names: op.is_some(),
            dir: op.is_some_and(NameOp::of_dirs),
            space: SpaceOp::of(job.queue.ioengine).is_some(),
        };
        let held = match (uses.names, job.files.create_on_open) {
            (true, true) => Held::Absent,
            (true, false) => Held::Closed,
            (false, _) => Held::Open,
        };
        for (path, region) in &clone.files {
            let bytes = match held {
                Held::Absent => 0,
                _ => region.start.saturating_add(region.len),
            };
            match needs.iter_mut().find(|n| n.path == *path) {
                Some(need) => {
                    need.bytes = need.bytes.max(bytes);
                    need.held = need.held.max(held);
                    need.uses.names |= uses.names;
                    need.uses.dir |= uses.dir;
                    need.uses.space |= uses.space;
                    need.unlink = job.files.unlink;
                    if read {
                        need.fresh = Fresh::Written;
                    }
                }
                None => needs.push(Need {
                    path: path.clone(),
                    on: on.unwrap_or_else(|| default_on(job, path)),
                    bytes,
                    fresh: if read {
                        Fresh::Written
                    } else {
                        fresh(plan, job)
                    },
                    held,
                    uses,
                    unlink: job.files.unlink,
                }),
            }
        }
    }
    needs
}

/// A file is laid out, that is written once from end to end, unless the job says how it is to be
/// allocated.
fn fresh(plan: &Plan, job: &Job) -> Fresh {
    let said = plan
        .effective(job)
        .iter()
        .any(|(g, _)| g.name == "fallocate");
    match (said, job.files.fallocate) {
        // What `falloc` and `ftruncate` work on is allocated, as fio leaves it.
        (false, _) if SpaceOp::of(job.queue.ioengine).is_some() => Fresh::Unwritten,
        (false, _) => Fresh::Written,
        (true, Fallocate::None | Fallocate::Truncate) => Fresh::Hole,
        (true, _) => Fresh::Unwritten,
    }
}
