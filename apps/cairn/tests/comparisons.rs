//! `cairn ab`, `report` and `compare`, and what `cairn fio` does with logs and wrong blocks.
#![allow(
    clippy::unwrap_used,
    reason = "shared functions of a test file; a failure is a failed test"
)]

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn cairn(args: &[&str], folder: &Path) -> Output {
    Command::cargo_bin("cairn")
        .unwrap()
        .args(args)
        .current_dir(folder)
        .timeout(std::time::Duration::from_mins(2))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Whatever else the machine does; the exit code then depends on chance only where A differs from itself.
const SHORT: [&str; 10] = [
    "--pairs",
    "6",
    "--run-time",
    "60ms",
    "--warmup",
    "20ms",
    "--max-others",
    "100",
    "--max-steal",
    "100",
];

#[test]
fn a_comparison_is_printed_written_and_read_again() {
    let temp = tempfile::tempdir().unwrap();
    let args: Vec<&str> = ["ab", "flag-set", "--json", "--out", "one"]
        .into_iter()
        .chain(SHORT)
        .collect();
    let output = cairn(&args, temp.path());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let usable = json["usable"].as_bool().unwrap();
    assert_eq!(
        output.status.code(),
        Some(i32::from(!usable)),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        (&json["schema_version"], &json["pairs"]),
        (&Value::from(1), &Value::from(6))
    );
    assert_eq!(
        json["arms"],
        serde_json::json!(["always-rmw", "check-first"])
    );
    let metric = &json["metrics"][0];
    for key in [
        "name",
        "unit",
        "better",
        "a",
        "b",
        "effect",
        "lo",
        "hi",
        "p",
        "estimator",
    ] {
        assert!(!metric[key].is_null(), "{key}");
    }
    let number = |key: &str| metric[key].as_f64().unwrap();
    assert!(number("lo") <= number("effect") && number("effect") <= number("hi"));
    assert!(json["aa"]["resolution"].as_f64().unwrap() >= 0.0);
    assert!(json["mechanism"][0]["a_per_op"].as_f64().unwrap() > 10.0);
    let repeat = "cairn ab flag-set --pairs 6 --run-time 60ms --warmup 20ms --max-others 100 --max-steal 100";
    assert_eq!(json["command"], repeat);
    // On disk stands what was printed.
    let written = std::fs::read_to_string(temp.path().join("one/run.json")).unwrap();
    assert_eq!(text(&output.stdout), written);
    let report = temp.path().join("one/report.html");
    let before = std::fs::read(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    let output = cairn(&["report", "one"], temp.path());
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "one/report.html\n")
    );
    assert_eq!(std::fs::read(&report).unwrap(), before);
    let output = cairn(&["report", "one", "--format", "text"], temp.path());
    assert!(text(&output.stdout).contains("policy flag-set: A = always-rmw, B = check-first"));
    let output = cairn(&["report", "one", "--format", "json"], temp.path());
    assert_eq!(text(&output.stdout), written);
    let output = cairn(&["compare", "one", "one"], temp.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("flag-set = check-first"));
    let output = cairn(&["compare", "one", "one", "--format", "html"], temp.path());
    assert!(text(&output.stdout).starts_with("<!doctype html>"));
}

#[test]
fn what_cannot_be_compared_or_read_exits_2_and_says_why() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join("full")).unwrap();
    std::fs::write(temp.path().join("full/x"), "x").unwrap();
    for (args, words) in [
        (&["ab", "flagset"][..], "there are: flag-set"),
        (&["ab", "flag-set", "--arms", "on,off"], "no arm `on`"),
        (&["ab", "flag-set", "--arms", "on"], "comma"),
        (
            &["ab", "flag-set", "--scenario", "randwrite"],
            "no workload here has buffer heads",
        ),
        (
            &["ab", "flag-set", "--scenario", "randwrit"],
            "did you mean `randwrite`",
        ),
        (&["ab", "flag-set", "--pairs", "0"], "0 is not in"),
        (&["ab", "flag-set", "--run-time", "1ms"], "too short"),
        (&["ab", "flag-set", "--mde", "many"], "percent"),
        (&["report", "nowhere"], "run.json"),
        (&["compare", "nowhere", "full"], "nowhere"),
    ] {
        let output = cairn(args, temp.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let args: Vec<&str> = ["ab", "flag-set", "--out", "full"]
        .into_iter()
        .chain(SHORT)
        .collect();
    let output = cairn(&args, temp.path());
    let said = text(&output.stderr);
    assert!(
        output.status.code() != Some(0) && said.contains("holds files already"),
        "{said}"
    );
}

#[test]
fn fio_writes_its_logs_and_exits_1_for_a_wrong_block() {
    let temp = tempfile::tempdir().unwrap();
    let line = "fio --name=j --rw=randwrite --bs=4k --size=64k --write_lat_log=run --log_offset=1 --verify=md5";
    let args: Vec<&str> = line.split(' ').collect();
    let output = cairn(&args, temp.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let log = std::fs::read_to_string(temp.path().join("run_clat.1.log")).unwrap();
    // Sixteen writes, and sixteen reads that check them.
    assert_eq!(log.lines().count(), 32, "{log}");
    // Every read of this stack is wrong: nothing was written before.
    let line = "fio --name=j --rw=read --bs=4k --size=64k --filename=/dev/x --verify=md5";
    let args: Vec<&str> = line.split(' ').collect();
    let output = cairn(&args, temp.path());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("magic number: expected 0xacca, found 0x0"),
        "{said}"
    );
    let line = "fio --name=j --rw=write --bs=4k --size=64k --rate_iops=1000 --aux-path=none --write_bw_log=x";
    let args: Vec<&str> = line.split(' ').collect();
    let output = cairn(&args, temp.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("x_bw.1.log"),
        "{}",
        text(&output.stderr)
    );
}
