//! Traces that begin in the middle.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/fixtures.rs"]
mod fixtures;

use cairn_trace::ReplayOptions;
use fixtures::{SCENARIOS, Scratch, folder, lenient, run, text, trace};

/// Totals of the summary line: lookups, agreed, unknown.
fn lookups(out: &str) -> (u64, u64, u64) {
    let line = out.lines().last().expect("a summary");
    let n: Vec<u64> = line
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    (n[0], n[1], n[2])
}

#[test]
fn no_capture_contradicts_itself_from_any_cut() {
    let Some(folder) = folder() else { return };
    let mut predicted = (0, 0);
    for (name, _) in SCENARIOS {
        let text = text(&trace(&folder, name));
        let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
        for fifth in 0..5 {
            let from = lines.len() * fifth / 5;
            let file = Scratch::new(&format!("cut-{name}-{fifth}"), &lines[from..].concat());
            let ran = run(&[file.path()], &lenient());
            assert_eq!(
                ran.exit, 0,
                "{name} from line {from}:\n{}{}",
                ran.out, ran.err
            );
            let (total, agreed, _) = lookups(&ran.out);
            predicted = (predicted.0 + agreed, predicted.1 + total);
        }
    }
    let share = predicted.0 as f64 / predicted.1 as f64;
    assert!(
        share > 0.8,
        "only {share:.3} of the answers were predictable"
    );
}

#[test]
fn captures_of_a_mounted_file_system_need_it() {
    let Some(folder) = folder() else { return };
    for name in [
        "creatclo_4k_nojournal",
        "creatclo_journal",
        "creatclo_nojournal",
        "creatclo_nojournal_nocsum",
        "dirops_nojournal",
    ] {
        let path = folder.join("buffers").join(format!("{name}.trace.gz"));
        let strict = run(std::slice::from_ref(&path), &ReplayOptions::default());
        assert_eq!(strict.exit, 1, "{name}: {}{}", strict.out, strict.err);
        let ran = run(&[path], &lenient());
        assert_eq!(ran.exit, 0, "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn the_perf_sample_agrees_and_its_fresh_device_strictly() {
    let Some(folder) = folder() else { return };
    let path = folder.join("form_perf_script.txt.gz");
    let ran = run(std::slice::from_ref(&path), &lenient());
    assert_eq!(ran.exit, 0, "{}{}", ran.out, ran.err);
    let fresh: Vec<u8> = text(&path)
        .split_inclusive(|&b| b == b'\n')
        .filter(|line| line.windows(8).any(|w| w == b"dev 7,1 "))
        .flatten()
        .copied()
        .collect();
    let file = Scratch::new("perf-fresh", &fresh);
    let ran = run(&[file.path()], &ReplayOptions::default());
    assert_eq!(
        (ran.exit, ran.out.trim_end()),
        (
            0,
            "lookups 496 agreed 496  ranges 11 agreed 11  shrinks 0 agreed 0"
        ),
        "{}",
        ran.err
    );
}

#[test]
fn an_altered_answer_in_the_second_half_is_found_where_the_block_is_known() {
    let Some(folder) = folder() else { return };
    for name in ["punch_hole", "dio_rand_sparse", "truncate"] {
        let text = text(&trace(&folder, name));
        let mut lines: Vec<Vec<u8>> = text
            .split_inclusive(|&b| b == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines.drain(..lines.len() / 2);
        // The last hit of the file: by then its block is known.
        let at = lines
            .iter()
            .rposition(|l| l.windows(7).any(|w| w == b"found 1"))
            .expect("a hit");
        let line = String::from_utf8_lossy(&lines[at]).into_owned();
        let (before, answer) = line.split_once("found 1").expect("a hit");
        let altered = format!("{before}found 1{}", answer.replacen('/', "/1", 1));
        lines[at] = altered.into_bytes();
        let file = Scratch::new(&format!("altered-{name}"), &lines.concat());
        let ran = run(&[file.path()], &lenient());
        assert_eq!(ran.exit, 1, "{name}: {}{}", ran.out, ran.err);
        assert!(
            ran.out.contains(&format!(":{}: lookup dev", at + 1)),
            "{name}: {}",
            ran.out
        );
    }
}

#[test]
fn losses_are_refused_strictly_and_forgotten_leniently() {
    let text = b"CPU:1 [LOST 123 EVENTS]\n\
 a-1 [000] ..... 1: ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 1\n\
 a-1 [000] ..... 2: ext4_es_lookup_extent_exit: dev 7,2 ino 8 found 1 [0/4) 100 WR\n\
CPU:0 [LOST EVENTS]\n\
 a-1 [000] ..... 4: ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 1\n\
 a-1 [000] ..... 5: ext4_es_lookup_extent_exit: dev 7,2 ino 8 found 0 [0/0) 0 \n";
    let file = Scratch::new("lost", text);
    let strict = run(&[file.path()], &ReplayOptions::default());
    assert_eq!(strict.exit, 2);
    assert!(
        strict
            .err
            .contains(":1: 123 events were lost here; use --lenient")
    );
    let ran = run(&[file.path()], &lenient());
    assert_eq!(ran.exit, 0, "{}{}", ran.out, ran.err);
    assert_eq!(lookups(&ran.out), (2, 0, 2));
}
