//! Properties: what was read and printed reads the same again, and nothing a user writes makes the parser
//! panic.
#![allow(clippy::unwrap_used, reason = "a failure here is the test's own")]

use std::fmt::Write;

use cairn_fio::job::{IoEngine, RwMode, VerifyKind};
use cairn_fio::options::{self, Tier};
use cairn_fio::parse::Keywords;
use cairn_fio::{Parser, Plan};
use proptest::prelude::*;
use proptest::sample::select;

const MACHINE: Keywords = Keywords {
    pagesize: 4096,
    mb_memory: 1024,
    ncpus: 2,
};

/// A parser that knows no files and no variables.
fn parser() -> Parser<'static> {
    Parser::new()
        .files(|name| Err(std::io::Error::other(format!("no {name} here"))))
        .environment(|_| None)
        .keywords(MACHINE)
}

fn size() -> impl Strategy<Value = String> {
    (
        1_u64..5000,
        select(vec!["", "k", "K", "m", "mb", "kib", "MiB", "b", "g"]),
    )
        .prop_map(|(n, unit)| format!("{n}{unit}"))
}

fn time() -> impl Strategy<Value = String> {
    (0_u64..500, select(vec!["", "us", "ms", "msec", "s", "m"]))
        .prop_map(|(n, unit)| format!("{n}{unit}"))
}

fn text() -> impl Strategy<Value = String> {
    "[!-\"%&(-:<-~]([ -\"%-:<-~]{0,30}[!-\"%&(-:<-~])?"
        .prop_filter("a keyword", |t| !t.contains('$'))
}

/// `key=value`, or a bare key, that is right by itself.
fn option() -> impl Strategy<Value = String> {
    let words = |key: &'static str, words: &'static [&'static str]| {
        select(words).prop_map(move |word| format!("{key}={word}"))
    };
    let sized = vec![
        "size",
        "io_size",
        "offset",
        "offset_increment",
        "filesize",
        "rate",
        "bs",
        "blocksize",
        "ba",
    ];
    let timed = vec![
        "runtime",
        "timeout",
        "ramp_time",
        "startdelay",
        "thinktime",
        "latency_target",
        "max_latency",
    ];
    let flags = vec![
        "norandommap",
        "time_based",
        "group_reporting",
        "stonewall",
        "thread",
        "new_group",
        "refill_buffers",
        "zero_buffers",
        "exitall",
        "bs_unaligned",
        "write_bw_log",
    ];
    let bools = vec![
        "direct",
        "buffered",
        "randrepeat",
        "gtod_reduce",
        "disable_lat",
        "invalidate",
        "end_fsync",
        "verify_fatal",
        "do_verify",
        "unlink",
        "create_on_open",
        "log_offset",
    ];
    let small = vec![
        "iodepth",
        "numjobs",
        "loops",
        "nrfiles",
        "fsync",
        "fdatasync",
        "verify_backlog",
        "log_avg_msec",
        "number_ios",
        "randseed",
        "rwmixread",
        "rwmixwrite",
        "flow",
    ];
    prop_oneof![
        (select(sized.clone()), size()).prop_map(|(key, v)| format!("{key}={v}")),
        (select(timed), time()).prop_map(|(key, v)| format!("{key}={v}")),
        select(flags).prop_map(str::to_owned),
        (select(bools), any::<bool>()).prop_map(|(key, on)| format!("{key}={}", u8::from(on))),
        (select(small), 1_u32..100).prop_map(|(key, n)| format!("{key}={n}")),
        words("rw", RwMode::WORDS),
        words("verify", VerifyKind::WORDS),
        words(
            "ioengine",
            &["libaio", "io_uring", "psync", "null", "sync", "mmap"]
        ),
        (size(), size(), size()).prop_map(|(a, b, c)| format!("bs={a},{b},{c}")),
        (size(), size()).prop_map(|(a, b)| format!("bsrange={a}-{b}")),
        (1_u8..100, 1_u32..5000, 1_u32..5000)
            .prop_map(|(p, a, b)| format!("bssplit={a}k/{p}:{b}/")),
        (1_u32..100).prop_map(|p| format!("size={p}%")),
        (1_u32..90).prop_map(|n| format!("random_distribution=zipf:0.{n}")),
        (1_u32..100).prop_map(|n| format!("rw=randread:{n}")),
        size().prop_map(|n| format!("rw=write:{n}")),
        text().prop_map(|t| format!("description={t}")),
        text().prop_map(|t| format!("filename={t}")),
        "[a-z]{1,8}".prop_map(|t| format!("name={t}")),
        Just("kb_base=1000".to_owned()),
    ]
}

fn section() -> impl Strategy<Value = (String, Vec<String>)> {
    let name = prop_oneof![2 => "[a-z][a-z0-9 ]{0,10}[a-z0-9]", 1 => Just("global".to_owned())];
    (name, prop::collection::vec(option(), 0..8))
}

fn job_file() -> impl Strategy<Value = String> {
    prop::collection::vec(section(), 1..5).prop_map(|sections| {
        let mut text = String::new();
        for (name, lines) in sections {
            writeln!(text, "[{name}]").unwrap();
            for line in lines {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text.push_str("[last]\n");
        text
    })
}

fn reads_the_same(plan: &Plan) -> Result<(), TestCaseError> {
    let text = plan.to_job_file().unwrap();
    let again = parser()
        .job_text("again", &text)
        .map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
    prop_assert_eq!(&again, plan, "printed as\n{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_job_files_read_the_same(text in job_file()) {
        let plan = parser().job_text("generated", &text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        reads_the_same(&plan)?;
        let words = plan.to_arguments();
        let again = parser().command_line(&words).map_err(|e| TestCaseError::fail(format!("{e}\n{words:?}")))?;
        prop_assert_eq!(again.jobs.len(), plan.jobs.len());
        for (new, old) in again.jobs.iter().zip(&plan.jobs) {
            prop_assert!(new.same_workload(old), "{:?} from {:?}", words, text);
            prop_assert_eq!(&new.name, &old.name);
            prop_assert_eq!(new.group, old.group);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,400}") {
        if let Ok(plan) = parser().job_text("any", &text) {
            let _ = plan.to_job_file();
        }
    }

    #[test]
    fn any_value_is_read_or_refused(
        index in 0..options::all().count(),
        value in prop_oneof!["[0-9a-zA-Z:/,%.()*+x-]{0,24}", ".{0,24}", size(), time()],
    ) {
        let def = options::all().nth(index).unwrap();
        let line = format!("[j]\n{}={value}\n", def.name);
        if let Ok(plan) = parser().job_text("any", &line) {
            // What was read can be asked about, and survives printing where a file can say it.
            let job = &plan.jobs[0];
            for tier in [Tier::Must, Tier::Next, Tier::Noted] {
                let _ = plan.changing(job, tier);
            }
            let _ = (plan.clones().len(), job.files.count(), job.max_block(), job.queue.effective_depth());
            if plan.to_job_file().is_ok() {
                reads_the_same(&plan)?;
            }
        }
    }

    #[test]
    fn any_command_line_is_read_or_refused(
        words in prop::collection::vec(prop_oneof![
            "-{0,2}[a-z_-]{0,12}(=[ -~]{0,12})?",
            ".{0,12}",
            option().prop_map(|o| format!("--{o}")),
            select(vec!["--name=j", "--output-format=json,terse", "--section=x", "--", "-", "--lenient", "--eta-newline=1"]).prop_map(str::to_owned),
        ], 0..8),
    ) {
        let _ = parser().command_line(&words);
    }

    #[test]
    fn several_files_keep_their_workloads(first in job_file(), second in job_file()) {
        let files = [("first", &first), ("second", &second)];
        let parser = parser().files(|name| {
            let found = files.iter().find(|(n, _)| *n == name);
            found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| std::io::Error::other("no such file"))
        });
        let plan = parser.command_line(["--bs=2k", "first", "second"]).unwrap();
        if let Ok(text) = plan.to_job_file() {
            let again = parser.job_text("again", &text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            for (new, old) in again.jobs.iter().zip(&plan.jobs) {
                prop_assert!(new.same_workload(old), "printed as\n{}", text);
                prop_assert_eq!(new.group, old.group);
            }
        }
    }

    #[test]
    fn lenient_parsing_lists_what_it_left_out(name in "[a-z]{9,14}q", rest in option()) {
        prop_assume!(options::find(&name).is_none());
        let text = format!("[j]\n{name}=1\n{rest}\n");
        prop_assert!(parser().job_text("strict", &text).is_err());
        let plan = parser().lenient(true).job_text("lenient", &text).unwrap();
        prop_assert_eq!(&plan.jobs[0].ignored[0].name, &name);
        prop_assert_eq!(plan.notes.len(), 1);
    }

    #[test]
    fn engines_of_every_name_are_told_apart(word in select(IoEngine::WORDS)) {
        let engine = IoEngine::from_word(word).unwrap();
        prop_assert_eq!(engine.word(), word);
    }
}
