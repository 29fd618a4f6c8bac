//! Commands of a job, and blocks that other threads check.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here is the test's own"
)]

use cairn_fio::output::RunResult;
use cairn_lab::{FioError, FioOptions, Registry, run_fio};

/// Runs a job file; its result, the files it left, and what was noted.
fn run(text: &str, allow_exec: bool) -> Result<(RunResult, Vec<(String, String)>), FioError> {
    let plan = cairn_fio::parse_job_text("t", text).unwrap();
    let mut files = Vec::new();
    let mut take = |name: &str, text: &[u8]| {
        files.push((name.to_owned(), String::from_utf8_lossy(text).into_owned()));
    };
    let options = FioOptions {
        allow_exec,
        logs: Some(&mut take),
        ..FioOptions::default()
    };
    let result = run_fio(&plan, options, &Registry::default(), &mut |_| {})?;
    Ok((result, files))
}

#[test]
fn commands_run_around_the_job_once_they_are_allowed() {
    let text =
        "[j]\nrw=write\nsize=64k\nnumjobs=2\nexec_prerun=echo before\nexec_postrun=echo after\n";
    let error = run(text, false).unwrap_err().to_string();
    assert!(error.contains("`exec_prerun`"), "{error}");
    assert!(error.contains("--allow-exec"), "{error}");
    let (result, files) = run(text, true).unwrap();
    assert!(result.jobs.iter().all(|j| j.error == 0));
    for (name, said) in [("j.prerun.txt", "before\n"), ("j.postrun.txt", "after\n")] {
        let of_it = files.iter().filter(|(n, _)| n == name);
        let all: Vec<&str> = of_it.map(|(_, text)| text.as_str()).collect();
        assert_eq!(all, [said; 2], "{name}");
    }
}

#[test]
fn a_job_does_not_begin_when_its_command_fails() {
    let text = "[j]\nrw=write\nsize=64k\nioengine=libaio\niodepth=4\nio_submit_mode=offload\n\
                exec_prerun=echo no && exit 3\n";
    let (result, files) = run(text, true).unwrap();
    let job = &result.jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (5, 0));
    assert_eq!(files, [("j.prerun.txt".to_owned(), "no\n".to_owned())]);
    let (result, _) = run("[j]\nrw=write\nsize=64k\nexec_postrun=false\n", true).unwrap();
    let job = &result.jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (5, 16));
}

#[test]
fn other_threads_find_what_the_reader_would_have_found() {
    // The second job overwrites a block in the middle of what the first wrote, the third checks all of it.
    let text = |extra: &str| {
        format!(
            "[global]\nfilename=/mnt/a\nbs=4k\nsize=256k\n\
             [w]\nrw=write\nverify=md5\ndo_verify=0\nverify_state_save=0\n\
             [spoil]\nstonewall\nrw=write\noffset=64k\nsize=8k\n\
             [check]\nstonewall\nrw=read\nverify=md5\n{extra}\n"
        )
    };
    let check = |extra: &str| {
        let (result, files) = run(&text(extra), false).unwrap();
        let job = result.jobs.last().unwrap();
        let names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
        (job.error, job.errors, job.directions.read.total_ios, names)
    };
    let alone = check("continue_on_error=verify\nverify_dump=1");
    assert_eq!((alone.1, alone.2), (Some((2, 84)), 64));
    assert_eq!(alone.3, ["a.65536.received", "a.69632.received"]);
    let mut others = check("continue_on_error=verify\nverify_dump=1\nverify_async=3");
    others.3.sort();
    assert_eq!(others, alone);
    let (error, ..) = check("verify_async=2");
    assert_eq!(error, 84);
    let (error, _, ios, _) = check("verify_async=2\nverify_fatal=1");
    // It ends when the verdict is in, which is a few blocks later.
    assert!(error == 84 && (17..40).contains(&ios), "{ios}");
}
