//! Which options act here. What does not act is refused by its name, never dropped in silence.

use cairn_fio::job::{EngineClass, Job, VerifyKind};
use cairn_fio::options::Tier;
use cairn_fio::{Given, Plan};

use crate::fio_error::FioError;

/// Options that this engine acts on.
const ACTS: &[&str] = &[
    "allow_file_create",
    "allrandrepeat",
    "ba",
    "bs",
    "bs_unaligned",
    "bsrange",
    "bssplit",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "bwavgtime",
    "clat_percentiles",
    "continue_on_error",
    "cpumask",
    "cpuload",
    "cpuchunks",
    "exit_on_io_done",
    "cpus_allowed",
    "cpus_allowed_policy",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "description",
    "directory",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "do_verify",
    "end_fsync",
    "exec_postrun",
    "exec_prerun",
    "exit_what",
    "exitall",
    "exitall_on_error",
    "fallocate",
    "fdatasync",
    "file_service_type",
    "filename",
    "filename_format",
    "filesize",
    "flow",
    "flow_id",
    "flow_sleep",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "gtod_reduce",
    "io_size",
    "io_submit_mode",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_low",
    "ioengine",
    "iopsavgtime",
    "kb_base",
    "lat_percentiles",
    "latency_percentile",
    "latency_run",
    "latency_target",
    "latency_window",
    "log_alternate_epoch",
    "log_avg_msec",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_unix_epoch",
    "loops",
    "max_latency",
    "name",
    "new_group",
    "norandommap",
    "nrfiles",
    "number_ios",
    "numjobs",
    "offset",
    "offset_align",
    "offset_increment",
    "overwrite",
    "per_job_logs",
    "percentage_random",
    "percentile_list",
    "ramp_time",
    "random_distribution",
    "random_sequence_stride",
    "randrepeat",
    "randseed",
    "rate",
    "rate_cycle",
    "rate_ignore_thinktime",
    "rate_iops",
    "rate_iops_min",
    "rate_min",
    "rate_process",
    "read_iolog",
    "refill_buffers",
    "replay_align",
    "replay_no_stall",
    "replay_redirect",
    "replay_scale",
    "replay_skip",
    "replay_time_scale",
    "runtime",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "scramble_buffers",
    "serialize_overlap",
    "significant_figures",
    "size",
    "slat_percentiles",
    "startdelay",
    "stats",
    "steadystate",
    "steadystate_check_interval",
    "steadystate_duration",
    "steadystate_ramp_time",
    "stonewall",
    "sync",
    "sync_file_range",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "thinktime_spin",
    "thread",
    "time_based",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "unlink_each_loop",
    "uri",
    "verify",
    "verify_async",
    "verify_async_cpus",
    "verify_backlog",
    "verify_dump",
    "verify_fatal",
    "verify_interval",
    "verify_offset",
    "verify_only",
    "verify_pattern",
    "verify_state_load",
    "verify_state_save",
    "wait_for",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
];

/// Options that say something which holds here anyway, or about things there are none of, each with
/// the reason that is noted.
const MOOT: &[(&str, &str)] = &[
    (
        "atomic",
        "there is no page cache and no torn sector to protect from",
    ),
    (
        "buffered",
        "there is no page cache: buffered I/O goes straight to the stack",
    ),
    ("cpumode", "the CPU is kept busy by looking at the clock"),
    ("direct", ""),
    ("invalidate", "there is no page cache"),
    ("mem", "buffers come from the allocator"),
    ("openfiles", "a file of a stack costs no descriptor"),
    ("pre_read", "there is no page cache"),
    (
        "random_generator",
        "one generator serves all; a random map is a permutation",
    ),
    ("read_iolog_chunked", "the log is read as a whole"),
    ("softrandommap", "a random map takes no memory"),
    ("verify_backlog_batch", "a backlog is checked as a whole"),
];

/// Checks a job's options and says what is noted.
///
/// # Errors
/// The first option that does not act, or value that does not.
pub(crate) fn accept(plan: &Plan, job: &Job, note: &mut dyn FnMut(String)) -> Result<(), FioError> {
    for tier in [Tier::Must, Tier::Next] {
        for (given, _) in plan.changing(job, tier) {
            if ACTS.contains(&given.name) {
                continue;
            }
            if given.name == "create_on_open" {
                // With these engines it acts: the files are not made before the job begins.
                if job.queue.ioengine.class() != EngineClass::Metadata {
                    note(
                        "create_on_open: no effect, every file is made when the run begins"
                            .to_owned(),
                    );
                }
                continue;
            }
            match MOOT.iter().find(|(name, _)| *name == given.name) {
                Some((_, "")) => {}
                Some((name, why)) => note(format!("{name}: no effect, {why}")),
                None => return Err(not_yet(job, &given)),
            }
        }
    }
    values(job)
}

/// Checks that a job runs no commands on this machine, for whom that was not allowed.
///
/// # Errors
/// The option with the command.
pub(crate) fn no_commands(job: &Job) -> Result<(), FioError> {
    let control = &job.control;
    for (option, command) in [
        ("exec_prerun", &control.exec_prerun),
        ("exec_postrun", &control.exec_postrun),
    ] {
        if command.is_some() {
            return Err(FioError::option(
                &job.name,
                option,
                "runs a command on this machine, which is done with --allow-exec only",
            ));
        }
    }
    Ok(())
}

/// Options of a job that act on a queue, and on no call that is the whole I/O.
pub(crate) fn of_a_queue(plan: &Plan, job: &Job) -> Vec<&'static str> {
    const OF_A_QUEUE: &[&str] = &[
        "iodepth_batch",
        "iodepth_batch_complete_max",
        "iodepth_batch_complete_min",
        "iodepth_low",
        "serialize_overlap",
    ];
    let given = [Tier::Must, Tier::Next].map(|tier| plan.changing(job, tier));
    let names = given.iter().flatten().map(|(given, _)| given.name);
    names.filter(|name| OF_A_QUEUE.contains(name)).collect()
}

fn not_yet(job: &Job, given: &Given) -> FioError {
    let why = "does not act; leave it out if the rest of the job is meaningful without it";
    FioError::option(&job.name, given.name, why)
}

/// Values of options that act, but not with every value.
fn values(job: &Job) -> Result<(), FioError> {
    let refuse = |option: &str, why: &str| Err(FioError::option(&job.name, option, why));
    match job.queue.ioengine.class() {
        EngineClass::Nbd if job.engine.uri.is_none() => {
            return refuse(
                "uri",
                "is missing: the address of the export, for example nbd://localhost/",
            );
        }
        EngineClass::Metadata => names(job)?,
        EngineClass::Queue
        | EngineClass::Call
        | EngineClass::Mapped
        | EngineClass::Null
        | EngineClass::Cpu
        | EngineClass::Nbd => {}
        EngineClass::Outside => {
            return refuse(
                "ioengine",
                "needs something outside a storage stack; take libaio, psync or null",
            );
        }
    }
    if !job.replay.read_iolog.is_empty() && job.verify.kind != VerifyKind::None {
        return refuse(
            "verify",
            "a trace says nothing of what was written; leave it out",
        );
    }
    if job.replay.write_iolog.is_some() && !job.replay.read_iolog.is_empty() {
        return refuse("write_iolog", "the I/Os come from a log already");
    }
    if !job.files.allow_file_create {
        return refuse(
            "allow_file_create",
            "every file is made when the run begins, none exists before",
        );
    }
    Ok(())
}

/// Checks a job whose operations are on names or on the space of files.
fn names(job: &Job) -> Result<(), FioError> {
    let refuse = |option: &str, why: &str| Err(FioError::option(&job.name, option, why));
    if !job.replay.read_iolog.is_empty() {
        return refuse("read_iolog", "a log has I/Os, and this engine does none");
    }
    if job.verify.kind != VerifyKind::None {
        return refuse("verify", "the engine writes nothing; leave it out");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Result<(), FioError>, Vec<String>) {
        let plan = cairn_fio::parse_job_text("test", &format!("[j]\nsize=1m\n{text}\n")).unwrap();
        let mut notes = Vec::new();
        let result = accept(&plan, &plan.jobs[0], &mut |n| notes.push(n));
        (result, notes)
    }

    #[test]
    fn what_does_not_act_is_refused_by_name() {
        for (text, option) in [
            ("lockfile=exclusive", "lockfile"),
            ("ioengine=filestat\nverify=md5", "verify"),
            ("fill_device=1", "fill_device"),
        ] {
            let (result, _) = check(text);
            let message = result.unwrap_err().to_string();
            assert!(
                message.contains(&format!("`{option}`")),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn what_holds_anyway_is_noted() {
        let (result, notes) = check("openfiles=4\ninvalidate=0\ndirect=1\niodepth=8");
        result.unwrap();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("no effect") && notes[1].contains("no effect"));
    }

    #[test]
    fn defaults_written_out_are_no_change() {
        let (result, notes) = check("rate_process=linear\nverify=0\nrandom_distribution=random");
        result.unwrap();
        assert!(notes.is_empty());
    }

    #[test]
    fn every_name_in_the_lists_is_an_option() {
        for name in ACTS.iter().chain(MOOT.iter().map(|(name, _)| name)) {
            // `buffered` is kept for the day when it is told from `direct`.
            let def = cairn_fio::options::find(name);
            assert!(def.is_some(), "{name}");
        }
    }
}
