//! creat-clo with AIM7's metrics.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cairn_lab::{CreatClo, CreatCloResult, FILES_PER_JOB, PerFile, Registry, run_creat_clo};

fn run(run: &CreatClo) -> CreatCloResult {
    run_creat_clo(run, &Registry::default()).unwrap()
}

fn check(result: &CreatCloResult) {
    let per_minute = 60.0 * result.jobs / result.seconds;
    assert!((result.jobs_per_minute - per_minute).abs() <= 1e-6 * per_minute);
    let each = per_minute / result.tasks as f64;
    assert!((result.jobs_per_minute_per_task - each).abs() <= 1e-6 * each);
    assert!((0.0..=100.0).contains(&result.jti), "{}", result.jti);
    assert_eq!(
        result.per_file,
        PerFile {
            touches: 14,
            dirties: 14,
            sets: 42,
            lookups: 3
        }
    );
}

#[test]
fn every_task_runs_its_jobs() {
    let result = run(&CreatClo {
        tasks: 5,
        loops: 3,
        ..CreatClo::default()
    });
    check(&result);
    assert_eq!((result.tasks, result.files), (5, 15 * FILES_PER_JOB));
    assert!(result.part.contains("Not a file system"), "{}", result.part);
    let mut text = Vec::new();
    result.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for words in [
        "jobs/min",
        "jobs/min/task",
        "jti",
        "policy flag-set check-first",
        "42 set calls",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["per_file"]["sets"], 42);
}

#[test]
fn a_duration_or_a_word_from_outside_ends_it() {
    let result = run(&CreatClo {
        tasks: 3,
        duration: Some(Duration::from_secs(1)),
        ..CreatClo::default()
    });
    check(&result);
    assert!(result.files > 0 && result.seconds >= 0.99);
    let result = run(&CreatClo {
        tasks: 2,
        duration: Some(Duration::from_mins(10)),
        cancel: Some(Arc::new(AtomicBool::new(true))),
        ..CreatClo::default()
    });
    check(&result);
}

#[test]
fn hundreds_of_tasks_share_four_buffers_under_either_policy() {
    for arm in ["always-rmw", "check-first"] {
        let result = run(&CreatClo {
            tasks: 300,
            policies: vec![("flag-set".to_owned(), arm.to_owned())],
            ..CreatClo::default()
        });
        check(&result);
        assert_eq!(result.files, 300 * FILES_PER_JOB);
        let mut text = Vec::new();
        result.write_text(&mut text).unwrap();
        let line = format!("policy flag-set {arm}");
        assert!(String::from_utf8(text).unwrap().contains(&line));
    }
}

#[test]
fn tasks_work_on_files_of_a_file_system_that_is_sound_afterwards() {
    for variant in [cairn_lab::Variant::Patch, cairn_lab::Variant::Aim7] {
        let result = run(&CreatClo {
            tasks: 40,
            on: Some(cairn_lab::On::File),
            variant,
            ..CreatClo::default()
        });
        assert_eq!(result.files, 40 * FILES_PER_JOB);
        assert!(result.part.contains("ext4 layer"), "{}", result.part);
    }
    let result = run(&CreatClo {
        tasks: 1,
        on: Some(cairn_lab::On::File),
        ..CreatClo::default()
    });
    check(&result);
}

#[test]
#[ignore = "3000 threads and three million files take half a minute on two cores; just soak lab"]
fn as_many_tasks_as_the_published_run() {
    let result = run(&CreatClo {
        tasks: 3000,
        ..CreatClo::default()
    });
    check(&result);
    assert_eq!(result.files, 3000 * FILES_PER_JOB);
}
