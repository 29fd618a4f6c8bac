//! Comparisons as they are called, and the folders they leave behind.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failure here is the test's own"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cairn_lab::{
    Ab, AbResult, Lab, Limits, Options, Registry, RunDir, RunWriter, Scenario, compare_runs, run_ab,
};
use serde_json::Value;

/// Short, and however busy the machine is.
fn quick(policy: &str) -> Ab {
    Ab {
        pairs: 6,
        aa_pairs: Some(6),
        run_time: Duration::from_millis(60),
        warmup: Duration::from_millis(20),
        patience: Duration::ZERO,
        limits: Limits {
            steal: 99.0,
            others: 99.0,
        },
        ..Ab::new(policy)
    }
}

fn small(folder: &Path) -> String {
    let path = folder.join("small.toml");
    let text = "name = \"small\"\nstack = \"ram(8m)\"\n[workload]\nkind = \"fio\"\n\
                options = \"--rw=randwrite --bs=4k --size=4m --numjobs=2 --norandommap --filename=/f\"\n";
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn run(ab: &Ab) -> AbResult {
    run_ab(ab, &Registry::default(), &mut |_| {}).unwrap()
}

/// Checks a value against a schema, as far as the words of ours go.
fn check(value: &Value, schema: &Value, root: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = reference.strip_prefix('#').unwrap();
        return check(value, root.pointer(pointer).unwrap(), root, at);
    }
    if let Some(all) = schema.get("oneOf").and_then(Value::as_array) {
        let outcomes: Vec<_> = all.iter().map(|s| check(value, s, root, at)).collect();
        return match outcomes.iter().filter(|o| o.is_ok()).count() {
            1 => Ok(()),
            n => Err(format!("{at}: {n} of {outcomes:?}")),
        };
    }
    if let Some(constant) = schema.get("const")
        && constant != value
    {
        return Err(format!("{at}: {value} is not {constant}"));
    }
    if let Some(list) = schema.get("enum").and_then(Value::as_array)
        && !list.contains(value)
    {
        return Err(format!("{at}: {value} is none of {list:?}"));
    }
    let is = |word: &str| match word {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    };
    match schema.get("type") {
        Some(Value::String(word)) if !is(word) => {
            return Err(format!("{at}: {value} is no {word}"));
        }
        Some(Value::Array(words)) if !words.iter().any(|w| is(w.as_str().unwrap())) => {
            return Err(format!("{at}: {value} is none of {words:?}"));
        }
        _ => {}
    }
    if let Some(items) = value.as_array() {
        let len = items.len() as u64;
        for (word, bad) in [
            (
                "minItems",
                schema["minItems"].as_u64().is_some_and(|n| len < n),
            ),
            (
                "maxItems",
                schema["maxItems"].as_u64().is_some_and(|n| len > n),
            ),
        ] {
            if bad {
                return Err(format!("{at}: {word}"));
            }
        }
        for (i, item) in items.iter().enumerate() {
            check(item, &schema["items"], root, &format!("{at}[{i}]"))?;
        }
    }
    if let (Some(object), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(name.as_str().unwrap()) {
                return Err(format!("{at}: {name} is missing"));
            }
        }
        for (name, inner) in object {
            match known.get(name) {
                Some(schema) => check(inner, schema, root, &format!("{at}.{name}"))?,
                None if schema["additionalProperties"] == false => {
                    return Err(format!("{at}: {name} is not in the schema"));
                }
                None => {}
            }
        }
    }
    Ok(())
}

fn fits_the_schema(text: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/run.schema.json");
    let Ok(schema) = std::fs::read_to_string(path) else {
        println!("skipped: the schema folder of the repository is not here");
        return Ok(());
    };
    let schema: Value = serde_json::from_str(&schema).unwrap();
    check(
        &serde_json::from_str(text).unwrap(),
        &schema,
        &schema,
        "run",
    )
}

#[test]
fn the_schema_check_bites() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 2}, "b": {"const": 1}},
    });
    let check = |value: Value| check(&value, &schema, &schema, "value");
    assert!(check(serde_json::json!({"a": [1, 2], "b": 1})).is_ok());
    for bad in [
        serde_json::json!({}),
        serde_json::json!({"a": [1]}),
        serde_json::json!({"a": [1, "x"]}),
        serde_json::json!({"a": [1, 2], "b": 2}),
        serde_json::json!({"a": [1, 2], "c": 1}),
        serde_json::json!([]),
    ] {
        assert!(check(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_comparison_leaves_everything_and_its_report_can_be_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("run");
    let result = run(&Ab {
        scenario: Some(small(temp.path())),
        out: Some(out.clone()),
        ..quick("es-counters")
    });
    assert_eq!((result.pairs, result.rejected), (6, 0));
    assert_eq!(result.arms, ["shared", "per-cpu"]);
    let primary = &result.metrics[0];
    assert_eq!(primary.name, "IOPS");
    assert!(primary.primary && primary.lo <= primary.effect && primary.effect <= primary.hi);
    assert!(result.metrics.iter().all(|m| m.p_holm >= m.p));
    // Two look-ups for each write: all on the shared line, or on lines of their own but for the folds.
    let count = |name: &str| {
        let c = result
            .mechanism
            .iter()
            .find(|c| c.name.contains(name))
            .unwrap();
        (c.a_per_op, c.b_per_op, c.must_move)
    };
    let (a, b, must) = count("shared lines");
    // Operations and additions are read one after the other, and on a busy machine much may lie between.
    assert!(must && a > 3.0 * b && a > 0.3, "{a} {b}");
    let (a, b, _) = count("own lines");
    assert!(b > 3.0 * a && b > 0.3, "{a} {b}");
    assert!(result.explained.is_some());
    assert_eq!(result.aa.pairs, result.aa_ratios.len());
    for file in ["plan.json", "slices.csv", "events.csv", "screen.svg"] {
        assert!(out.join(file).exists(), "{file}");
    }
    let runs = std::fs::read_dir(out.join("runs")).unwrap().count();
    assert!(runs == 24 || runs == 36, "{runs} runs");
    let json = std::fs::read_to_string(out.join("run.json")).unwrap();
    fits_the_schema(&json).unwrap();
    let before = std::fs::read(out.join("report.html")).unwrap();
    std::fs::remove_file(out.join("report.html")).unwrap();
    let dir = RunDir::read(&out).unwrap();
    dir.write_report().unwrap();
    assert_eq!(std::fs::read(out.join("report.html")).unwrap(), before);
    let html = String::from_utf8(before).unwrap();
    assert!(html.contains(&*result.verdict.replace('>', "&gt;")) && !html.contains("<script"));
    let mut text = Vec::new();
    dir.write_text(&mut text).unwrap();
    assert!(
        String::from_utf8(text)
            .unwrap()
            .ends_with(&format!("{}\n", result.verdict))
    );
    let mut again = Vec::new();
    dir.write_json(&mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), json);
    // Never over an old one.
    let error = run_ab(
        &Ab {
            out: Some(out.clone()),
            ..quick("es-counters")
        },
        &Registry::default(),
        &mut |_| {},
    )
    .unwrap_err();
    assert!(error.to_string().contains("holds files already"), "{error}");
    let same = compare_runs(&dir, &dir).unwrap();
    assert_eq!(same.rows.len(), 2);
    assert!(
        same.rows
            .iter()
            .all(|r| (r.ratio - 1.0).abs() < 1e-12 && r.p > 0.9)
    );
}

#[test]
fn flag_words_are_read_modified_and_written_under_one_arm_only() {
    let result = run(&quick("flag-set"));
    assert_eq!(result.scenario, "creat-clo");
    assert_eq!(result.metrics[0].name, "jobs/min");
    let rmw = &result.mechanism[0];
    // 42 and none; what else lies between two readings on a busy machine is left room for.
    assert!(rmw.a_per_op > 10.0 && rmw.b_per_op < 1.0, "{rmw:?}");
    let mut text = Vec::new();
    result.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for words in [
        "A = always-rmw, B = check-first",
        "this machine resolves",
        "must move, moved",
        "repeat: cairn ab",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let no = |ab: Ab| {
        let error = run_ab(&ab, &Registry::default(), &mut |_| {}).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    assert!(no(quick("flags")).contains("there are: flag-set"));
    let ab = Ab {
        scenario: Some(small(temp.path())),
        ..quick("flag-set")
    };
    assert!(no(ab).contains("no workload here has buffer heads"));
    let arms = |a: &str, b: &str| Ab {
        arms: Some([a.to_owned(), b.to_owned()]),
        ..quick("batch")
    };
    assert!(no(arms("32", "48")).contains("no arm `48`"));
    assert!(no(arms("64", "64")).contains("both arms are `64`"));
    let ab = Ab {
        run_time: Duration::from_millis(1),
        ..quick("batch")
    };
    assert!(no(ab).contains("too short"));
}

#[test]
fn a_word_from_outside_ends_it_and_nothing_is_claimed() {
    let result = run(&Ab {
        cancel: Some(Arc::new(AtomicBool::new(true))),
        ..quick("flag-set")
    });
    assert!(!result.usable && result.verdict.contains("broken off"));
    let json = serde_json::to_string(&result).unwrap();
    fits_the_schema(&json).unwrap();
    let _: AbResult = serde_json::from_str(&json).unwrap();
}

#[test]
fn a_busy_loop_of_another_process_rejects_pairs_until_it_is_given_up() {
    let spawned = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let Ok(mut busy) = spawned else {
        return;
    };
    let temp = tempfile::tempdir().unwrap();
    let mut notes = Vec::new();
    let ab = Ab {
        scenario: Some(small(temp.path())),
        pairs: 2,
        run_time: Duration::from_millis(500),
        limits: Limits::default(),
        ..quick("es-counters")
    };
    let result = run_ab(&ab, &Registry::default(), &mut |n| notes.push(n.to_owned()));
    let _ = busy.kill();
    let _ = busy.wait();
    let result = result.unwrap();
    assert_eq!((result.rejected, result.usable), (3, false), "{notes:?}");
    assert!(result.verdict.contains("too busy"), "{}", result.verdict);
    let told = notes.iter().filter(|n| n.contains("rejected: ")).count();
    assert_eq!(told, 3, "{notes:?}");
}

#[test]
fn a_run_is_written_and_read_again() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("run");
    let lab = Lab::start(
        Scenario::preset("creat-clo").unwrap(),
        &Registry::default(),
        Options {
            interval: Duration::from_millis(20),
            ..Options::default()
        },
    )
    .unwrap();
    let samples = lab.take_samples().unwrap();
    let mut writer = RunWriter::create(&out, &lab.policies()).unwrap();
    for i in 0..6 {
        writer.sample(&samples.recv_timeout(Duration::from_secs(20)).unwrap());
        if i == 2 {
            lab.policies()
                .set_by_name("flag-set", "always-rmw")
                .unwrap();
            writer.event(Duration::from_millis(40), "mark", "m1", "here, \"now\"");
        }
    }
    let summary = writer.finish(lab, "cairn dash creat-clo", None).unwrap();
    fits_the_schema(&std::fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    let slices = std::fs::read_to_string(out.join("slices.csv")).unwrap();
    assert_eq!(slices.lines().count(), 7);
    let events = std::fs::read_to_string(out.join("events.csv")).unwrap();
    assert!(
        events.contains("policy,flag-set,check-first to always-rmw"),
        "{events}"
    );
    let dir = RunDir::read(&out).unwrap();
    let before = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(dir.html(), before);
    assert!(before.contains("creat-clo") && before.contains("here, &quot;now&quot;"));
    let mut text = Vec::new();
    dir.write_text(&mut text).unwrap();
    let mut want = Vec::new();
    summary.write_text(&mut want).unwrap();
    assert_eq!(text, want);
    // A later version is refused by its number.
    let json = std::fs::read_to_string(out.join("run.json")).unwrap();
    let newer = json.replacen("\"schema_version\": 1", "\"schema_version\": 7", 1);
    std::fs::write(out.join("run.json"), newer).unwrap();
    let error = RunDir::read(&out).unwrap_err().to_string();
    assert!(error.contains("schema version 7"), "{error}");
    let none = RunDir::read(temp.path()).unwrap_err().to_string();
    assert!(none.contains("run.json"), "{none}");
}

#[test]
fn a_rate_that_is_not_held_gives_no_verdict() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("rated.toml");
    // Each write takes 5 ms on purpose, so that ten thousand a second cannot be.
    let text = "name = \"rated\"\nstack = \"delay(write=5ms)/ram(8m)\"\n[workload]\nkind = \"fio\"\n\
                options = \"--rw=randwrite --bs=4k --size=4m --rate_iops=10000 --filename=/f\"\n";
    std::fs::write(&path, text).unwrap();
    let result = run(&Ab {
        scenario: Some(path.display().to_string()),
        pairs: 2,
        aa_pairs: Some(1),
        ..quick("es-counters")
    });
    assert!(!result.usable);
    assert!(
        result.verdict.contains("the rate was not held"),
        "{}",
        result.verdict
    );
}
