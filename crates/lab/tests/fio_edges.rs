//! Where plans are easily read in another way than fio's, and what is said when something is odd.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use cairn_fio::output::RunResult;
use cairn_lab::{FioError, FioOptions, Registry, run_fio};

fn run_with(options: FioOptions<'_>, line: &str) -> Result<(RunResult, Vec<String>), FioError> {
    let plan = cairn_fio::parse_command_line(line.split_whitespace()).unwrap();
    let mut notes = Vec::new();
    let result = run_fio(&plan, options, &Registry::default(), &mut |n| {
        notes.push(n.to_owned());
    })?;
    Ok((result, notes))
}

fn on(stack: &str) -> FioOptions<'_> {
    FioOptions {
        stack: Some(stack.to_owned()),
        ..FioOptions::default()
    }
}

/// I/Os of the only job.
fn ios(line: &str) -> u64 {
    let (result, _) = run_with(FioOptions::default(), line).unwrap();
    let d = &result.jobs[0].directions;
    d.read.total_ios + d.write.total_ios
}

#[test]
fn sizes_mean_what_they_mean_to_fio() {
    // Measured with fio 3.33.
    for (line, want) in [
        ("--rw=read --size=1m --filesize=2m", 256),
        ("--rw=randread --filesize=1m --size=50%", 128),
        ("--rw=read --filesize=1m --offset=256k", 192),
        ("--rw=read --filesize=1m --offset=256k --size=512k", 128),
        ("--rw=read --filesize=1m --size=4m", 256),
        ("--rw=read --filesize=1m --nrfiles=2 --size=1m", 256),
        ("--rw=read --filesize=1m --size=50% --offset=25%", 128),
        ("--rw=read --filesize=1m --io_size=3m", 768),
        ("--rw=read --offset=25% --size=1m", 256),
        // A step that does not meet the end of the file leaves its last block out; one that does
        // begins again.
        ("--rw=write:8 --size=1m", 255),
        ("--rw=write:4k --size=1m", 256),
        ("--rw=write:12k --size=1m --filename=a:b --nrfiles=2", 256),
    ] {
        assert_eq!(ios(&format!("--name=x --bs=4k {line}")), want, "{line}");
    }
}

#[test]
fn a_job_that_is_over_at_once_has_a_rate() {
    let (result, _) = run_with(FioOptions::default(), "--name=x --rw=write --size=4k").unwrap();
    let job = &result.jobs[0];
    assert!(job.job_runtime_ms >= 1 && job.directions.write.runtime_ms >= 1);
    assert_eq!(job.directions.read.runtime_ms, 0);
}

#[test]
fn a_failed_io_is_told_once_for_each_job_with_its_place() {
    let stack = "error(op=write,skip=4,count=3)/ram(1m)";
    let line = "--name=x --rw=write --bs=4k --size=64k --fallocate=none --numjobs=2 --filename=/f";
    let (_, notes) = run_with(on(stack), line).unwrap();
    let told: Vec<_> = notes.iter().filter(|n| n.starts_with("job x: ")).collect();
    let [told] = told.as_slice() else {
        panic!("one line: {notes:?}");
    };
    assert!(told.contains("write of 4096 bytes at "), "{told}");
    assert!(
        told.ends_with("(on error(count=3,skip=4,op=write)/ram(1m))"),
        "{told}"
    );
    // Those that do not end the job are told too, and the result names the first errno.
    let line = format!("{line} --continue_on_error=all");
    let (result, notes) = run_with(on(stack), &line).unwrap();
    // Which of the two clones meets the faults is theirs to race for.
    let errors: Vec<_> = result.jobs.iter().filter_map(|job| job.errors).collect();
    assert_eq!(errors.iter().map(|(count, _)| count).sum::<u64>(), 3);
    assert!(
        errors
            .iter()
            .all(|(count, first)| *count == 0 || *first == 5)
    );
    assert_eq!(notes.iter().filter(|n| n.starts_with("job x: ")).count(), 1);
}

#[test]
fn a_trim_of_a_file_says_how_it_works() {
    let (result, notes) =
        run_with(FioOptions::default(), "--name=t --rw=randtrim --size=1m").unwrap();
    assert!(result.jobs[0].error != 0);
    let told = notes
        .iter()
        .find(|n| n.starts_with("job t: trim "))
        .unwrap();
    assert!(told.contains("--on device"), "{told}");
}

#[test]
fn a_map_that_nothing_uses_is_noted() {
    let options = FioOptions {
        map: vec![("/x".to_owned(), "ram(1m)".to_owned())],
        ..FioOptions::default()
    };
    let (_, notes) = run_with(options, "--name=a --rw=write --size=4k").unwrap();
    assert!(
        notes
            .iter()
            .any(|n| n.starts_with("--map /x=ram(1m): no job")),
        "{notes:?}"
    );
}

#[test]
fn a_job_that_is_too_large_hears_of_its_size_and_of_no_spec() {
    let error = run_with(FioOptions::default(), "--name=a --rw=write --size=4p").unwrap_err();
    assert!(error.is_usage());
    let text = error.to_string();
    assert!(
        text.contains("4503599627370496 bytes") && text.contains("a.0.0"),
        "{text}"
    );
    assert!(text.contains("--stack") && !text.contains("ram("), "{text}");
}
