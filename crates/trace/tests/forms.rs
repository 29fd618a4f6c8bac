//! The same events in every form of text give the same report.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/replaying.rs"]
mod replaying;

use std::io::Write;

use cairn_extents::Status;
use cairn_trace::{Event, Op, cairn_model, parse_line};
use fixtures::{SCENARIOS, folder, text, trace};
use replaying::Parsed;

/// A line of a `trace` file, taken apart.
struct Parts<'a> {
    comm: &'a str,
    pid: &'a str,
    cpu: &'a str,
    flags: &'a str,
    time: &'a str,
    event: &'a str,
    fields: &'a str,
}

fn parts(line: &str) -> Parts<'_> {
    let (task, rest) = line.split_once(" [").unwrap();
    let (comm, pid) = task.trim().rsplit_once('-').unwrap();
    let (cpu, rest) = rest.split_once("] ").unwrap();
    let (flags, rest) = rest.split_once(' ').unwrap();
    let (time, rest) = rest.split_once(": ").unwrap();
    let (event, fields) = rest.split_once(": ").unwrap();
    Parts {
        comm,
        pid,
        cpu,
        flags,
        time: time.trim(),
        event,
        fields,
    }
}

type Form = fn(&Parts<'_>) -> String;

const FORMS: [(&str, Form); 8] = [
    ("pipe, no leading blanks", |p| {
        format!(
            "{}-{} [{}] {} {}: {}: {}",
            p.comm, p.pid, p.cpu, p.flags, p.time, p.event, p.fields
        )
    }),
    ("tgid column", |p| {
        format!(
            "{:>16}-{:<7} ({:>7}) [{}] {} {:>14}: {}: {}",
            p.comm, p.pid, p.pid, p.cpu, p.flags, p.time, p.event, p.fields
        )
    }),
    ("unknown tgid, no flags", |p| {
        format!(
            "{:>16}-{:<7} (-----) [{}] {:>14}: {}: {}",
            p.comm, p.pid, p.cpu, p.time, p.event, p.fields
        )
    }),
    ("carriage returns, blanks stripped", |p| {
        let line = format!(
            "  {}-{} [{}] {} {}: {}:   {}",
            p.comm, p.pid, p.cpu, p.flags, p.time, p.event, p.fields
        );
        format!("{}\r", line.trim_end())
    }),
    ("perf", |p| {
        let event = match p.event {
            "tracing_mark_write" => "ftrace:print: tracing_mark_write".to_owned(),
            event => format!("{:>40}", format!("ext4:{event}")),
        };
        format!(
            "{:>16} {:>5} [{}] {}.000000: {event}: {}",
            p.comm, p.pid, p.cpu, p.time, p.fields
        )
    }),
    ("perf with process, without cpu", |p| {
        let event = match p.event {
            "tracing_mark_write" => "ftrace:print: tracing_mark_write".to_owned(),
            event => format!("ext4:{event}"),
        };
        format!(
            "{} 1/{} {}.000000:      {event}: {}\n\tffffffff81234567 ext4_es_lookup_extent+0x17 ([kernel.kallsyms])",
            p.comm, p.pid, p.time, p.fields
        )
    }),
    ("trace-cmd", |p| {
        let event = match p.event {
            "tracing_mark_write" => "print",
            event => event,
        };
        format!(
            "{:>16}-{:<5} [{}] {}.000000: {:<20} {}",
            p.comm,
            p.pid,
            p.cpu,
            p.time,
            format!("{event}:"),
            p.fields
        )
    }),
    ("trace-cmd with flags", |p| {
        format!(
            "{:>16}-{:<5} [{}] {}  {}.000000: {:<20} {}",
            p.comm,
            p.pid,
            p.cpu,
            &p.flags[..4],
            p.time,
            format!("{}:", p.event),
            p.fields
        )
    }),
];

#[test]
fn every_form_gives_the_same_report() {
    let Some(folder) = folder() else { return };
    for (name, _) in SCENARIOS {
        let raw = text(&trace(&folder, name));
        let expected = Parsed::new(&raw).replay(None, None, cairn_model);
        let lines: Vec<String> = String::from_utf8(raw)
            .unwrap()
            .lines()
            .filter(|l| !l.starts_with('#'))
            .map(str::to_owned)
            .collect();
        for (form, render) in FORMS {
            let mut text = b"cpus=2\nversion = 6\n##### CPU 1 buffer started ####\n\n".to_vec();
            for line in &lines {
                writeln!(text, "{}", render(&parts(line))).unwrap();
            }
            let mut report = Parsed::new(&text).replay(None, None, cairn_model);
            // Call chains and foreign lines are counted, nothing else may differ.
            report.ignored = 0;
            assert_eq!(report, expected, "{name} as {form}");
        }
    }
}

#[test]
fn names_may_hold_anything() {
    for comm in [
        "jbd2/loop2-8",
        "kworker/u8:2-ev",
        "<idle>",
        "a [0] b: c-1",
        "x: y",
        "-",
        "7-7 7",
    ] {
        for line in [
            format!(
                "  {comm}-22276 [001] ..... 5: ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 3"
            ),
            format!(
                "  {comm} 22276 [001] 5.1: ext4:ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 3"
            ),
            format!("  {comm} 22276 5.1: ext4:ext4_es_lookup_extent_enter: dev 7,2 ino 8 lblk 3"),
        ] {
            let Some(Event::Es(event)) = parse_line(line.as_bytes()).unwrap() else {
                panic!("no event in {line}");
            };
            assert_eq!(event.op, Op::LookupEnter { ino: 8, lblk: 3 }, "{line}");
            assert_eq!(event.task.pid, 22276, "{line}");
        }
    }
}

#[test]
fn the_text_of_a_marker_is_no_event() {
    let line = b" a-1 [000] ..... 5: tracing_mark_write: x-1 [001] 6: ext4_es_remove_extent: dev 7,2 ino 1 es [0/1)  ";
    let Some(Event::Marker { text, .. }) = parse_line(line).unwrap() else {
        panic!("a marker");
    };
    assert_eq!(
        text,
        b"x-1 [001] 6: ext4_es_remove_extent: dev 7,2 ino 1 es [0/1)"
    );
}

fn op(fields: &str) -> Op {
    let line = format!("a-1 [000] ..... 5: ext4_es_{fields}");
    match parse_line(line.as_bytes()) {
        Ok(Some(Event::Es(event))) => event.op,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn statuses_as_any_kernel_printed_them() {
    for (text, status, referenced) in [
        ("W", Status::Written(9), false),
        ("WR", Status::Written(9), true),
        ("W0x10", Status::Written(9), true),
        ("0x11", Status::Written(9), true),
        ("1", Status::Written(9), false),
        ("U", Status::Unwritten(9), false),
        ("2", Status::Unwritten(9), false),
        ("D", Status::Delayed, false),
        ("DR", Status::Delayed, true),
        ("0x4", Status::Delayed, false),
        ("H", Status::Hole, false),
        ("18", Status::Hole, true),
        ("UD", Status::DelayedUnwritten(9), false),
        ("0x16", Status::DelayedUnwritten(9), true),
    ] {
        let Op::LookupExit {
            answer: Some(e), ..
        } = op(&format!(
            "lookup_extent_exit: dev 7,2 ino 8 found 1 [0/4) 9 {text}"
        ))
        else {
            panic!("a hit");
        };
        assert_eq!((e.status, e.referenced), (status, referenced), "{text}");
    }
}

#[test]
fn blocks_of_delayed_runs_and_holes_mean_nothing() {
    for block in ["0", "549196775151", "576460752303423487"] {
        let Op::Insert { mapping, .. } = op(&format!(
            "insert_extent: dev 7,2 ino 8 es [0/4) mapped {block} status H"
        )) else {
            panic!("an insertion");
        };
        assert_eq!(mapping.status, Status::Hole);
    }
}

#[test]
fn names_and_endings_of_all_generations() {
    let answer = op("find_extent_range_exit: dev 7,2 ino 8 es [0/0) mapped 0 status ");
    assert_eq!(
        answer,
        Op::RangeExit {
            ino: 8,
            answer: None
        }
    );
    for name in [
        "find_delayed_extent_range",
        "find_delayed_extent",
        "find_extent",
    ] {
        let enter = op(&format!("{name}_enter: dev 7,2 ino 8 lblk 3"));
        assert_eq!(enter, Op::RangeEnter { ino: 8, lblk: 3 });
        let exit = op(&format!(
            "{name}_exit: dev 7,2 ino 8 es [0/0) mapped 0 status"
        ));
        assert_eq!(exit, answer);
    }
    for (ending, flags) in [
        (
            "block: dev 7,2 ino 8 es [3/1) mapped 0 status D allocated 1",
            (true, false, false),
        ),
        (
            "extent: dev 7,2 ino 8 es [3/1) mapped 0 status D allocated 0 1",
            (false, true, false),
        ),
        (
            "extent: dev 7,2 ino 8 es [3/1) mapped 0 status D allocated 1 1 seq 9",
            (true, true, true),
        ),
    ] {
        let Op::InsertDelayed {
            start_alloc,
            end_alloc,
            has_seq,
            ..
        } = op(&format!("insert_delayed_{ending}"))
        else {
            panic!("{ending}");
        };
        assert_eq!((start_alloc, end_alloc, has_seq), flags, "{ending}");
    }
    for seq in ["", " seq 12"] {
        let whole = op(&format!(
            "remove_extent: dev 7,2 ino 8 es [0/4294967295){seq}"
        ));
        assert_eq!(
            whole,
            Op::Remove {
                ino: 8,
                lblk: 0,
                len: u32::MAX
            }
        );
        for name in ["insert_extent", "cache_extent"] {
            op(&format!(
                "{name}: dev 7,2 ino 8 es [0/4) mapped 9 status W{seq}"
            ));
        }
    }
    let beyond = op("remove_extent: dev 7,2 ino 8 es [5/4294967295)");
    assert_eq!(
        beyond,
        Op::Remove {
            ino: 8,
            lblk: 5,
            len: 4_294_967_290
        }
    );
}

#[test]
fn wrong_fields_say_what_was_expected() {
    for (fields, expected) in [
        (
            "insert_extent: dev 7 ino 8",
            "expected `dev MAJOR,MINOR`, found \"ino 8\"",
        ),
        (
            "insert_extent: dev 7,2 ino 8 es [0/4] mapped 9 status W",
            "expected a range `[LBLK/LEN)` of 32-bit numbers, found \"] mapped 9 status W\"",
        ),
        (
            "insert_extent: dev 7,2 ino 8 es [4294967295/1) mapped 9 status W",
            "expected a range that ends at block 4294967294 or before, found \" [4294967295/1) mapped 9 status W\"",
        ),
        (
            "insert_extent: dev 7,2 ino 8 es [0/1) mapped 9 status",
            "expected exactly one of the statuses W, U, D, H, or UD, found the end of the line",
        ),
        (
            "insert_extent: dev 7,2 ino 8 es [0/1) mapped 9 status WX",
            "expected status letters W, U, D, H, R or their bits, found \"WX\"",
        ),
        (
            "lookup_extent_exit: dev 7,2 ino 8 found 2 [0/1) 9 W",
            "expected `found 0` or `found 1`, found \"2 [0/1) 9 W\"",
        ),
        (
            "lookup_extent_enter: dev 7,2 ino 8 lblk 3 more",
            "expected the end of the line, found \" more\"",
        ),
        (
            "lookup_extent_enter: dev 7,2 ino 8 lblk 4294967296",
            "expected `lblk N` below 4294967296, found \" 4294967296\"",
        ),
    ] {
        let line = format!("a-1 [000] ..... 5: ext4_es_{fields}");
        let error = parse_line(line.as_bytes()).expect_err(fields);
        assert_eq!(error.to_string(), expected, "{fields}");
    }
}

#[test]
fn what_does_not_concern_the_cache_is_passed_over() {
    for (line, expected) in [
        ("# tracer: nop", None),
        ("cpus=2", None),
        ("", None),
        ("# entries-in-buffer/entries-written: 5/5   #P:2", None),
        (
            "# entries-in-buffer/entries-written: 5/12   #P:2",
            Some(Event::Lost(7)),
        ),
        ("CPU:1 [LOST 123 EVENTS]", Some(Event::Lost(123))),
        ("CPU:1 [LOST EVENTS]", Some(Event::Lost(0))),
        (
            "\tffffffff ext4_es_lookup_extent+0x1 ([kernel])",
            Some(Event::Foreign),
        ),
        (
            "a-1 [000] ..... 5: block_touch_buffer: 7,1 sector=137",
            Some(Event::Foreign),
        ),
        (
            "a-1 [000] ..... 5: ext4_es_new_thing: dev 7,1",
            Some(Event::Unknown(b"ext4_es_new_thing")),
        ),
    ] {
        assert_eq!(parse_line(line.as_bytes()), Ok(expected), "{line}");
    }
}
