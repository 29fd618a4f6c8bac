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

#[test]
fn engines_on_names_time_one_call_for_each_file() {
    // Each of these is what fio 3.33 does.
    let made = "--ioengine=filecreate --filesize=8k --bs=4k --nrfiles=50 --create_on_open=1 --directory=/a/b";
    let (result, notes) = run_with(FioOptions::default(), &format!("--name=j {made}")).unwrap();
    let read = &result.jobs[0].directions.read;
    // The I/Os that the size comes to, and a latency for each file.
    assert_eq!((read.total_ios, read.io_bytes), (100, 50 * 8192));
    assert_eq!(read.clat.stats.count(), 50);
    assert_eq!(read.lat.stats.count(), 0);
    assert!(notes.iter().any(|n| n == "file layer: ext4"), "{notes:?}");
    // What was not made cannot be found, unless it is laid out before.
    for (line, error) in [
        (
            "--ioengine=filestat --filesize=4k --nrfiles=9 --create_on_open=1",
            2,
        ),
        ("--ioengine=filestat --filesize=4k --nrfiles=9 --loops=3", 0),
        (
            "--ioengine=filedelete --filesize=4k --nrfiles=9 --create_on_open=1",
            2,
        ),
        ("--ioengine=filedelete --filesize=4k --nrfiles=9", 0),
        (
            "--ioengine=filedelete --filesize=4k --nrfiles=9 --loops=2",
            2,
        ),
        (
            "--ioengine=filecreate --filesize=4k --nrfiles=9 --loops=2 --rw=randwrite",
            0,
        ),
    ] {
        let (result, notes) = run_with(FioOptions::default(), &format!("--name=j {line}")).unwrap();
        assert_eq!(result.jobs[0].error, error, "{line}: {notes:?}");
        if error == 2 {
            let said = notes.iter().any(|n| n.contains(" of /j.0.0: No such file"));
            assert!(said || line.contains("loops"), "{line}: {notes:?}");
        }
    }
}

#[test]
fn names_that_one_job_makes_are_there_for_the_next() {
    let files =
        "--filename_format=f.$filenum --nrfiles=200 --filesize=4k --create_on_open=1 --stonewall";
    let line = format!(
        "--name=make --ioengine=filecreate {files} --name=look --ioengine=filestat {files} \
         --name=take --ioengine=filedelete {files} --name=again --ioengine=filestat {files}"
    );
    let (result, _) = run_with(FioOptions::default(), &line).unwrap();
    let of = |job: usize| {
        (
            result.jobs[job].error,
            result.jobs[job].directions.read.total_ios,
        )
    };
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [(0, 200), (0, 200), (0, 200), (2, 0)]
    );
}

#[test]
fn names_need_a_file_system() {
    let says =
        |options: FioOptions<'_>, line: &str| run_with(options, line).unwrap_err().to_string();
    let line = "--name=j --ioengine=filestat --filesize=4k";
    let e = says(on("error/ram(64m)"), line);
    assert!(e.contains("names") && e.contains("`error`"), "{e}");
    let e = says(
        FioOptions::default(),
        &format!("{line} --filename=/dev/sda"),
    );
    assert!(e.contains("--on file"), "{e}");
    let e = says(FioOptions::default(), &format!("{line} --verify=md5"));
    assert!(e.contains("`verify`"), "{e}");
    // More names than the device has inodes for.
    let e = says(
        on("ram(4m)"),
        "--name=j --ioengine=filecreate --filesize=4k --nrfiles=9000",
    );
    assert!(e.contains("4194304"), "{e}");
}

#[test]
fn the_image_of_a_job_is_sound_when_the_run_has_ended() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("image");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let stack = format!("file({})", path.display());
    let line = "--name=w --rw=randwrite --bs=4k --size=4m --numjobs=2 --directory=/d --direct=1 \
                --name=m --ioengine=filecreate --filesize=4k --nrfiles=300 --create_on_open=1";
    run_with(on(&stack), line).unwrap();
    let registry = Registry::default();
    let stack = registry.block_registry().open(&stack).unwrap();
    let device = stack.device().clone();
    let report = cairn_ext4::check(&device).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let options = cairn_ext4::MountOptions::new().read_only(true);
    let fs = cairn_ext4::Ext4::mount(device, &options).unwrap();
    assert!(fs.clean(), "unmounted");
    assert_eq!(fs.stat_path("/d/w.1.0").unwrap().size, 4 << 20);
    assert_eq!(fs.read_dir("/").unwrap().len(), 4 + 300);
}
