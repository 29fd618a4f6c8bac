//! Command lines are read as fio reads them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here is the test's own"
)]

use std::time::Duration;

use cairn_fio::job::{IoEngine, RwMode, SyncIo};
use cairn_fio::plan::{Eta, Show};
use cairn_fio::{Location, OutputFormat, ParseErrorKind, Parser, Plan, parse_command_line};

/// Two job files that exist for these tests only.
fn parser() -> Parser<'static> {
    Parser::new().files(|name| match name {
        "a.fio" => Ok(b"[global]\nbs=8k\n[a]\nrw=read\n[second]\nrw=write\n".to_vec()),
        "-" | "b.fio" => Ok(b"[b]\nrw=randread\n".to_vec()),
        _ => Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "No such file or directory",
        )),
    })
}

fn read(line: &str) -> Plan {
    parser()
        .command_line(line.split_whitespace())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn refused(line: &str) -> ParseErrorKind {
    let result = parser().command_line(line.split_whitespace());
    result.map(|plan| format!("{plan:?}")).unwrap_err().kind
}

#[test]
fn the_benchmark_of_the_per_cpu_counters() {
    let plan = read(
        "-name=randwrite -numjobs=8 -filename=/mnt/test1 -rw=randwrite -ioengine=libaio -direct=1 \
         -iodepth=64 -sync=0 -norandommap -group_reporting -runtime=120 -time_based -bs=4k -size=5G",
    );
    let job = &plan.jobs[0];
    assert_eq!((job.name.as_str(), job.control.numjobs), ("randwrite", 8));
    assert_eq!(job.files.names, ["/mnt/test1"]);
    assert_eq!(
        (job.access.rw, job.queue.ioengine),
        (RwMode::RandWrite, IoEngine::Libaio)
    );
    assert!(job.queue.direct && job.random.norandommap && job.report.group_reporting);
    assert_eq!((job.queue.iodepth, job.durability.sync), (64, SyncIo::None));
    assert_eq!(job.control.runtime, Duration::from_mins(2));
    assert!(job.control.time_based);
    assert_eq!(job.min_block(), 4096);
    assert_eq!(
        plan.clones().iter().map(|clone| clone.report).max(),
        Some(0)
    );
    // fio leaves flags that stand alone out of "job options".
    assert!(
        job.json_options()
            .iter()
            .all(|(key, _)| key != "norandommap")
    );
}

#[test]
fn both_dashes_values_apart_and_prefixes() {
    let plan = read("--name a -bs 8k --ioeng=null --direct --rw=read --norand --iodepth=0x10");
    let job = &plan.jobs[0];
    assert_eq!(
        (job.max_block(), job.queue.ioengine, job.queue.iodepth),
        (8192, IoEngine::Null, 16)
    );
    assert!(job.queue.direct && job.random.norandommap);
    assert!(matches!(
        refused("--name=a --io=null"),
        ParseErrorKind::Ambiguous { .. }
    ));
    assert!(matches!(
        refused("--name=a --iodepth"),
        ParseErrorKind::MissingValue { .. }
    ));
    assert!(matches!(
        refused("--name=a --readonly=1"),
        ParseErrorKind::UnexpectedValue { .. }
    ));
}

#[test]
fn options_before_the_first_job_are_global() {
    let plan = read("--bs=8k --ioengine=null --name=x --rw=randread --name=y --bs=1k");
    let seen: Vec<_> = plan
        .jobs
        .iter()
        .map(|j| (j.name.as_str(), j.max_block()))
        .collect();
    assert_eq!(seen, [("x", 8192), ("y", 1024)]);
    assert_eq!(
        plan.global_options(),
        [
            ("bs".into(), "8k".into()),
            ("ioengine".into(), "null".into())
        ]
    );
    // As in fio, the name is among the options of such a job.
    assert_eq!(plan.jobs[0].json_options()[0], ("name".into(), "x".into()));
}

#[test]
fn globals_reach_into_the_first_file_and_a_wall_stands_between_files() {
    // fio: --bs=2k a.fio b.fio gives the default to b, in a group of its own.
    let plan = read("--iodepth=3 b.fio a.fio");
    let seen: Vec<_> = plan
        .jobs
        .iter()
        .map(|j| (j.name.as_str(), j.queue.iodepth, j.group))
        .collect();
    assert_eq!(seen, [("b", 3, 0), ("a", 1, 1), ("second", 1, 1)]);
    // There is none between the jobs of the command line and the first file.
    let plan = read("--name=x b.fio");
    assert!(plan.jobs.iter().all(|job| job.group == 0));
}

#[test]
fn files_standard_input_and_the_end_of_options() {
    assert_eq!(read("-").jobs[0].name, "b");
    assert_eq!(read("--name=x -- b.fio").jobs.len(), 2);
    let error = parse_command_line(["nowhere.fio"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read job file nowhere.fio: "),
        "{error}"
    );
    assert!(matches!(refused("--bs=4k"), ParseErrorKind::NoJobs));
}

#[test]
fn sections_are_chosen_wherever_the_option_stands() {
    let plan = read("a.fio --section=second");
    assert_eq!(plan.jobs.len(), 1);
    // Globals always hold.
    assert_eq!(
        (plan.jobs[0].name.as_str(), plan.jobs[0].max_block()),
        ("second", 8192)
    );
    assert!(matches!(
        refused("a.fio --section=third"),
        ParseErrorKind::NoSection { .. }
    ));
}

#[test]
fn options_of_the_run() {
    let run = read(
        "--output=out --output-format=json,terse --terse-version=5 --eta=always --eta-interval=500 \
         --eta-newline=2 --status-interval=1500ms --readonly --max-jobs=9 --aux-path=/tmp --bandwidth-log b.fio",
    )
    .run;
    assert_eq!(run.output.as_deref(), Some("out"));
    assert_eq!(run.formats, [OutputFormat::Json, OutputFormat::Terse]);
    assert_eq!(
        (run.terse_version, run.eta, run.max_jobs),
        (5, Eta::Always, Some(9))
    );
    assert_eq!(run.eta_interval, Duration::from_millis(500));
    assert_eq!(run.eta_newline, Some(Duration::from_secs(2)));
    assert_eq!(run.status_interval, Some(Duration::from_millis(1500)));
    assert!(run.readonly && run.bandwidth_log.is_some());
    assert_eq!(read("--minimal b.fio").run.formats, [OutputFormat::Terse]);
    for bad in [
        "--eta=often",
        "--output-format=xml",
        "--eta-interval=100",
        "--terse-version=1",
        "--status-interval=0",
    ] {
        assert!(
            matches!(
                refused(&format!("{bad} b.fio")),
                ParseErrorKind::BadValue { .. }
            ),
            "{bad}"
        );
    }
}

#[test]
fn what_is_not_offered_is_refused_by_name() {
    for option in [
        "--client=host",
        "--server",
        "--daemonize=pid",
        "--remote-config=f",
        "--idle-prof=system",
        "--trigger=ls",
        "--crctest",
    ] {
        let kind = refused(&format!("{option} b.fio"));
        assert!(
            matches!(kind, ParseErrorKind::Refused { .. }),
            "{option}: {kind}"
        );
    }
    // Harmless ones are noted.
    assert_eq!(read("--alloc-size=1024 --debug=io b.fio").notes.len(), 2);
}

#[test]
fn readonly_refuses_jobs_that_write() {
    assert!(matches!(
        refused("--readonly a.fio"),
        ParseErrorKind::Conflict { .. }
    ));
    assert!(matches!(
        refused("a.fio --readonly"),
        ParseErrorKind::Conflict { .. }
    ));
}

#[test]
fn jobs_are_limited() {
    let kind = refused("--max-jobs=4 --name=x --numjobs=5");
    assert!(matches!(
        kind,
        ParseErrorKind::TooManyJobs { jobs: 5, limit: 4 }
    ));
}

#[test]
fn requests_that_run_nothing() {
    assert_eq!(read("--version").run.show, Some(Show::Version));
    assert_eq!(
        read("--cmdhelp=bs").run.show,
        Some(Show::CmdHelp(Some("bs".into())))
    );
    assert_eq!(read("--enghelp").run.show, Some(Show::EngHelp(None)));
    assert_eq!(
        read("--showcmd b.fio").to_shell("fio"),
        "fio --name=b --rw=randread"
    );
    let help = cairn_fio::options::option_help("bs").unwrap();
    assert!(
        help.contains("blocksize") && help.contains("4096"),
        "{help}"
    );
    assert!(
        cairn_fio::options::engine_help(Some("cpuio"))
            .unwrap()
            .contains("cpuload")
    );
}

#[test]
fn errors_name_the_word() {
    let error = parser().command_line(["--name=x", "--rw=red"]).unwrap_err();
    assert_eq!(error.at, Location::Argument { position: 2 });
    let error = parser()
        .command_line(["--name=x", "--iodpeth=4"])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 2: unknown option --iodpeth=4; did you mean iodepth?"
    );
}

#[test]
fn the_caller_has_options_of_its_own() {
    let parser = parser()
        .own_option("stack", true)
        .own_option("plain", false);
    let plan = parser
        .command_line([
            "--stack",
            "ram(1g)",
            "--plain",
            "b.fio",
            "--lenient",
            "--zzz=1",
        ])
        .unwrap();
    let own: Vec<_> = plan
        .own
        .iter()
        .map(|o| (o.name.as_str(), o.value.as_deref()))
        .collect();
    assert_eq!(own, [("stack", Some("ram(1g)")), ("plain", None)]);
    assert_eq!(plan.ignored.len(), 1);
}
