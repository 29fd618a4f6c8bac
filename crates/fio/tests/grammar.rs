//! The grammar of job files and the values in them, row by row, each with what fio 3.33 makes of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here is the test's own"
)]

use std::time::Duration;

use cairn_fio::job::{Amount, BlockSizes, Distribution, RwMode, RwStep, VerifyKind};
use cairn_fio::parse::Keywords;
use cairn_fio::{Job, ParseErrorKind, Parser, Plan, parse_job_text};

fn plan(text: &str) -> Plan {
    parse_job_text("test", text).unwrap_or_else(|error| panic!("{error}"))
}

fn job(lines: &str) -> Job {
    plan(&format!("[j]\n{lines}\n")).jobs.remove(0)
}

fn refused(text: &str) -> ParseErrorKind {
    parse_job_text("test", text)
        .map(|plan| format!("{plan:?}"))
        .unwrap_err()
        .kind
}

fn with_files<'a>(files: &'a [(&'a str, &'a str)]) -> Parser<'a> {
    Parser::new().files(move |name| {
        let found = files.iter().find(|(path, _)| *path == name);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| std::io::Error::other("not here"))
    })
}

// --- lines and sections ---

#[test]
fn comments_start_anywhere() {
    // fio: description is "before"; the lint tells what a user would not see otherwise.
    let plan = plan("[j]\n; one\n  # two\ndescription=before;after\nbs=8k ; blanks are fine\n");
    assert_eq!(plan.jobs[0].description.as_deref(), Some("before"));
    assert_eq!(plan.jobs[0].max_block(), 8192);
    assert_eq!(plan.lints.len(), 1);
}

#[test]
fn blanks_and_line_ends_are_trimmed() {
    assert_eq!(job("  \tbs=8k \t\r").max_block(), 8192);
    assert_eq!(job("bs =8k").max_block(), 8192);
    // fio reads "iodepth= 4" as 4, but "bs= 8k" as 8 bytes: the first is read, the second refused.
    assert_eq!(job("iodepth= 4").queue.iodepth, 4);
    assert!(matches!(
        refused("[j]\nbs= 8k\n"),
        ParseErrorKind::BadValue { .. }
    ));
    // Behind the = blanks belong to a text, in fio too.
    assert_eq!(job("description= a").description.as_deref(), Some(" a"));
}

#[test]
fn lines_have_a_limit() {
    // fio reads the rest as a line of its own, which is worse.
    let long = format!("[j]\ndescription={}\n", "x".repeat(5000));
    assert!(matches!(
        refused(&long),
        ParseErrorKind::LineTooLong { len: 5012 }
    ));
    let fits = format!("[j]\ndescription={}\n", "x".repeat(4000));
    assert!(parse_job_text("test", &fits).is_ok());
}

#[test]
fn sections_may_have_blanks_and_globals_any_ending() {
    let plan = plan("[global stuff]\nbs=8k\n[a job]\n[globalfoo]\nbs=16k\n[b]\n");
    let blocks: Vec<_> = plan
        .jobs
        .iter()
        .map(|j| (j.name.as_str(), j.max_block()))
        .collect();
    assert_eq!(blocks, [("a job", 8192), ("b", 16384)]);
    let long = format!("[{}]\n", "n".repeat(256));
    assert!(matches!(refused(&long), ParseErrorKind::BadSection { .. }));
    assert!(matches!(refused("[]\n"), ParseErrorKind::BadSection { .. }));
}

#[test]
fn a_job_copies_the_globals_at_its_start() {
    let plan = plan("[global]\niodepth=2\n[a]\n[global]\niodepth=4\nbs=1k\n[b]\niodepth=8\n[c]\n");
    let seen: Vec<_> = plan
        .jobs
        .iter()
        .map(|j| (j.queue.iodepth, j.max_block()))
        .collect();
    assert_eq!(seen, [(2, 4096), (8, 1024), (4, 1024)]);
    assert_eq!(
        plan.global_options(),
        [("iodepth".into(), "4".into()), ("bs".into(), "1k".into())]
    );
    assert_eq!(
        plan.jobs[1].json_options(),
        [("iodepth".into(), "8".into())]
    );
}

#[test]
fn an_option_alone_is_one_for_flags_only() {
    assert!(job("time_based").control.time_based);
    assert!(!job("time_based=0").control.time_based);
    // fio: "time_based=5" is on, "direct" alone and "direct=2" are refused.
    assert!(job("time_based=5").control.time_based);
    assert!(matches!(
        refused("[j]\ndirect\n"),
        ParseErrorKind::MissingValue { .. }
    ));
    assert!(matches!(
        refused("[j]\ndirect=2\n"),
        ParseErrorKind::BadValue { .. }
    ));
}

#[test]
fn options_before_a_section_are_refused() {
    assert!(matches!(
        refused("bs=4k\n[j]\n"),
        ParseErrorKind::OutsideSection { .. }
    ));
    assert!(matches!(
        refused("include x\n[j]\n"),
        ParseErrorKind::OutsideSection { .. }
    ));
}

#[test]
fn includes_nest_relative_to_their_file() {
    let files = [
        ("jobs/main.fio", "[j]\ninclude sub/a.inc\niodepth=4\n"),
        ("jobs/sub/a.inc", "bs=8k\ninclude b.inc\n"),
        ("jobs/sub/b.inc", "rw=write\n"),
        ("loop.fio", "[j]\ninclude loop.inc\n"),
        ("loop.inc", "include loop.inc\n"),
    ];
    let plan = with_files(&files).job_file("jobs/main.fio").unwrap();
    let job = &plan.jobs[0];
    assert_eq!(
        (job.max_block(), job.access.rw, job.queue.iodepth),
        (8192, RwMode::Write, 4)
    );
    let error = with_files(&files).job_file("loop.fio").unwrap_err();
    assert!(
        matches!(error.kind, ParseErrorKind::IncludeDepth { .. }),
        "{error}"
    );
}

#[test]
fn name_renames_the_job() {
    let plan = plan("[section]\nname=other\n");
    assert_eq!(
        (plan.jobs[0].name.as_str(), plan.jobs[0].section.as_str()),
        ("other", "section")
    );
    // fio: a name in a global section renames nothing.
    assert_eq!(super_name("[global]\nname=x\n[a]\n"), "a");
}

fn super_name(text: &str) -> String {
    plan(text).jobs.remove(0).name
}

#[test]
fn the_environment_and_keywords() {
    let parser = Parser::new()
        .environment(|name| (name == "BLOCK").then(|| "16k".to_owned()))
        .keywords(Keywords {
            pagesize: 4096,
            mb_memory: 100,
            ncpus: 3,
        });
    let text = "[j]\nbs=${BLOCK}\ndescription=a${NONE}b\nnumjobs=$ncpus\nsize=8*$mb_memory\n";
    let job = parser.job_text("test", text).unwrap().jobs.remove(0);
    assert_eq!((job.max_block(), job.control.numjobs), (16384, 3));
    assert_eq!(job.description.as_deref(), Some("ab"));
    assert_eq!(job.extent.size, Some(Amount::Bytes(800)));
    // fio hands expressions with keywords to bc, which knows no suffixes.
    assert!(parser.job_text("test", "[j]\nsize=$ncpus*1m\n").is_err());
    assert_eq!(job_size("size=(1024*4k)"), 4 << 20);
}

fn job_size(line: &str) -> u64 {
    match job(line).extent.size {
        Some(Amount::Bytes(n)) => n,
        other => panic!("{other:?}"),
    }
}

#[test]
fn unknown_options_get_a_suggestion() {
    let error = parse_job_text("jobs.fio", "[j]\nblocksise=4k\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "jobs.fio:2: unknown option blocksise=4k; did you mean blocksize?"
    );
    let plan = Parser::new()
        .lenient(true)
        .job_text("t", "[j]\nblocksise=4k\nbs=8k\n")
        .unwrap();
    assert_eq!(
        (plan.jobs[0].ignored.len(), plan.jobs[0].max_block()),
        (1, 8192)
    );
}

#[test]
fn options_of_engines_need_their_engine() {
    // fio: accepted in either order, refused for other engines ("Bad option").
    assert_eq!(
        job("hipri\nioengine=io_uring").queue.ioengine.word(),
        "io_uring"
    );
    assert!(matches!(
        refused("[j]\nioengine=libaio\nhipri\n"),
        ParseErrorKind::OtherEngine { .. }
    ));
    assert!(parse_job_text("t", "[global]\nhipri\n[j]\nioengine=io_uring\n").is_err());
    assert!(
        parse_job_text(
            "t",
            "[global]\nioengine=io_uring\nhipri\n[j]\nioengine=libaio\n"
        )
        .is_ok()
    );
}

// --- values ---

#[test]
fn sizes_follow_the_base() {
    // Measured: 4m 4194304, 4mib 4000000, 4mi 4194304; with kb_base=1000 4000000, 4194304, 4000000.
    for (text, binary, decimal) in [
        ("4m", 4 << 20, 4_000_000),
        ("4mib", 4_000_000, 4 << 20),
        ("4mi", 4 << 20, 4_000_000),
    ] {
        assert_eq!(job_size(&format!("size={text}")), binary);
        // kb_base holds for the section wherever it stands.
        assert_eq!(job_size(&format!("size={text}\nkb_base=1000")), decimal);
    }
    assert_eq!(job("size=50%").extent.size, Some(Amount::Percent(50)));
    assert!(matches!(
        refused("[j]\nsize=0\n"),
        ParseErrorKind::BadValue { .. }
    ));
}

#[test]
fn times_have_units_and_bare_ones_are_seconds() {
    for (text, time) in [
        ("90", 90_000),
        ("2m", 120_000),
        ("1500ms", 1500),
        ("2S", 2000),
        ("1h", 3_600_000),
        ("250000us", 250),
    ] {
        assert_eq!(
            job(&format!("runtime={text}")).control.runtime,
            Duration::from_millis(time),
            "{text}"
        );
    }
    assert_eq!(
        job("thinktime=500").pace.thinktime,
        Duration::from_micros(500)
    );
    // fio reads about 0.
    assert!(matches!(
        refused("[j]\nruntime=10sec\n"),
        ParseErrorKind::BadValue { .. }
    ));
    assert_eq!(
        job("startdelay=3-1").control.startdelay,
        (Duration::from_secs(1), Duration::from_secs(3))
    );
}

#[test]
fn ranges_are_swapped_and_win_over_sizes() {
    let job = job("bsrange=8k-4k/1k:2k\nbs=16k");
    assert_eq!(
        job.access.bs.read,
        BlockSizes::Range {
            min: 4096,
            max: 8192
        }
    );
    assert_eq!(
        job.access.bs.write,
        BlockSizes::Range {
            min: 1024,
            max: 2048
        }
    );
    assert_eq!(
        job.access.bs.trim,
        BlockSizes::Range {
            min: 1024,
            max: 2048
        }
    );
}

#[test]
fn triples_serve_the_directions_left_out() {
    // fio: bs=4k,8k gives (R) 4096B, (W) 8192B, (T) 8192B; ",8k" keeps the default for reads.
    let fixed = |lines: &str| {
        let bs = job(lines).access.bs;
        [bs.read.max(), bs.write.max(), bs.trim.max()]
    };
    assert_eq!(fixed("bs=4k,8k"), [4096, 8192, 8192]);
    assert_eq!(fixed("bs=,8k"), [4096, 8192, 8192]);
    assert_eq!(fixed("bs=1k,2k,3k"), [1024, 2048, 3072]);
    assert_eq!(fixed("bs=1k"), [1024, 1024, 1024]);
}

#[test]
fn splits_fill_up() {
    let split = job("bssplit=4k/50:8k/:16k/").access.bs.read;
    assert_eq!(
        split,
        BlockSizes::Split(vec![(4096, 50), (8192, 25), (16384, 25)])
    );
    let many: Vec<String> = (1..=65).map(|n| format!("{n}k/")).collect();
    assert!(parse_job_text("t", &format!("[j]\nbssplit={}\n", many.join(":"))).is_err());
}

#[test]
fn file_names_by_colon_and_their_format() {
    let named = job(r"filename=/a:/b\:c");
    assert_eq!(named.files.names, ["/a", "/b:c"]);
    assert_eq!(named.files.count(), 2);
    let made = job("directory=/x:/y\nnrfiles=2");
    assert_eq!(made.files.path("j", 1, 1), "/y/j.1.1");
    let format = job("filename_format=$jobname-$jobnum-$filenum");
    assert_eq!(format.files.path("j", 2, 3), "j-2-3");
}

#[test]
fn lists_of_numbers() {
    assert_eq!(
        job("percentile_list=99.9:50").report.percentiles,
        Some(vec![50.0, 99.9])
    );
    assert!(parse_job_text("t", "[j]\npercentile_list=1:101\n").is_err());
}

#[test]
fn wrong_words_get_the_right_ones() {
    let error = parse_job_text("t", "[j]\nrw=readwrit\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("did you mean readwrite?") && error.contains("randtrimwrite"),
        "{error}"
    );
}

#[test]
fn aliases_become_their_option() {
    for (alias, name) in [
        ("readwrite=read", "rw"),
        ("blocksize=4k", "bs"),
        ("blocksize_range=1k-2k", "bsrange"),
        ("blockalign=4k", "ba"),
        ("io_limit=4k", "io_size"),
        ("fileoffset=4k", "offset"),
        ("nr_files=2", "nrfiles"),
        ("timeout=2", "runtime"),
        ("iomem=malloc", "mem"),
        ("fill_fs=1", "fill_device"),
        ("ratemin=1k", "rate_min"),
        ("ratecycle=1000", "rate_cycle"),
        ("wait_for_previous", "stonewall"),
        ("iodepth_batch_submit=2", "iodepth_batch"),
        ("iodepth_batch_complete=2", "iodepth_batch_complete_min"),
        ("log_window_value=1", "log_max_value"),
        ("disable_bw=1", "disable_bw_measurement"),
        ("ss=iops:5%", "steadystate"),
    ] {
        assert_eq!(job(alias).given[0].name, name, "{alias}");
    }
}

#[test]
fn options_that_stand_against_each_other_take_the_last() {
    assert!(!job("direct=1\nbuffered=1").queue.direct);
    assert!(job("buffered=0").queue.direct);
    assert_eq!(job("rwmixread=70\nrwmixwrite=70").access.rwmixread, 30);
    let report = job("gtod_reduce=1\ndisable_lat=0").report;
    assert!(report.disable_clat && !report.disable_lat && !report.clat_percentiles);
}

#[test]
fn steps_behind_the_mode() {
    assert_eq!(job("rw=randread:8").access.step, Some(RwStep::Every(8)));
    assert_eq!(job("rw=write:64k").access.step, Some(RwStep::Skip(65536)));
    assert_eq!(job("rw=read:-4k").access.step, Some(RwStep::Skip(-4096)));
}

#[test]
fn a_pattern_alone_is_verified_without_headers() {
    let alone = job("rw=write\nverify_pattern=0x12").verify;
    assert_eq!((alone.kind, alone.headers), (VerifyKind::Pattern, false));
    let with = job("rw=write\nverify_pattern=0x12\nverify=pattern").verify;
    assert_eq!((with.kind, with.headers), (VerifyKind::Pattern, true));
    let off = job("rw=write\nverify_pattern=0x12\nverify=0").verify;
    assert_eq!(off.kind, VerifyKind::None);
}

#[test]
fn zones_differ_by_direction() {
    // fio's manual has the form, fio 3.33 refuses it.
    let job = job("random_distribution=zoned:60/10:40/,50/5:50/");
    let Distribution::Zoned(zones) = job.random.distribution else {
        panic!("zones")
    };
    assert_eq!((zones.read.len(), zones.write[0].access_percent), (2, 50));
}

#[test]
fn very_long_files_come_to_an_end() {
    // Anything quadratic in the number of lines would not come to an end here.
    let text = format!("[j]\n{}[k]\n", "iodepth=4\n".repeat(200_000));
    let plan = plan(&text);
    assert_eq!(plan.jobs[0].given.len(), 200_000);
    let sections: Vec<String> = (0..4000).map(|n| format!("[j{n}]\nbs=4k\n")).collect();
    let sections = sections.concat();
    assert_eq!(parse_job_text("t", &sections).unwrap().jobs.len(), 4000);
}

#[test]
fn a_job_file_without_an_end_is_refused() {
    let error = cairn_fio::parse_job_file("/dev/zero")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/dev/zero") && error.contains("16 MiB"),
        "{error}"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let plan = cairn_fio::parse_job_text("t", "\u{feff}[global]\nbs=8k\n[j]\nrw=read\n").unwrap();
    assert_eq!(plan.jobs[0].min_block(), 8192);
}

#[test]
fn a_range_of_block_sizes_is_sent_to_its_option() {
    let error = cairn_fio::parse_job_text("t", "[j]\nbs=1k-8k\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("bsrange=1k-8k"), "{error}");
}
