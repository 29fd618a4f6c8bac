//! The machine code of the operations, as the optimiser left it: `lock bts` where one bit's old
//! value is asked for, `lock xadd` where an unlock learns of waiters, no compare-and-swap loop, and
//! not one instruction for a probe that is off.
//!
//! Only rustc 1.95 on x86-64: other versions may do better or worse and are looked at then.

#![cfg(not(any(loom, miri)))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: a failure is a failed test, a skip is said"
)]

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Instructions of each function, without labels and directives; branch targets have no names.
type Functions = HashMap<String, Vec<String>>;

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn skipped() -> bool {
    let version = Command::new(rustc()).arg("-V").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&version);
    let skip = !version.starts_with("rustc 1.95.") || !cfg!(target_arch = "x86_64");
    if skip {
        let arch = std::env::consts::ARCH;
        println!(
            "skipped: disassembly tests need rustc 1.95.x on x86_64, this is {} on {arch}",
            version.trim()
        );
    }
    skip
}

/// Builds the library as a release has it, then the functions against it, to assembly.
fn compile() -> Functions {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("codegen");
    let asm = target.join("functions.s");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    run(Command::new(env!("CARGO"))
        .current_dir(package)
        .args(["build", "--release", "--lib", "--target-dir"])
        .arg(&target)
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET"));
    let release = target.join("release");
    run(Command::new(rustc())
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "-C",
            "opt-level=3",
        ])
        .args([
            "-C",
            "codegen-units=1",
            "-C",
            "llvm-args=-x86-asm-syntax=intel",
        ])
        .arg("-L")
        .arg(format!("dependency={}", release.join("deps").display()))
        .arg("--extern")
        .arg(format!(
            "cairn_flags={}",
            release.join("libcairn_flags.rlib").display()
        ))
        .arg("--emit")
        .arg(format!("asm={}", asm.display()))
        .arg(package.join("tests/codegen/functions.rs")));
    parse(&std::fs::read_to_string(asm).unwrap())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

fn parse(asm: &str) -> Functions {
    let mut functions = Functions::new();
    let mut aliases = Vec::new();
    let mut current = None;
    for line in asm.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(label) = line.strip_suffix(':') {
            if !label.starts_with('.') {
                current = Some(label.to_string());
                functions.insert(label.to_string(), Vec::new());
            }
        } else if let Some((alias, name)) = line.split_once(" = ") {
            // Functions with the same instructions are merged.
            aliases.push((alias.to_string(), name.to_string()));
        } else if line == ".cfi_endproc" {
            current = None;
        } else if let Some(name) = &current
            && !line.is_empty()
            && !line.starts_with(['.', '#'])
        {
            let words: Vec<&str> = line.split_whitespace().map(nameless).collect();
            functions.get_mut(name).unwrap().push(words.join(" "));
        }
    }
    for (alias, name) in aliases {
        if let Some(instructions) = functions.get(&name).cloned() {
            functions.insert(alias, instructions);
        }
    }
    functions
}

fn nameless(word: &str) -> &str {
    if word.starts_with(".L") { ".L" } else { word }
}

struct Code<'a> {
    name: &'a str,
    instructions: &'a [String],
}

impl Code<'_> {
    fn count(&self, what: &str) -> usize {
        self.instructions
            .iter()
            .filter(|i| i.contains(what))
            .count()
    }

    /// Exactly these locked instructions, in this order, and no compare-and-swap.
    fn locked(&self, wanted: &[&str]) -> &Self {
        let locked: Vec<&String> = self
            .instructions
            .iter()
            .filter(|i| i.starts_with("lock"))
            .collect();
        let fits = locked.len() == wanted.len()
            && locked
                .iter()
                .zip(wanted)
                .all(|(is, want)| is.starts_with(want));
        assert!(
            fits,
            "{}: wanted {wanted:?} in {:#?}",
            self.name, self.instructions
        );
        for never in ["cmpxchg", "mfence"] {
            assert_eq!(
                self.count(never),
                0,
                "{}: {never} in {:#?}",
                self.name,
                self.instructions
            );
        }
        self
    }
}

#[test]
fn machine_code_is_what_the_docs_promise() {
    if skipped() {
        return;
    }
    let functions = compile();
    let code = |name| Code {
        name,
        instructions: functions
            .get(name)
            .unwrap_or_else(|| panic!("no function {name}")),
    };

    let mut twins = 0;
    for (name, by_hand) in &functions {
        if let Some(name) = name.strip_suffix("_by_hand") {
            let ours = code(name).instructions;
            assert_eq!(ours, by_hand, "{name} against plain atomics");
            twins += 1;
        }
    }
    assert_eq!(twins, 9, "functions with a twin written by hand");

    code("hint_test").locked(&[]);
    code("hint_set").locked(&["lock or"]);
    code("hint_set_always").locked(&["lock or"]);
    code("hint_clear").locked(&["lock and"]);
    code("publish").locked(&["lock or"]);
    code("publish_test").locked(&[]);
    code("plain_set").locked(&["lock or"]);

    // The barrier on the path of a bit that is set, then the RMW.
    code("work_mark").locked(&["lock or", "lock or"]);
    code("work_mark_always").locked(&["lock or"]);
    code("work_take").locked(&["lock btr", "lock or"]);

    for tas in [
        "test_and_set_0",
        "test_and_set_5",
        "test_and_set_31",
        "wide_test_and_set_0",
        "wide_test_and_set_63",
        "small_test_and_set_0",
        "small_test_and_set_15",
    ] {
        code(tas).locked(&["lock bts"]);
    }
    // The top bit, which LLVM would rather test as a sign.
    code("top_hint_set").locked(&["lock or"]);
    for tas in [
        "top_hint_set_tell",
        "top_publish",
        "top_work_mark_always",
        "top_lock_try",
    ] {
        code(tas).locked(&["lock bts"]);
    }
    code("top_work_take").locked(&["lock btr", "lock or"]);
    code("test_and_clear_5").locked(&["lock btr"]);
    code("test_and_toggle_5").locked(&["lock btc"]);

    code("lock_try_and_leak").locked(&["lock bts"]);
    // The lock, then the two ways to unlock: alone, and with a waiters bit seen before.
    let pair = code("lock_and_unlock");
    assert_eq!(pair.count("lock bts"), 1);
    assert_eq!(pair.count("lock xadd"), 1);
    assert_eq!(pair.count("lock and"), 1);
    assert_eq!(pair.count("lock"), 3, "{:#?}", pair.instructions);
    assert_eq!(pair.count("cmpxchg"), 0);

    code("exclusive_set").locked(&[]);
    code("exclusive_retract").locked(&[]);
    code("stub_set").locked(&[]);

    // The policy costs one load and one branch.
    let with = code("hint_set_with");
    assert!(with.count("lock or") >= 1 && with.count("cmpxchg") == 0);
    assert_eq!(with.count("call"), 0);
}

/// The parser must find what the test looks for.
#[test]
fn the_parser_reads_assembly() {
    let functions = parse(
        "\t.globl\tf\nf:\n\t.cfi_startproc\n\tlock\t\tbts\tdword ptr [rdi], 3\n\tjb\t.LBB0_1\n.LBB0_1:\n\tret\n\t.cfi_endproc\ng = f\n",
    );
    assert_eq!(
        functions["f"],
        ["lock bts dword ptr [rdi], 3", "jb .L", "ret"]
    );
}
