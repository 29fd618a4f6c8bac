//! The commands as a user meets them: results on stdout, notes on stderr, exit codes.
#![allow(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(
    clippy::unwrap_used,
    reason = "shared functions of a test file; a failure is a failed test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn cairn(args: &[&str]) -> Output {
    Command::cargo_bin("cairn")
        .unwrap()
        .args(args)
        .timeout(std::time::Duration::from_mins(2))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs what must succeed and returns its stdout.
fn results(args: &[&str]) -> String {
    let output = cairn(args);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs what must be refused before anything happens and returns what it says.
fn refused(args: &[&str]) -> String {
    let output = cairn(args);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{args:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stdout), "", "{args:?} printed results");
    text(&output.stderr)
}

/// The fixtures of the repository, or `None` (said aloud) in a package that comes without them.
fn fixtures() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: the fixtures folder of the repository is not here");
    None
}

#[test]
fn without_a_terminal_the_scenario_is_summed_up() {
    let summary = results(&["dash", "--duration", "400ms"]);
    for line in [
        "scenario mixed",
        "throughput ",
        "latency p50 ",
        "policy flag-set check-first",
        "policy es-counters per-cpu",
        "counter hits exact ",
        "flags sets ",
    ] {
        assert!(
            summary.lines().any(|l| l.starts_with(line)),
            "no line {line:?} in\n{summary}"
        );
    }
    assert!(!summary.contains('\u{1b}'), "escape sequences on a pipe");
}

#[test]
fn the_summary_as_json_counts_what_was_done() {
    let summary: Value = serde_json::from_str(&results(&[
        "dash",
        "randwrite",
        "--headless",
        "--duration",
        "900ms",
        "--format",
        "json",
    ]))
    .unwrap();
    assert_eq!(summary["schema_version"], 1);
    assert_eq!(summary["scenario"], "randwrite");
    let ops = summary["workloads"][0]["ops"].as_u64().unwrap();
    assert!(ops > 0);
    let hits = summary["counters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|counter| counter["name"] == "hits")
        .unwrap();
    // Two look-ups an I/O; those of I/Os under way at the ends of the window are not whole.
    let hits = hits["exact"].as_u64().unwrap();
    assert!(
        hits.abs_diff(2 * ops) <= ops / 10,
        "{hits} hits for {ops} I/Os"
    );
}

#[test]
fn a_policy_of_a_scenario_reaches_the_flag_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("always.toml");
    fs::write(
        &path,
        "name = \"always\"\nstack = \"ram(64m)\"\n[workload]\nkind = \"aim7\"\ntasks = 2\n\
         [policies]\nflag-set = \"always-rmw\"\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let summary: Value = serde_json::from_str(&results(&[
        "dash",
        path,
        "--duration",
        "700ms",
        "--format",
        "json",
    ]))
    .unwrap();
    assert!(summary["flags"]["rmws"].as_u64().unwrap() > 0);
    assert_eq!(summary["flags"]["avoided"], 0);
}

#[test]
fn the_command_of_the_counter_patch_runs_word_for_word() {
    let command = "-name=randwrite -numjobs=8 -filename=/mnt/test1 -rw=randwrite -ioengine=libaio -direct=1 \
                   -iodepth=64 -sync=0 -norandommap -group_reporting -runtime=1 -time_based -bs=4k -size=256M";
    let mut args = vec!["fio"];
    args.extend(command.split_whitespace());
    let output = cairn(&args);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("file layer: ext4"));
    let out = text(&output.stdout);
    assert!(
        out.starts_with("randwrite: (groupid=0, jobs=8): err= 0:"),
        "{out}"
    );
    args.push("--output-format=json");
    let json: Value = serde_json::from_str(&results(&args)).unwrap();
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1);
    assert!(json["jobs"][0]["write"]["total_ios"].as_u64().unwrap() > 0);
    assert_eq!(json["jobs"][0]["job options"]["iodepth"], "64");
}

#[test]
fn results_go_to_the_file_of_output_and_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.json");
    let output = format!("--output={}", file.display());
    let job = [
        "--name=a",
        "--rw=write",
        "--bs=4k",
        "--size=1m",
        "--output-format=json",
        &output,
    ];
    let out = results(&[&["fio"], &job[..]].concat());
    assert_eq!(out, "");
    let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["jobs"][0]["write"]["total_ios"], 256);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "something is left beside the file"
    );

    let said = refused(&[
        "fio",
        "--name=a",
        "--rw=write",
        "--size=1m",
        "--output=/nonexistent/out",
    ]);
    assert!(said.contains("/nonexistent/out"), "{said}");
}

#[test]
fn traces_agree_with_the_kernel_and_an_altered_answer_does_not() {
    let Some(fixtures) = fixtures() else { return };
    let trace = fixtures.join("traces/creat_clo.trace.gz");
    let info = fixtures.join("traces/creat_clo.es_shrinker_info");
    let out = results(&[
        "replay",
        trace.to_str().unwrap(),
        "--expect-info",
        info.to_str().unwrap(),
    ]);
    assert!(out.contains("lookups 2023 agreed 2023"), "{out}");
    assert!(out.contains("info agreed"), "{out}");

    let plain = std::process::Command::new("gzip")
        .args(["-dc", trace.to_str().unwrap()])
        .output()
        .unwrap();
    let altered = text(&plain.stdout).replacen("found 1 [0/16384) ", "found 1 [0/16383) ", 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("altered.trace");
    fs::write(&file, altered).unwrap();
    let output = cairn(&["replay", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("altered.trace:"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn creat_clo_runs_on_files_or_names_itself_an_access_pattern() {
    let out = results(&["aim7", "creat-clo", "--tasks", "4"]);
    assert!(
        out.contains("files of the ext4 layer") && out.contains("jobs/min"),
        "{out}"
    );
    let out = results(&["aim7", "creat-clo", "--tasks", "4", "--on", "pattern"]);
    assert!(out.contains("access pattern"), "{out}");
    for options in [&[][..], &["--on", "pattern"], &["--variant", "aim7"]] {
        let mut args = vec!["aim7", "creat-clo", "--tasks", "2", "--json"];
        args.extend(options);
        let json: Value = serde_json::from_str(&results(&args)).unwrap();
        assert_eq!(json["files"], 2000, "{options:?}");
        if options != ["--variant", "aim7"] {
            assert_eq!(json["per_file"]["sets"], 42);
        }
    }
}

#[test]
fn an_image_is_made_filled_read_and_checked() {
    let dir = tempfile::TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (image, source, copy) = (at("image"), at("source"), at("copy"));
    let data: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&source, &data).unwrap();
    results(&[
        "image",
        "mkfs",
        &image,
        "--size",
        "16m",
        "--block-size",
        "1k",
    ]);
    results(&["image", "put", &image, &source, "/here"]);
    results(&["image", "put", &image, &source, "/"]);
    // Replaced as a whole.
    results(&["image", "put", &image, &source, "/here"]);
    let listed = results(&["image", "ls", &image, "/"]);
    for name in ["here", "source", "lost+found"] {
        assert!(listed.contains(name), "{listed}");
    }
    assert!(
        listed.contains("-rw-r--r--   1     0     0       800000"),
        "{listed}"
    );
    results(&["image", "get", &image, "/here", &copy]);
    assert!(fs::read(&copy).unwrap() == data);
    let shown = cairn(&["image", "cat", &image, "/source"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(shown.stdout == data);
    let info = results(&["image", "info", &image]);
    for line in [
        "format       ext4",
        "block size   1024",
        "state        clean",
        "metadata_csum",
    ] {
        assert!(info.contains(line), "{info}");
    }
    assert!(results(&["image", "check", &image]).contains("sound"));
    // Refused, and nothing half done.
    let said = refused(&["image", "cat", &image, "/nothing"]);
    assert!(said.contains("no such file"), "{said}");
    let said = refused(&["image", "info", &source]);
    assert!(said.contains("0xef53"), "{said}");
    let said = refused(&["image", "mkfs", &at("other"), "--size", "10k"]);
    assert!(said.contains("too few"), "{said}");
    assert!(!dir.path().join("other").exists());
    // What is refused or fails costs no file that was there.
    let kept = || std::fs::read(&source).unwrap() == std::fs::read(&copy).unwrap();
    for size in ["10k", "7e"] {
        refused(&["image", "mkfs", &source, "--size", size]);
    }
    refused(&["image", "get", &image, "/nothing", &source]);
    refused(&["image", "get", &image, "/", &source]);
    refused(&[
        "image",
        "put",
        &image,
        &source,
        &format!("/{}", "n".repeat(256)),
    ]);
    assert!(kept());
    let big = at("big");
    fs::File::create(&big).unwrap().set_len(64 << 20).unwrap();
    let full = cairn(&["image", "put", &image, &big, "/big"]);
    assert_eq!(full.status.code(), Some(1), "{}", text(&full.stderr));
    assert!(
        text(&full.stderr).contains("no space"),
        "{}",
        text(&full.stderr)
    );
    assert!(results(&["image", "check", &image]).contains("sound"));
    assert!(!results(&["image", "ls", &image, "/"]).contains("big"));
    // Damage is found.
    let mut bytes = fs::read(&image).unwrap();
    bytes[2048 + 0xc] ^= 1;
    fs::write(&image, bytes).unwrap();
    let broken = cairn(&["image", "check", &image]);
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken.stderr));
}

#[test]
fn lists_have_a_line_for_each_thing() {
    for (what, known) in [
        ("scenarios", "mixed"),
        ("policies", "es-counters"),
        ("layers", "stats"),
        ("layers", "cache"),
        ("engines", "libaio"),
    ] {
        let out = results(&["list", what]);
        assert!(out.lines().any(|line| line.starts_with(known)), "{out}");
    }
    let out = results(&["stack", "explain", "cache/ram(64m)"]);
    assert!(out.starts_with("cache ") && out.contains("ram"), "{out}");
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let early = file("early.fio", b"rw=read\n[a]\nsize=1m\n");
    let no_trace = file("notrace", b"no trace at all\n");
    let broken = file(
        "broken.toml",
        b"name = \"a\"\nstack = \"ram(64m)\"\n[workload]\nkind = \"fio\"\noptons = \"\"\n",
    );
    let cases: [(&[&str], &[&str]); 17] = [
        (
            &[
                "fio",
                "--name=a",
                "--rw=randwrite",
                "--iodeth=4",
                "--size=1m",
            ],
            &["iodeth", "did you mean iodepth"],
        ),
        (
            &["fio", "--name=a", "--rw=randwrite", "--bs=4q", "--size=1m"],
            &["bs=4q"],
        ),
        (
            &["fio", "--name=a", "--rw=randwrite", "--size=0"],
            &["size=0"],
        ),
        (
            &[
                "fio",
                "--name=a",
                "--rw=read",
                "--size=1m",
                "--stack=ram(1g",
            ],
            &["never closed"],
        ),
        (
            &[
                "fio",
                "--name=a",
                "--rw=read",
                "--size=1m",
                "--stack=rom(1g)",
            ],
            &["rom", "ram"],
        ),
        (
            &[
                "fio",
                "--name=a",
                "--rw=read",
                "--size=2m",
                "--stack=ram(1m)",
            ],
            &["2097152", "1048576"],
        ),
        (
            &["fio", "--name=a", "--rw=read", "--size=1m", "--on=disk"],
            &["--on=file"],
        ),
        (&["fio", "none.fio"], &["none.fio"]),
        (&["fio", &early], &["early.fio:1"]),
        (&["fio"], &["no jobs"]),
        (&["replay", &no_trace], &["notrace"]),
        (&["replay", "no-such-trace"], &["no-such-trace"]),
        (&["stack", "explain", "ram(100t)"], &["limit="]),
        (
            &["dash", "no-such-scenario"],
            &["no-such-scenario", "mixed"],
        ),
        (&["dash", &broken], &["broken.toml:5", "optons"]),
        (&["dash", "--duration", "5"], &["unit"]),
        (&["aim7", "creat-clo", "--tasks", "0"], &["0"]),
    ];
    for (args, words) in cases {
        let said = refused(args);
        for word in words {
            assert!(
                said.contains(word),
                "{args:?} does not say {word:?}:\n{said}"
            );
        }
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn the_exit_code_tells_what_broke_from_what_was_wrong() {
    // A file that cannot be laid out broke; the request was right.
    let failing = "error(op=write)/ram(320m)";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layout.toml");
    let options = "--rw=read --bs=4k --size=1m --ioengine=psync";
    let scenario = |options: &str| {
        format!(
            "name = \"layout\"\nstack = \"{failing}\"\n[workload]\nkind = \"fio\"\noptions = \"{options}\"\n"
        )
    };
    fs::write(&path, scenario(options)).unwrap();
    let path = path.to_str().unwrap();
    let stack = format!("--stack={failing}");
    let mut fio = vec!["fio", "--name=a", &stack];
    fio.extend(options.split(' '));
    for args in [
        &["dash", path, "--duration", "300ms"][..],
        &[
            "dash",
            "randwrite",
            "--stack",
            failing,
            "--duration",
            "300ms",
        ],
        &fio,
    ] {
        let output = cairn(args);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn nothing_is_announced_that_is_then_refused() {
    for args in [
        &["aim7", "creat-clo", "--stack", "ram(10k)"][..],
        &["aim7", "creat-clo", "--stack", "ram(1g"],
        &["aim7", "creat-clo", "--variant", "aim7", "--on", "pattern"],
    ] {
        let said = refused(args);
        assert!(!said.contains("running"), "{args:?}: {said}");
    }
}

#[test]
fn an_option_that_can_hold_once_is_not_given_twice() {
    for args in [
        &["dash", "--stack", "ram(1g)", "--stack", "ram(2g)"][..],
        &[
            "aim7",
            "creat-clo",
            "--stack",
            "ram(1g)",
            "--stack",
            "ram(2g)",
        ],
        &[
            "fio",
            "--name=a",
            "--size=1m",
            "--stack=ram(1g)",
            "--stack=ram(2g)",
        ],
    ] {
        let said = refused(args);
        assert!(said.contains("--stack"), "{args:?}: {said}");
    }
}

#[test]
fn samples_come_as_lines_for_other_programs() {
    let lines = results(&["dash", "--duration", "600ms", "--format", "jsonl"]);
    let mut last = None;
    for line in lines.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        assert_eq!(sample["schema_version"], 1);
        assert_eq!(sample["workloads"][0]["name"], "randwrite");
        assert_eq!(sample["policies"][0]["arm"], "check-first");
        assert_eq!(sample["shrinks"]["reclaimed"], 0, "no limit, none asked");
        let seq = sample["seq"].as_u64().unwrap();
        assert!(last.is_none_or(|last| seq > last), "{lines}");
        last = Some(seq);
    }
    assert!(last.is_some(), "no sample in 600 ms");
    let table = results(&["dash", "--duration", "600ms", "--format", "csv"]);
    let mut rows = table.lines();
    let columns = rows.next().unwrap().split(',').count();
    assert!(table.starts_with("t,arms,workload,ops"));
    assert!(
        table.contains("flag-set=check-first;es-counters=per-cpu"),
        "{table}"
    );
    for row in rows {
        assert_eq!(row.split(',').count(), columns, "{row}");
    }
}

#[test]
fn a_run_goes_to_a_new_directory_only() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let path = out.to_str().unwrap();
    let args = ["dash", "fragmented", "--duration", "800ms", "--out", path];
    let text = results(&args);
    let reclaimed = text.lines().find(|l| l.starts_with("shrinks ")).unwrap();
    assert!(reclaimed.ends_with("limit 4096"), "{reclaimed}");
    let run: Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["summary"]["shrinks"]["limit"], 4096);
    assert_eq!(
        run["command"],
        format!("cairn dash fragmented --duration 800ms --out {path}")
    );
    let slices = fs::read_to_string(out.join("slices.csv")).unwrap();
    assert!(slices.lines().count() > 1 && slices.starts_with("t,arm,op,"));
    for name in ["events.csv", "report.html", "screen.svg"] {
        assert!(out.join(name).is_file(), "{name} is missing");
    }
    let again = cairn(&args);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        said.contains(path) && said.contains("give a new folder"),
        "{said}"
    );
}

#[test]
fn plain_lines_tell_figures_and_events() {
    let lines = results(&["dash", "--plain", "--duration", "1200ms"]);
    assert!(lines.contains("event: scenario mixed, seed 42"), "{lines}");
    let figures = lines
        .lines()
        .find(|l| l.contains("randwrite") && l.contains("IOPS, p99"));
    assert!(figures.is_some(), "{lines}");
    assert!(
        lines.contains("\nthroughput "),
        "the summary ends it:\n{lines}"
    );
    assert!(lines.is_ascii());
}

#[test]
fn metrics_are_written_whole_and_served_to_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cairn.prom");
    let path = file.to_str().unwrap();
    results(&["dash", "--duration", "700ms", "--metrics-file", path]);
    let text = fs::read_to_string(&file).unwrap();
    for line in [
        "# TYPE cairn_operations counter",
        "cairn_operations_total{workload=\"randwrite\"} ",
        "cairn_policy{policy=\"flag-set\",cairn_policy=\"check-first\"} 1",
        "cairn_policy{policy=\"flag-set\",cairn_policy=\"always-rmw\"} 0",
        "cairn_extent_cache_bound{counter=\"hits\"} ",
        "# EOF",
    ] {
        assert!(
            text.lines().any(|l| l.starts_with(line)),
            "{line} in\n{text}"
        );
    }
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let said = refused(&["dash", "--listen", "0.0.0.0:0", "--duration", "1s"]);
    assert!(said.contains("this machine only"), "{said}");
    let said = refused(&[
        "dash",
        "--metrics-file",
        "/no/such/folder/x",
        "--duration",
        "1s",
    ]);
    assert!(said.contains("/no/such/folder/x"), "{said}");
}

#[test]
fn the_configuration_is_printed_and_a_broken_one_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "hz = 4\nscenario = \"randwrite\"\n").unwrap();
    let printed = results(&["config", "print", "--config", path]);
    for line in [
        "hz = 4",
        "scenario = \"randwrite\"",
        "color = \"auto\"",
        "mouse = false",
    ] {
        assert!(printed.lines().any(|l| l == line), "{line} in\n{printed}");
    }
    let summary = results(&["dash", "--config", path, "--duration", "300ms"]);
    assert!(summary.contains("scenario randwrite"), "{summary}");
    fs::write(&file, "hz = 4\ncolr = \"16\"\n").unwrap();
    let said = refused(&["dash", "--config", path, "--duration", "300ms"]);
    assert!(
        said.contains("config.toml:2") && said.contains("colr"),
        "{said}"
    );
    let missing = folder.path().join("none.toml");
    let said = refused(&["config", "print", "--config", missing.to_str().unwrap()]);
    assert!(said.contains("none.toml"), "{said}");
}

#[test]
fn a_recorded_run_of_a_newer_program_is_refused_with_both_forms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(refused(&["dash", path]).contains("run.json"));
    fs::write(folder.path().join("run.json"), "{\"schema_version\":9}").unwrap();
    let said = refused(&["dash", path]);
    assert!(
        said.contains("form 9") && said.contains("up to 1"),
        "{said}"
    );
}

#[test]
fn completions_and_the_manual_page_name_every_command() {
    let man = results(&["generate", "man"]);
    for command in [
        "dash",
        "fio",
        "replay",
        "stack explain",
        "aim7 creat",
        "list",
    ] {
        let heading = format!(".SH CAIRN {}", command.to_uppercase());
        assert!(
            man.lines().any(|l| l.starts_with(&heading)),
            "{heading} in\n{man}"
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = results(&["generate", "completions", shell]);
        assert!(script.contains("metrics-file"), "{shell}");
    }
    refused(&["generate", "completions", "tcsh"]);
}

#[test]
fn a_truncated_gzip_file_is_refused_by_name() {
    let Some(fixtures) = fixtures() else { return };
    let whole = fs::read(fixtures.join("traces/creat_clo.trace.gz")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.trace.gz");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let output = cairn(&["replay", cut.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("cut.trace.gz"),
        "{}",
        text(&output.stderr)
    );
}
