//! What the command says and returns.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::path::PathBuf;

use cairn_extents::Generation;
use cairn_trace::ReplayOptions;
use fixtures::{Scratch, folder, info, run, text, trace};

const SMALL: &str = "\
 a-1 [000] ..... 1: tracing_mark_write: OP w 0 0 4096
 a-1 [000] ..... 2: ext4_es_insert_extent: dev 7,2 ino 12 es [0/41) mapped 0 status H
 a-1 [000] ..... 3: ext4_es_insert_delayed_extent: dev 7,2 ino 12 es [40/1) mapped 0 status D allocated 0 0
 a-1 [000] ..... 4: ext4_es_lookup_extent_enter: dev 7,2 ino 12 lblk 40
 a-1 [000] ..... 5: ext4_es_lookup_extent_exit: dev 7,2 ino 12 found 1 [40/1) 0 DR
";

#[test]
fn a_divergence_names_file_line_event_and_both_answers() {
    let file = Scratch::new("small", SMALL.as_bytes());
    let ran = run(&[file.path()], &ReplayOptions::default());
    assert_eq!(ran.exit, 1, "{}", ran.err);
    assert_eq!(
        ran.out,
        format!(
            "{}:5: lookup dev 7,2 ino 12 lblk 40: kernel [40/1) D R, model [40/1) D, after OP w 0 0 4096\n\
             lookups 1 agreed 0  ranges 0 agreed 0  shrinks 0 agreed 0\n",
            file.path().display()
        )
    );
}

#[test]
fn one_altered_answer_is_reported_at_its_line_and_nowhere_else() {
    let Some(folder) = folder() else { return };
    let text = String::from_utf8(text(&trace(&folder, "dio_rand_overwrite"))).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines
        .iter()
        .rposition(|l| l.contains("found 1") && l.contains(" WR"))
        .expect("a hit");
    lines[at] = lines[at].replace(" WR", " UR");
    let file = Scratch::new("one-altered", lines.join("\n").as_bytes());
    let ran = run(&[file.path()], &ReplayOptions::default());
    assert_eq!(ran.exit, 1);
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    let start = format!("{}:{}: lookup dev 7,1 ino", file.path().display(), at + 1);
    assert!(ran.out.starts_with(&start), "{}\n{start}", ran.out);
}

#[test]
fn a_wrong_total_is_one_line() {
    let Some(folder) = folder() else { return };
    let options = ReplayOptions {
        expect_info: Some(info(&folder, "creat_clo_nojournal")),
        ..ReplayOptions::default()
    };
    let ran = run(&[trace(&folder, "creat_clo")], &options);
    assert_eq!(ran.exit, 1);
    assert!(ran.out.contains("\ninfo hits kernel "), "{}", ran.out);
}

#[test]
fn the_info_is_taken_at_the_marker() {
    let Some(folder) = folder() else { return };
    let ran = run(
        &[trace(&folder, "creat_clo")],
        &ReplayOptions {
            expect_info: Some(info(&folder, "creat_clo")),
            ..ReplayOptions::default()
        },
    );
    assert_eq!(
        ran.out,
        "lookups 2023 agreed 2023  ranges 252 agreed 252  shrinks 0 agreed 0\ninfo agreed\n"
    );
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_processed() {
    let good = Scratch::new("good", SMALL.as_bytes());
    let empty = Scratch::new("empty", b"# tracer: nop\n");
    let broken = Scratch::new("broken", &[0x1f, 0x8b, 8, 0, 1, 2, 3]);
    let fields = Scratch::new(
        "fields",
        b" a-1 [000] ..... 1: ext4_es_lookup_extent_enter: dev 7,2 ino x lblk 0\n",
    );
    let cut = Scratch::new(
        "cut",
        b"] ..... 1: ext4_es_lookup_extent_enter: dev 7,2 ino 1 lblk 0\n",
    );
    let long = Scratch::new("long", &vec![b'x'; 70_000]);
    let missing = PathBuf::from("/nonexistent/trace");
    let all = [
        missing,
        empty.path(),
        broken.path(),
        fields.path(),
        cut.path(),
        long.path(),
        good.path(),
    ];
    let ran = run(&all, &ReplayOptions::default());
    assert_eq!(ran.exit, 2);
    let err: Vec<&str> = ran.err.lines().collect();
    assert!(
        err[0].starts_with("/nonexistent/trace: cannot be read: "),
        "{}",
        err[0]
    );
    assert!(
        err[1].contains("empty: no event of the extent status cache"),
        "{}",
        err[1]
    );
    assert!(err[2].contains("broken:1: cannot be read: "), "{}", err[2]);
    assert!(
        err[3].ends_with("fields:1: expected `ino N`, found \"x lblk 0\""),
        "{}",
        err[3]
    );
    assert!(
        err[4].contains("cut:1: expected `comm-pid [cpu] flags time: event:`"),
        "{}",
        err[4]
    );
    assert!(
        err[5].ends_with("long:1: the line is longer than 65536 bytes"),
        "{}",
        err[5]
    );
    assert_eq!(err.len(), 6);
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.out);
    assert_eq!(
        ran.out.lines().last(),
        Some("lookups 1 agreed 0  ranges 0 agreed 0  shrinks 0 agreed 0")
    );
}

#[test]
fn contradicting_options_are_refused() {
    let file = Scratch::new("options", SMALL.as_bytes());
    let with_info = |lenient| ReplayOptions {
        expect_info: Some(PathBuf::from("/nonexistent/info")),
        lenient,
        ..ReplayOptions::default()
    };
    let ran = run(&[file.path()], &with_info(true));
    assert_eq!((ran.exit, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("leave out --lenient"));
    let ran = run(&[file.path(), file.path()], &with_info(false));
    assert_eq!(ran.exit, 2);
    assert!(ran.err.contains("give one file"));
    let ran = run(&[file.path()], &with_info(false));
    assert!(
        ran.err.starts_with("/nonexistent/info: cannot be read"),
        "{}",
        ran.err
    );
    assert_eq!(run(&[], &ReplayOptions::default()).exit, 2);
}

#[test]
fn markers_and_info_need_one_device() {
    let two = format!(
        "{SMALL} a-1 [000] ..... 6: ext4_es_remove_extent: dev 7,3 ino 1 es [0/4294967295)\n"
    );
    let marked = Scratch::new(
        "marked",
        format!("{two} a-1 [000] ..... 7: tracing_mark_write: CLEAR_ES ino 12\n").as_bytes(),
    );
    let ran = run(&[marked.path()], &ReplayOptions::default());
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err
            .contains(":7: marker \"CLEAR_ES ino 12\" names no device"),
        "{}",
        ran.err
    );
    let unmarked = Scratch::new("unmarked", two.as_bytes());
    let text = Scratch::new(
        "info",
        b"stats:\n 1 objects\n 1 reclaimable objects\n 1/0 cache hits/misses\n 0 shrunk objects\n",
    );
    let options = ReplayOptions {
        expect_info: Some(text.path()),
        ..ReplayOptions::default()
    };
    assert_eq!(run(&[unmarked.path()], &options).exit, 2);
}

#[test]
fn precached_files_are_passed_over_at_first() {
    let text = "\
 a-1 [000] ..... 1: ext4_es_cache_extent: dev 7,2 ino 12 es [0/4) mapped 9 status W
 a-1 [000] ..... 2: tracing_mark_write: PRECACHE ino 12
 a-1 [000] ..... 3: ext4_es_cache_extent: dev 7,2 ino 13 es [0/4) mapped 90 status W
 k-9 [000] ..... 4: ext4_es_shrink_scan_enter: dev 7,2 nr_to_scan 128 cache_cnt 0
 k-9 [000] ..... 5: ext4_es_shrink: dev 7,2 nr_shrunk 1, scan_time 3 nr_skipped 1 retried 0
 k-9 [000] ..... 6: ext4_es_shrink_scan_exit: dev 7,2 nr_shrunk 1 cache_cnt 0
 k-9 [000] ..... 7: ext4_es_shrink_scan_enter: dev 7,2 nr_to_scan 128 cache_cnt 0
 k-9 [000] ..... 8: ext4_es_shrink: dev 7,2 nr_shrunk 1, scan_time 3 nr_skipped 1 retried 1
";
    let file = Scratch::new("precached", text.as_bytes());
    let ran = run(&[file.path()], &ReplayOptions::default());
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.ends_with("shrinks 2 agreed 2\n"), "{}", ran.out);
}

#[test]
fn a_sequence_number_switches_the_generation() {
    let text = "\
 a-1 [000] ..... 1: ext4_es_insert_extent: dev 7,2 ino 12 es [0/4) mapped 100 status W seq 5
 a-1 [000] ..... 2: ext4_es_cache_extent: dev 7,2 ino 12 es [2/4) mapped 102 status W seq 5
 a-1 [000] ..... 3: ext4_es_lookup_extent_enter: dev 7,2 ino 12 lblk 5
 a-1 [000] ..... 4: ext4_es_lookup_extent_exit: dev 7,2 ino 12 found 1 [0/6) 100 W
";
    let file = Scratch::new("seq", text.as_bytes());
    assert_eq!(run(&[file.path()], &ReplayOptions::default()).exit, 0);
    let options = ReplayOptions {
        generation: Some(Generation::VacantOnly),
        ..ReplayOptions::default()
    };
    assert_eq!(run(&[file.path()], &options).exit, 1);
}

#[test]
fn a_pipe_is_read_twice_all_the_same() {
    let Some(folder) = folder() else { return };
    let fifo = std::env::temp_dir().join(format!("cairn-fifo-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    if !made.is_ok_and(|s| s.success()) {
        fixtures::skip("mkfifo is not installed");
        return;
    }
    let source = trace(&folder, "high_offset");
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::copy(source, fifo)
    });
    let ran = run(std::slice::from_ref(&fifo), &ReplayOptions::default());
    let _ = writer.join();
    let _ = std::fs::remove_file(&fifo);
    assert_eq!(ran.exit, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("lookups 436 agreed 436"), "{}", ran.out);
}

#[test]
#[cfg(target_os = "linux")]
fn endless_input_is_refused_at_once() {
    let zero = PathBuf::from("/dev/zero");
    let ran = run(&[zero], &ReplayOptions::default());
    assert_eq!(ran.exit, 2);
    assert_eq!(
        ran.err,
        "/dev/zero:1: the line is longer than 65536 bytes\n"
    );
}
