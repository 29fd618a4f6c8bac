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

/// An image file of so many MiB, and the stack on it.
fn image(folder: &std::path::Path, mib: u64) -> String {
    let path = folder.join("image");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(mib << 20).unwrap();
    format!("file({})", path.display())
}

/// The file system that a run left on a stack; it must be sound.
fn left_on(stack: &str) -> std::sync::Arc<cairn_ext4::Ext4> {
    let stack = Registry::default().block_registry().open(stack).unwrap();
    let device = stack.device().clone();
    let report = cairn_ext4::check(&device).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let options = cairn_ext4::MountOptions::new().read_only(true);
    std::sync::Arc::new(cairn_ext4::Ext4::mount(device, &options).unwrap())
}

#[test]
fn the_files_that_fio_leaves_are_left_and_no_others() {
    let temp = tempfile::tempdir().unwrap();
    let stack = image(temp.path(), 64);
    // Size and 512-byte sectors of each, as fio 3.33 leaves them on ext4; `None` is no file.
    for (line, left) in [
        ("--rw=write", Some((65536, 128))),
        ("--rw=write --unlink=1", None),
        (
            "--rw=write --fallocate=truncate --number_ios=2",
            Some((65536, 16)),
        ),
        (
            "--rw=write --unlink_each_loop=1 --loops=3 --verify=md5",
            Some((65536, 128)),
        ),
        ("--ioengine=falloc --rw=write", Some((65536, 128))),
        ("--ioengine=falloc --rw=trim", Some((65536, 0))),
        ("--ioengine=falloc --rw=read", Some((65536, 128))),
        ("--ioengine=ftruncate --rw=write", Some((61440, 0))),
    ] {
        let line = format!("--name=u --bs=4k --size=64k {line}");
        let (result, notes) = run_with(on(&stack), &line).unwrap();
        assert_eq!(result.jobs[0].error, 0, "{line}: {notes:?}");
        let found = left_on(&stack).stat_path("/u.0.0").ok();
        let found = found.map(|stat| (stat.size, stat.sectors));
        assert_eq!(found, left, "{line}");
    }
    // Four blocks of the last of eight loops, wherever they were drawn.
    let line = "--name=u --rw=randwrite --norandommap --bs=4k --size=64k --io_size=16k --loops=8 \
                --unlink_each_loop=1 --fallocate=none";
    run_with(on(&stack), line).unwrap();
    let stat = left_on(&stack).stat_path("/u.0.0").unwrap();
    assert!((8..=32).contains(&stat.sectors), "{}", stat.sectors);
    // The last job that uses a file says whether it stays.
    let line = "--name=a --filename=f --bs=4k --size=64k --rw=write --unlink=1 --stonewall \
                --name=b --filename=f --bs=4k --size=64k --rw=read --stonewall";
    run_with(on(&stack), line).unwrap();
    assert!(left_on(&stack).stat_path("/f").is_ok());
    let e = "--name=t --ioengine=ftruncate --rw=read --bs=4k --size=64k";
    assert_eq!(run_with(on(&stack), e).unwrap().0.jobs[0].error, 22);
}

#[test]
fn directories_are_made_looked_up_and_removed() {
    let files =
        "--filename_format=d.$filenum --nrfiles=50 --filesize=4k --create_on_open=1 --stonewall";
    let line = format!(
        "--name=make --ioengine=dircreate {files} --name=look --ioengine=dirstat {files} \
         --name=take --ioengine=dirdelete {files} --name=again --ioengine=dirstat {files}"
    );
    let (result, _) = run_with(FioOptions::default(), &line).unwrap();
    let of = |job: usize| {
        let job = &result.jobs[job];
        (job.error, job.directions.read.clat.stats.count())
    };
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [(0, 50), (0, 50), (0, 50), (2, 0)]
    );
    // Without create_on_open they are there before.
    for (engine, error) in [("dirstat", 0), ("dirdelete", 0), ("dircreate", 17)] {
        let line = format!("--name=j --ioengine={engine} --nrfiles=9 --filesize=4k");
        let (result, notes) = run_with(FioOptions::default(), &line).unwrap();
        assert_eq!(result.jobs[0].error, error, "{engine}: {notes:?}");
    }
}

#[test]
fn a_later_run_reads_as_far_as_the_state_of_an_earlier_one_says() {
    let temp = tempfile::tempdir().unwrap();
    let stack = image(temp.path(), 1);
    let aux = temp.path().display();
    let run = |line: &str| {
        let line = format!("--name=w --filename=/dev/x --bs=4k --size=64k --aux-path={aux} {line}");
        let plan = cairn_fio::parse_command_line(line.split_whitespace()).unwrap();
        let mut left = Vec::new();
        let mut take = |name: &str, content: &[u8]| {
            std::fs::write(temp.path().join(name), content).unwrap();
            left.push(name.to_owned());
        };
        let options = FioOptions {
            logs: Some(&mut take),
            ..on(&stack)
        };
        let result = run_fio(&plan, options, &Registry::default(), &mut |_| {});
        (result, left)
    };
    let (_, left) = run("--rw=write --verify=crc32c --number_ios=5 --verify_state_save=0");
    assert_eq!(left, Vec::<String>::new());
    let (missing, _) = run("--rw=read --verify=crc32c --verify_state_load=1");
    let text = missing.unwrap_err().to_string();
    assert!(text.contains("local-w-0-verify.state"), "{text}");
    let (_, left) = run("--rw=write --verify=crc32c --number_ios=5");
    assert_eq!(left, ["local-w-0-verify.state"]);
    // Behind the fifth block there is nothing to be checked, and without the state that is an error.
    let (result, _) = run("--rw=read --verify=crc32c --verify_state_load=1");
    let job = &result.unwrap().jobs[0];
    assert_eq!((job.error, job.directions.read.total_ios), (0, 5));
    let (result, _) = run("--rw=read --verify=crc32c");
    assert_eq!(result.unwrap().jobs[0].error, 84);
    std::fs::write(temp.path().join("local-w-0-verify.state"), b"no state").unwrap();
    let (broken, _) = run("--rw=read --verify=crc32c --verify_state_load=1");
    let text = broken.unwrap_err().to_string();
    assert!(text.contains("8 bytes are shorter"), "{text}");
}
