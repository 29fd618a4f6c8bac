//! Scenario files: what is read, what is refused, and that both directions agree.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cairn_lab::{
    FioSource, Lab, LabError, Options, Registry, Scenario, ScenarioError, WorkloadKind,
    WorkloadSpec,
};
use proptest::prelude::*;

#[test]
fn presets_are_scenarios_and_the_default_is_first() {
    let names: Vec<_> = Scenario::presets().iter().map(|p| p.name).collect();
    assert_eq!(names, ["mixed", "randwrite", "creat-clo", "fragmented"]);
    for preset in Scenario::presets() {
        let scenario = Scenario::preset(preset.name).unwrap();
        assert_eq!(scenario.name, preset.name);
        assert_eq!(scenario.about, preset.about);
        let again = Scenario::parse(&scenario.to_toml(), "again.toml").unwrap();
        assert_eq!(again, scenario);
    }
    assert_eq!(Scenario::preset("mixed").unwrap().workloads.len(), 2);
    assert!(Scenario::preset("none").is_none());
}

#[test]
fn the_documented_form_is_read() {
    let scenario = Scenario::parse(
        r#"
name = "randwrite"
stack = "stats/ram(1g)"
seed = 42
[workload]
kind = "fio"
job = "randwrite.fio"
runtime = "30s"
warmup = "500ms"
[policies]
flag-set = "check-first"
es-counters = "per-cpu"
"#,
        "x.toml",
    )
    .unwrap();
    assert_eq!(
        scenario.workloads,
        [WorkloadSpec {
            name: "fio".to_owned(),
            kind: WorkloadKind::Fio(FioSource::Job(PathBuf::from("randwrite.fio"))),
            runtime: Some(Duration::from_secs(30)),
            warmup: Duration::from_millis(500),
        }]
    );
    assert_eq!(scenario.policies.len(), 2);
}

/// Message of a scenario that must be refused; `@` stands for the first good lines.
fn refused(text: &str) -> String {
    let text = text.replace('@', "name = \"x\"\nstack = \"ram(1m)\"");
    match Scenario::parse(&text, "x.toml") {
        Err(e @ ScenarioError::Invalid { .. }) => e.to_string(),
        other => panic!("{text}\n{other:?}"),
    }
}

#[test]
fn errors_name_file_line_and_field() {
    for (text, start, words) in [
        (
            "@\n[workload]\nkind = \"fio\"\noptions = \"--rw=read\"\nspeed = 3\n",
            "x.toml:6: `speed`",
            "unknown field",
        ),
        (
            "@\n[workload]\nkind = \"nfs\"\n",
            "x.toml:4: `kind`",
            "kinds are fio, aim7",
        ),
        (
            "@\n[workload]\nkind = \"fio\"\n",
            "x.toml:4: `kind`",
            "options",
        ),
        (
            "@\n[workload]\nkind = \"fio\"\njob = \"a\"\noptions = \"b\"\n",
            "x.toml:5: `job`",
            "not both",
        ),
        (
            "@\n[workload]\nkind = \"fio\"\njob = \"a\"\ntasks = 3\n",
            "x.toml:6: `tasks`",
            "numjobs",
        ),
        (
            "@\n[workload]\nkind = \"aim7\"\ntasks = 0\n",
            "x.toml:5: `tasks`",
            "1..=4096",
        ),
        (
            "@\n[workload]\nkind = \"aim7\"\njob = \"a\"\n",
            "x.toml:5: `job`",
            "fio",
        ),
        (
            "@\n[workload]\nkind = \"aim7\"\nruntime = \"30\"\n",
            "x.toml:5: `runtime`",
            "no unit",
        ),
        (
            "name = \"\"\nstack = \"ram(1m)\"\n[workload]\nkind = \"aim7\"\n",
            "x.toml:1: `name`",
            "needs a name",
        ),
        (
            "name = \"x\"\nstack = \"ram(1m\"\n[workload]\nkind = \"aim7\"\n",
            "x.toml:2: `stack`",
            "",
        ),
        ("@\n", "x.toml:", "workload"),
        ("@\nworkload = []\n", "x.toml:3: `workload`", "at least one"),
        (
            "@\n[[workload]]\nkind = \"aim7\"\n[[workload]]\nkind = \"aim7\"\n",
            "x.toml:6: `name`",
            "two workloads",
        ),
        (
            "@\nseed = -1\n[workload]\nkind = \"aim7\"\n",
            "x.toml:3: `seed`",
            "",
        ),
        ("@\n[workload\n", "x.toml:3:", ""),
    ] {
        let message = refused(text);
        assert!(message.starts_with(start), "{text}\n{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn files_are_found_and_jobs_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    let text =
        "name = \"mine\"\nstack = \"ram(16m)\"\n[workload]\nkind = \"fio\"\njob = \"w.fio\"\n";
    std::fs::write(&path, text).unwrap();
    let scenario = Scenario::load(path.to_str().unwrap()).unwrap();
    assert_eq!(
        scenario.workloads.first().unwrap().kind,
        WorkloadKind::Fio(FioSource::Job(dir.path().join("w.fio")))
    );
    let start = |s: &Scenario| Lab::start(s.clone(), &Registry::default(), Options::default());
    let error = start(&scenario).unwrap_err();
    assert!(matches!(error, LabError::Jobs { .. }), "{error}");
    std::fs::write(dir.path().join("w.fio"), "[w]\nrw=randwrite\nsize=4m\n").unwrap();
    let summary = start(&scenario).unwrap().finish();
    assert_eq!(summary.workloads.len(), 1);

    let text = Scenario::load("nothing").unwrap_err().to_string();
    assert!(
        text.contains("mixed, randwrite, creat-clo, fragmented"),
        "{text}"
    );
    let gone = dir.path().join("gone.toml");
    let error = Scenario::load(gone.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, ScenarioError::Read { .. }));
    assert!(error.to_string().contains("gone.toml"));
}

#[test]
fn scenarios_that_name_what_is_not_there_do_not_start() {
    let start = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = Scenario::preset("randwrite").unwrap();
        change(&mut scenario);
        Lab::start(scenario, &Registry::default(), Options::default()).unwrap_err()
    };
    let error = start(&|s| s.stack = "ram(1m)".to_owned());
    assert!(error.to_string().contains("268435456"), "{error}");
    let error = start(&|s| s.stack = "rum(1m)".to_owned());
    assert!(error.to_string().contains("rum") && error.is_usage());
    let error = start(&|s| {
        s.policies
            .insert("flag-set".to_owned(), "sometimes".to_owned());
    });
    assert!(
        error.to_string().contains("always-rmw, check-first"),
        "{error}"
    );
    let error = start(&|s| {
        if let Some(w) = s.workloads.first_mut() {
            w.kind = WorkloadKind::Fio(FioSource::Options(
                "--rw=write --size=1m --verify=md5".to_owned(),
            ));
        }
    });
    assert!(error.to_string().contains("`verify`"), "{error}");
    let error = start(&|s| {
        if let Some(w) = s.workloads.first_mut() {
            w.kind = WorkloadKind::Fio(FioSource::Options("--rw=reed".to_owned()));
        }
    });
    assert!(matches!(error, LabError::Jobs { .. }), "{error}");
}

#[test]
fn quotes_that_hold_nothing_together_are_refused() {
    for options in [
        "--rw=read --size=1m '--bs=4k'",
        "--rw=read --size=1m --description=\"a b\"",
    ] {
        let mut scenario = Scenario::preset("randwrite").unwrap();
        scenario.workloads[0].kind = WorkloadKind::Fio(FioSource::Options(options.to_owned()));
        let error = Lab::start(scenario, &Registry::default(), Options::default()).unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains("quotes"),
            "{error}"
        );
    }
}

#[test]
fn a_stack_that_fails_is_no_wrong_request() {
    let mut scenario = Scenario::preset("randwrite").unwrap();
    scenario.stack = "error(op=write)/ram(320m)".to_owned();
    let error = Lab::start(scenario, &Registry::default(), Options::default()).unwrap_err();
    assert!(
        matches!(error, LabError::Layout { .. }) && !error.is_usage(),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("workload `randwrite`: laying out /mnt/test1: ")
    );
}

#[test]
fn a_slip_in_a_name_is_recognised() {
    let error = Scenario::load("mixd").unwrap_err().to_string();
    assert!(error.contains("did you mean `mixed`?"), "{error}");
    let error = Scenario::load("zebra").unwrap_err().to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_file_without_an_end_is_refused_and_a_byte_order_mark_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zero.toml");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(20 << 20)
        .unwrap();
    let error = Scenario::load(path.to_str().unwrap()).unwrap_err();
    assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
    let text = Scenario::preset("randwrite").unwrap().to_toml();
    Scenario::parse(&format!("\u{feff}{text}"), "x.toml").unwrap();
}

fn workload() -> impl Strategy<Value = (WorkloadKind, Option<u64>, u64)> {
    let kind = prop_oneof![
        "[ -~]{0,40}".prop_map(|s| WorkloadKind::Fio(FioSource::Options(s))),
        "[a-z/.]{1,20}".prop_map(|s| WorkloadKind::Fio(FioSource::Job(PathBuf::from(s)))),
        (1_usize..4097).prop_map(|tasks| WorkloadKind::CreatClo { tasks }),
    ];
    (kind, prop::option::of(0_u64..1 << 53), 0_u64..1 << 53)
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        name in "[^\\p{Cc}]{0,10}[a-z]",
        about in "\\PC{0,30}",
        seed in 0_u64..i64::MAX as u64,
        workloads in prop::collection::vec(workload(), 1..4),
        policies in prop::collection::btree_map("\\PC{1,12}", "\\PC{0,12}", 0..4),
    ) {
        let scenario = Scenario {
            name,
            about,
            stack: "stats/ram(1m)".to_owned(),
            seed,
            workloads: workloads
                .into_iter()
                .enumerate()
                .map(|(i, (kind, runtime, warmup))| WorkloadSpec {
                    name: format!("w{i}"),
                    kind,
                    runtime: runtime.map(Duration::from_nanos),
                    warmup: Duration::from_nanos(warmup),
                })
                .collect(),
            policies: BTreeMap::from_iter(policies),
        };
        let text = scenario.to_toml();
        let again = Scenario::parse(&text, "x.toml").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(again, scenario);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*|(name|stack|\\[workload\\]|kind|=|\"|\n| )*") {
        let _ = Scenario::parse(&text, "x.toml");
    }
}
