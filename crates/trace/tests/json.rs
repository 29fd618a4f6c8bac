//! The JSON document.
#![cfg(feature = "serde")]
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/fixtures.rs"]
mod fixtures;

use cairn_trace::ReplayOptions;
use fixtures::{SCENARIOS, Scratch, folder, info, run, trace};
use serde_json::{Value, json};

fn document(out: &str) -> Value {
    serde_json::from_str(out).expect("one JSON document")
}

#[test]
fn every_field_is_there() {
    let text = "\
 a-1 [000] ..... 1: tracing_mark_write: OP x
 a-1 [000] ..... 2: ext4_es_cache_extent: dev 7,2 ino 12 es [0/4) mapped 9 status W
 a-1 [000] ..... 3: ext4_es_lookup_extent_enter: dev 7,2 ino 12 lblk 1
 a-1 [000] ..... 4: ext4_es_lookup_extent_exit: dev 7,2 ino 12 found 0 [0/0) 0
 a-1 [000] ..... 5: sched_switch: whatever
 k-9 [000] ..... 6: ext4_es_shrink: dev 7,2 nr_shrunk 7, scan_time 3 nr_skipped 0 retried 0
";
    let file = Scratch::new("json", text.as_bytes());
    let options = ReplayOptions {
        json: true,
        ..ReplayOptions::default()
    };
    let ran = run(&[file.path()], &options);
    assert_eq!(ran.exit, 1);
    assert_eq!(
        document(&ran.out),
        json!({"files": [{
            "file": file.path(), "generation": "vacant", "compare_referenced": false,
            "devices": ["7,2"], "events": 5, "ignored": 1, "unpaired": 0, "lost": 0,
            "lookups": {"total": 1, "agreed": 0, "unknown": 0},
            "ranges": {"total": 0, "agreed": 0, "unknown": 0},
            "shrinks": {"total": 1, "agreed": 0, "unknown": 0},
            "model": {"hits": 1, "misses": 0, "objects": 2, "reclaimable": 2, "inodes_on_list": 1},
            "info": null,
            "divergences": [
                {"line": 4, "event": "lookup", "dev": "7,2", "ino": 12, "lblk": 1, "kernel": null,
                 "model": {"lblk": 0, "len": 4, "pblk": 9, "status": "W", "referenced": false},
                 "after": "OP x"},
                {"line": 6, "event": "shrink", "dev": "7,2", "ino": null, "lblk": null,
                 "kernel": 7, "model": 0, "after": "OP x"},
            ]}], "exit": 1})
    );
}

#[test]
fn event_counts_are_those_of_the_recordings() {
    let Some(folder) = folder() else { return };
    for (name, events) in SCENARIOS {
        let options = ReplayOptions {
            json: true,
            expect_info: Some(info(&folder, name)),
            ..ReplayOptions::default()
        };
        let ran = run(&[trace(&folder, name)], &options);
        let file = &document(&ran.out)["files"][0];
        assert_eq!(file["events"], json!(events), "{name}");
        assert_eq!(
            file["info"],
            json!({"agreed": true, "differences": []}),
            "{name}"
        );
    }
}
