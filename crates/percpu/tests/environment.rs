//! What the environment says about backends, each in a process of its own.
#![cfg(not(loom))]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the child reports on stdout, and a test that fails may panic"
)]

use std::env;
use std::process::Command;
use std::thread;

use cairn_percpu::{BackendKind, Batched, Counter, effective_backend, rseq_available};

/// Tells the child that it is one.
const CHILD: &str = "PERCPU_TEST_CHILD";

/// The other process: counts, and says with what.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    println!("default: {}", effective_backend());
    let asked = Counter::builder().backend(BackendKind::RseqCpu).build();
    println!("asked: {}", asked.backend());
    let counter = Counter::new();
    let batched = Batched::new();
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..10_000 {
                    counter.inc();
                    asked.inc();
                    batched.add(1);
                }
            });
        }
    });
    println!(
        "counted: {} {} {}",
        counter.sum(),
        asked.sum(),
        batched.sum()
    );
}

/// What the child said, in an environment with these variables on top.
fn child_with(variables: &[(&str, &str)], through: &[&str]) -> String {
    let this = env::current_exe().unwrap();
    let mut command = match through.split_first() {
        None => Command::new(&this),
        Some((program, options)) => {
            let mut command = Command::new(program);
            command.args(options).arg(&this);
            command
        }
    };
    command
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env_remove("CAIRN_PERCPU")
        .env_remove("GLIBC_TUNABLES")
        .env(CHILD, "1")
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("counted: 40000 40000 40000"), "{said}");
    said
}

#[test]
fn the_variable_chooses_the_default() {
    let said = child_with(&[], &[]);
    assert!(said.contains("default: owned (default)"), "{said}");
    let said = child_with(&[("CAIRN_PERCPU", "striped")], &[]);
    assert!(said.contains("default: striped (CAIRN_PERCPU)"), "{said}");
    let said = child_with(&[("CAIRN_PERCPU", "owned")], &[]);
    assert!(said.contains("default: owned (CAIRN_PERCPU)"), "{said}");
    let said = child_with(&[("CAIRN_PERCPU", "rseq")], &[]);
    let expected = match rseq_available() {
        Ok(()) => "default: rseq (CAIRN_PERCPU)".to_owned(),
        Err(why) => format!("default: owned (CAIRN_PERCPU asked for rseq: {why})"),
    };
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn an_unknown_value_counts_as_unset_and_is_named() {
    for value in ["fast", "", "Owned", "rseq-cid"] {
        let said = child_with(&[("CAIRN_PERCPU", value)], &[]);
        let expected = format!(
            "default: owned (default; CAIRN_PERCPU={value:?} is none of owned, rseq, striped)"
        );
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn the_builder_goes_before_the_environment() {
    let said = child_with(&[("CAIRN_PERCPU", "striped")], &[]);
    match rseq_available() {
        Ok(()) => assert!(said.contains("asked: rseq (builder)"), "{said}"),
        Err(_) => assert!(
            said.contains("asked: owned (builder asked for rseq"),
            "{said}"
        ),
    }
}

#[test]
fn without_registration_rseq_is_refused_and_owned_counts() {
    if cfg!(not(all(
        target_os = "linux",
        target_env = "gnu",
        feature = "rseq"
    ))) {
        println!("skipped: no glibc, or no rseq in this build");
        return;
    }
    let off = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let said = child_with(&[off, ("CAIRN_PERCPU", "rseq")], &[]);
    let refused = [
        "asked for rseq: the C library's rseq area is not registered",
        "asked for rseq: the C library registers no rseq area",
        "this build has no restartable sequences",
    ];
    assert!(said.contains("default: owned (CAIRN_PERCPU"), "{said}");
    assert!(refused.iter().any(|why| said.contains(why)), "{said}");
}

#[test]
fn under_valgrind_rseq_is_refused_and_owned_counts() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind here");
        return;
    }
    let said = child_with(&[("CAIRN_PERCPU", "rseq")], &["valgrind", "-q"]);
    assert!(said.contains("default: owned (CAIRN_PERCPU"), "{said}");
}
