//! What reaches which device, and what is refused.

use cairn_block::BlockDeviceExt;
use cairn_lab::{FioError, FioOptions, On, run_fio};

use crate::{kept, refused, run, run_with, total};

#[test]
fn what_is_written_reaches_the_device() {
    let (registry, device) = kept(4 << 20);
    let run = |words: &[&str]| {
        let plan = cairn_fio::parse_command_line(words).unwrap();
        let options = FioOptions {
            stack: Some("kept".to_owned()),
            ..FioOptions::default()
        };
        run_fio(&plan, options, &registry, &mut |_| {}).unwrap()
    };
    let all = || device.read_vec(0, 4 << 20).unwrap();
    // A file of 2 MiB in the first half of the device; each piece of 512 bytes says where in the file
    // it belongs.
    let words = [
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=2m",
        "--filename=/f",
        "--end_fsync=1",
    ];
    let result = run(&words);
    assert_eq!(result.jobs[0].sync.stats.count(), 1);
    let bytes = all();
    let mut seen: Vec<u64> = bytes[..2 << 20]
        .chunks(512)
        .map(|piece| u64::from_le_bytes(*piece.first_chunk().unwrap()))
        .collect();
    seen.sort_unstable();
    let want: Vec<u64> = (0..4096).map(|i| i * 512).collect();
    assert_eq!(seen, want, "each block once");
    assert!(
        bytes[2 << 20..].iter().all(|b| *b == 0),
        "nothing outside the window"
    );
    // As a window of the device, offsets are those of the device.
    let words = [
        "--name=j",
        "--rw=write",
        "--bs=4k",
        "--size=64k",
        "--offset=1m",
        "--filename=/dev/x",
        "--buffer_pattern=0xabcd",
    ];
    run(&words);
    let bytes = all();
    let window = &bytes[1 << 20..(1 << 20) + 65536];
    assert!(window.chunks(2).all(|pair| pair == [0xab, 0xcd]));
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let bytes = |seed, words: &[&str]| {
        let (registry, device) = kept(1 << 20);
        let plan = cairn_fio::parse_command_line(words).unwrap();
        let options = FioOptions {
            stack: Some("kept".to_owned()),
            seed,
            ..FioOptions::default()
        };
        run_fio(&plan, options, &registry, &mut |_| {}).unwrap();
        device.read_vec(0, 1 << 20).unwrap()
    };
    let words = [
        "--name=j",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1m",
        "--refill_buffers",
        "--filename=/f",
    ];
    let first = bytes(1, &words);
    assert!(first == bytes(1, &words));
    assert!(first != bytes(2, &words));
}

#[test]
fn a_device_that_is_too_short_is_named_with_both_sizes() {
    let options = FioOptions {
        stack: Some("ram(1m)".to_owned()),
        ..FioOptions::default()
    };
    let error = run_with(options, &["--name=j", "--rw=write", "--size=2m"]).unwrap_err();
    assert!(matches!(
        error,
        FioError::DeviceTooShort {
            need: 2_097_152,
            have: 1_048_576,
            ..
        }
    ));
    assert!(error.is_usage());
    let text = error.to_string();
    assert!(
        text.contains("2097152") && text.contains("1048576"),
        "{text}"
    );
}

#[test]
fn what_does_not_act_is_refused_by_name() {
    for (word, option) in [
        ("--fill_device=1", "fill_device"),
        ("--file_append=1", "file_append"),
        ("--opendir=/tmp", "opendir"),
    ] {
        let text = refused(&["--name=j", "--rw=write", "--size=1m", word]);
        assert!(text.contains(&format!("`{option}`")), "{word}: {text}");
    }
    let text = refused(&["--name=j", "--rw=write"]);
    assert!(text.contains("`size`"), "{text}");
    let text = refused(&["--name=j", "--rw=write", "--size=1k", "--bs=4k"]);
    assert!(text.contains("below one block"), "{text}");
    let text = refused(&["--name=j", "--rw=write", "--size=50%"]);
    assert!(text.contains("device of known size"), "{text}");
}

#[test]
fn stacks_that_cannot_be_had_are_refused() {
    let with = |stack: &str| {
        let options = FioOptions {
            stack: Some(stack.to_owned()),
            ..FioOptions::default()
        };
        run_with(options, &["--name=j", "--rw=write", "--size=1m"])
            .unwrap_err()
            .to_string()
    };
    assert!(with("rum(1m)").contains("rum"));
    let text = refused(&["--name=j", "--rw=write", "--size=100t"]);
    assert!(text.contains("109951162777600 bytes"), "{text}");
}

#[test]
fn paths_go_where_they_are_mapped() {
    let options = FioOptions {
        map: vec![
            ("/data".to_owned(), "ram(1m)".to_owned()),
            ("/dev/nvme0n1".to_owned(), "stats/ram(2m)".to_owned()),
        ],
        ..FioOptions::default()
    };
    let (result, notes) = run_with(
        options,
        &[
            "--rw=write",
            "--bs=4k",
            "--name=a",
            "--filename=/data/x",
            "--size=1m",
            "--name=b",
            "--filename=/dev/nvme0n1",
            "--name=c",
            "--filename=/tmp/y",
            "--size=64k",
        ],
    )
    .unwrap();
    let sizes: Vec<_> = result.jobs.iter().map(total).collect();
    assert_eq!(sizes, [256, 512, 16], "without a size, the whole device");
    assert!(
        notes
            .iter()
            .any(|n| n.contains("/data/x: file of 1048576 bytes on ram(1m)")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|n| n.contains("/dev/nvme0n1: device window")),
        "{notes:?}"
    );
    let util = result.disk_util.unwrap();
    assert_eq!(util.len(), 3);
}

#[test]
fn trims_need_a_device() {
    let words = [
        "--name=j",
        "--rw=trim",
        "--bs=4k",
        "--size=64k",
        "--filename=/f",
    ];
    let result = run(&words);
    assert_eq!(result.jobs[0].error, 95);
    let options = FioOptions {
        on: Some(On::Device),
        ..FioOptions::default()
    };
    let (result, _) = run_with(options, &words).unwrap();
    assert_eq!(
        (
            result.jobs[0].error,
            result.jobs[0].directions.trim.total_ios
        ),
        (0, 16)
    );
}

#[test]
fn errors_end_a_job_or_are_counted() {
    let with = |more: &[&str]| {
        let options = FioOptions {
            stack: Some("error(op=write,count=1,skip=3)/ram(1m)".to_owned()),
            ..FioOptions::default()
        };
        let mut words = vec![
            "--name=j",
            "--rw=write",
            "--bs=4k",
            "--size=64k",
            "--filename=/dev/f",
        ];
        words.extend(more);
        run_with(options, &words).unwrap().0
    };
    let job = &with(&[]).jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (5, 3));
    assert!(job.own.iter().any(|(k, _)| k == "failure"));
    let job = &with(&["--continue_on_error=all"]).jobs[0];
    assert_eq!((job.error, job.directions.write.total_ios), (0, 15));
    assert_eq!(job.errors.unwrap().0, 1);
}
